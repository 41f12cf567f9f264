"""Routes about the people who answer: how often each is right, what they disagree on, how their answers are checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from sparingly.live.agent.agent import Agent
from sparingly.live.quality.quality_records import Disagreement, PersonQuality
from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN
from sparingly.live.service.page.plain_reasons import plain_reason
from sparingly.live.service.routes.answering_routes import label_of, payload_out
from sparingly.live.service.routes.wire_models import (
    ERROR_RESPONSES,
    DoneOut,
    Label,
    PayloadOut,
    Strict,
    TicketIn,
)
from sparingly.live.service.service import AnsweringAgent, Here, Json, Name, TheAgent

router = APIRouter(prefix="/api/agents/{agent}", tags=["people"], responses=ERROR_RESPONSES)
Admin = Annotated[Identity, allowed(ADMIN)]
Share = Annotated[StrictInt | StrictFloat, Field(ge=0, le=1, allow_inf_nan=False)]


class ChecksIn(Strict):
    """How answers are checked; what is left out stays as it is."""

    second_opinions: Share | None = Field(None, description="The share of answers that another person gives, too.")
    disagreements: Literal["third", "admin"] | None = Field(None, description="Who settles them.")
    known_answers: Share | None = Field(None, description="The share of questions that are planted items.")
    careless_below: Share | None = Field(None, description="Whoever is right less often is careless.")
    stop_careless: StrictBool | None = Field(None, description="Whether the careless get no questions any more.")


class ChecksOut(BaseModel):
    second_opinions: float
    disagreements: str
    known_answers: float
    careless_below: float
    stop_careless: bool


class PairOut(BaseModel):
    first: str
    second: str
    items: int
    agreed: int
    kappa: float | None = Field(description="Cohen's.")


class AgreementOut(BaseModel):
    items: int = Field(description="With two or more answers.")
    alpha: float | None = Field(description="Krippendorff's.")
    fleiss: float | None = Field(description="Fleiss' kappa, of the first two answers to each.")
    pairs: list[PairOut]


class PlantedCounts(BaseModel):
    items: int
    answers: int
    cost: float


class PeopleOut(BaseModel):
    people: list[PersonQuality]
    agreement: AgreementOut
    planted: PlantedCounts
    checks: ChecksOut


class DisagreementOut(BaseModel):
    """Two answers that differ, with what the people saw."""

    ticket: str
    at: float
    state: str
    first: str | None
    first_label: Label
    second: str | None
    second_label: Label
    third: str | None
    third_label: Label | None
    label: Label | None
    settled_by: str | None
    closed: float | None
    why: str
    reason: str
    payload: PayloadOut | None
    features: list[float] | None
    feature_names: list[str] | None


class DisagreementsOut(BaseModel):
    disagreements: list[DisagreementOut]


class AdjudicationIn(TicketIn):
    label: Label


class PersonIn(Strict):
    person: Annotated[StrictStr, Field(min_length=1, max_length=80)]


@router.get("/people", response_model=PeopleOut)
async def people(agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """How often each expert is right, with an interval, how fast, and what they cost; how far people agree."""
    return await here.call(_people, the_agent)


@router.post("/people/{what}", response_model=PeopleOut)
async def stop_or_allow(
    what: Literal["stop", "allow"], body: PersonIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Admin
) -> Json:
    """Let a person get no questions any more, or again: then what was held against them counts no more."""
    act = the_agent.team.stop if what == "stop" else the_agent.team.allow
    await here.call(act, body.person, audit=line_of(who, f"{what} questions", body.person))
    return await here.call(_people, the_agent)


@router.put("/checks", response_model=ChecksOut)
async def set_checks(body: ChecksIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Admin) -> Json:
    """Say how people's answers are checked."""
    given = body.model_dump(exclude_none=True)
    line = line_of(who, "set checks", ", ".join(f"{name} {value}" for name, value in given.items()))
    await here.call(lambda: the_agent.team.set_checks(**given, audit=line))
    return the_agent.team.checks.to_dict()


@router.get("/disagreements", response_model=DisagreementsOut)
async def disagreements(
    agent: Name,
    here: Here,
    the_agent: TheAgent,
    who: Admin,
    settled: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Json:
    """What two people disagree on, oldest first; or what was settled, newest first."""
    found = await here.call(lambda: _disagreements(the_agent, settled, limit))
    return {"disagreements": found}


@router.post("/adjudicate", response_model=DoneOut)
async def adjudicate(body: AdjudicationIn, agent: Name, here: Here, the_agent: AnsweringAgent, who: Admin) -> Json:
    """Settle a disagreement: this class stands. Nobody settles one about their own answer."""
    label, line = label_of(the_agent, body.label), line_of(who, "adjudicated", body.label)
    await here.call(lambda: the_agent.adjudicate(body.ticket, label, expert=who.name, audit=line))
    here.metrics.answers.labels(agent, "adjudicated").inc()
    return {"ticket": body.ticket, "status": "answered", "label": body.label}


def _people(agent: Agent) -> Json:
    found, (items, answers, cost) = agent.team.agreement(), agent.team.planted()
    return {
        "people": [dict(one) for one in agent.people()],
        "agreement": {**found._asdict(), "pairs": [pair._asdict() for pair in found.pairs]},
        "planted": {"items": items, "answers": answers, "cost": cost},
        "checks": agent.team.checks.to_dict(),
    }


def _disagreements(agent: Agent, settled: bool, limit: int) -> list[Json]:
    return [_shown(agent, one) for one in agent.team.disagreements(settled=settled, limit=limit)]


def _shown(agent: Agent, one: Disagreement) -> Json:
    shown: dict[str, Any] = dict(one)
    details, names = agent.queries.details(one.ticket), agent.settings.names
    entry = details.entry
    shown["reason"] = plain_reason(entry.why, entry.asks, entry.probabilities, entry.numbers)
    shown["payload"] = payload_out(one.payload)
    shown["features"] = None if details.features is None else list(details.features)
    shown["feature_names"] = None if names is None else list(names)
    return shown
