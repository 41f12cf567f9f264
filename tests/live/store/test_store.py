"""The file: whole or not at all, versioned, and honest about damage."""

from __future__ import annotations

import csv
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import sparingly as sp
from sparingly.live.agent.errors import DamagedError, StoreError
from sparingly.live.store.integrity_check import check
from sparingly.live.store.migrations import read_meta, write_meta
from sparingly.live.store.salvage import recover
from sparingly.live.store.tables import MIGRATIONS
from tests import fork_server
from tests.live.conftest import QUICK
from tests.live.store.old_formats import back_to

Make = Callable[..., sp.Agent]


def stream(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def filled(make: Make, n: int = 40) -> None:
    agent = make(strategy="neural_cbp", options=QUICK)
    for i, x in enumerate(stream(n)):
        if agent.observe(x, id=i).asks:
            agent.answer(str(i), "dog")
    agent.close()


def test_a_newer_format_is_refused_and_untouched(make: Make, path: Path) -> None:
    filled(make, 3)
    change(path, "UPDATE meta SET value = '99' WHERE key = 'format'")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="has format 99, newer than"):
        sp.Agent.open(path)
    assert path.read_bytes() == before


def schema(path: Path) -> dict[str, set[str]]:
    """The names of each table's columns, and each index's statement."""
    with closing(sqlite3.connect(path)) as connection:
        parts = connection.execute("SELECT name, type, sql FROM sqlite_master").fetchall()
        return {
            name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} if kind == "table" else {sql}
            for name, kind, sql in parts
        }


@pytest.mark.parametrize("version", range(1, MIGRATIONS.latest))
def test_an_older_format_is_brought_up_to_date_and_continues(make: Make, path: Path, version: int) -> None:
    filled(make)
    old = path.with_name("old.db")
    shutil.copy(path, old)
    change(old, *back_to(version), f"UPDATE meta SET value = '{version}' WHERE key = 'format'")
    with sp.Agent.open(old) as migrated, sp.Agent.open(path) as current:
        stands = [
            [(e.id, e.prediction, e.label, e.status, e.why) for e in one.history()] for one in (migrated, current)
        ]
        assert stands[0] == stands[1]
        assert (migrated.history()[0].probabilities == {}) == (version < 6)
        assert migrated.observe_many(stream(5)) == current.observe_many(stream(5))
        migrated.questions("ann")
    assert check(old).ok
    assert schema(old) == schema(path)


def test_a_migration_that_fails_changes_nothing(make: Make, path: Path) -> None:
    filled(make, 3)
    change(path, "UPDATE meta SET value = '1' WHERE key = 'format'")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="duplicate column"):
        sp.Agent.open(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"hello, I am a text", b"SQLite format 3\0" + bytes(500)])
def test_what_is_not_an_agents_file_is_refused_and_untouched(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"agent\.db"):
        sp.Agent.open(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_untouched(path: Path) -> None:
    change(path, "CREATE TABLE theirs (a)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not an agent's file"):
        sp.Agent.open(path)
    assert path.read_bytes() == before


def test_a_damaged_snapshot_falls_back_to_the_one_before(make: Make, path: Path) -> None:
    filled(make)
    whole = path.with_name("whole.db")
    shutil.copy(path, whole)
    change(path, "UPDATE snapshots SET state = zeroblob(length(state)) WHERE seq = (SELECT max(seq) FROM snapshots)")
    assert any("snapshot at event" in problem for problem in check(path).problems)
    with sp.Agent.open(path) as damaged, sp.Agent.open(whole) as good:
        assert damaged.observe_many(stream(20)) == good.observe_many(stream(20))


def test_damaged_pages_are_reported_with_what_can_be_recovered(make: Make, path: Path) -> None:
    filled(make, 150)
    labels = sum(e.label is not None for e in sp.Agent.open(path).history())
    sp.Agent.open(path).close()
    data = bytearray(path.read_bytes())
    page = _page_of(path, "tickets", last=False)
    data[page * 4096 + 100 : page * 4096 + 4000] = b"\xff" * 3900
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="agent check"):
        sp.Agent.open(path)
    report = check(path)
    assert not report.ok
    assert "tickets can be read" in report.facts[-1]
    count = recover(path, path.with_name("left.csv"))
    assert 0 < count < labels
    rows = list(csv.DictReader(path.with_name("left.csv").open()))
    assert len(rows) == count
    assert all(row["label"] == "dog" for row in rows)


def _without_header(path: Path) -> None:
    path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])


def _truncated(path: Path) -> None:
    """Without the last of the observations, and whatever lies behind it."""
    path.write_bytes(path.read_bytes()[: _page_of(path, "observations", last=True) * 4096])


