"""Routes for whoever looks after the service: agents and tokens."""

from __future__ import annotations

import functools
import time
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path

from sparingly.live.agent.agent import Agent
from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.service.agent_registry import ACTIVE
from sparingly.live.service.audit import line_of
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.expiry import expiry
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, ROLES
from sparingly.live.service.routes.wire_models import (
    ERROR_RESPONSES,
    AgentIn,
    AgentOut,
    AgentsOut,
    CostsIn,
    Descriptions,
    DoneOut,
    NewClassesIn,
    NewTokenOut,
    RenameIn,
    RetentionIn,
    RevealIn,
    StateOut,
    TicketIn,
    TokenIn,
    TokensOut,
)
from sparingly.live.service.service import Here, Json, Name, Service, TheAgent

router = APIRouter(prefix="/api", tags=["look after"], responses=ERROR_RESPONSES)
Admin = Annotated[Identity, allowed(ADMIN)]
Anyone = Annotated[Identity, allowed(*ROLES)]
Reader = Annotated[Identity, allowed(EXPERT, ADMIN)]


@router.get("/agents", response_model=AgentsOut, response_model_exclude_none=True)
async def list_agents(here: Here, who: Anyone) -> Json:
    """The agents' names; the states of those that are paused, archived or damaged, and for admins why."""
    states = {name: state for name, state in (await here.call(here.agents.states)).items() if who.may_use(name)}
    failures = {name: here.agents.failure(name) for name in states} if who.role == ADMIN else {}
    failed = {name: failure for name, failure in failures.items() if failure is not None}
    unusual = {name: state for name, state in states.items() if state != ACTIVE}
    return {"agents": list(states), "states": unusual or None, "failures": failed or None}


@router.post("/agents", response_model=AgentOut, status_code=201)
async def create_agent(body: AgentIn, here: Here, who: Admin) -> Json:
    """Make another agent; its features are learned from the first observation if they are not given."""
    settings = body.model_dump()
    name, settings["schema"] = settings.pop("name"), settings.pop("fields")
    if body.n_features is not None and body.n_features > here.limits.features:
        raise AgentError(f"n_features is {shortened(body.n_features)}: {here.limits.features} are the most")
    agent = await here.call(here.agents.create, name, by=who, **settings)
    return _described(here, name, agent)


@router.get("/agents/{agent}", response_model=AgentOut)
async def describe_agent(agent: Name, here: Here, the_agent: TheAgent, who: Anyone) -> Json:
    """Classes, costs and features of an agent."""
    return await here.call(_described, here, agent, the_agent)


