"""Where an agent lives: one database, its settings, and transactions that are on disk when they end."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, func, insert, inspect, select
from sqlalchemy.exc import DataError, DBAPIError, NoResultFound
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from sparingly.encoders import TextEncoder
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError, DamagedError, StoreError
from sparingly.live.quality.quality_checks import QualityChecks
from sparingly.live.store import snapshots
from sparingly.live.store.migrations import VERSION, meta, read_meta, write_meta
from sparingly.live.store.sqlite import WRITES, SQLite, commit, is_sqlite, run
from sparingly.live.store.tables import MIGRATIONS, journal


class Backend(Protocol):
    """What differs between databases."""

    name: str
    is_shared: bool
    on_taken_over: Callable[[], None]

    @property
    def url(self) -> str: ...
    def exists(self) -> bool: ...
    def engine(self) -> Engine: ...
    def create(self, fill: Callable[[Connection], None]) -> None: ...
    def remove(self) -> None: ...
    def claim(self) -> None: ...
    def release(self) -> None: ...
    def quick_check(self, engine: Engine) -> None: ...
    def purge(self, engine: Engine) -> None: ...
    def lock_journal(self, connection: Connection) -> None: ...
    def holds_learner_lock(self) -> bool: ...
    def explain(self, error: BaseException) -> StoreError: ...


class Store:
    """An open database of one agent."""

    def __init__(self, backend: Backend, engine: Engine, settings: AgentSettings) -> None:
        self.backend = backend
        self.engine = engine
        self._kept: list[Connection] = []
        """The connection that writes to a file, between two transactions."""
        self.settings = settings
        self.settings_lock = threading.Lock()
        """For those who only read, and may find that settings have changed."""
        self.pid = os.getpid()

    @classmethod
    def create(cls, path: str | os.PathLike[str], settings: AgentSettings, state: bytes | None = None) -> None:
        """Make an agent's database, whole or not at all, with the state that its strategy begins with."""

        def fill(connection: Connection) -> None:
            values = {
                VERSION: str(MIGRATIONS.latest),
                "settings": settings.to_json(),
                "floor": "0",
                "made": json.dumps(time.time()),
            }
            connection.execute(insert(meta), [{"key": key, "value": value} for key, value in values.items()])
            if state is not None:
                snapshots.write(connection, 0, state, 0)

        backend = backend_of(path)
        try:
            backend.create(fill)
        except DBAPIError as error:
            raise backend.explain(error.orig or error) from None

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, claim: bool = True) -> Store:
        """Open an agent's database; `claim=False` only to read, beside the process that has it."""
        backend = backend_of(path)
        if not backend.exists():
            raise StoreError(f"{backend.name} does not exist: make an agent there first")
        if claim:
            backend.claim()
        engine = backend.engine()
        try:
            if claim:
                backend.quick_check(engine)
            store = cls(backend, engine, _read_settings(backend, engine, migrates=claim))
        except BaseException as error:
            engine.dispose()
            if claim:
                backend.release()
            if isinstance(error, DBAPIError):
                raise backend.explain(error.orig or error) from None
            raise
        return store

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction that holds the only right to append to the journal; on disk when it ends."""
        return self._connected(True) if self.backend.is_shared else _FileTransaction(self, self._kept)

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the database."""
        return self._connected(False)

    @contextmanager
    def _connected(self, writes: bool) -> Iterator[Connection]:
        self.check_process()
        try:
            with self.engine.connect().execution_options(**{WRITES: writes}) as connection, connection.begin():
                if writes:
                    self.backend.lock_journal(connection)
                yield connection
        except (DBAPIError, PoolTimeoutError) as error:
            raise self.explained(error) from error

    def check_process(self) -> None:
        """Refuse a process that was forked from the one that opened the database."""
        if os.getpid() != self.pid:
            raise StoreError(f"{self.backend.name} was opened by process {self.pid}: open it again in this one")

    def explained(self, error: DBAPIError | PoolTimeoutError) -> AgentError | StoreError:
        """The error that a caller gets of a failed transaction."""
        if isinstance(error, DataError):
            return unstorable(error)
        return self.backend.explain(error.orig or error if isinstance(error, DBAPIError) else error)

    def head(self, connection: Connection) -> int:
        """The number of the last event in the journal."""
        if is_sqlite(connection):
            return int(run(connection, "SELECT max(seq) FROM journal").fetchone()[0] or 0)
        return int(connection.execute(_HEAD).scalar() or 0)

    def complete_schema(self, connection: Connection, block: Sequence[Any], encoder: TextEncoder | None) -> None:
        """Take what the schema does not know yet from these observations, unless another process has done so."""
        settings = self.read_settings(connection)
        completed = settings.with_schema(settings.schema.complete(block, encoder or settings.encoder))
        if completed.names is not None and settings.names is None and self.head(connection):
            raise AgentError(f"feature {completed.names[0]!r} is named, but the first observation had no names")
        write_meta(connection, "settings", completed.to_json())
        self.settings = completed.with_game_of(self.settings)

    def adjust(self, asked_for: AgentSettings) -> None:
        """Take over what may change while an agent lives: its limits, what it keeps and how long, how it trains.

        Descriptions of classes stay unless others are given.
        """
        changeable = ("limits", "keep", "training", "retention_days", "hold")
        now = {name: getattr(asked_for, name) for name in changeable}
        if asked_for.quality != QualityChecks():
            now["quality"] = asked_for.quality
        if asked_for.descriptions:
            now["descriptions"] = asked_for.descriptions
        if replace(self.settings, **now) != self.settings:
            with self.writing() as connection:
                changed = self.write_settings(connection, now)
            self.settings = changed

    def read_settings(self, connection: Connection) -> AgentSettings:
        """The settings as they are in the database."""
        return AgentSettings.from_json(read_meta(connection, "settings"))

    def write_settings(self, connection: Connection, now: dict[str, Any]) -> AgentSettings:
        """Write changed settings; returns all of them, which count once the transaction has ended."""
        changed = replace(self.read_settings(connection), **now)
        write_meta(connection, "settings", changed.to_json())
        return changed

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()
        self.engine.dispose()
        self.backend.release()


