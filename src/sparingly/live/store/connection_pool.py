"""How many connections a process may have to a database, and how long it waits for one, for a lock, or for a reply."""

from __future__ import annotations

from typing import Any

THREADS = 48
"""Threads of a service that may wait for a database at the same time."""

OTHERS = 40
"""Threads besides: those that check tokens, train, and do the housekeeping."""

LOCK_SECONDS = 10.0
"""The most seconds that one waits for a lock of the database, and for a turn at an agent of a service."""

STATEMENT_SECONDS = 30.0
"""The most seconds that PostgreSQL works on one statement."""


def pool_options() -> dict[str, Any]:
    """For `create_engine`: a connection for every thread; few are kept open when they are not needed."""
    return {"pool_size": 5, "max_overflow": THREADS + OTHERS - 5, "pool_timeout": LOCK_SECONDS}


def postgres_arguments(schema: str, lock_seconds: float = LOCK_SECONDS) -> dict[str, Any]:
    """How to connect to PostgreSQL so that nothing waits for ever, not even for a machine that has vanished."""
    settings = {
        "search_path": schema,
        "lock_timeout": round(1000 * lock_seconds),
        "statement_timeout": round(1000 * STATEMENT_SECONDS),
    }
    return {
        "options": " ".join(f"-c{name}={value}" for name, value in settings.items()),
        "connect_timeout": 5,
        "tcp_user_timeout": round(1000 * LOCK_SECONDS),
        "application_name": "sparingly",
    }
