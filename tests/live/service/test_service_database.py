"""The service's own database is versioned: older ones are migrated, newer ones refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select, text

from sparingly.live.agent.errors import StoreError
from sparingly.live.service.auth.tokens import Token, Tokens, digest
from sparingly.live.service.service_database import MIGRATIONS, ServiceDatabase, agents, metadata
from sparingly.live.store.migrations import read_meta
from tests.live.postgres import Server


def version(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "service.db")) as connection:
        return str(connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchone()[0])


def change(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "service.db")) as connection, connection:
        connection.execute(statement)


def test_a_new_database_has_a_version(tmp_path: Path) -> None:
    ServiceDatabase(tmp_path).close()
    ServiceDatabase(tmp_path).close()
    assert version(tmp_path) == str(MIGRATIONS.latest)


BEFORE_VERSIONS = """
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, digest BLOB NOT NULL,
    created DOUBLE NOT NULL, revoked DOUBLE
);
CREATE TABLE sessions (
    digest BLOB NOT NULL PRIMARY KEY, token TEXT NOT NULL, csrf TEXT NOT NULL, expires DOUBLE NOT NULL
);
CREATE INDEX ix_sessions_token ON sessions (token);
CREATE TABLE agents (name TEXT NOT NULL PRIMARY KEY, reveal TEXT NOT NULL, created DOUBLE NOT NULL);
CREATE TABLE audit (
    seq INTEGER NOT NULL PRIMARY KEY, at DOUBLE NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, token TEXT NOT NULL,
    did TEXT NOT NULL, agent TEXT, ticket TEXT, detail TEXT
);
"""
VERSION_1 = (
    "CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL); INSERT INTO meta VALUES ('format', '1');"
)


@pytest.mark.parametrize("tables", [BEFORE_VERSIONS, BEFORE_VERSIONS + VERSION_1], ids=["before versions", "version 1"])
def test_an_older_database_is_migrated_and_keeps_its_tokens(tmp_path: Path, tables: str) -> None:
    secret = f"sparingly_0123456789ab_{'x' * 43}"
    with closing(sqlite3.connect(tmp_path / "service.db")) as connection, connection:
        connection.executescript(tables)
        row = ("0123456789ab", "ann", "admin", digest(secret), 1000.0, None)
        connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", row)
    for _ in range(2):
        database = ServiceDatabase(tmp_path)
        known = Tokens(database)
        assert known.check(secret) == Token("0123456789ab", "ann", "admin", 1000.0), "neither limited nor ending"
        database.close()
    assert version(tmp_path) == str(MIGRATIONS.latest)
    database = ServiceDatabase(tmp_path)
    _, later = Tokens(database).create("ben", "expert", expires=4e9)
    found = Tokens(database).check(later)
    assert found is not None
    assert (found.name, found.expires) == ("ben", 4e9)
    database.close()


ADDED = {
    5: ["DROP TABLE webhooks", "DROP TABLE webhook_messages"],
    4: ["DROP TABLE label_studio_projects", "DROP TABLE label_studio_annotations"],
    3: [
        "DROP INDEX audit_sources",
        "ALTER TABLE audit DROP COLUMN source",
        "ALTER TABLE agents DROP COLUMN state",
        "ALTER TABLE agents DROP COLUMN file",
    ],
    2: ["ALTER TABLE tokens DROP COLUMN agents", "ALTER TABLE tokens DROP COLUMN expires"],
}
"""What takes back what each version has added."""


def outdated(place: str | Path, latest: int) -> str:
    """A database as that version has left it, with a token and an agent; the token's secret."""
    assert set(ADDED) == set(range(2, MIGRATIONS.latest + 1)), "every version is tested"
    database = ServiceDatabase(place)
    secret = Tokens(database).create("ann", "admin")[1]
    with database.writing() as connection:
        connection.execute(agents.insert(), {"name": "pets", "reveal": "after", "created": 1.0, "file": "pets"})
        for one in range(MIGRATIONS.latest, latest, -1):
            for statement in ADDED[one]:
                connection.execute(text(statement))
        connection.execute(text(f"UPDATE meta SET value = '{latest}' WHERE key = 'format'"))
    database.close()
    return secret


def check_migrated(place: str | Path, secret: str) -> None:
    for _ in range(2):
        database = ServiceDatabase(place)
        assert Tokens(database).check(secret) is not None
        with database.reading() as connection:
            assert read_meta(connection, "format") == str(MIGRATIONS.latest)
            assert [(row.name, row.file, row.state) for row in connection.execute(select(agents))] == [
                ("pets", "pets", "active")
            ]
            for table in metadata.sorted_tables:
                connection.execute(select(table)).all()
        database.close()


@pytest.mark.parametrize("latest", range(1, MIGRATIONS.latest))
def test_every_older_version_is_migrated(tmp_path: Path, latest: int) -> None:
    check_migrated(tmp_path, outdated(tmp_path, latest))


def test_every_older_version_is_migrated_on_postgresql(postgres_server: Server) -> None:
    for latest in range(1, MIGRATIONS.latest):
        with postgres_server.database() as url:
            check_migrated(url, outdated(url, latest))


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    ServiceDatabase(tmp_path).close()
    change(tmp_path, "UPDATE meta SET value = '99' WHERE key = 'format'")
    with pytest.raises(StoreError, match=f"the service's database has format 99, newer than {MIGRATIONS.latest}"):
        ServiceDatabase(tmp_path)
    assert version(tmp_path) == "99"