class _FileTransaction:
    """A transaction that writes to a file. Its connection is kept, and the driver itself begins and commits: from the
    pool and by SQLAlchemy, that costs more than the inserts.
    """

    __slots__ = ("_connection", "_kept", "_store")

    def __init__(self, store: Store, kept: list[Connection]) -> None:
        self._store, self._kept = store, kept

    def __enter__(self) -> Connection:
        self._store.check_process()
        try:
            self._connection = self._kept.pop()
        except IndexError:
            self._connection = self._connect()
        try:
            run(self._connection, "BEGIN IMMEDIATE")
        except DBAPIError as error:
            self._connection.close()
            raise self._store.explained(error) from error
        return self._connection

    def _connect(self) -> Connection:
        try:
            return self._store.engine.connect().execution_options(**{WRITES: True})
        except (DBAPIError, PoolTimeoutError) as error:
            raise self._store.explained(error) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                commit(self._connection)
        except BaseException as failure:
            error = failure
            if not isinstance(failure, DBAPIError):
                self._connection.close()
                raise
        if error is not None:
            # Closing rolls back.
            self._connection.close()
            if isinstance(error, DBAPIError | PoolTimeoutError):
                raise self._store.explained(error) from error
        elif self._kept:
            self._connection.close()
        else:
            self._kept.append(self._connection)


def check_same_agent(path: str | os.PathLike[str], settings: AgentSettings) -> None:
    """Refuse settings of another agent than the one that is there, before anything is taken from whoever has it open.

    What cannot be read now is refused when the agent is opened.
    """
    backend = backend_of(path)
    engine = backend.engine()
    try:
        with engine.connect() as connection:
            differs = AgentSettings.from_json(read_meta(connection, "settings")).differs(settings)
    except (DBAPIError, NoResultFound, ValueError, KeyError, TypeError):
        return
    finally:
        engine.dispose()
    if differs is not None:
        raise StoreError(f"{backend.name} is an agent whose {differs}: open it, or choose another place")


def unstorable(error: DataError) -> AgentError:
    """The error for a value that no column can hold, such as a text with NUL: its sender made a mistake."""
    return AgentError(f"a value cannot be kept: {' '.join(str(error.orig).split())[:200]}")


_HEAD = select(func.max(journal.c.seq))


def backend_of(path: str | os.PathLike[str]) -> Backend:
    """The backend for a file's path or a database's URL."""
    text = os.fspath(path)
    if "://" not in text:
        return SQLite(path)
    if not text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        raise StoreError(
            f"{text.split('://')[0]}:// is not a database an agent can live in: give a file or postgresql://"
        )
    from sparingly.live.store.postgres import PostgreSQL

    return PostgreSQL(text.replace("postgres://", "postgresql://", 1))


def _read_settings(backend: Backend, engine: Engine, *, migrates: bool) -> AgentSettings:
    with engine.connect() as connection:
        if not inspect(connection).has_table("meta"):
            raise StoreError(f"{backend.name} is not an agent's file: it has no table 'meta'")
        try:
            version = MIGRATIONS.version(connection, backend.name)
            settings = AgentSettings.from_json(read_meta(connection, "settings"))
        except StoreError:
            raise
        except (NoResultFound, ValueError, KeyError, TypeError) as error:
            raise DamagedError(f"{backend.name} is damaged: its format or settings cannot be read ({error})") from None
    if version < MIGRATIONS.latest:
        if not migrates:
            raise StoreError(
                f"{backend.name} has format {version}, older than {MIGRATIONS.latest}: Agent.open brings it up to date"
            )
        with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            backend.lock_journal(connection)
            MIGRATIONS.upgrade(connection, backend.name)
    return settings
