"""An agent in a schema of a PostgreSQL database: many processes take observations and answers, one of them learns."""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Callable

from sqlalchemy import URL, Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from sparingly.live.agent.errors import AgentError, DamagedError, StoreError
from sparingly.live.store.connection_pool import pool_options, postgres_arguments
from sparingly.live.store.tables import metadata

_TRY_AGAIN = 0.5
"""Seconds between two attempts to become the one who learns, and between two looks whether one still is."""


class PostgreSQL:
    """A schema, named by `?agent=NAME` at the end of the URL.

    Appending to the journal is serialised by a lock that ends with its transaction; the right to learn is a lock that
    ends with its connection, so that it is free as soon as the process that holds it dies.
    """

    is_shared = True

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        schema = parsed.query.get("agent", "sparingly")
        if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", schema):
            raise AgentError(f"agent={schema} in the URL must be small letters, digits and underscores")
        self.schema = schema
        self._url = parsed.difference_update_query(["agent"]).set(drivername="postgresql+psycopg")
        self.name = parsed.render_as_string(hide_password=True)
        self.url = parsed.render_as_string(hide_password=False)
        self.on_taken_over: Callable[[], None] = lambda: None
        self._pid = os.getpid()
        self._learning: Connection | None = None
        self._looked = 0.0
        self._learns = False
        self._key = zlib.crc32(schema.encode())

    def engine(self) -> Engine:
        return _engine(self._url, self.schema)

    def exists(self) -> bool:
        engine = self.engine()
        try:
            with engine.connect() as connection:
                return bool(
                    connection.execute(text("SELECT to_regclass(:name)"), {"name": f"{self.schema}.meta"}).scalar()
                )
        except DBAPIError as error:
            raise self.explain(error.orig or error) from None
        finally:
            engine.dispose()

    def create(self, fill: Callable[[Connection], None]) -> None:
        """Make the tables in one transaction; a second process that does so at the same time finds them made."""
        engine = self.engine()
        try:
            with engine.begin() as connection:
                self.lock_journal(connection)
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {self.schema}"))
                if connection.execute(text("SELECT to_regclass('meta')")).scalar() is None:
                    metadata.create_all(connection)
                    fill(connection)
        finally:
            engine.dispose()

    def remove(self) -> None:
        """Drop the schema and all that is in it."""
        engine = self.engine()
        try:
            with engine.begin() as connection:
                connection.execute(text(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE"))
        except DBAPIError as error:
            raise self.explain(error.orig or error) from None
        finally:
            engine.dispose()

    def claim(self) -> None:
        """Nothing to do: any number of processes may open the database."""

    def release(self) -> None:
        if self._learning is not None and self._pid == os.getpid():
            self._let_go()

    def quick_check(self, engine: Engine) -> None:
        """PostgreSQL looks after its own files."""

    def purge(self, engine: Engine) -> None:
        """Nothing to do: PostgreSQL overwrites deleted rows when it vacuums."""

    def lock_journal(self, connection: Connection) -> None:
        connection.execute(text("SELECT pg_advisory_xact_lock(1, :key)"), {"key": _signed(self._key)})

    def holds_learner_lock(self) -> bool:
        """Whether this process is the one that learns; tries to become it if no one is."""
        now = time.monotonic()
        if now - self._looked >= _TRY_AGAIN:
            self._looked = now
            self._learns = self._hold()
        return self._learns

    def explain(self, error: BaseException) -> StoreError:
        said = " ".join(str(error).split()) or type(error).__name__
        if "invalid page" in said or "could not read block" in said:
            return DamagedError(f"{self.name} is damaged: {said}")
        return StoreError(f"{self.name}: {said}; nothing of this call was acknowledged")

    def _hold(self) -> bool:
        try:
            if self._learning is None:
                self._learning = self.engine().connect().execution_options(isolation_level="AUTOCOMMIT")
                if not self._try_lock(self._learning):
                    self._let_go()
            else:
                self._learning.execute(text("SELECT 1"))
        except DBAPIError:
            self._let_go()
        return self._learning is not None

    def _try_lock(self, connection: Connection) -> bool:
        found = connection.execute(text("SELECT pg_try_advisory_lock(2, :key)"), {"key": _signed(self._key)})
        return bool(found.scalar())

    def _let_go(self) -> None:
        connection, self._learning, self._learns = self._learning, None, False
        if connection is not None:
            connection.invalidate()
            connection.engine.dispose()


def _engine(url: URL, schema: str) -> Engine:
    return create_engine(url, pool_pre_ping=True, connect_args=postgres_arguments(schema), **pool_options())


def _signed(key: int) -> int:
    """A 32-bit number as PostgreSQL's integer has it."""
    return key - 2**32 if key >= 2**31 else key
