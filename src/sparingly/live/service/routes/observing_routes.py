"""Routes for programs that observe."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, HTTPException, Query, Request, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import (
    BaseModel,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from starlette.types import Receive, Scope, Send

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError
from sparingly.live.service.agent_registry import NAME
from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import SECURITY, Identity, allowed, caller_of
from sparingly.live.service.auth.tokens import ADMIN, PRODUCER
from sparingly.live.service.routes.wire_models import ERROR_RESPONSES, DoneOut, Id, Label, Strict, TicketIn
from sparingly.live.service.service import (
    AnsweringAgent,
    Here,
    Json,
    Name,
    ObservingAgent,
    Service,
    TheAgent,
    observing_agent_of,
    service_of,
)
from sparingly.live.service.web.images import checked_image, decoded
from sparingly.live.tickets.ticket_records import Entry, Payload, Ticket, checked_payload

router = APIRouter(prefix="/api/agents/{agent}", tags=["observe"], responses=ERROR_RESPONSES)
Producer = Annotated[Identity, allowed(PRODUCER, ADMIN)]
Admin = Annotated[Identity, allowed(ADMIN)]


class PayloadIn(Strict):
    """What a person looks at: exactly one of an image (base64), a text, or a table of fields."""

    image: StrictStr | None = None
    text: StrictStr | None = None
    fields: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr | None] | None = None


class ObservationIn(Strict):
    """One observation: a vector, a row, a text or an image, the caller's own id, and what a person would look at.

    One of `features`, `text` and `image`; an image, a text, or a row with words, is shown if there is no payload.
    """

    features: list[Any] | dict[str, Any] | None = Field(
        None, description="Numbers in order, nested lists for an image, or a row by name: numbers, words, null, ..."
    )
    text: StrictStr | None = Field(None, description="In place of features, for an agent that observes texts.")
    image: StrictStr | None = Field(None, description="In place of features, a file in base64: its own pixels.")
    id: Id | StrictInt | None = Field(None, description="Yours; the same call again returns the same ticket.")
    payload: PayloadIn | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> ObservationIn:
        if [self.features, self.text, self.image].count(None) != 2:
            raise ValueError("give features or a text or an image, one of them")
        return self


class BlockIn(Strict):
    """Several observations, all taken or none."""

    observations: list[ObservationIn]


class KnownLabelIn(ObservationIn):
    """An observation whose class is known already."""

    label: Label


class TeachIn(Strict):
    """Labels that are there already, all taken or none."""

    observations: list[KnownLabelIn]


class PlantIn(TeachIn):
    """Items whose classes are known, all taken or none."""

    teach: StrictBool = Field(False, description="Whether their labels are learned, too.")


class PlantedOut(BaseModel):
    tickets: list[str]


class TaughtOut(BaseModel):
    taught: int = Field(description="How many of the labels were new.")


class TicketsOut(BaseModel):
    tickets: list[Ticket]


class ChangesOut(BaseModel):
    tickets: list[Entry]
    next: int = Field(description="Pass as `since` for what happens next.")


_ticket = TypeAdapter(Ticket)
_NAME = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class Observing:
    """The service and the agent of a call that observes."""

    here: Service
    name: str
    agent: Agent


async def observing(request: Request, agent: Name) -> Observing:
    """All that the two routes below depend on, at once: FastAPI takes longer for each dependency than we do."""
    caller_of(request, PRODUCER, ADMIN)
    return Observing(await service_of(request), agent, await observing_agent_of(request, agent))


Call = Annotated[Observing, Depends(observing)]


@router.post("/observations", response_model=Ticket, openapi_extra=SECURITY)
async def observe(body: ObservationIn, call: Call) -> Response:
    """Decide on one observation; it is on disk when the answer comes."""
    _check_count(body.features, call.here)
    (ticket,) = await _observe(call.here, call.agent, [body])
    call.here.metrics.observations.labels(call.name).inc()
    return Response(_ticket.dump_json(ticket), media_type="application/json")


@router.post("/observations/batch", response_model=TicketsOut, openapi_extra=SECURITY)
async def observe_many(body: BlockIn, call: Call) -> Response:
    """Decide on several observations in order, all of them on disk or none."""
    here = call.here
    if len(body.observations) > here.limits.block:
        raise AgentError(f"there are {len(body.observations)} observations: {here.limits.block} are the most in a call")
    for observation in body.observations:
        _check_count(observation.features, here)
    tickets = await _observe(here, call.agent, body.observations)
    here.metrics.observations.labels(call.name).inc(len(tickets))
    return Response(TicketsOut.model_construct(tickets=tickets).model_dump_json(), media_type="application/json")


class DirectApp:
    """Serves a route that FastAPI only describes: the endpoint takes a body and an `Observing`.

    FastAPI takes longer to gather what a route depends on, and to parse a body, than we do to decide.
    """

    def __init__(self, body: type[BaseModel], endpoint: Callable[[Any, Observing], Awaitable[Response]]) -> None:
        self._body = body
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        content = await _content(receive)
        try:
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise ValueError("to be looked at more closely")
            body: Any = self._body.model_validate_json(content)
        except ValueError:
            body = _parsed(request, content)
        name = request.path_params["agent"]
        if not _NAME.fullmatch(name):
            problem = {"type": "string_pattern_mismatch", "loc": ("path", "agent"), "input": name}
            raise RequestValidationError([{**problem, "msg": f"String should match pattern '^{NAME}$'"}])
        call = await observing(request, name)
        response = await self._endpoint(body if isinstance(body, BaseModel) else self._validated(body), call)
        await response(scope, receive, send)

    def _validated(self, body: Any) -> BaseModel:
        if body is None:
            problem = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
            raise RequestValidationError([problem])
        try:
            return self._body.model_validate(body)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False)) from None


async def _content(receive: Receive) -> bytes:
    content = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise HTTPException(400, "The connection was closed before the body had come")
        content += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return content


def _parsed(request: Request, content: bytes) -> Any:
    """A body that is no model of ours as the standard library reads it, whose errors say where it is wrong."""
    if not content:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not kind.startswith("application/") or kind.removeprefix("application/").rpartition("+")[2] != "json":
        return content
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([{**problem, "ctx": {"error": error.msg}}]) from None
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "There was an error parsing the body") from error


for _route, _body in ((observe, ObservationIn), (observe_many, BlockIn)):
    for _one in router.routes:
        if isinstance(_one, APIRoute) and _one.endpoint is _route:
            _one.app = DirectApp(_body, _route)


@router.post("/observations/image", response_model=Ticket)
async def observe_image(
    agent: Name,
    here: Here,
    the_agent: ObservingAgent,
    who: Producer,
    image: Annotated[UploadFile, File(description="What a person would look at.")],
    features: Annotated[str | None, Form(description="JSON; the image's own pixels if left out.")] = None,
    id: Annotated[str | None, Form(min_length=1, max_length=200)] = None,
) -> Json:
    """Decide on one observation that is an image file; its content is checked, whatever it is called."""
    data = await image.read()
    ticket = await here.call(_observe_upload, here, the_agent, data, features, id)
    here.metrics.observations.labels(agent).inc()
    return dict(ticket)


@router.post("/teach", response_model=TaughtOut)
async def teach(body: TeachIn, agent: Name, here: Here, the_agent: ObservingAgent, who: Producer) -> Json:
    """Learn labels that are there already, with one training; they cost nothing and are counted apart."""
    for observation in body.observations:
        _check_count(observation.features, here)
    block = body.observations
    X, labels, ids = [_seen(one) for one in block], [one.label for one in block], [one.id for one in block]
    return {"taught": await here.call(the_agent.teach, X, labels, ids=ids, audit=line_of(who, "taught"))}


@router.post("/plant", response_model=PlantedOut)
async def plant(body: PlantIn, agent: Name, here: Here, the_agent: ObservingAgent, who: Admin) -> Json:
    """Plant items whose classes are known among the questions, to see how often people are right."""
    block = body.observations
    for observation in block:
        _check_count(observation.features, here)
    X, labels, ids = [_seen(one) for one in block], [one.label for one in block], [one.id for one in block]
    payloads = [_payload(one.payload) for one in block]
    line = line_of(who, "planted", len(block))
    planted = await here.call(the_agent.team.plant, X, labels, ids=ids, payloads=payloads, teach=body.teach, audit=line)
    return {"tickets": planted}


@router.post("/withdraw", response_model=DoneOut)
async def withdraw(body: TicketIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Producer) -> Json:
    """Take an observation back for good."""
    await here.call(the_agent.withdraw, body.ticket, audit=line_of(who, "withdrew"))
    return {"ticket": body.ticket, "status": "withdrawn"}


@router.get("/ticket", response_model=Entry)
async def ticket(ticket: str, agent: Name, here: Here, the_agent: TheAgent, who: Producer) -> Json:
    """One ticket as it stands, by its id: its status, the label if there is one, and who has said so."""
    return dict(await here.call(the_agent.ticket, ticket))


@router.get("/tickets", response_model=ChangesOut)
async def changed_tickets(
    agent: Name,
    here: Here,
    the_agent: TheAgent,
    who: Producer,
    since: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Json:
    """The tickets to which something happened after an event, as they stand, those that changed first before others."""
    found, upto = await here.call(the_agent.changes, since, limit)
    return {"tickets": [dict(entry) for entry in found], "next": upto}


async def _observe(here: Service, agent: Agent, block: list[ObservationIn]) -> list[Ticket]:
    payloads: list[Payload | None] = [None] * len(block)
    if any(o.payload is not None or o.image is not None for o in block):
        payloads = await here.call(lambda: [_payload(o.payload or _own_image(o)) for o in block])
    return await here.observe(agent, [_seen(o) for o in block], [o.id for o in block], payloads)


def _own_image(observation: ObservationIn) -> PayloadIn | None:
    return None if observation.image is None else PayloadIn(image=observation.image)


def _seen(observation: ObservationIn) -> Any:
    if observation.image is not None:
        return checked_image(decoded(observation.image)).content
    return observation.features if observation.text is None else observation.text


def _observe_upload(here: Service, agent: Agent, data: bytes, features: str | None, id: str | None) -> Ticket:
    payload = checked_image(data)
    x: Any
    if features is None:
        x = data
    else:
        try:
            x = json.loads(features)
        except (ValueError, RecursionError):
            raise AgentError("features is not JSON") from None
        if not isinstance(x, list | dict):
            raise AgentError("features must be numbers in order or by name")
        _check_count(x, here)
    return agent.observe(x, id=id, payload=payload)


def _payload(given: PayloadIn | None) -> Payload | None:
    if given is None:
        return None
    kinds = given.model_dump(exclude_none=True)
    if len(kinds) != 1:
        raise AgentError(f"a payload is one of image, text and fields, not {' and '.join(kinds) or 'none of them'}")
    if given.image is not None:
        return checked_image(decoded(given.image))
    return checked_payload(given.text if given.text is not None else given.fields)


def _check_count(features: list[Any] | dict[str, Any] | None, here: Service) -> None:
    count = _count(features, here.limits.features)
    if count > here.limits.features:
        raise AgentError(f"an observation has more than {here.limits.features} features")


def _count(features: Any, most: int, depth: int = 0) -> int:
    """How many numbers there are; nesting deeper than an image's is the agent's to refuse."""
    if isinstance(features, dict):
        return len(features)
    if not isinstance(features, list):
        return 1
    if depth == 3 or list not in map(type, features):
        return len(features)
    total = 0
    for part in features:
        total += _count(part, most, depth + 1)
        if total > most:
            break
    return total
