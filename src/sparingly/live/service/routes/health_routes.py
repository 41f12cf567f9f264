"""Routes for whoever watches the service: is it alive, can it work, what do the counters say."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from fastapi.responses import Response

from sparingly.live.agent.errors import AgentError
from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN, PRODUCER
from sparingly.live.service.routes.wire_models import ErrorOut, HealthOut, ReadyOut
from sparingly.live.service.service import Here, Json
from sparingly.live.service.web.error_responses import HTTPError

router = APIRouter(tags=["watch"])
Scraper = Annotated[Identity, allowed(PRODUCER, ADMIN)]


@router.get("/health", response_model=HealthOut)
async def health() -> Json:
    """The process is alive."""
    return {"status": "alive"}


@router.get("/ready", response_model=ReadyOut, response_model_exclude_none=True, responses={503: {"model": ErrorOut}})
async def ready(here: Here) -> Json:
    """Every database can be written, but for archived agents and those that are set aside; an error names the first."""
    try:
        damaged = await here.readiness.check()
    except AgentError as error:
        raise HTTPError(503, f"not ready: {error}", {"Retry-After": "1"}) from None
    return {"status": "ready", "damaged": damaged or None}


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
async def metrics(here: Here, who: Scraper) -> Response:
    """Counters in the format of Prometheus."""
    text = await here.call(here.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
