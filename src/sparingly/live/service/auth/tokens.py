"""Tokens: what a program or a person shows to be let in. Only their hashes are kept.

A secret is 32 random bytes, so that one round of SHA-256 is enough: there is no word list to guess it from.
"""

from __future__ import annotations

import getpass
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, insert, or_, select, update

from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.service.audit import Actor, add_line
from sparingly.live.service.service_database import ServiceDatabase, agents, tokens

PRODUCER, EXPERT, HOST, ADMIN = ROLES = ("producer", "expert", "host", "admin")
"""Who observes, who answers, and who looks after both."""

STALE = 1.0
"""Seconds after which the tokens are read again: how long a revocation takes to reach every process."""

LATEST = 253_402_300_800.0
"""The year 10000, in seconds since 1970."""

UNKNOWN_STALE = 0.05
"""Seconds after which they are read again for a token that is not among them: it may have been made just now."""

_TOKEN = re.compile(r"sparingly_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_CHOSEN = re.compile(r"[!-~]{32,200}")
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,80}")


@dataclass(frozen=True, slots=True)
class Token:
    """One token without its secret; `agents` are those it is limited to, None for all."""

    id: str
    name: str
    role: str
    created: float
    revoked: float | None = None
    agents: tuple[str, ...] | None = None
    expires: float | None = None

    def is_valid(self, now: float) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True)
class Operator:
    """Whoever works on the machine itself, as the audit trail names them."""

    name: str
    role: str = "operator"
    token: str = "command line"

    @classmethod
    def current(cls) -> Operator:
        try:
            return cls(getpass.getuser())
        except (OSError, KeyError):
            return cls("unknown user")