@router.put("/agents/{agent}/reveal", response_model=AgentOut)
async def set_reveal(body: RevealIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Set when a person sees the agent's guess: after answering, before it, or never."""
    await here.call(here.agents.registry.set_reveal, agent, body.reveal, who)
    return await here.call(_described, here, agent, the_agent)


@router.post("/agents/{agent}/state/{what}", response_model=StateOut)
async def change_state(
    what: Literal["pause", "resume", "archive", "unarchive"], agent: Name, here: Here, who: Admin
) -> Json:
    """Pause (no observations; questions stay answerable), archive (only reading), and back."""
    return {"name": agent, "state": await here.call(here.agents.registry.change_state, agent, what, who)}


@router.post("/agents/{agent}/rename", response_model=StateOut)
async def rename_agent(body: RenameIn, agent: Name, here: Here, who: Admin) -> Json:
    """Give an agent another name; tokens that are limited to it keep it."""
    await here.call(here.agents.registry.rename, agent, body.name, who)
    return {"name": body.name, "state": (await here.call(here.agents.registry.find, body.name)).state}


@router.put("/agents/{agent}/retention", response_model=AgentOut)
async def set_retention(body: RetentionIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Say after how many days payloads are erased."""
    await here.call(the_agent.set_retention, body.days, audit=line_of(who, "set retention", body.days))
    return await here.call(_described, here, agent, the_agent)


@router.put("/agents/{agent}/costs", response_model=AgentOut)
async def set_costs(body: CostsIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Change what mistakes or questions cost; the agent decides so from now on, if its strategy can."""
    here.agents.check_answers(agent)
    costs = None if body.costs is None else [one.model_dump() for one in body.costs]
    line = line_of(who, "set costs", f"{len(costs or ())} costs that are not 1, question {body.query_cost}")
    changed = functools.partial(the_agent.set_costs, query_cost=body.query_cost, expert=who.name, audit=line)
    await here.call(changed, costs)
    return await here.call(_described, here, agent, the_agent)


@router.get("/agents/{agent}/descriptions", response_model=Descriptions)
async def read_descriptions(agent: Name, the_agent: TheAgent, who: Reader) -> Json:
    """What the agent's classes mean, for those that are described."""
    return {"descriptions": the_agent.settings.descriptions}


@router.put("/agents/{agent}/descriptions", response_model=Descriptions)
async def set_descriptions(body: Descriptions, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Say what classes mean; the descriptions replace the earlier ones."""
    line = line_of(who, "described classes", len(body.descriptions))
    await here.call(the_agent.describe_classes, body.descriptions, audit=line)
    return {"descriptions": the_agent.settings.descriptions}


@router.put("/agents/{agent}/new-classes", response_model=AgentOut)
async def allow_new_classes(body: NewClassesIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Say whose answers may name classes that are new, besides admins'."""
    line = line_of(who, "allowed new classes", ", ".join(body.people))
    await here.call(the_agent.allow_new_classes, body.people, audit=line)
    return await here.call(_described, here, agent, the_agent)


@router.post("/agents/{agent}/erase", response_model=DoneOut)
async def erase(body: TicketIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Erase what a ticket shows of a person: its payload and features, and what was learned from them."""
    await here.call(the_agent.erase, body.ticket, audit=line_of(who, "erased"))
    return {"ticket": body.ticket, "status": "erased"}


@router.delete("/agents/{agent}", response_model=StateOut)
async def delete_agent(agent: Name, here: Here, who: Admin) -> Json:
    """Delete an agent with all it knows, also one that cannot be opened; its audit trail stays."""
    await here.call(here.delete_agent, agent, who)
    return {"name": agent, "state": "deleted"}


@router.get("/tokens", response_model=TokensOut)
async def list_tokens(here: Here, who: Admin) -> Json:
    """Every token without its secret, revoked ones too."""
    return {"tokens": [asdict(token) for token in await here.call(here.tokens.list)]}


@router.post("/tokens", response_model=NewTokenOut, status_code=201)
async def create_token(body: TokenIn, here: Here, who: Admin) -> Json:
    """A new token; its secret is shown only once."""
    expires = None if body.expires is None else expiry(body.expires, time.time())
    limits: dict[str, Any] = {"agents": body.agents, "expires": expires}
    token, secret = await here.call(here.tokens.create, body.name, body.role, by=who, **limits)
    return {**asdict(token), "token": secret}


@router.delete("/tokens/{token}", response_model=TokensOut)
async def revoke_token(token: Annotated[str, Path(pattern="^[0-9a-f]{12}$")], here: Here, who: Admin) -> Json:
    """Let no one in any more with this token."""
    await here.call(here.tokens.revoke, token, by=who)
    return {"tokens": [asdict(one) for one in await here.call(here.tokens.list)]}


def _described(here: Service, name: str, agent: Agent) -> Json:
    settings = agent.settings
    table = settings.schema.table if settings.schema.is_raw else None
    return {
        "name": name,
        "classes": list(settings.classes),
        "shape": list(settings.shape) if settings.shape is not None else None,
        "feature_names": list(settings.names) if settings.names is not None else None,
        "fields": None if table is None else {name: field.described for name, field in table.fields.items()},
        "encoder": settings.encoder if table is None or table.encoder is None else table.encoder["name"],
        "costs": [list(row) for row in settings.costs],
        "actions": list(settings.actions),
        "strategy": settings.strategy,
        "reveal": here.agents.reveal(name),
        "may_add_classes": list(settings.may_add_classes),
    }
