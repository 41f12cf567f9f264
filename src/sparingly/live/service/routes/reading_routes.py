"""Routes that only look: statistics, history, the dashboard's numbers, export, live updates, the audit trail."""

from __future__ import annotations

import shutil
import tempfile
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, StreamingResponse
from starlette.background import BackgroundTask

from sparingly.live.service.auth.authentication import Identity, allowed
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER
from sparingly.live.service.routes.wire_models import ERROR_RESPONSES, AuditOut, BoardOut, HistoryOut
from sparingly.live.service.service import Here, Json, Name, TheAgent
from sparingly.live.tickets.ticket_records import Statistics

router = APIRouter(prefix="/api", tags=["look"], responses=ERROR_RESPONSES)
Admin = Annotated[Identity, allowed(ADMIN)]
Watcher = Annotated[Identity, allowed(PRODUCER, EXPERT, ADMIN)]
MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


@router.get("/agents/{agent}/statistics", response_model=Statistics)
async def statistics(agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """How the agent is doing: counts, costs, and how often it is right."""
    return dict(await here.call(the_agent.stats))


@router.get("/agents/{agent}/history", response_model=HistoryOut)
async def history(
    agent: Name,
    here: Here,
    the_agent: TheAgent,
    who: Admin,
    after: Annotated[str | None, Query(max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Json:
    """Every ticket in order, in pieces."""
    found = await here.call(the_agent.history, after=after, limit=limit)
    return {"tickets": [dict(entry) for entry in found], "next": found[-1].id if len(found) == limit else None}


@router.get("/agents/{agent}/board", response_model=BoardOut)
async def board(agent: Name, here: Here, the_agent: TheAgent, who: Admin) -> Json:
    """Everything the dashboard draws."""
    return await here.call(here.dashboard_cache.dashboard, agent)


@router.get(
    "/agents/{agent}/export",
    response_class=FileResponse,
    responses={200: {"content": {media: {} for media in MEDIA.values()}}},
)
async def export(
    agent: Name, here: Here, the_agent: TheAgent, who: Admin, format: Literal["csv", "parquet"] = "csv"
) -> FileResponse:
    """The labelled data: features, label, who said so and when."""
    folder = await here.call(tempfile.mkdtemp, prefix="sparingly-export-")
    forget = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    file = f"{folder}/{agent}.{format}"
    try:
        await here.call(the_agent.export, file)
    except BaseException:
        await forget()
        raise
    return FileResponse(file, media_type=MEDIA[format], filename=f"{agent}.{format}", background=forget)


@router.get(
    "/agents/{agent}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def events(agent: Name, here: Here, the_agent: TheAgent, who: Watcher) -> StreamingResponse:
    """Server-sent events: `moved`, with the number of events and of open questions, whenever something happened."""
    stream = here.events.stream(agent, the_agent, lambda: here.access.is_valid(who))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get("/audit", response_model=AuditOut)
async def audit_trail(
    here: Here,
    who: Admin,
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Json:
    """Who did what, newest first."""
    return {"lines": await here.call(here.audit.lines, before=before, limit=limit)}
