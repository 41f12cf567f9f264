"""At home in Label Studio: the contract of its ML backends, as routes of the live service.

Label Studio sends its tasks to `predict`, gets a class and a score for each, sorts by the score, and sends what people
annotate to `webhook`. The address of the backend is `http://NAME:TOKEN@HOST/api/agents/AGENT/label-studio`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

try:
    from fastapi import APIRouter
    from pydantic import AliasChoices, BaseModel, Field
except ImportError:
    raise ImportError("the Label Studio backend needs the service: pip install 'sparingly[service]'") from None

from sparingly.adapters.label_studio_tasks import WORDS, Choices, features_of, ticket_id
from sparingly.adapters.strategy_factory import probabilities
from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.ticket_records import OPEN
from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN, HOST
from sparingly.live.service.service import AnsweringAgent, Here, Json, Name, ObservingAgent, Service, TheAgent

router = APIRouter(prefix="/api/agents/{agent}/label-studio", tags=["label studio"])
Host = Annotated[Identity, allowed(HOST, ADMIN)]

_ANNOTATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED")


class SetupIn(BaseModel):
    """What Label Studio says when it connects; there is more, which does not matter here."""

    project: str | None = None
    label_config: str = Field("", validation_alias=AliasChoices("schema", "label_config"))


class PredictIn(BaseModel):
    tasks: list[dict[str, Any]]
    label_config: str
    project: str | None = None


class WebhookIn(BaseModel):
    action: str
    project: dict[str, Any] | None = None
    task: dict[str, Any] | list[dict[str, Any]] | None = None
    annotation: dict[str, Any] | list[dict[str, Any]] | None = None


@router.get("/health")
async def health(the_agent: TheAgent, who: Host) -> Json:
    """The agent can be used."""
    return {"status": "UP", "model_class": the_agent.settings.strategy}


@router.post("/setup")
async def setup(body: SetupIn, here: Here, the_agent: TheAgent, who: Host) -> Json:
    """Whether the choices of a project are the agent's classes, and the model's version."""
    Choices.of(body.label_config).check(the_agent.classes)
    return {"model_version": await here.call(_version, the_agent)}


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
async def webhook(body: WebhookIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Host) -> Json:
    """An annotation, which is an answer; other events are none of our business."""
    done = []
    if body.action in _ANNOTATED:
        for task, annotation in zip(_many(body.task), _many(body.annotation), strict=True):
            done.append(await here.call(_annotated, here, agent, the_agent, who, body.project or {}, task, annotation))
    return {"status": "ok", "tickets": done}


def _predict(agent: Agent, body: PredictIn) -> list[Json]:
    if not body.tasks:
        return []
    choices = Choices.of(body.label_config)
    choices.check(agent.classes)
    X = [features_of(task, choices, _width(agent)) for task in body.tasks]
    ids = [_ticket(body.project, task, x) for task, x in zip(body.tasks, X, strict=True)]
    agent.observe_many(X, ids=ids, payloads=[_payload(task, choices) for task in body.tasks])
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


def _annotated(
    here: Service,
    name: str,
    agent: Agent,
    who: Identity,
    project: Mapping[str, Any],
    task: Mapping[str, Any],
    annotation: Mapping[str, Any],
) -> Json:
    """Take an annotation as the answer to its task's question; a skipped task is a skipped question."""
    choices = Choices.of(str(project.get("label_config", "")))
    x = features_of(task, choices, _width(agent))
    ticket = agent.observe(x, id=_ticket(project.get("id"), task, x), payload=_payload(task, choices))
    label = choices.chosen(annotation.get("result") or [])
    if annotation.get("was_cancelled") or label is None:
        if agent.ticket(ticket.id).status == OPEN:
            agent.skip(ticket.id, audit=line_of(who, "skipped"))
        return {"ticket": ticket.id, "label": None}
    agent.answer(ticket.id, _class(agent, label), audit=line_of(who, "answered", label))
    here.metrics.answers.labels(name, "answered").inc()
    return {"ticket": ticket.id, "label": label}


def _class(agent: Agent, label: str) -> Any:
    """The class that a choice stands for; choices are always words."""
    return next((known for known in agent.classes if str(known) == label), label)


def _version(agent: Agent) -> str:
    """Grows with the labels, so that Label Studio asks again once there are more."""
    return f"sparingly-{agent.stats().answered}"


def _width(agent: Agent) -> int:
    return agent.settings.shape[0] if agent.settings.shape else WORDS


def _ticket(project: Any, task: Mapping[str, Any], x: Any) -> str:
    return ticket_id(project if project is not None else task.get("project"), task, x)


def _payload(task: Mapping[str, Any], choices: Choices) -> str | None:
    """What a person would read on our own page."""
    texts = [str(task["data"][field]) for field in choices.texts if (task.get("data") or {}).get(field)]
    return "\n".join(texts) or None


def _many(one: dict[str, Any] | list[dict[str, Any]] | None) -> Sequence[dict[str, Any]]:
    return one if isinstance(one, list) else [] if one is None else [one]
