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
    quality_routes,
    reading_routes,
    ticket_routes,
    webhook_routes,
)
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web import error_responses
from sparingly.live.service.web.middleware import ServiceMiddleware


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
    ours = (observing_routes, answering_routes, reading_routes, ticket_routes, quality_routes, admin_routes)
    for routes in (*ours, webhook_routes, health_routes, page_routes):
        # As they are: an included router takes part of each call's time anew, a fifth of a single observation's.
        app.router.routes.extend(routes.router.routes)
    for router in routers:
        app.include_router(router)
    app.mount("/static", _Static(directory=templates.FOLDER / "static"), name="static")
    app.add_middleware(ServiceMiddleware, access=service.access, metrics=service.metrics, limits=service.limits)
    return app


class _Static(StaticFiles):
    """The page's own script and style: revalidated by the browser each time, sent only when changed."""

    def file_response(self, *args: Any, **kwargs: Any) -> Any:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response
