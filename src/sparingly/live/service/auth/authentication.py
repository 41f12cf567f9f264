"""Authentication: bearer tokens of programs, session cookies of people, CSRF checks, roles, and rate limits."""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection

from sparingly.live.service.auth.sessions import COOKIE, Sessions
from sparingly.live.service.auth.tokens import STALE, UNKNOWN_STALE, Token, Tokens
from sparingly.live.service.service_limits import ServiceLimits
from sparingly.live.service.web.error_responses import HTTPError

SAFE = ("GET", "HEAD", "OPTIONS")
CSRF_HEADER = "x-csrf-token"
GUARDED = ("/api/", "/metrics")
"""What no stranger may call."""

_OF_AN_AGENT = re.compile(r"(?:/api)?/agents/([^/]+)")

_bearer = HTTPBearer(auto_error=False, description="A token of `sparingly token create`.")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False, description="Set by signing in on the page.")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is calling; `csrf` is None for a bearer token, which no other site can make a browser send."""

    name: str
    role: str
    token: str
    csrf: str | None = None
    agents: tuple[str, ...] | None = None

    @classmethod
    def of(cls, token: Token, csrf: str | None = None) -> Identity:
        return cls(token.name, token.role, token.id, csrf, token.agents)

    def may_use(self, agent: str) -> bool:
        """Whether the token is not limited to other agents."""
        return self.agents is None or agent in self.agents


class TokenBuckets:
    """Rate limits: a token bucket for each caller, which fills steadily and from which every call takes one token.

    The package `limits` counts calls in windows of time and has no bucket with a burst, which is why this one is ours.

    >>> now = [0.0]
    >>> buckets = TokenBuckets(per_second=1.0, burst=2, clock=lambda: now[0])
    >>> [buckets.take("ada") for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> now[0] = 1.0
    >>> buckets.take("ada")
    0.0
    """

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic, most: int = 10_000
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, who: Hashable, amount: float = 1.0) -> float:
        """Take from the bucket: 0 if there was enough, otherwise the seconds to wait, and nothing taken."""
        left = self.left(who)
        if left < amount:
            return (amount - left) / self._per_second
        self._buckets[who] = (left - amount, self._clock())
        self._buckets.move_to_end(who)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0

    def left(self, who: Hashable) -> float:
        level, at = self._buckets.get(who, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._per_second)


class Access:
    """Authenticates callers and limits their rates."""

    def __init__(self, tokens: Tokens, sessions: Sessions, limits: ServiceLimits) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._calls = TokenBuckets(limits.per_second, limits.burst)
        self._wrong_tokens = TokenBuckets(limits.wrong_per_minute / 60, limits.wrong_per_minute)
        self._reading: asyncio.Future[None] | None = None

    async def identify(self, connection: HTTPConnection) -> Identity | None:
        """Who calls, None for someone who shows nothing; a wrong token is refused."""
        header = connection.headers.get("authorization")
        if header is not None:
            return await self._by_bearer(header, address_of(connection))
        cookie = connection.cookies.get(COOKIE)
        if cookie is None:
            return None
        session = await asyncio.to_thread(self._sessions.check, cookie)
        if session is None:
            return None
        return Identity.of(session.token, session.csrf)

    async def is_valid(self, who: Identity) -> bool:
        """Whether the token of someone who was let in still lets anyone in."""
        if self._tokens.is_stale():
            await self._refresh()
        return self._tokens.by_id(who.token) is not None

    async def token(self, secret: str, address: str) -> Token:
        """The token of a secret. Wrong ones are counted by address, and never keep a right one out."""
        if self._tokens.is_stale():
            await self._refresh()
        token = self._tokens.recall(secret)
        if token is None and self._tokens.is_stale(UNKNOWN_STALE):
            await self._refresh(UNKNOWN_STALE)
            token = self._tokens.recall(secret)
        if token is None or self._tokens.by_id(token.id) is None:
            if self._wrong_tokens.take(network_of(address)):
                raise HTTPError(429, "too many wrong tokens from this address: wait a minute", {"Retry-After": "60"})
            why = "has expired" if token is not None else "is unknown or was revoked"
            raise HTTPError(401, f"this token {why}", {"WWW-Authenticate": "Bearer"})
        return token

    async def _refresh(self, seconds: float = STALE) -> None:
        """Read the tokens again; whoever comes meanwhile waits for the same reading, and for no thread of their own."""
        loop, reading = asyncio.get_running_loop(), self._reading
        if reading is None or reading.done() or reading.get_loop() is not loop:
            self._reading = reading = asyncio.ensure_future(asyncio.to_thread(self._tokens.refresh, seconds))
        await asyncio.shield(reading)

    async def _by_bearer(self, header: str, address: str) -> Identity:
        scheme, _, secret = header.partition(" ")
        if scheme.lower() == "basic":
            secret = _password(secret)
        elif scheme.lower() != "bearer":
            raise HTTPError(401, "authorization must be a bearer token", {"WWW-Authenticate": "Bearer"})
        return Identity.of(await self.token(secret.strip(), address))

    def check_rate(self, who: Identity) -> None:
        """Refuse a caller who calls too often."""
        wait = self._calls.take(who.token)
        if wait:
            raise HTTPError(429, f"too many calls: wait {wait:.1f} s", {"Retry-After": str(max(1, round(wait)))})


def _password(encoded: str) -> str:
    """The token of a caller that knows only names and passwords; the name does not matter."""
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        raise HTTPError(401, "basic authorization is not base64", {"WWW-Authenticate": "Bearer"}) from None


def check_origin(connection: HTTPConnection) -> None:
    """A browser tells where a change comes from; another site's is refused before anything is read."""
    if connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HTTPError(403, "this request comes from another site")
    origin = connection.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != connection.headers.get("host"):
        raise HTTPError(403, f"this request comes from {origin}")


def check_csrf(who: Identity, given: str | None) -> None:
    """A change by cookie needs the session's CSRF token, which another site cannot know."""
    if who.csrf is not None and not hmac.compare_digest(who.csrf.encode(), (given or "").encode()):
        raise HTTPError(403, f"the header {CSRF_HEADER} is missing or wrong: load the page again")


def check_agent_limit(who: Identity, method: str, path: str) -> None:
    """Refuse a token that is limited to agents what concerns another agent, or the whole service."""
    if who.agents is None:
        return
    named = _OF_AN_AGENT.match(path)
    whole = path.startswith(GUARDED) and not (path == "/api/agents" and method in SAFE)
    if not who.may_use(named[1]) if named else whole:
        raise HTTPError(403, f"this token is limited to {', '.join(who.agents) or 'agents that are gone'}")


def allowed(*roles: str) -> Any:
    """A dependency: the caller, if the role is one of these."""

    async def caller(
        request: Request, _b: Annotated[Any, Depends(_bearer)], _c: Annotated[Any, Depends(_cookie)]
    ) -> Identity:
        return caller_of(request, *roles)

    return Depends(caller)


def caller_of(request: Request, *roles: str) -> Identity:
    """The caller, if the role is one of these."""
    who = request.scope.get("sparingly.identity")
    if not isinstance(who, Identity):
        raise HTTPError(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
    if who.role not in roles:
        raise HTTPError(403, f"the role {who.role} may not do this: it takes {' or '.join(roles)}")
    return who


SECURITY: dict[str, Any] = {"security": [{_bearer.scheme_name: []}, {_cookie.scheme_name: []}]}
"""What the OpenAPI description says of a route that calls `caller_of` itself."""


def network_of(address: str) -> str:
    """What one caller may have to itself: an IPv4 address, or the 64 bits of an IPv6 network.

    >>> network_of("203.0.113.7"), network_of("2001:db8:0:7:1:2:3:4"), network_of("unknown")
    ('203.0.113.7', '2001:db8:0:7::/64', 'unknown')
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((int(parsed), 64), strict=False)) if parsed.version == 6 else address


def address_of(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else "unknown"
