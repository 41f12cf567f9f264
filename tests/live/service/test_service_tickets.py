"""Looking into tickets over HTTP: a search, and all about one of them."""

from __future__ import annotations

import pytest

from tests.live.served import AT


@pytest.fixture
def ids(served):
    agent = served.agent
    seen = ["A grey Cat", {"note": "Größe 100 % café", "n": 1}, None, "a dog_house"]
    found = [agent.observe([i, 2, 3], id=f"mail-{i}", payload=payload).id for i, payload in enumerate(seen)]
    agent.answer(found[0], "cat", expert="Ada")
    agent.answer(found[1], "dog", expert="Bob")
    agent.answer(found[1], "cat", expert="Bob")
    agent.withdraw(found[2])
    agent.questions("Cleo", limit=1)
    return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [3, 2, 1, 0]),
        ("text=grey+cat", [0]),
        ("text=GR%C3%B6%C3%9Fe", [1]),
        ("text=100+%25", [1]),
        ("text=dog_h", [3]),
        ("text=dogxh", []),
        ("text=MAIL-2", [2]),
        ("status=withdrawn", [2]),
        ("status=answered&expert=Ada", [0]),
        ("status=answered&label=cat", [1, 0]),
        ("before=mail-2&limit=1", [1]),
    ],
)
def test_search(ask, ids, query, expected):
    told = ask("admin", "GET", f"{AT}/search?{query}").json()
    assert [one["id"] for one in told["tickets"]] == [ids[place] for place in expected]
    assert told["next"] == (ids[1] if "limit" in query else None)


def test_search_refuses_what_makes_no_sense(ask, ids):
    assert ask("admin", "GET", f"{AT}/search?label=cow").json() == {"error": "there is no class 'cow'"}
    assert ask("admin", "GET", f"{AT}/search?status=lost").status_code == 422
    assert ask("admin", "GET", f"{AT}/search?before=nowhere").status_code == 404
    assert ask("expert", "GET", f"{AT}/search").status_code == 403
    assert ask("expert", "GET", f"{AT}/details?ticket={ids[0]}").status_code == 403
    assert ask("admin", "GET", f"{AT}/details?ticket=nowhere").status_code == 404


def test_all_about_a_ticket(ask, served, ids):
    told = ask("admin", "GET", f"{AT}/details?ticket={ids[1]}").json()
    assert told["payload"]["fields"] == {"note": "Größe 100 % café", "n": 1}
    assert told["features"] == [1.0, 2.0, 3.0]
    happened = [(event["what"], event["who"], event["label"]) for event in told["events"]]
    assert happened == [("observed", None, None), ("answered", "Bob", "dog"), ("corrected", "Bob", "cat")]
    assert (told["label"], told["status"], told["reason"]) == ("cat", "answered", "it asks about everything")
    assert [name for name, _ in told["probabilities"]] in (["cat", "dog"], ["dog", "cat"])
    held = ask("admin", "GET", f"{AT}/details?ticket={ids[3]}").json()
    assert (held["holder"], held["status"]) == ("Cleo", "open")
    ask("admin", "POST", f"{AT}/erase", {"ticket": ids[1]})
    erased = ask("admin", "GET", f"{AT}/details?ticket={ids[1]}").json()
    assert (erased["payload"], erased["features"], erased["erased"]) == (None, None, "everything")
    assert erased["events"][-1]["what"] == "erased"


@pytest.mark.postgres
def test_search_in_postgres(postgres):
    from sparingly.live.agent.agent import Agent

    with Agent(["cat", "dog"], 1, path=postgres, strategy="always_ask") as agent:
        agent.observe([1], id="one", payload="A grey Cat")
        agent.observe([2], id="two", payload={"note": "Größe"})
        agent.observe([3], id="three", payload=b"\x89PNG\xff\xfe")
        assert [one.id for one in agent.queries.search(text="grey cat")] == ["one"]
        assert [one.id for one in agent.queries.search(text="größe")] == ["two"]
        assert [one.id for one in agent.queries.search(text="THREE")] == ["three"]
