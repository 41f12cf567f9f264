"""What the service itself remembers, beside its agents: tokens, sessions, the agents' names, who did what."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.exc import DataError, SQLAlchemyError

from sparingly.live.agent.errors import StoreError
from sparingly.live.store.connection_pool import pool_options, postgres_arguments
from sparingly.live.store.migrations import VERSION, WRITE_CHECK, Migrations, meta, write_meta
from sparingly.live.store.store import unstorable

SCHEMA = "sparingly_service"
LOCK_SECONDS = 5.0
"""The most seconds that one waits for a lock of these tables, which are small and quickly written."""

metadata = MetaData()
meta.to_metadata(metadata)

tokens = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created", Double, nullable=False),
    Column("revoked", Double),
    Column("agents", Text),
    Column("expires", Double),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("token", Text, nullable=False, index=True),
    Column("csrf", Text, nullable=False),
    Column("expires", Double, nullable=False),
)

agents = Table(
    "agents",
    metadata,
    Column("name", Text, primary_key=True),
    Column("reveal", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("state", Text, nullable=False, server_default="active"),
    Column("file", Text),
)
"""`file` is the name of the agent's file or schema: the one that it was made with, whatever it is called now."""

audit = Table(
    "audit",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("did", Text, nullable=False),
    Column("agent", Text),
    Column("ticket", Text),
    Column("detail", Text),
    Column("source", Text),
)
audit_sources = Index("audit_sources", audit.c.source, unique=True)
"""A line that was copied from an agent has its id there as source: copied again, it is not doubled."""

