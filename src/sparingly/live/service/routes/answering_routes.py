"""Routes for people who answer. Each is known by the name of the token, and a question is leased to one at a time."""

from __future__ import annotations

import base64
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError, ConflictError, StoreError
from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN, EXPERT
from sparingly.live.service.page.plain_reasons import likely_classes, plain_reason
from sparingly.live.service.routes.wire_models import (
    ERROR_RESPONSES,
    AnswerIn,
    AnswersOut,
    ClassesOut,
    ClassIn,
    DoneOut,
    QuestionsOut,
    ReleaseIn,
    RenewedOut,
    TicketIn,
    UndoneOut,
)
from sparingly.live.service.service import AnsweringAgent, Here, Json, Name, Service, TheAgent, midnight
from sparingly.live.service.web.error_responses import HTTPError
from sparingly.live.tickets.ticket_records import ANSWERED, OPEN, PLANTED, UNKNOWN, Payload, Question
from sparingly.live.training.added_classes import may_add

router = APIRouter(prefix="/api/agents/{agent}", tags=["answer"], responses=ERROR_RESPONSES)
Expert = Annotated[Identity, allowed(EXPERT, ADMIN)]
LeaseSeconds = Annotated[float | None, Query(gt=0, allow_inf_nan=False)]


@router.post("/questions", response_model=QuestionsOut)
async def next_questions(
    agent: Name,
    here: Here,
    the_agent: AnsweringAgent,
    who: Expert,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1,
    lease_seconds: LeaseSeconds = None,
) -> Json:
    """The next questions, leased to the caller for a time in which no one else gets them."""
    if limit > here.limits.leases:
        raise AgentError(f"limit is {limit}: one person may hold {here.limits.leases} questions at a time")
    return await here.call(_next, here, agent, the_agent, who, limit, _lease(here, lease_seconds))


@router.post("/renew", response_model=RenewedOut)
async def renew(
    body: TicketIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert, lease_seconds: LeaseSeconds = None
) -> Json:
    """Go on holding a question: the caller's lease begins anew, also one that has run out if no one else took it."""
    question = await here.call(the_agent.renew, body.ticket, who.name, lease_seconds=_lease(here, lease_seconds))
    return {"ticket": question.id, "until": question.until, "seconds_left": _seconds_left(question)}


