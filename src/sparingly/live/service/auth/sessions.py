"""Sessions: a person shows a token once and then carries a cookie, which dies with the token."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from sparingly.live.service.auth.tokens import STALE, Token, Tokens, digest
from sparingly.live.service.service_database import ServiceDatabase, sessions

COOKIE = "sparingly_session"
LASTS = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person; `csrf` must come back with everything that changes something."""

    token: Token
    csrf: str


class Sessions:
    """The sessions of a service, kept in its tables so that every process knows them."""

    def __init__(self, database: ServiceDatabase, tokens: Tokens, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._tokens = tokens
        self._clock = clock
        self._seen: dict[bytes, tuple[float, str, str, float]] = {}

    def begin(self, token: Token) -> str:
        """A new session; returns what the cookie holds."""
        cookie = secrets.token_urlsafe(32)
        row = {"digest": digest(cookie), "token": token.id, "csrf": secrets.token_urlsafe(24)}
        with self._database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.expires < self._clock()))
            connection.execute(insert(sessions), {**row, "expires": self._clock() + LASTS})
        return cookie

    def check(self, cookie: str) -> Session | None:
        """The session of a cookie, if it has not ended and its token was not revoked."""
        self._tokens.refresh()
        name = digest(cookie)
        seen = self._seen.get(name)
        if seen is None or time.monotonic() - seen[0] > STALE:
            with self._database.reading() as connection:
                row = connection.execute(select(sessions).where(sessions.c.digest == name)).first()
            if row is None:
                self._seen.pop(name, None)
                return None
            if len(self._seen) > 10_000:
                self._seen.clear()
            seen = self._seen[name] = (time.monotonic(), row.token, row.csrf, row.expires)
        token = self._tokens.by_id(seen[1])
        return Session(token, seen[2]) if token is not None and seen[3] >= self._clock() else None

    def end(self, cookie: str) -> None:
        """Sign out."""
        self._seen.pop(digest(cookie), None)
        with self._database.writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.digest == digest(cookie)))