label_studio_projects = Table(
    "label_studio_projects",
    metadata,
    Column("agent", Text, primary_key=True),
    Column("project", Text, primary_key=True),
    Column("url", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("is_told", Boolean, nullable=False),
)
"""Where Label Studio is, to fetch annotations again; `is_told` if a person said so, and not Label Studio itself."""

label_studio_annotations = Table(
    "label_studio_annotations",
    metadata,
    Column("agent", Text, primary_key=True),
    Column("project", Text, primary_key=True),
    Column("annotation", BigInteger, primary_key=True, autoincrement=False),
    Column("ticket", Text, nullable=False),
    Column("label", Text),
    Column("expert", Text, nullable=False),
    Column("updated", Text, nullable=False),
    Column("seen", Double, nullable=False),
    Index("label_studio_tickets", "agent", "ticket"),
)
"""The annotations that an agent's labels come from, so that a deleted one can be unlearned."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("agent", Text, nullable=False, index=True),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("events", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("alerts", Text, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("retry_at", Double, nullable=False),
    Column("error", Text),
    Column("arrived", Double),
    Column("holder", Text),
    Column("until", Double, nullable=False),
)
"""Who gets messages of what became of an agent's tickets: up to which event of the journal messages were made
(`position`), the alerts that were sent, and which process sends them until when. `agent` is the name of the agent's
file or schema."""

webhook_messages = Table(
    "webhook_messages",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("webhook", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("error", Text),
    Index("webhook_messages_due", "webhook", "state", "seq"),
)
"""Messages that have not arrived yet, and those that were given up."""


def _limit_tokens(connection: Connection) -> None:
    """Version 2: a token may be limited to agents (a JSON list of names) and in time."""
    connection.execute(text("ALTER TABLE tokens ADD COLUMN agents TEXT"))
    connection.execute(text("ALTER TABLE tokens ADD COLUMN expires DOUBLE PRECISION"))


def _add_sources_and_states(connection: Connection) -> None:
    """Version 3: lines of the audit trail are copied from agents; an agent has a state, and may be renamed."""
    connection.execute(text("ALTER TABLE audit ADD COLUMN source TEXT"))
    audit_sources.create(connection)
    connection.execute(text("ALTER TABLE agents ADD COLUMN state TEXT NOT NULL DEFAULT 'active'"))
    connection.execute(text("ALTER TABLE agents ADD COLUMN file TEXT"))
    connection.execute(text("UPDATE agents SET file = name"))


def _remember_annotations(connection: Connection) -> None:
    """Version 4: which annotations of Label Studio the labels come from."""
    metadata.create_all(connection, tables=[label_studio_projects, label_studio_annotations])


def _add_webhooks(connection: Connection) -> None:
    """Version 5: webhooks, and their messages until these have arrived."""
    metadata.create_all(connection, tables=[webhooks, webhook_messages])


MIGRATIONS = Migrations(_limit_tokens, _add_sources_and_states, _remember_annotations, _add_webhooks)
"""A migration goes here, at the end, and the tables above are changed with it."""


class ServiceDatabase:
    """The service's own tables: `service.db` in a folder, or a schema of a PostgreSQL database.

    Several processes may have it open, so that a token made or revoked at the command line counts at once.

    Parameters
    ----------
    place
        A folder, made if it is not there, or the URL of a PostgreSQL database.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = str(place)
        self.is_postgres = self.place.startswith(("postgresql://", "postgres://", "postgresql+"))
        with self._explained():
            self._engine = _postgres(self.place) if self.is_postgres else _sqlite(Path(place))
            self._make()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._explained(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def locked(self) -> Iterator[Connection]:
        """A transaction to write in, one at a time among all processes: what it reads stays so until it ends."""
        with self.writing() as connection:
            self._lock(connection)
            yield connection

    @contextmanager
    def starting(self) -> Iterator[None]:
        """One process at a time: what the first that starts makes is found by those that start with it."""
        if self.is_postgres:
            with self.reading() as connection:
                connection.execute(text("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '60s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(3, 1)"))
                yield
            return
        lock = os.open(Path(self.place) / "service.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def check_writable(self) -> None:
        """Write something that does not matter, to see whether it can be done."""
        with self.locked() as connection:
            write_meta(connection, WRITE_CHECK, time.time())

    def close(self) -> None:
        self._engine.dispose()

    def agent_place(self, name: str) -> str:
        """Where the agent of this name lives: a file of its own, or a schema."""
        if self.is_postgres:
            url = make_url(self.place).update_query_dict({"agent": f"agent_{name}"})
            return url.render_as_string(hide_password=False)
        return str(Path(self.place) / f"{name}.agent.db")

    def _make(self) -> None:
        """Make the tables, or migrate those that are there; older releases kept no version, which was 1."""
        with self._engine.begin() as connection:
            self._lock(connection)
            if self.is_postgres:
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
            inspector = inspect(connection)
            if not inspector.has_table(meta.name):
                is_old = inspector.has_table(tokens.name)
                metadata.create_all(connection, checkfirst=is_old)
                write_meta(connection, VERSION, 1 if is_old else MIGRATIONS.latest)
            MIGRATIONS.upgrade(connection, "the service's database")

    def _lock(self, connection: Connection) -> None:
        if self.is_postgres:
            connection.execute(text("SELECT pg_advisory_xact_lock(3, 0)"))
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except DataError as error:
            raise unstorable(error) from None
        except (SQLAlchemyError, sqlite3.Error) as error:
            said = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StoreError(f"the service's own tables: {said}") from None


def _sqlite(folder: Path) -> Engine:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "service.db"
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"the folder {folder} cannot be used: {error.strerror}") from None
    arguments = {"check_same_thread": False, "timeout": LOCK_SECONDS}
    engine = create_engine(f"sqlite:///{file.resolve()}", connect_args=arguments, **pool_options())
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _postgres(url: str) -> Engine:
    parsed = make_url(url).difference_update_query(["agent"]).set(drivername="postgresql+psycopg")
    arguments = postgres_arguments(SCHEMA, LOCK_SECONDS)
    return create_engine(parsed, pool_pre_ping=True, connect_args=arguments, **pool_options())