@router.post("/answer", response_model=DoneOut)
async def answer(body: AnswerIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Tell the true class; the same again changes nothing, another one corrects the caller's own answer."""
    return await here.call(_answer, here, agent, the_agent, who, body, "answered")


@router.post("/classes", response_model=ClassesOut)
async def add_class(body: ClassIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Take on a class that was not known before; for admins, and for those whom they allow it."""
    _check_may_add(the_agent, who)
    line = line_of(who, "added class", body.label)
    await here.call(the_agent.add_class, body.label, cost=body.cost, expert=who.name, audit=line)
    return {"classes": list(the_agent.classes)}


@router.post("/correct", response_model=DoneOut)
async def correct(body: AnswerIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Change an answer that was given: one's own, or as an admin anyone's."""
    return await here.call(_answer, here, agent, the_agent, who, body, "corrected")


@router.post("/skip", response_model=DoneOut)
async def skip(body: TicketIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Leave a question to the others."""
    return await here.call(_set_aside, here, agent, the_agent, who, body.ticket, "skipped")


@router.post("/dont-know", response_model=DoneOut)
async def dont_know(body: TicketIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Close a question that cannot be answered."""
    return await here.call(_set_aside, here, agent, the_agent, who, body.ticket, "did not know")


@router.post("/release", response_model=DoneOut)
async def release(body: ReleaseIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Give a question back unanswered, so that the others may have it at once; an admin ends anyone's lease."""
    if body.expert not in (None, who.name) and who.role != ADMIN:
        raise HTTPError(403, f"the role {who.role} may release its own questions only, not those of {body.expert}")
    return await here.call(_release, the_agent, who, body)


@router.get("/answers", response_model=AnswersOut)
async def own_answers(
    agent: Name, here: Here, the_agent: TheAgent, who: Expert, limit: Annotated[int, Query(ge=1, le=1000)] = 20
) -> Json:
    """The caller's own answers that stand, newest question first; `/undo` takes any of them back."""
    return {"answers": await here.call(_own_answers, the_agent, who.name, limit)}


@router.post("/undo", response_model=UndoneOut)
async def undo(body: TicketIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Expert) -> Json:
    """Take back an answer, a skip or a "don't know": the question is open again, and leased to the caller."""
    return await here.call(_undo, here, agent, the_agent, who, body.ticket)


def _own_answers(agent: Agent, person: str, limit: int) -> list[Json]:
    """First answers and opinions alike, so that nobody can tell which was which."""
    found = agent.queries.search(status=ANSWERED, expert=person, limit=limit)
    given = {one.id: (one.closed or 0.0, one.label) for one in found}
    given |= {ticket: (closed, said) for ticket, said, closed in agent.team.given_by(person, limit)}
    last = sorted(given.items(), key=lambda one: -one[1][0])[:limit]
    return [{"ticket": ticket, "label": label, "closed": closed or None} for ticket, (closed, label) in last]


def _next(here: Service, name: str, agent: Agent, who: Identity, limit: int, seconds: float) -> Json:
    found = agent.questions(who.name, limit=limit, lease_seconds=seconds)
    reveal = here.agents.reveal(name)
    return {
        "questions": [question_out(agent, question, reveal) for question in found],
        "open": agent.count_open(),
        "today": _today(agent, who),
        "may_add_classes": _may_add(agent, who),
    }


def _lease(here: Service, seconds: float | None) -> float:
    """How long a lease is to last, within the service's limit."""
    longest = here.limits.max_lease_seconds
    if seconds is not None and seconds > longest:
        raise AgentError(f"lease_seconds is {seconds:g}: {longest:g} are the most, and a lease can be renewed")
    return here.limits.lease_seconds if seconds is None else seconds


def _release(agent: Agent, who: Identity, body: ReleaseIn) -> Json:
    holder = body.expert or who.name
    line = line_of(who, "released", holder) if holder != who.name else None
    agent.release(body.ticket, expert=holder, audit=line)
    return {"ticket": body.ticket, "status": agent.ticket(body.ticket).status}


def _today(agent: Agent, who: Identity) -> Json:
    answers, cost = agent.answered_since(who.name, midnight())
    more, paid = agent.team.answered_since(who.name, midnight())
    return {"answers": answers + more, "cost": cost + paid}


def _today_if_known(agent: Agent, who: Identity) -> Json | None:
    """For a reply to something that is kept already: it must not become an error."""
    try:
        return _today(agent, who)
    except StoreError:
        return None


def _answer(here: Service, name: str, agent: Agent, who: Identity, body: AnswerIn, did: str) -> Json:
    entry = agent.ticket(body.ticket)
    if did == "corrected" and entry.status not in (ANSWERED, PLANTED):
        raise ConflictError(f"ticket {body.ticket!r} is {entry.status}: only an answer can be corrected")
    overrule = who.role == ADMIN and (did == "corrected" or entry.status not in (ANSWERED, PLANTED))
    guess = None if here.agents.reveal(name) == "never" else entry.prediction
    label, line = label_of(agent, body.label), line_of(who, did, body.label)
    if body.new_class:
        _check_may_add(agent, who)
    agent.answer(body.ticket, label, expert=who.name, overrule=overrule, new_class=body.new_class, audit=line)
    here.metrics.answers.labels(name, did).inc()
    return {
        "ticket": body.ticket,
        "status": ANSWERED,
        "label": body.label,
        "prediction": guess,
        "today": _today_if_known(agent, who),
    }


def _set_aside(here: Service, name: str, agent: Agent, who: Identity, ticket: str, did: str) -> Json:
    status = UNKNOWN if did == "did not know" else OPEN  # a named expert's skip closes nothing
    act = agent.skip if did == "skipped" else agent.dont_know
    act(ticket, expert=who.name, audit=line_of(who, did))
    here.metrics.answers.labels(name, did).inc()
    return {"ticket": ticket, "status": status}


def _undo(here: Service, name: str, agent: Agent, who: Identity, ticket: str) -> Json:
    entry = agent.ticket(ticket)
    own = any(one.expert == who.name and one.reason != "first" for one in agent.team.opinions(ticket))
    if own or agent.team.has_skipped(ticket, who.name):
        return _undone(here, name, agent, who, ticket)
    if entry.status in (ANSWERED, UNKNOWN) and entry.expert != who.name and who.role != ADMIN:
        raise ConflictError(f"ticket {ticket!r} was answered by {entry.expert or 'someone else'}, not by {who.name}")
    if not entry.asks:
        raise ConflictError(f"ticket {ticket!r} was announced: there is no question to open again")
    return _undone(here, name, agent, who, ticket)


def _undone(here: Service, name: str, agent: Agent, who: Identity, ticket: str) -> Json:
    reveal, limits = here.agents.reveal(name), here.limits
    line = line_of(who, "took back")
    question = agent.reopen(ticket, expert=who.name, lease_seconds=limits.lease_seconds, most=limits.leases, audit=line)
    assert question is not None
    here.metrics.answers.labels(name, "took back").inc()
    return {"question": question_out(agent, question, reveal)}


def question_out(agent: Agent, question: Question, reveal: str) -> Json:
    """A question as it goes over the wire; where the guess is not shown yet, neither is what would reveal it."""
    names, tells = agent.settings.names, reveal == "before"
    held = {name: p for name, p in question.probabilities.items() if name in question.choices}
    return {
        "id": question.id,
        "why": question.why,
        "reason": plain_reason(question.why, True, question.probabilities, question.numbers, names=tells),
        "numbers": question.numbers,
        "likely": [] if reveal == "never" else likely_classes(held, in_order=tells),
        "at": question.at,
        "choices": list(question.choices),
        "features": list(question.features),
        "feature_names": list(names) if names is not None else None,
        "payload": payload_out(question.payload),
        "expert": question.expert,
        "until": question.until,
        "seconds_left": _seconds_left(question),
        "prediction": question.prediction if tells else None,
    }


def _may_add(agent: Agent, who: Identity) -> bool:
    return who.role == ADMIN or may_add(agent.settings, who.name)


def _check_may_add(agent: Agent, who: Identity) -> None:
    if not _may_add(agent, who):
        raise HTTPError(403, f"{who.name} may not add classes to this agent: an admin allows it")


def _seconds_left(question: Question) -> float | None:
    return None if question.until is None else max(0.0, question.until - time.time())


def payload_out(payload: Payload | None) -> Json | None:
    if payload is None:
        return None
    content: Any = payload.content
    if payload.kind == "image":
        content = base64.b64encode(content).decode()
    return {"kind": payload.kind, "media": payload.media, payload.kind: content}


def label_of(agent: Agent, given: Any) -> Any:
    """The class that is meant: JSON knows no difference between 1 and 1.0."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return given
    same = [c for c in agent.classes if not isinstance(c, bool | str) and c == given]
    return same[0] if same else given
