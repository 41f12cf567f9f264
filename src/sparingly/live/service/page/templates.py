"""The pages' templates, filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

FOLDER = Path(__file__).parent

_templates = Environment(loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def render(template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
    """A page for whoever is signed in, or for a stranger."""
    known = {"who": person(request), "path": request.url.path, "origin": str(request.base_url).rstrip("/")}
    return HTMLResponse(_templates.get_template(template).render(status=status, **known, **values), status)


def person(request: Request) -> Any:
    """Who is signed in by cookie; a bearer token opens no page."""
    who = request.scope.get("sparingly.identity")
    return who if getattr(who, "csrf", None) is not None else None


def is_for_people(request: Request) -> bool:
    """Whether a browser asks for a page, and not a program or a script for an answer."""
    calls = ("/api/", "/metrics", "/static/", "/health", "/ready", "/openapi.json")
    looks = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    return looks and not request.url.path.startswith(calls)
