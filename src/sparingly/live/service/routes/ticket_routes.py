"""Routes for whoever looks into tickets: a search, and all about one of them."""

from __future__ import annotations

import heapq
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from sparingly.live.agent.agent import Agent
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN
from sparingly.live.service.dashboard_cache import recent_out
from sparingly.live.service.routes.answering_routes import payload_out
from sparingly.live.service.routes.wire_models import ERROR_RESPONSES, DetailsOut, SearchOut
from sparingly.live.service.service import Here, Json, Name, TheAgent

router = APIRouter(prefix="/api/agents/{agent}", tags=["look"], responses=ERROR_RESPONSES)
Admin = Annotated[Identity, allowed(ADMIN)]
Words = Annotated[str | None, Query(max_length=200)]
Status = Literal["announced", "held", "open", "consulting", "answered", "skipped", "unknown", "withdrawn", "planted"]
LIKELIEST = 10


@router.get("/search", response_model=SearchOut)
async def search(
    agent: Name,
    here: Here,
    the_agent: TheAgent,
    who: Admin,
    text: Words = None,
    status: Status | None = None,
    expert: Words = None,
    label: Words = None,
    before: Words = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Json:
    """Tickets, newest first: of a status, an expert or a class, or with a text in the id or in what a person sees."""
    wanted: dict[str, Any] = {"text": text, "status": status, "expert": expert, "label": label, "before": before}
    found = await here.call(lambda: the_agent.queries.search(**wanted, limit=limit))
    return {"tickets": [recent_out(one) for one in found], "next": found[-1].id if len(found) == limit else None}


@router.get("/details", response_model=DetailsOut)
async def details(
    agent: Name, here: Here, the_agent: TheAgent, who: Admin, ticket: Annotated[str, Query(max_length=200)]
) -> Json:
    """All about one ticket: what was observed, why it was asked or announced, and what happened to it."""
    return await here.call(_details, the_agent, ticket)


def _details(agent: Agent, ticket: str) -> Json:
    found = agent.queries.details(ticket)
    held, names = found.entry.probabilities, agent.settings.names
    return {
        **recent_out(found.entry),
        "probabilities": heapq.nlargest(LIKELIEST, held.items(), key=lambda pair: pair[1]),
        "payload": payload_out(found.payload),
        "features": None if found.features is None else list(found.features),
        "feature_names": None if names is None else list(names),
        "holder": found.holder,
        "opinions": [dict(one) for one in agent.team.opinions(ticket)],
        "calls": [dict(call) for call in agent.calls(ticket)],
        "events": [dict(event) for event in found.events],
    }
