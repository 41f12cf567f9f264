"""The middleware around every route: authentication, rate and size limits, security headers, errors, metrics.

Callers are authenticated before the first byte of a body is read, so that a stranger cannot make the service read one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import secrets
import time
from typing import Any
from urllib.parse import quote

from prometheus_client import Counter, Histogram
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparingly.live.agent.errors import StoreError
from sparingly.live.service.auth.authentication import (
    CSRF_HEADER,
    GUARDED,
    SAFE,
    Access,
    check_agent_limit,
    check_csrf,
    check_origin,
)
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web.error_responses import HTTPError, internal_error_response, respond, store_error_message
from sparingly.live.service.web.logs import access as access_log
from sparingly.live.service.web.logs import request_id
from sparingly.live.service.web.metrics import Metrics

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""No inline script or style, nothing from elsewhere; images come inside the questions, as data."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

REQUEST_ID = "x-request-id"
_RAW_ID = REQUEST_ID.encode()
_RAW = [(name.lower().encode(), value.encode()) for name, value in {**HEADERS, "Cache-Control": "no-store"}.items()]
"""The headers of every response, as bytes."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PROCESS, _numbers = secrets.token_hex(4), itertools.count()
"""A request's own id is that of its process and a number: it has to be unique, not secret."""

SLOWEST = 1024
"""Bytes a second that a body comes at, at the least."""

TOO_LARGE, LINGER = 413, 10.0
"""After this status, for so many seconds, the rest of the body is read and thrown away."""


class ServiceMiddleware:
    """Middleware around the whole app."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics, limits: ServiceLimits) -> None:
        self._app = app
        self._access = access
        self._metrics = metrics
        self._limits = limits
        self._series: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        connection = HTTPConnection(scope)
        request_id.set(_id_of(connection))
        body = _Body(receive, self._limits)
        response = _Response(send, body, request_id.get())
        try:
            await self._admit(scope, connection)
            await self._app(scope, body, response)
        except HTTPError as error:
            refusal = respond(Request(scope), error.status, str(error), error.headers)
            await response.instead(refusal, scope, receive)
        except StoreError as error:
            refusal = respond(Request(scope), 503, store_error_message(scope, error), {"Retry-After": "1"})
            await response.instead(refusal, scope, receive)
        except Exception as error:
            await response.instead(internal_error_response(error), scope, receive)
        finally:
            route, method = _route(scope), scope["method"]
            method = method if method.isalpha() and len(method) < 8 else "other"
            self._count(route, method, response.status, time.perf_counter() - began)
            _log_access(scope, response.status, time.perf_counter() - began)

    def _count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a call; prometheus_client looks a series up more slowly than a dict."""
        key = (route, method, status)
        if key not in self._series:
            counted = self._metrics.requests.labels(route, method, str(status))
            self._series[key] = (counted, self._metrics.seconds.labels(route))
        calls, times = self._series[key]
        calls.inc()
        times.observe(seconds)

    async def _admit(self, scope: Scope, connection: HTTPConnection) -> None:
        length = connection.headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise HTTPError(400, f"content-length is {length!r}")
        guarded = scope["path"].startswith(GUARDED)
        changes = scope["method"] not in SAFE
        if changes:
            check_origin(connection)
        if scope["path"].startswith("/static/") or scope["path"] in ("/health", "/ready"):
            return
        who = await self._access.identify(connection)
        scope["sparingly.identity"] = who
        if guarded and who is None:
            raise HTTPError(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if who is not None:
            self._access.check_rate(who)
            check_agent_limit(who, scope["method"], scope["path"])
        if guarded and changes and who is not None:
            check_csrf(who, connection.headers.get(CSRF_HEADER))
        if int(length) > self._limits.body:
            said = f"the body has {length} bytes: {self._limits.body} are the most"
            raise HTTPError(TOO_LARGE, said, {"Connection": "close"})


class _Body:
    """Receives a body, counts it, and waits for it no longer than it takes a slow client."""

    def __init__(self, receive: Receive, limits: ServiceLimits) -> None:
        self._receive = receive
        self._limits = limits
        self._began = time.monotonic()
        self._count = 0
        self._ended = False

    async def __call__(self) -> Message:
        if self._ended:
            return await self._receive()
        waits = self._began + self._limits.body_seconds + self._count / SLOWEST - time.monotonic()
        # Of all exceptions, FastAPI lets only HTTPException through while it reads a body.
        try:
            async with asyncio.timeout(max(0.0, waits)):
                message = await self._next()
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time", {"Connection": "close"}) from None
        self._count += len(message.get("body", b""))
        if self._count > self._limits.body:
            raise HTTPException(TOO_LARGE, f"the body has more than {self._limits.body} bytes")
        return message

    async def throw_away(self) -> None:
        """Read the rest and forget it, for a while: many clients listen only when they have sent everything."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while not self._ended:
                    await self._next()

    async def _next(self) -> Message:
        message = await self._receive()
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        return message


class _Response:
    """Sends a response with the headers that every one carries, and remembers whether it has begun."""

    def __init__(self, send: Send, body: _Body, request: str) -> None:
        self._send = send
        self._body = body
        self._request = request
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = [(name.lower(), value) for name, value in message.get("headers", ())]
            present = {name for name, _ in given}
            ours = [(name, value) for name, value in _RAW if name not in present]
            message["headers"] = [*given, *ours, (_RAW_ID, self._request.encode())]
        elif self.status == TOO_LARGE and not message.get("more_body", False):
            # Once the response has ended the server closes the connection, and what it has not read then resets it.
            await self._send({**message, "more_body": True})
            await self._body.throw_away()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def instead(self, response: Any, scope: Scope, receive: Receive) -> None:
        """Send an error response, unless a response has begun already and can only be broken off."""
        if not self.status:
            await response(scope, receive, self)


def _route(scope: Scope) -> str:
    """The route's pattern, so that names and ids make no new series."""
    return str(getattr(scope.get("route"), "path", "none"))


def _id_of(connection: HTTPConnection) -> str:
    """The id that a proxy has given to a request, or a new one."""
    given = connection.headers.get(REQUEST_ID, "")
    return given if _ID.fullmatch(given) else f"{_PROCESS}{next(_numbers):08x}"


def _log_access(scope: Scope, status: int, seconds: float) -> None:
    """One line for one request; its query is left out."""
    if not access_log.isEnabledFor(logging.INFO):
        return
    who = scope.get("sparingly.identity")
    client = scope.get("client")
    fields = {
        "address": client[0] if client else "unknown",
        "who": who.name if who is not None else None,
        "method": scope["method"],
        "path": quote(scope["path"]),
        "status": status,
        "milliseconds": round(1000 * seconds, 1),
    }
    line = '%(address)s %(who)r "%(method)s %(path)s" %(status)s in %(milliseconds)s ms'
    access_log.info(line, fields, extra={"request_fields": fields})
