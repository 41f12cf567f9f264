"""The pages: sign in, answer, the dashboard. Their content comes from the same routes that programs call."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from sparingly.live.service.agent_registry import ACTIVE, PAUSED
from sparingly.live.service.auth.authentication import Identity, address_of, check_csrf
from sparingly.live.service.auth.sessions import COOKIE, LASTS
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, HOST, PRODUCER
from sparingly.live.service.page.templates import person, render
from sparingly.live.service.service import Here, Json, Name, Service
from sparingly.live.service.web.error_responses import HTTPError

router = APIRouter(include_in_schema=False)
STRANGER = Identity("a stranger", "none", "none")


@router.get("/")
async def home(request: Request, here: Here) -> Response:
    who = person(request)
    if who is None:
        return RedirectResponse("/sign-in", 303)
    names = [name for name in await here.call(here.agents.names) if who.may_use(name)]
    if not names and who.role == ADMIN and who.agents is None:
        return RedirectResponse("/admin/agents", 303)
    if not names or who.role in (PRODUCER, HOST):
        return render("empty.html", request, names=names)
    view = "dashboard" if who.role == ADMIN else "answer"
    states = await here.call(here.agents.states)
    first = next((name for name in names if states.get(name) in (ACTIVE, PAUSED)), names[0])
    return RedirectResponse(f"/agents/{first}/{view}", 303)


@router.get("/sign-in")
async def sign_in_page(request: Request, here: Here, kept: str | None = None) -> Response:
    lost = "Your browser kept no cookie. Over plain HTTP it does so only for this machine: use HTTPS." if kept else None
    if person(request) is not None:
        return RedirectResponse("/", 303)
    return render("sign-in.html", request, problem=lost)


@router.post("/sign-in")
async def sign_in(request: Request, here: Here, token: Annotated[str, Form(max_length=200)] = "") -> Response:
    address = address_of(request)
    try:
        found = await here.access.token(token.strip(), address)
    except HTTPError as error:
        if error.status == 401:  # those that are throttled would only fill the audit trail
            await here.call(here.audit.note, STRANGER, "was refused", detail=f"sign-in from {address}: {error}")
        return render("sign-in.html", request, status=error.status, problem=f"{error}.".capitalize())
    cookie = await here.call(here.sessions.begin, found)
    await here.call(here.audit.note, Identity.of(found), "signed in")
    response = RedirectResponse("/signed-in", 303)
    response.set_cookie(
        COOKIE, cookie, max_age=int(LASTS), httponly=True, secure=here.secure_cookie, samesite="lax", path="/"
    )
    return response


@router.get("/signed-in")
async def signed_in(request: Request) -> Response:
    """Where signing in leads: it shows whether the cookie was kept."""
    return RedirectResponse("/" if person(request) is not None else "/sign-in?kept=no", 303)


@router.post("/sign-out")
async def sign_out(request: Request, here: Here, csrf: Annotated[str, Form(max_length=200)] = "") -> Response:
    who = person(request)
    if who is not None:
        check_csrf(who, csrf)
        await here.call(here.sessions.end, request.cookies[COOKIE])
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, path="/", secure=here.secure_cookie, httponly=True, samesite="lax")
    return response


@router.get("/agents/{agent}/answer")
async def answer_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("answer.html", (EXPERT, ADMIN), agent, request, here)


@router.get("/agents/{agent}/dashboard")
async def dashboard_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("dashboard.html", (ADMIN,), agent, request, here)


@router.get("/agents/{agent}/tickets")
async def tickets_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("tickets.html", (ADMIN,), agent, request, here)


@router.get("/agents/{agent}/people")
async def quality_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("quality.html", (ADMIN,), agent, request, here)


@router.get("/agents/{agent}/disagreements")
async def disagreements_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("disagreements.html", (ADMIN,), agent, request, here)


@router.get("/agents/{agent}/settings")
async def settings_page(agent: Name, request: Request, here: Here) -> Response:
    return await _agent_page("settings.html", (ADMIN,), agent, request, here)


@router.get("/admin/agents")
async def agents_page(request: Request, here: Here) -> Response:
    return await _service_page("agents.html", request, here)


@router.get("/admin/people")
async def people_page(request: Request, here: Here) -> Response:
    return await _service_page("people.html", request, here)


async def _service_page(template: str, request: Request, here: Service) -> Response:
    """A page about the whole service, for admins whose token is not limited to agents."""
    who = person(request)
    if who is None:
        return RedirectResponse("/sign-in", 303)
    if who.role != ADMIN or who.agents is not None:
        raise HTTPError(403, "this page takes an admin whose token is not limited to agents")
    return render(template, request, names=await here.call(here.agents.names))


async def _agent_page(template: str, roles: tuple[str, ...], agent: str, request: Request, here: Service) -> Response:
    who = person(request)
    if who is None:
        return RedirectResponse("/sign-in", 303)
    if who.role not in roles:
        raise HTTPError(403, f"the role {who.role} may not see this page: it takes {' or '.join(roles)}")
    found = await here.agent(agent)
    names = [name for name in await here.call(here.agents.names) if who.may_use(name)]
    registered = await here.call(here.agents.registry.find, agent)
    shown: Json = {"settings": found.settings, "state": registered.state, "reveal": registered.reveal}
    return render(template, request, agent=agent, names=names, **shown)
