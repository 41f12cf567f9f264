"""At home in Label Studio: the contract of its ML backends, as routes of the live service.

Label Studio sends its tasks to `predict`, gets a class and a score for each, sorts by the score, and sends what people
annotate to `webhook`. The address of the backend is `http://NAME:TOKEN@HOST/api/agents/AGENT/label-studio`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

try:
    from fastapi import APIRouter, Depends, Request
except ImportError:
    raise ImportError("the Label Studio backend needs the service: pip install 'sparingly[service]'") from None

from sparingly.adapters.label_studio.label_studio_annotations import Annotation, Annotations, class_of
from sparingly.adapters.label_studio.label_studio_api import LabelStudioError
from sparingly.adapters.label_studio.label_studio_bodies import (
    AnnotationIn,
    PredictIn,
    ResyncIn,
    ResyncOut,
    SetupIn,
    WebhookIn,
)
from sparingly.adapters.label_studio.label_studio_resync import ProjectConnection, Resync, TaskContent, resyncing
from sparingly.adapters.label_studio.label_studio_tasks import Choices, project_number
from sparingly.adapters.strategy_factory import probabilities
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN, HOST
from sparingly.live.service.routes.wire_models import ERROR_RESPONSES, ErrorOut
from sparingly.live.service.service import AnsweringAgent, Here, Json, Name, ObservingAgent, TheAgent
from sparingly.live.service.web.error_responses import HTTPError
from sparingly.live.tickets.ticket_records import OPEN

T = TypeVar("T")


async def resync_of(request: Request) -> Resync:
    found: Resync = request.app.state.label_studio
    return found


router = APIRouter(
    prefix="/api/agents/{agent}/label-studio", tags=["label studio"], lifespan=resyncing, responses=ERROR_RESPONSES
)
Host = Annotated[Identity, allowed(HOST, ADMIN)]
TheResync = Annotated[Resync, Depends(resync_of)]

_ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")
_DELETED = "ANNOTATIONS_DELETED"
_NO_ANSWER = "Label Studio cannot be reached, or refuses."


@router.get("/health")
async def health(the_agent: TheAgent, who: Host) -> Json:
    """The agent can be used."""
    return {"status": "UP", "model_class": the_agent.settings.strategy}


@router.post("/setup")
async def setup(body: SetupIn, agent: Name, here: Here, the_agent: TheAgent, who: Host, resync: TheResync) -> Json:
    """Whether the choices of a project are the agent's classes, and the model's version.

    Where Label Studio is, which it says here, is remembered, and what was annotated before is fetched.
    """
    Choices.of(body.label_config).check(the_agent.classes)
    if body.hostname and body.access_token and body.project is not None:
        project = _checked_project(body.project)
        connection = ProjectConnection(body.hostname, body.access_token, is_told=False)
        if await here.call(resync.connections.put, agent, project, connection):
            resync.begin(agent, project)
    return {"model_version": await here.call(_version, the_agent)}


@router.post("/resync", response_model=ResyncOut, responses={502: {"model": ErrorOut, "description": _NO_ANSWER}})
async def resync_now(
    body: ResyncIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Host, resync: TheResync
) -> ResyncOut:
    """Fetch every annotation of a project, of all that are known if none is named; returns when that is done."""
    if (body.url is None) != (body.token is None) or (body.url is not None and body.project is None):
        raise AgentError("url, token and project are given together, or neither url nor token")
    projects = [project for name, project in await here.call(resync.connections.known) if name == agent]
    if body.project is not None:
        projects = [_checked_project(body.project)]
    if body.url is not None and body.token is not None:
        connection = ProjectConnection(body.url, body.token, is_told=True)
        await here.call(resync.connections.put, agent, projects[0], connection)
    try:
        done = [await resync.run(agent, project, who) for project in projects]
    except LabelStudioError as error:
        raise HTTPError(502, str(error)) from None
    return ResyncOut(
        tasks=sum(one.tasks for one in done),
        annotations=sum(one.annotations for one in done),
        changed=sum(one.changed for one in done),
        problems=[problem for one in done for problem in one.problems],
    )


@router.get("/versions")
async def versions(here: Here, the_agent: TheAgent, who: Host) -> Json:
    """The version there is: predictions of an older one are made anew."""
    return {"versions": [await here.call(_version, the_agent)]}


@router.post("/predict")
async def predict(body: PredictIn, agent: Name, here: Here, the_agent: ObservingAgent, who: Host) -> Json:
    """A class and a score for each task; those worth asking about have the low scores."""
    if len(body.tasks) > here.limits.block:
        raise AgentError(f"there are {len(body.tasks)} tasks: {here.limits.block} are the most in a call")
    results = await here.call(_predict, the_agent, body)
    here.metrics.observations.labels(agent).inc(len(results))
    return {"results": results}


@router.post("/webhook")
async def webhook(
    body: WebhookIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Host, resync: TheResync
) -> Json:
    """An annotation is an answer, and a deleted one is unlearned; other events are ignored."""
    project = project_number(body.project.id if body.project is not None else None)
    if body.action == _DELETED and body.annotations is not None:
        ids = [one.id for one in body.annotations]
        annotations = await here.call(Annotations, here.database, agent, the_agent, project, who)
        tickets = await here.call(annotations.remove, ids)
        return {"status": "ok", "tickets": [{"ticket": ticket, "label": None} for ticket in tickets]}
    if body.action not in _ANNOTATED:
        return {"status": "ok", "tickets": []}
    given = _many(body.annotation)
    if len(given) != len(_many(body.task)):
        raise AgentError(f"there are {len(given)} annotations for {len(_many(body.task))} tasks")
    choices = Choices.of(body.project.label_config if body.project is not None else "")
    contents = [TaskContent.of(the_agent, project, task, choices) for task in _many(body.task)]
    connection = await here.call(resync.connections.get, agent, project)
    found = [await _read(resync, the_agent, one, choices, connection, who) for one in given]
    annotations = await here.call(Annotations, here.database, agent, the_agent, project, who)
    for content, one in zip(contents, found, strict=True):
        await here.call(_annotated, the_agent, annotations, content, one)
        here.metrics.answers.labels(agent, "skipped" if one.label is None else "answered").inc()
    done = [{"ticket": c.ticket, "label": one.label} for c, one in zip(contents, found, strict=True)]
    return {"status": "ok", "tickets": done}


def _predict(agent: Agent, body: PredictIn) -> list[Json]:
    if not body.tasks:
        return []
    choices = Choices.of(body.label_config)
    choices.check(agent.classes)
    contents = [TaskContent.of(agent, body.project, task, choices) for task in body.tasks]
    X = [content.features for content in contents]
    ids = [content.ticket for content in contents]
    agent.observe_many(X, ids=ids, payloads=[content.payload for content in contents])
    probability = probabilities(agent.scores(X), len(agent.classes))
    expected = probability @ agent.settings.game.costs[: len(agent.classes)].T
    version = _version(agent)
    return [
        {
            "result": choices.result(str(agent.classes[expected[row].argmin()])),
            "score": _score(agent.ticket(ids[row]).status == OPEN, float(probability[row].max())),
            "model_version": version,
        }
        for row in range(len(ids))
    ]


def _score(is_open: bool, confidence: float) -> float:
    """Up to 1/2 for open questions, above for the others; among either, the less sure come first."""
    return confidence / 2 if is_open else (1 + confidence) / 2


async def _read(
    resync: Resync,
    agent: Agent,
    given: AnnotationIn,
    choices: Choices,
    connection: ProjectConnection | None,
    who: Identity,
) -> Annotation:
    """An annotation whose class the agent has."""
    one = await resync.read(given, choices, connection, who.name)
    if one.label is not None:
        class_of(agent, one.label)
    return one


def _annotated(agent: Agent, annotations: Annotations, content: TaskContent, one: Annotation) -> None:
    """Take an annotation as the answer to its task's question; a skipped task is a skipped question."""
    agent.observe_many([content.features], ids=[content.ticket], payloads=[content.payload])
    annotations.put(content.ticket, [one])


def _checked_project(project: int | str) -> str:
    number = project_number(project)
    if not (number.isascii() and number.isdigit()):
        raise AgentError(f"project {project!r} is not a project's number")
    return number


def _version(agent: Agent) -> str:
    """Grows with the labels, so that Label Studio asks again once there are more."""
    return f"sparingly-{agent.stats().answered}"


def _many(one: T | list[T] | None) -> Sequence[T]:
    return one if isinstance(one, list) else [] if one is None else [one]
