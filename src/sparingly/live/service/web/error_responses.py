"""Error responses: one status code and one line that names the problem, and nothing about the inside."""

from __future__ import annotations

import logging
import sys
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import Scope

from sparingly.live.agent.errors import AgentError, ConflictError, StoreError, UnknownTicketError
from sparingly.live.service.agent_registry import UnknownAgentError
from sparingly.live.service.auth.tokens import ADMIN
from sparingly.live.service.page.templates import is_for_people, render
from sparingly.live.service.web.logs import request_id
from sparingly.live.service.webhooks.webhook_outbox import UnknownWebhookError

log = logging.getLogger(__name__)

STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownTicketError, 404),
    (UnknownAgentError, 404),
    (UnknownWebhookError, 404),
    (ConflictError, 409),
    (AgentError, 422),
)

UNUSABLE = "the database cannot be used now; this call was not acknowledged"


class HTTPError(Exception):
    """A request that is answered by an error response, with its status and reason."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


def error_response(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()
    return JSONResponse({"error": line[:500]}, status_code=status, headers=headers)


def respond(request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error response of a route: a page if a person's browser asks for one."""
    if not is_for_people(request):
        return error_response(status, message, headers)
    page = render("error.html", request, status, message=f"{message[:1].upper()}{message[1:500]}.")
    page.headers.update(headers or {})
    return page


def internal_error_response(error: BaseException) -> JSONResponse:
    """The response to an error of ours: the request's id, under which the log has the traceback."""
    log.error("unforeseen error in request %s", request_id.get(), exc_info=error)
    return error_response(500, f"something went wrong in the service; its log tells more under {request_id.get()}")


def store_error_message(scope: Scope, error: StoreError) -> str:
    """The message of a database error: its own words name paths and hosts, which only an admin may read."""
    log.warning("request %s: %s", request_id.get(), error)
    who = scope.get("sparingly.identity")
    if who is not None and who.role == ADMIN:
        return str(error)
    return f"{UNUSABLE}; the service's log tells more under {request_id.get()}"


def install(app: FastAPI) -> None:
    """Turn exceptions of an app into error responses."""
    app.add_exception_handler(HTTPError, _on_http_error)
    app.add_exception_handler(AgentError, _on_agent_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPError)
    return respond(request, error.status, str(error), error.headers)


async def _on_agent_error(request: Request, error: Exception) -> Response:
    if isinstance(error, StoreError):
        return respond(request, 503, store_error_message(request.scope, error), {"Retry-After": "1"})
    status = next(code for kind, code in STATUS if isinstance(error, kind))
    return respond(request, status, str(error))


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers) if error.headers else None
    if isinstance(error.__cause__, UnicodeDecodeError):
        found = error.__cause__
        return respond(
            request, 400, f"the body is not UTF-8: byte {found.object[found.start]:#x} at place {found.start}"
        )
    if isinstance(error.__cause__, RecursionError):
        return respond(request, 400, "the body is nested too deeply")
    if isinstance(error.__cause__, ValueError):
        return respond(request, 400, f"the body has an integer of more than {sys.get_int_max_str_digits()} digits")
    return respond(request, error.status_code, f"{request.url.path}: {error.detail}", headers)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", "")
        return respond(request, 400, f"the body is not JSON: {reason} at character {first['loc'][-1]}")
    if isinstance(first.get("input"), bytes):
        return respond(request, 415, "the body must be sent with content-type: application/json")
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    is_object_missing = first["type"] in ("model_type", "model_attributes_type")  # Named by a class of ours.
    reason = "Input should be an object" if is_object_missing else first["msg"].removeprefix("Value error, ")
    return respond(request, 422, f"{where}: {reason}{_value(first)}")


def _value(first: dict[str, Any]) -> str:
    given = first.get("input")
    if first["type"] == "missing" or isinstance(given, dict | list):
        return ""
    return f", not {given!r:.60}"
