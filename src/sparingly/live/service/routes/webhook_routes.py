"""Routes for an agent's webhooks: registered, looked at, tried, sent again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field, StrictStr

from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN
from sparingly.live.service.routes.wire_models import ERROR_RESPONSES, Strict
from sparingly.live.service.service import Here, Json, Name, Service, TheAgent

router = APIRouter(prefix="/api/agents/{agent}/webhooks", tags=["webhooks"], responses=ERROR_RESPONSES)
Admin = Annotated[Identity, allowed(ADMIN)]
WebhookId = Annotated[str, Path(pattern="^wh_[0-9a-f]{16}$", description="The webhook's id.")]


class NewWebhookIn(Strict):
    url: Annotated[StrictStr, Field(min_length=1, max_length=2000)]
    events: list[StrictStr] | None = Field(
        None, max_length=10, description="decided, answered, corrected, closed, alert; all of them if left out."
    )


class WebhookOut(BaseModel):
    id: str
    url: str
    events: list[str]
    created: float
    waiting: int = Field(description="Messages that are to be sent.")
    dead: int = Field(description="Messages that were given up.")
    failures: int = Field(description="How often in a row sending has failed.")
    error: str | None = Field(description="Why it last failed.")
    retry_at: float
    arrived: float | None = Field(description="When a message last arrived.")


class NewWebhookOut(WebhookOut):
    secret: str = Field(description="What messages are signed with, shown only once.")


class WebhooksOut(BaseModel):
    webhooks: list[WebhookOut]


class DeadLetterOut(BaseModel):
    id: str
    event: str
    at: float
    attempts: int
    error: str | None
    body: dict[str, Any]


class DeadLettersOut(BaseModel):
    messages: list[DeadLetterOut]


class ResendIn(Strict):
    messages: list[StrictStr] | None = Field(None, max_length=1000, description="Ids; all of them if left out.")


class ResentOut(BaseModel):
    resent: int


class TestedOut(BaseModel):
    message: str = Field(description="The id of the message on its way.")


@router.get("", response_model=WebhooksOut)
async def list_webhooks(agent: Name, here: Here, who: Admin) -> Json:
    """An agent's webhooks, without their secrets, and the state of their messages."""
    return {"webhooks": [asdict(one) for one in await here.call(here.webhooks.of_agent, agent)]}


@router.post("", response_model=NewWebhookOut, status_code=201)
async def register_webhook(body: NewWebhookIn, agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Send messages of what happens to tickets from now on; the secret that signs them is shown only once."""
    return await here.call(_register, here, agent, the_agent, body, who)


@router.delete("/{webhook}", response_model=WebhooksOut)
async def remove_webhook(webhook: WebhookId, agent: Name, here: Here, who: Admin) -> Json:
    """Send nothing more there; what has not arrived is forgotten."""
    await here.call(here.webhooks.remove, agent, webhook, who)
    return await list_webhooks(agent, here, who)


@router.get("/{webhook}/dead", response_model=DeadLettersOut)
async def dead_letters(
    webhook: WebhookId, agent: Name, here: Here, who: Admin, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Json:
    """Messages that were given up, oldest first."""
    return {"messages": await here.call(here.webhooks.dead_letters, agent, webhook, limit)}


@router.post("/{webhook}/resend", response_model=ResentOut)
async def resend(body: ResendIn, webhook: WebhookId, agent: Name, here: Here, who: Admin) -> Json:
    """Send messages again that were given up."""
    return {"resent": await here.call(here.webhooks.resend, agent, webhook, body.messages, who)}


@router.post("/{webhook}/test", response_model=TestedOut)
async def send_test(webhook: WebhookId, agent: Name, here: Here, who: Admin) -> Json:
    """Send a message of the event "test"."""
    return {"message": await here.call(here.webhooks.send_test, agent, webhook)}


def _register(here: Service, name: str, agent: Any, body: NewWebhookIn, who: Identity) -> Json:
    here.webhook_rule.resolve(body.url)
    made, secret = here.webhooks.register(name, body.url, body.events, position=agent.count_events(), by=who)
    return {**asdict(made), "secret": secret}
