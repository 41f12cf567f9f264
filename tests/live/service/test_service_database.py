"""The service's own database is versioned: older ones are migrated, newer ones refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sparingly.live.agent.errors import StoreError
from sparingly.live.service.auth.tokens import Tokens
from sparingly.live.service.service_database import ServiceDatabase


def version(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "service.db")) as connection:
        return str(connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()[0])


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "service.db")) as connection, connection:
        connection.execute(statement)


def test_a_new_database_has_a_version(tmp_path: Path) -> None:
    ServiceDatabase(tmp_path).close()
    ServiceDatabase(tmp_path).close()
    assert version(tmp_path) == "1"


def test_a_database_from_before_versions_is_version_1_and_keeps_its_tokens(tmp_path: Path) -> None:
    database = ServiceDatabase(tmp_path)
    _, secret = Tokens(database).create("ann", "admin")
    database.close()
    change(tmp_path, "DROP TABLE meta")
    database = ServiceDatabase(tmp_path)
    token = Tokens(database).check(secret)
    assert token is not None
    assert token.name == "ann"
    database.close()
    assert version(tmp_path) == "1"


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    ServiceDatabase(tmp_path).close()
    change(tmp_path, "UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(StoreError, match="the service's database has format 99, newer than 1"):
        ServiceDatabase(tmp_path)
    assert version(tmp_path) == "99"
