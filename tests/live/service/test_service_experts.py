"""Experts that a service calls, as producers and people see it; and what producers hear of their tickets."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import sparingly as sp
from sparingly.commands.main import main
from sparingly.experts.expert_options import stated_expert
from sparingly.experts.http_experts import HTTPExpert
from sparingly.live.agent.errors import AgentError, UnknownTicketError
from sparingly.live.service.server import first_agent
from sparingly.live.service.service import Service
from tests.live.consultation.team import CLASSES, HUMAN, Model, stream
from tests.live.served import Served


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A service whose agent `team` has a model and a person; the model, and the service's address."""
    X, y, said = stream(12)
    model = Model(said)
    gpt = sp.FunctionExpert("gpt", model, price=0.01)
    served = Served(str(tmp_path_factory.mktemp("service") / "store"), machines=[gpt])
    served.service.agents.create("team", classes=CLASSES, n_features=4, experts=[gpt, HUMAN], training="inline")
    with served.on_a_socket() as url:
        yield served, model, url, X, y


@pytest.fixture
def http():
    with httpx.Client(trust_env=False, timeout=30) as client:
        yield client


def client_of(served, url, role):
    return sp.Client(url, served.tokens[role], agent="team")


def test_a_producer_hears_what_became_of_a_ticket(team):
    served, model, url, X, y = team
    with client_of(served, url, "producer") as producer, client_of(served, url, "expert") as person:
        _, start = producer.changes()
        model.open.clear()
        ticket = producer.observe(X[0], id="first", payload={"i": 0})
        assert (ticket.status, ticket.asked, ticket.asks) == ("consulting", ("gpt",), False)
        assert producer.wait("first", 0.1).status == "consulting"
        assert person.questions() == []
        model.open.set()
        served.agent_of("team").wait("first", 60, for_people=False)
        (question,) = person.questions()
        assert question.id == "first"
        person.answer("first", y[0])
        entry = producer.wait("first", 60)
        assert (entry.status, entry.label, entry.expert, entry.asked) == ("answered", y[0], "expert", ("gpt", "human"))
        assert entry.paid == 0.01
        changed, upto = producer.changes(start)
        assert [one.id for one in changed] == ["first"]
        assert changed[0] == entry
        assert producer.changes(upto) == ([], upto)
        with pytest.raises(UnknownTicketError):
            producer.wait("nobody's")


def test_the_feed_leaves_nothing_out_and_tells_nothing_twice(team):
    served, _, url, X, _ = team
    with client_of(served, url, "producer") as producer:
        _, since = producer.changes(0, limit=1000)
        ids = [producer.observe(x, id=f"f{i}", payload={"i": i}).id for i, x in enumerate(X)]
        for name in ids:
            served.agent_of("team").wait(name, 60, for_people=False)
        last = {}
        while True:
            found, since = producer.changes(since, limit=5)
            if not found:
                break
            last.update({one.id: one.status for one in found})
        assert sorted(last) == sorted(ids)
        assert set(last.values()) <= {"open", "announced"}


def test_it_can_be_awaited(team):
    served, _, url, X, _ = team

    async def use():
        async with sp.AsyncClient(url, served.tokens["producer"], agent="team") as client:
            await client.observe(X[1], id="awaited", payload={"i": 1})
            entry = await client.wait("awaited", 0.5)
            found, _ = await client.changes(0, limit=1000)
            return entry, [one.id for one in found]

    entry, ids = asyncio.run(use())
    assert entry.id == "awaited"
    assert "awaited" in ids


def test_only_producers_and_admins_read_the_feed(team, http):
    served, _, url, _, _ = team
    for role, status in (("producer", 200), ("admin", 200), ("expert", 403), ("host", 403)):
        reply = http.get(f"{url}/api/agents/team/tickets", headers=served.headers(role))
        assert reply.status_code == status, role
    for query in ("since=-1", "since=x", "limit=0", "limit=1001"):
        reply = http.get(f"{url}/api/agents/team/tickets?{query}", headers=served.headers("producer"))
        assert reply.status_code == 422
    with http.stream("GET", f"{url}/api/agents/team/events", headers=served.headers("producer")) as events:
        assert events.status_code == 200


def test_a_service_that_starts_again_calls_the_same_experts(tmp_path):
    X, _, said = stream(3)
    gpt = sp.FunctionExpert("gpt", Model(said), price=0.01)
    service = Service(str(tmp_path), machines=[gpt])
    first_agent(service, "default", CLASSES, {"experts": [gpt, HUMAN], "n_features": 4, "training": "inline"})
    service.close()
    service = Service(str(tmp_path), machines=[gpt])
    first_agent(service, "default", CLASSES, {"experts": [gpt, HUMAN]})
    agent = service.agents.get("default")
    agent.observe(X[0], id="a", payload={"i": 0})
    assert agent.wait("a", 60, for_people=False).asked == ("gpt", "human")
    for other in (sp.Expert("gpt", 0.02), sp.Expert("claude", 0.01)):
        with pytest.raises(AgentError, match=rf"no expert {other.name} at .*: its experts are gpt:0.01, human:1:gold"):
            first_agent(service, "default", CLASSES, {"experts": [other]})
    service.close()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpt", "the price is missing"),
        ("gpt:cheap:http://x", "the price is 'cheap', which is no number"),
        ("gpt:nan", "the price of gpt is nan"),
        (":1:gold", "the name of an expert is ''"),
        ("gpt:1:golden", "'golden' is neither gold nor person nor a URL"),
        ("gpt:1:ftp://x", "must begin with http"),
    ],
)
def test_experts_of_the_command_line_that_make_no_sense(text, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=says):
        stated_expert(text)
    with pytest.raises(SystemExit):
        main(["serve", "--classes", "a,b", "--port", "0", "--expert", text])
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_experts_of_the_command_line(monkeypatch):
    monkeypatch.setenv("SPARINGLY_KEY_MY_RULES", "secret")
    rules = stated_expert("my rules:0.5:post+http://127.0.0.1:9/classify")
    assert isinstance(rules, HTTPExpert)
    assert (rules.name, rules.expert.price, rules._caller.url) == ("my rules", 0.5, "http://127.0.0.1:9/classify")
    assert rules._caller._key == "secret"
    model = stated_expert("gpt:0.01:http://127.0.0.1:9/v1#large:7b")
    assert model.model == "large:7b"
