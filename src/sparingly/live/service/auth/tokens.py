"""Tokens: what a program or a person shows to be let in. Only their hashes are kept.

A secret is 32 random bytes, so that one round of SHA-256 is enough: there is no word list to guess it from.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import and_, insert, select, update

from sparingly.live.agent.errors import AgentError
from sparingly.live.service.service_database import ServiceDatabase, tokens

PRODUCER, EXPERT, HOST, ADMIN = ROLES = ("producer", "expert", "host", "admin")
"""Who observes, who answers, and who looks after both."""

STALE = 1.0
"""Seconds after which the tokens are read again: how long a revocation takes to reach every process."""

_TOKEN = re.compile(r"sparingly_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,80}")


@dataclass(frozen=True, slots=True)
class Token:
    """One token without its secret."""

    id: str
    name: str
    role: str
    created: float
    revoked: float | None = None


class Tokens:
    """The tokens of a service.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> tokens = Tokens(ServiceDatabase(folder.name))
    >>> token, secret = tokens.create("Ada", "expert")
    >>> tokens.check(secret).name
    'Ada'
    >>> tokens.check(secret[:-1] + "?") is None
    True
    >>> tokens.revoke(token.id)
    >>> tokens.check(secret) is None
    True
    """

    def __init__(self, database: ServiceDatabase, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[str, tuple[bytes, Token]] = {}
        self._read_at = -STALE

    def create(self, name: str, role: str) -> tuple[Token, str]:
        """A new token and its secret, which is told this once."""
        if role not in ROLES:
            raise AgentError(f"role {role!r} is unknown: the roles are {', '.join(ROLES)}")
        if not _NAME.fullmatch(name) or not name.strip():
            raise AgentError(f"name {name!r} must have 1 to 80 visible characters")
        token = Token(secrets.token_hex(6), name.strip(), role, self._clock())
        secret = f"sparingly_{token.id}_{secrets.token_urlsafe(32)}"
        with self._database.writing() as connection:
            same = select(tokens.c.id).where(and_(tokens.c.name == token.name, tokens.c.revoked.is_(None)))
            if connection.execute(same).first() is not None:
                raise AgentError(f"there is already a token named {token.name!r}: revoke it, or choose another name")
            row = {"id": token.id, "name": token.name, "role": role, "created": token.created}
            connection.execute(insert(tokens), {**row, "digest": digest(secret)})
        self._read_at = -STALE
        return token, secret

    def list(self) -> list[Token]:
        """Every token there ever was, oldest first."""
        columns = (tokens.c.id, tokens.c.name, tokens.c.role, tokens.c.created, tokens.c.revoked)
        with self._database.reading() as connection:
            return [Token(*row) for row in connection.execute(select(*columns).order_by(tokens.c.created))]

    def revoke(self, which: str) -> None:
        """Let no one in any more with this token, named by its id or its name."""
        with self._database.writing() as connection:
            found = and_(tokens.c.revoked.is_(None), (tokens.c.id == which) | (tokens.c.name == which))
            changed = connection.execute(update(tokens).where(found).values(revoked=self._clock())).rowcount
        if not changed:
            raise AgentError(f"there is no token {which!r} that could be revoked")
        self._read_at = -STALE

    def check(self, secret: str) -> Token | None:
        """The token that this is the secret of."""
        self.refresh()
        return self.recall(secret)

    @property
    def is_stale(self) -> bool:
        return time.monotonic() - self._read_at >= STALE

    def refresh(self) -> None:
        """Read the tokens again if that was long ago."""
        if self.is_stale:
            read_at = time.monotonic()
            with self._database.reading() as connection:
                rows = connection.execute(select(tokens).where(tokens.c.revoked.is_(None))).all()
            self._known = {r.id: (bytes(r.digest), Token(r.id, r.name, r.role, r.created)) for r in rows}
            self._read_at = read_at

    def recall(self, secret: str) -> Token | None:
        """The token as last read; the comparison takes as long for a wrong secret as for a right one."""
        parts = _TOKEN.fullmatch(secret)
        known, token = self._known.get(parts[1] if parts else "", (bytes(32), None))
        return token if hmac.compare_digest(known, digest(secret)) else None

    def by_id(self, token_id: str) -> Token | None:
        """A token that is not revoked, as last read."""
        return self._known.get(token_id, (b"", None))[1]


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
