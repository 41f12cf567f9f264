"""An agent in one SQLite file: durable commits, one process at a time."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from sparingly.live.agent.errors import DamagedError, InUseError, StoreError
from sparingly.live.store.connection_pool import LOCK_SECONDS, pool_options
from sparingly.live.store.tables import metadata

WRITES = "sparingly_writes"
"""The execution option of a connection that is going to write."""

QUICK_CHECK_BYTES = 200_000_000
"""Bytes up to which a file is looked over when it is opened."""

_held: weakref.WeakValueDictionary[str, SQLite] = weakref.WeakValueDictionary()


class SQLite:
    """A file and the lock beside it.

    The lock is a file of its own: opening and closing the database a second time would drop the locks that SQLite
    itself holds on it.
    """

    is_shared = False
    """Whether other processes write too, so that the head of the journal must be looked up."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        self.name = str(path)
        self._lock: weakref.finalize[[int], SQLite] | None = None
        self._pid = os.getpid()
        self.on_taken_over: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def engine(self) -> Engine:
        return _engine(self.path)

    def create(self, fill: Callable[[Connection], None]) -> None:
        """Make the file; it appears whole or not at all, so that an agent killed while it is made leaves nothing."""
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}.partial")
        partial.unlink(missing_ok=True)
        try:
            if not self.path.parent.is_dir():
                raise StoreError(f"{self.name}: the folder {self.path.parent} does not exist")
            _write_ahead(partial)
            engine = _engine(partial)
            with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
                metadata.create_all(connection, checkfirst=False)
                fill(connection)
            engine.dispose()
            os.replace(partial, self.path)
            _sync(self.path.parent)
        finally:
            for ending in ("", "-wal", "-shm"):
                partial.with_name(partial.name + ending).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the file and what lies beside it; refused while another process has it."""
        self.claim()
        try:
            for ending in ("-wal", "-shm", "", ".lock"):
                self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
            _sync(self.path.parent)
        except OSError as error:
            raise StoreError(f"{self.name} cannot be removed: {error.strerror}") from None
        finally:
            self.release()

    def claim(self) -> None:
        """Become the one process that has the file; an agent this process already has on it is closed."""
        earlier = _held.get(str(self.path))
        if earlier is not None and earlier is not self and earlier._pid == os.getpid():
            earlier.on_taken_over()
            earlier.release()
        try:
            lock = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StoreError(f"{self.name} cannot be locked: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise InUseError(f"{self.name} is in use by process {owner}: one process at a time may open it") from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        self._lock = weakref.finalize(self, os.close, lock)
        _held[str(self.path)] = self

    def release(self) -> None:
        if self._lock is not None:
            self._lock()
        if _held.get(str(self.path)) is self:
            del _held[str(self.path)]

    def quick_check(self, engine: Engine) -> None:
        """Notice a damaged file when it is opened, not in the middle of its work; large ones take too long."""
        if self.path.stat().st_size > QUICK_CHECK_BYTES:
            return
        with engine.connect() as connection:
            found = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar())
        if found != "ok":
            raise self.explain(ValueError(f"corrupt: {' '.join(found.split())}"))

    def purge(self, engine: Engine) -> None:
        """Overwrite what was deleted in the file itself, and empty the write-ahead log, which still has it."""
        connection = engine.raw_connection()
        try:
            connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise self.explain(error) from None
        finally:
            connection.close()

    def lock_journal(self, connection: Connection) -> None:
        """Nothing to do: BEGIN IMMEDIATE has taken the only right to write."""

    def holds_learner_lock(self) -> bool:
        return True

    def explain(self, error: BaseException) -> StoreError:
        """The driver's error in one line."""
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        if "malformed" in said or "corrupt" in said:
            return DamagedError(f"{self.name} is damaged ({said}): `sparingly agent check` says what can be recovered")
        if "not a database" in said:
            return StoreError(f"{self.name} is not an agent's file: {said}")
        return StoreError(f"{self.name}: {said}; nothing of this call was kept")


def _engine(path: Path) -> Engine:
    arguments = {"check_same_thread": False, "timeout": LOCK_SECONDS}
    engine = create_engine(f"sqlite:///{path}", connect_args=arguments, **pool_options())
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: sqlite3.Connection, record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA journal_size_limit=67108864")
    connection.execute("PRAGMA secure_delete=ON")


def _begin(connection: Connection) -> None:
    """SQLAlchemy begins; the driver may have done so already."""
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        writes = connection.get_execution_options().get(WRITES, False)
        run(connection, "BEGIN IMMEDIATE" if writes else "BEGIN")


def is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def run(connection: Connection, statement: str, rows: Sequence[Sequence[Any]] | None = None) -> sqlite3.Cursor:
    """Execute a statement, for many rows if there are any, by the driver itself: a tenth of what SQLAlchemy takes."""
    driver: Any = connection.connection.driver_connection
    try:
        found: sqlite3.Cursor = driver.execute(statement) if rows is None else driver.executemany(statement, rows)
    except sqlite3.Error as error:
        raise DBAPIError.instance(statement, None, error, sqlite3.Error) from error
    return found


def commit(connection: Connection) -> None:
    """End a transaction that was begun by the driver itself, whether or not SQLAlchemy has joined it."""
    if connection.in_transaction():
        connection.commit()
        return
    driver: Any = connection.connection.driver_connection
    try:
        driver.commit()
    except sqlite3.Error as error:
        raise DBAPIError.instance("COMMIT", None, error, sqlite3.Error) from error


def _write_ahead(path: Path) -> None:
    """The write-ahead log is chosen once, in the file itself: a file that is only looked at is never changed.

    The file is its owner's alone, and SQLite gives the same permissions to the files beside it.
    """
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