class Tokens:
    """The tokens of a service. Making and revoking one is in the audit trail, in the same transaction.

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
        self._reading = threading.Lock()
        self._failure: tuple[float, StoreError] | None = None

    def create(
        self,
        name: str,
        role: str,
        *,
        agents: Sequence[str] | None = None,
        expires: float | None = None,
        by: Actor | None = None,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is shown only once.

        Parameters
        ----------
        agents
            The agents that it is limited to; all if None.
        expires
            When it ends, in seconds since 1970; never if None.
        by
            Who makes it; the user of this machine if None.
        """
        name = self._checked_name(name, role)
        now = self._clock()
        if expires is not None and not now < expires < LATEST:
            raise AgentError(f"expires is {expires!r}: it must be a time to come, before the year 10000")
        limited = None if agents is None else tuple(dict.fromkeys(agents))
        token = Token(secrets.token_hex(6), name, role, now, None, limited, expires)
        secret = f"sparingly_{token.id}_{secrets.token_urlsafe(32)}"
        self._insert(token, secret, by)
        return token, secret

    def adopt(self, secret: str, name: str, *, by: Actor | None = None) -> Token:
        """Take a secret that someone else has chosen as an admin's token; one that is there already stays as it is."""
        if not _CHOSEN.fullmatch(secret):
            raise AgentError(
                f"the admin's token has {len(secret)} characters: it must have 32 to 200, visible ASCII without blanks"
            )
        there = next((token for token in self.list() if token.id == _id_of(secret)), None)
        if there is None:
            there = Token(_id_of(secret), self._checked_name(name, ADMIN), ADMIN, self._clock())
            self._insert(there, secret, by)
        if there.role != ADMIN:
            raise AgentError(f"the admin's token is there already, with the role {there.role}")
        return there

    def list(self) -> list[Token]:
        """Every token there ever was, oldest first."""
        with self._database.reading() as connection:
            return [_token(row) for row in connection.execute(select(tokens).order_by(tokens.c.created))]

    def revoke(self, which: str, *, by: Actor | None = None) -> None:
        """Let no one in any more with this token, named by its id or its name."""
        found = and_(tokens.c.revoked.is_(None), (tokens.c.id == which) | (tokens.c.name == which))
        with self._database.locked() as connection:
            revoked = [_token(row) for row in connection.execute(select(tokens).where(found))]
            if not revoked:
                raise AgentError(f"there is no token {which!r} that could be revoked")
            connection.execute(update(tokens).where(found).values(revoked=self._clock()))
            for token in revoked:
                add_line(connection, by or Operator.current(), "revoked a token", detail=_described(token))
        self._read_at = -STALE

    def check(self, secret: str) -> Token | None:
        """The token that this is the secret of, if it lets anyone in."""
        self.refresh()
        token = self.recall(secret)
        return token if token is not None and token.is_valid(self._clock()) else None

    def is_stale(self, seconds: float = STALE) -> bool:
        return time.monotonic() - self._read_at >= seconds

    def refresh(self, seconds: float = STALE) -> None:
        """Read the tokens again if that was so long ago; whoever comes meanwhile shares the reading, or its failure."""
        asked_at = time.monotonic()
        with self._reading:
            if not self.is_stale(seconds):
                return
            if self._failure is not None and self._failure[0] > asked_at:
                raise self._failure[1]
            read_at = time.monotonic()
            try:
                with self._database.reading() as connection:
                    rows = connection.execute(select(tokens).where(tokens.c.revoked.is_(None))).all()
            except StoreError as error:
                self._failure = (time.monotonic(), error)
                raise
            self._known = {row.id: (bytes(row.digest), _token(row)) for row in rows}
            self._read_at = read_at

    def recall(self, secret: str) -> Token | None:
        """The token as last read, expired or not; a wrong secret takes as long to compare as a right one."""
        known, token = self._known.get(_id_of(secret), (bytes(32), None))
        return token if hmac.compare_digest(known, digest(secret)) else None

    def by_id(self, token_id: str) -> Token | None:
        """A token that is neither revoked nor expired, as last read."""
        token = self._known.get(token_id, (b"", None))[1]
        return token if token is not None and token.is_valid(self._clock()) else None

    def _checked_name(self, name: str, role: str) -> str:
        if role not in ROLES:
            raise AgentError(f"role {role!r} is unknown: the roles are {', '.join(ROLES)}")
        if not _NAME.fullmatch(name) or all(unicodedata.category(one)[0] in "CZ" for one in name):
            raise AgentError(f"name {name!r} must have 1 to 80 visible characters")
        return name.strip()

    def _insert(self, token: Token, secret: str, by: Actor | None) -> None:
        row = {"id": token.id, "name": token.name, "role": token.role, "created": token.created}
        limited = None if token.agents is None else json.dumps(token.agents)
        with self._database.locked() as connection:
            in_use = or_(tokens.c.expires.is_(None), tokens.c.expires > self._clock())
            same = select(tokens.c.id).where(and_(tokens.c.name == token.name, tokens.c.revoked.is_(None), in_use))
            if connection.execute(same).first() is not None:
                raise AgentError(f"there is already a token named {token.name!r}: revoke it, or choose another name")
            _check_agents(connection, token.agents)
            values = {**row, "digest": digest(secret), "agents": limited, "expires": token.expires}
            connection.execute(insert(tokens), values)
            add_line(connection, by or Operator.current(), "made a token", detail=_described(token))
        self._read_at = -STALE


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _id_of(secret: str) -> str:
    """The id is part of a secret of ours; that of a secret which someone else has chosen is a hash of it."""
    ours = _TOKEN.fullmatch(secret)
    return ours[1] if ours else digest(f"id of {secret}").hex()[:12]


def _token(row: Any) -> Token:
    limited = None if row.agents is None else tuple(json.loads(row.agents))
    return Token(row.id, row.name, row.role, row.created, row.revoked, limited, row.expires)


def _described(token: Token) -> str:
    """A token in a line of the audit trail."""
    limits = [] if token.agents is None else [f"only {', '.join(token.agents)}"]
    if token.expires is not None:
        limits.append(f"until {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(token.expires))}")
    return "; ".join([f"{token.id} {token.name} ({token.role})", *limits])


def _check_agents(connection: Connection, names: Sequence[str] | None) -> None:
    if names is None:
        return
    if not names:
        raise AgentError("a token that is limited to agents must name one")
    known = set(connection.execute(select(agents.c.name)).scalars())
    for name in names:
        if name not in known:
            raise AgentError(f"there is no agent {name!r}")
