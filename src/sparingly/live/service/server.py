"""Running the service: an address, a first token, and an orderly end."""

from __future__ import annotations

import gc
import importlib
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from sparingly.experts import Expert, MachineExpert, Person
from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.service.app import create_app
from sparingly.live.service.auth.tokens import ADMIN, Operator
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web.connection_timeout import timed_protocol

GRACE = 5
COLLECTOR_THRESHOLDS = (50_000, 10, 10)
"""New objects, and collections of younger ones, after which Python's garbage collector looks for cycles."""
ADMIN_TOKEN = "SPARINGLY_ADMIN_TOKEN"

log = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """Lets the listeners of live updates go as soon as it is told to stop, for they would never go by themselves."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._service.events.stop()
        super().handle_exit(sig, frame)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, so that the address is known to be free before anything is promised; port 0 finds one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or error
        raise StoreError(f"{host}:{port} cannot be listened on: {why}; --host and --port choose another") from None
    listener.listen(1024)
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def first_token(service: Service, chosen: str | None = None) -> str | None:
    """A token for the admin of a service that has none; nothing to show if its secret was chosen by the operator."""
    if chosen is not None:
        if not service.tokens.adopt(chosen, _free_name(service)).is_valid(time.time()):
            log.warning("the admin's token that was given has been revoked: it lets no one in")
        return None
    now = time.time()
    if any(token.role == ADMIN and token.agents is None and token.is_valid(now) for token in service.tokens.list()):
        return None
    return service.tokens.create(_free_name(service), ADMIN)[1]


def chosen_secret(file: Path | None) -> str | None:
    """The admin's token that the operator has chosen: the only line of a file, or an environment variable."""
    variable = os.environ.get(ADMIN_TOKEN)
    if file is None:
        return variable or None
    if variable:
        raise AgentError(f"the admin's token is in {file} and in {ADMIN_TOKEN}: choose one")
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise AgentError(f"the admin's token cannot be read from {file}: {why}") from None


def first_agent(service: Service, name: str, classes: list[str], settings: dict[str, Any]) -> None:
    """Make the agent if it is not there; one that is must have these classes, if any are given."""
    service.agents.registry.read_now()  # another process may have made it while this one waited for its turn
    names = service.agents.names()
    if name not in names:
        if not classes:
            if names:
                return
            raise AgentError("there is no agent yet: name its classes, as in --classes cat,dog")
        service.agents.create(name, classes=classes, by=Operator.current(), **settings)
    elif classes and [str(c) for c in service.agents.get(name).classes] != classes:
        there = ", ".join(map(str, service.agents.get(name).classes))
        raise AgentError(f"the agent {name!r} has the classes {there}, not {', '.join(classes)}: choose another name")
    else:
        _check_experts(service, name, settings.get("experts") or ())


def _check_experts(service: Service, name: str, experts: Sequence[Expert | MachineExpert | Person]) -> None:
    """An agent that is there already keeps the experts that it was made with."""
    declared = [(one.name, one.price, one.gold) for one in service.agents.get(name).settings.game.experts]
    stated = [one.expert if isinstance(one, MachineExpert | Person) else one for one in experts]
    for one in stated:
        if (one.name, one.price, one.gold) not in declared:
            known = ", ".join(f"{who}:{price:g}{':gold' * gold}" for who, price, gold in declared) or "none"
            raise AgentError(f"the agent {name!r} has no expert {one.name} at {one.price:g}: its experts are {known}")


def run(
    service: Service,
    listener: socket.socket,
    *,
    routers: Sequence[str] = (),
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Serve until told to stop; what was begun is finished. `routers` names modules whose routes are served too."""
    app = create_app(service, routers=[importlib.import_module(name).router for name in routers])
    spare_the_collector()
    Server(configured(app, service.limits, trusted_proxies), service).run(sockets=[listener])


def spare_the_collector() -> None:
    """Let Python's garbage collector leave alone what was loaded by now, and look for cycles less often.

    A block of observations makes some thousand objects, none of them in cycles. By default they would be looked through
    again and again, and every so often all of torch with them: nearly half of the time of a block.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


def configured(
    app: FastAPI, limits: ServiceLimits, trusted_proxies: Sequence[str] = (), grace: int = GRACE
) -> uvicorn.Config:
    """How the app is served; only proxies that are named here are believed when they say who called them."""
    return uvicorn.Config(
        app,
        http=timed_protocol(limits.header_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=30,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
    )


def checked_network(proxy: str) -> str:
    """An address or a network, as proxies are named.

    >>> checked_network("10.0.0.0/8"), checked_network("::1")
    ('10.0.0.0/8', '::1')
    """
    try:
        ipaddress.ip_network(proxy)
    except ValueError as error:
        raise AgentError(f"--trusted-proxy {proxy!r} is neither an address nor a network: {error}") from None
    return proxy


def _free_name(service: Service) -> str:
    taken = {token.name for token in service.tokens.list() if token.is_valid(time.time())}
    return next(name for name in ("admin", *(f"admin {i}" for i in range(2, 10_000))) if name not in taken)