@pytest.mark.parametrize("damage", [_without_header, _truncated])
def test_labels_are_recovered_from_a_file_without_its_header_or_its_end(make: Make, path: Path, damage) -> None:
    filled(make, 400)
    change(path, "VACUUM")
    labels = sum(e.label is not None for e in sp.Agent.open(path).history())
    sp.Agent.open(path).close()
    damage(path)
    assert not check(path).ok
    count = recover(path, path.with_name("left.csv"))
    assert (0 < count < labels) if damage is _truncated else (count == labels > 0)
    rows = list(csv.DictReader(path.with_name("left.csv").open()))
    assert {row["label"] for row in rows} == {"dog"}


def test_labels_are_recovered_without_the_settings(make: Make, path: Path) -> None:
    filled(make)
    change(path, "UPDATE meta SET value = '{' WHERE key = 'settings'")
    assert recover(path, path.with_name("left.csv")) > 0
    rows = list(csv.DictReader(path.with_name("left.csv").open()))
    assert {row["label"] for row in rows} == {"1"}
    assert [name for name in rows[0] if name.startswith("x")] == ["x0", "x1", "x2"]


def _page_of(path: Path, table: str, *, last: bool) -> int:
    """A leaf page of a table, counted from 0."""
    with closing(sqlite3.connect(path)) as connection:
        query = f"SELECT pageno FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf' ORDER BY pageno"
        try:
            pages = [row[0] for row in connection.execute(query)]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite was built without dbstat")
    return int(pages[-1 if last else 0]) - 1


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM journal WHERE seq = 5", "1 are missing"),
        ("DELETE FROM tickets WHERE seq = 1", "ticket observed at event 1 is missing"),
        ("UPDATE tickets SET status = 'withdrawn' WHERE status = 'answered'", "but the journal says answered"),
        ("DELETE FROM observations WHERE ticket = 1", "features of 1 observations are missing"),
    ],
)
def test_check_finds_what_does_not_fit(make: Make, path: Path, statement: str, words: str) -> None:
    filled(make, 10)
    assert check(path).ok
    change(path, statement)
    assert any(words in problem for problem in check(path).problems)


FULL = """
import resource, sys
import numpy as np
import sparingly as sp

path = sys.argv[1]
agent = sp.Agent(["cat", "dog"], 3, path=path, strategy="always_ask")
agent.observe([1, 2, 3], id="first")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
acknowledged = ["first"]
for i in range(100_000):
    try:
        acknowledged.append(agent.observe([i, 0, 0], id=f"o{i}", payload="x" * 2000).id)
    except sp.live.agent.errors.StoreError as error:
        print(error)
        break
print(len(acknowledged))
"""


def test_a_full_disk_is_named_and_nothing_acknowledged_is_lost(path: Path) -> None:
    """A limit on the size of files stands in for the disk: writing fails in the same place."""
    code = FULL.replace("import sparingly as sp", "import sparingly as sp\nimport sparingly.live.agent.errors")
    done = subprocess.run(
        [*fork_server.python(path.parent), code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    error, count = done.stdout.splitlines()
    assert "nothing of this call was kept" in error
    with sp.Agent.open(path) as agent:
        assert len(agent.history()) == int(count) > 10
        agent.observe([1, 2, 3])
    assert check(path).ok


def test_memory_and_file_do_not_keep_what_is_not_needed(
    make: Make, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparingly.live.training.decider.SNAPSHOT_EVENTS", 50)
    agent = make(strategy="random", options={"p": 0.1}, keep=200)
    for start in range(0, 2000, 100):
        for ticket in agent.observe_many(np.random.default_rng(start).normal(size=(100, 3))):
            if ticket.asks:
                agent.answer(ticket.id, "dog")
    agent.close()
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT count(*) FROM observations").fetchone()[0]
        snapshots = connection.execute("SELECT count(*) FROM snapshots").fetchone()[0]
        labelled = connection.execute("SELECT count(*) FROM tickets WHERE status = 'answered'").fetchone()[0]
    assert labelled <= kept < 1000
    assert snapshots < 12
    assert check(path).ok
    with sp.Agent.open(path) as again:
        again.observe([1, 2, 3])
        assert again.export(path.with_name("all.csv")) == labelled


def test_one_connection_writes_and_nothing_is_left_of_a_transaction_that_failed(make: Make) -> None:
    store = make(strategy="neural_cbp", options=QUICK)._runtime.store
    with store.writing() as first:
        write_meta(first, "mark", "kept")
    with store.writing() as second:
        assert second is first

    def fail() -> None:
        with store.writing() as third:
            write_meta(third, "mark", "lost")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store.writing() as fourth:
        assert read_meta(fourth, "mark") == "kept"
