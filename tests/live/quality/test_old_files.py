"""Agents from before there were second opinions: their databases are migrated when they are opened."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import text

import sparingly as sp
from sparingly.live.store.migrations import VERSION, read_meta, write_meta
from sparingly.live.store.store import Store
from sparingly.live.store.tables import MIGRATIONS
from tests.live.conftest import stream

BEFORE = 7
"""The format that knew no opinions."""


def turned_back(place) -> None:
    """Bring a database to how it was before."""
    store = Store.open(place)
    with store.writing() as connection:
        for table in ("opinions", "disagreements", "team"):
            connection.execute(text(f"DROP TABLE {table}"))
        settings = read_meta(connection, "settings")
        start, _, rest = settings.partition('"quality": {')
        write_meta(connection, "settings", start + rest.partition("}, ")[2])
        write_meta(connection, VERSION, BEFORE)
    store.close()


def opens_and_goes_on(place) -> None:
    with sp.Agent(["cat", "dog"], 3, path=place, strategy="always_ask") as agent:
        tickets = agent.observe_many(stream(2))
        agent.answer(tickets[0].id, "cat", expert="Ada")
    turned_back(place)
    with sp.Agent.open(place) as agent:
        assert agent.team.checks.second_opinions == 0.0
        assert [(entry.status, entry.label) for entry in agent.history()] == [("answered", "cat"), ("open", None)]
        agent.team.set_checks(second_opinions=1.0)
        agent.questions("Ada")
        agent.answer(tickets[1].id, "dog", expert="Ada")
        assert [q.id for q in agent.questions("Ben")] == [tickets[1].id]
        assert agent.people()[0].answers == 2
    store = Store.open(place)
    with store.reading() as connection:
        assert int(read_meta(connection, VERSION)) == MIGRATIONS.latest
    store.close()


def test_an_old_file_opens(tmp_path):
    opens_and_goes_on(os.fspath(tmp_path / "old.db"))


@pytest.mark.postgres
def test_an_old_postgresql_database_opens(postgres):
    opens_and_goes_on(postgres)


@pytest.mark.postgres
def test_people_are_told_on_postgresql(postgres):
    with sp.Agent(["cat", "dog"], 3, path=postgres, strategy="always_ask", second_opinions=1.0) as agent:
        agent.team.plant(stream(3, seed=2), ["cat"] * 3)
        agent.team.set_checks(known_answers=0.5)
        agent.observe_many(stream(6))
        for name, label in (("Ada", "cat"), ("Ben", "dog"), ("Cleo", "dog")):
            while questions := agent.questions(name):
                agent.answer(questions[0].id, label, expert=name)
        people = {one.expert: one for one in agent.people()}
        assert people["Ada"].settled == 6
        assert people["Ada"].settled_right == 0
        assert people["Ben"].seconds is not None
        assert agent.team.agreement().items == 9
        assert sum(one.cost for one in people.values()) == agent.stats().questions_cost + agent.stats().known_cost
