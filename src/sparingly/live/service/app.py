"""The app: its routes, inside the middleware."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.staticfiles import StaticFiles

import sparingly
from sparingly.live.service.page import templates
from sparingly.live.service.routes import (
    admin_routes,
    answering_routes,
    health_routes,
    observing_routes,
    page_routes,
    reading_routes,
)
from sparingly.live.service.routes.wire_models import ErrorOut
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web import error_responses
from sparingly.live.service.web.middleware import ServiceMiddleware

_ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorOut, "description": "The body is not JSON."},
    401: {"model": ErrorOut, "description": "No token, or one that is unknown or revoked."},
    403: {"model": ErrorOut, "description": "The token's role may not do this."},
    404: {"model": ErrorOut, "description": "No such agent or ticket."},
    409: {"model": ErrorOut, "description": "The ticket's state does not allow this."},
    413: {"model": ErrorOut, "description": "The body is too large."},
    415: {"model": ErrorOut, "description": "The body is sent as something else than JSON."},
    422: {"model": ErrorOut, "description": "Something in the request makes no sense; the message names it."},
    429: {"model": ErrorOut, "description": "Too many calls."},
    503: {"model": ErrorOut, "description": "The database cannot be used now; nothing was kept."},
}


def create_app(
    place: str | os.PathLike[str] | Service,
    *,
    limits: ServiceLimits | None = None,
    secure_cookie: bool = True,
    routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """The service as an ASGI app.

    Parameters
    ----------
    place
        The folder of the agents' files, or the URL of a PostgreSQL database.
    limits
        Sizes and rates.
    secure_cookie
        Whether the session's cookie travels over HTTPS only; browsers count their own machine as such.
    routers
        Routes of others, such as `sparingly.adapters.label_studio.router`.
    """
    service = place if isinstance(place, Service) else Service(str(place), limits, secure_cookie=secure_cookie)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="sparingly",
        version=sparingly.__version__,
        description="Ask experts sparingly: observe, answer, watch.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    error_responses.install(app)
    ours = (observing_routes, answering_routes, reading_routes, admin_routes)
    for router in (*(routes.router for routes in ours), *routers):
        app.include_router(router, responses=_ERROR_RESPONSES)
    app.include_router(health_routes.router)
    app.include_router(page_routes.router)
    app.mount("/static", _Static(directory=templates.FOLDER / "static"), name="static")
    app.add_middleware(ServiceMiddleware, access=service.access, metrics=service.metrics, limits=service.limits)
    return app


class _Static(StaticFiles):
    """The page's own script and style: looked at again by the browser each time, sent only when changed."""

    def file_response(self, *args: Any, **kwargs: Any) -> Any:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response
