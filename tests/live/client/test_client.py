"""The client against a real service: used like an agent, patient when the service is away, never doubling anything."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pandas as pd
import pytest
import torch

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError, StoreError, UnknownTicketError
from sparingly.live.client.wire_format import RefusedError
from tests.live.served import Served, picture


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    return Served(str(tmp_path_factory.mktemp("service") / "store"))


@pytest.fixture(scope="module")
def url(served):
    with served.on_a_socket() as url:
        yield url


def client_of(served, url, role, **options):
    return sp.Client(url, served.tokens[role], **options)


def test_it_is_used_like_an_agent(served, url):
    with client_of(served, url, "producer") as producer, client_of(served, url, "expert") as expert:
        ticket = producer.observe([1, 2, 3], id="one", payload=picture())
        assert isinstance(ticket, sp.Ticket)
        assert producer.observe(np.array([1, 2, 3.0]), id="one") == ticket
        (question,) = expert.questions()
        assert (question.id, question.payload.content) == ("one", picture())
        assert expert.renew("one", lease_seconds=900) > question.until
        expert.release("one")
        assert [again.id for again in expert.questions()] == ["one"]
        expert.answer("one", "dog")
        expert.correct("one", "cat")
        assert expert.undo("one").id == "one"
        expert.skip("one")
        producer.withdraw("one")
    with client_of(served, url, "admin") as admin:
        assert [(e.id, e.status) for e in admin.history() if e.id == "one"] == [("one", "withdrawn")]
        assert admin.stats().withdrawn == 1
        assert admin.export("csv").startswith(b"id,")


@pytest.mark.parametrize(
    "x",
    [np.ones(3), torch.ones(3), (1, 1, 1), pd.Series([1.0, 1.0, 1.0]), np.float32([1, 1, 1])],
    ids=lambda x: type(x).__name__,
)
def test_features_in_any_form(served, url, x):
    with client_of(served, url, "producer") as client:
        assert client.observe(x).asks


def test_blocks_carry_ids_of_their_own(served, url):
    with client_of(served, url, "producer") as client:
        tickets = client.observe_many(np.ones((4, 3)), payloads=["a", {"b": 1}, None, "c"])
        assert len({ticket.id for ticket in tickets}) == 4
        assert client.observe_many(np.ones((0, 3))) == []
        with pytest.raises(AgentError, match="there are 1 ids for 2 observations"):
            client.observe_many(np.ones((2, 3)), ids=["a"])


def test_errors_are_those_of_an_agent(served, url):
    with client_of(served, url, "expert", patience=0) as expert, client_of(served, url, "producer") as producer:
        with pytest.raises(UnknownTicketError, match="there is no ticket 'nope'"):
            expert.answer("nope", "dog")
        with pytest.raises(RefusedError, match="the role expert may not do this"):
            expert.observe([1, 2, 3])
        with pytest.raises(AgentError, match="feature 1 is nan"):
            producer.observe([1, float("nan"), 3])
        producer.observe([1, 2, 3], id="twice")
        with pytest.raises(ConflictError, match="other features"):
            producer.observe([3, 2, 1], id="twice")
    with sp.Client(url, "sparingly_nonsense", patience=0) as stranger, pytest.raises(RefusedError, match="unknown"):
        stranger.observe([1, 2, 3])
    with (
        sp.Client("http://127.0.0.1:9", "x", patience=0.2) as lonely,
        pytest.raises(StoreError, match="cannot be reached"),
    ):
        lonely.observe([1, 2, 3])


def test_awaited_it_does_the_same(served, url):
    async def work():
        async with (
            sp.AsyncClient(url, served.tokens["producer"]) as producer,
            sp.AsyncClient(url, served.tokens["admin"]) as admin,
        ):
            tickets = await asyncio.gather(*(producer.observe([i, 0, 0], id=f"async {i}") for i in range(5)))
            await producer.observe_many([[1, 2, 3], [4, 5, 6]])
            question = (await admin.questions(limit=100))[0]
            await admin.dont_know(question.id)
            await admin.undo(question.id)
            await admin.answer(question.id, "dog")
            return tickets, await admin.history(), await admin.stats()

    tickets, history, statistics = asyncio.run(work())
    assert {ticket.id for ticket in tickets} == {f"async {i}" for i in range(5)} <= {entry.id for entry in history}
    assert statistics.observations == len(history)


class Fickle(BaseHTTPRequestHandler):
    """Between client and service: passes a call on, and then loses the reply, or is busy."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        mood = self.server.moods.pop(0) if self.server.moods else "well"
        if mood == "busy":
            self.send_response(503)
            self.end_headers()
            return
        told = httpx.post(
            self.server.to + self.path, content=body, headers=dict(self.headers), trust_env=False, timeout=60
        )
        if mood == "loses the reply":
            self.close_connection = True
            return
        self.send_response(told.status_code)
        self.send_header("content-length", str(len(told.content)))
        self.end_headers()
        self.wfile.write(told.content)

    def log_message(self, *args):
        pass


def test_what_is_tried_again_is_never_doubled(served, url):
    between = ThreadingHTTPServer(("127.0.0.1", 0), Fickle)
    between.to = url
    between.moods = ["loses the reply", "busy", "loses the reply", "well"] * 3
    threading.Thread(target=between.serve_forever, daemon=True).start()
    before = len(served.agent.history())
    began = time.monotonic()
    with sp.Client(f"http://127.0.0.1:{between.server_port}", served.tokens["producer"]) as client:
        for i in range(2):
            client.observe([i, i, i])
        client.observe_many([[7, 7, 7], [8, 8, 8]])
    between.shutdown()
    assert between.moods == []
    assert len(served.agent.history()) - before == 4
    assert time.monotonic() - began < 60
