"""Webhooks: signed messages that are kept until they arrive, through outages and crashes."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

import sparingly as sp
from sparingly.commands.main import main
from sparingly.live.agent.errors import AgentError
from sparingly.live.client.webhook_signatures import SignatureError, signed, verify
from sparingly.live.service.service_database import ServiceDatabase, webhooks
from sparingly.live.service.webhooks import webhook_dispatcher
from sparingly.live.service.webhooks.webhook_sender import WebhookSender
from sparingly.live.service.webhooks.webhook_targets import ForbiddenTargetError, TargetRule
from tests.live.conftest import Clock
from tests.live.served import AT, Served
from tests.live.service.receiver import receiving, until

LOCAL = ["127.0.0.0/8"]
HOOKS = f"{AT}/webhooks"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(webhook_dispatcher, "LONGEST_PAUSE", 0.1)


class Started:
    """A service with its client, closed at the end."""

    def __init__(self, place, **options):
        self.served = Served(str(place), webhook_networks=LOCAL, **options)
        self.served.service._dispatcher._every = 0.05
        self._client = TestClient(self.served.app)

    def __enter__(self):
        self._client.__enter__()
        return self

    def __exit__(self, *exception):
        for role in self.served.tokens:
            self.served.service.tokens.revoke(role)
        self._client.__exit__(None, None, None)

    def ask(self, method, path, body=None, role="admin"):
        return self._client.request(method, path, json=body, headers=self.served.headers(role))

    def hook(self, url, **more):
        reply = self.ask("POST", HOOKS, {"url": url, **more})
        assert reply.status_code == 201, reply.text
        return reply.json()

    @property
    def agent(self):
        return self.served.agent


@pytest.fixture
def started(tmp_path):
    with Started(tmp_path / "store") as started:
        yield started


def test_a_producer_hears_what_becomes_of_its_tickets(started):
    agent = started.agent
    agent.observe([1, 2, 3], id="before")
    with receiving() as receiver:
        made = started.hook(receiver.url)
        agent.observe([1, 2, 4], id="one", payload="what was observed stays here")
        agent.answer("one", "dog", expert=None)
        agent.answer("one", "cat")
        agent.observe([1, 2, 5], id="two")
        agent.skip("two")
        until(lambda: len(receiver.bodies()) == 5)
        heard = receiver.bodies(made["secret"])
    assert [(one["event"], one["what"], one["ticket"]["id"]) for one in heard] == [
        ("decided", "observed", "one"),
        ("answered", "answered", "one"),
        ("corrected", "corrected", "one"),
        ("decided", "observed", "two"),
        ("closed", "skipped", "two"),
    ]
    assert [one["label"] for one in heard] == [None, "dog", "cat", None, None]
    assert heard[-1]["ticket"]["status"] == "skipped"
    assert heard[0]["agent"] == "default"
    assert [one["sequence"] for one in heard] == sorted(one["sequence"] for one in heard)
    assert "what was observed" not in json.dumps(heard)


def test_only_the_events_that_were_asked_for_are_told(started):
    with receiving() as receiver:
        started.hook(receiver.url, events=["answered"])
        started.agent.observe([1, 2, 3], id="one")
        started.agent.answer("one", "cat")
        until(lambda: receiver.heard)
        time.sleep(0.3)
        assert [one["event"] for one in receiver.bodies()] == ["answered"]


def test_nothing_is_lost_while_the_receiver_is_down_or_the_service_stops(tmp_path):
    with receiving() as receiver, Started(tmp_path / "store") as started:
        made, port = started.hook(receiver.url, events=["decided"]), receiver.port
    with Started(tmp_path / "store") as started:  # nobody listens at that port now
        for i in range(120):
            started.agent.observe([i, 2, 3], id=f"n{i}")
        until(lambda: started.ask("GET", HOOKS).json()["webhooks"][0]["failures"] >= 2)
        told = started.ask("GET", HOOKS).json()["webhooks"][0]
        assert told["error"]
        assert "secret" not in told
    with receiving(port) as receiver, Started(tmp_path / "store") as started:
        receiver.status = lambda body: 503 if len(receiver.heard) % 40 == 0 else 200
        until(lambda: len(receiver.bodies()) == 120)
        until(lambda: started.ask("GET", HOOKS).json()["webhooks"][0]["waiting"] == 0)
        heard = receiver.bodies(made["secret"])
    assert {one["ticket"]["id"] for one in heard} == {f"n{i}" for i in range(120)}
    assert len(receiver.heard) > 120, "those that were answered with 503 came again, under the same id"


def test_an_outage_of_an_hour_loses_nothing_and_is_over_within_a_minute(monkeypatch):
    monkeypatch.setattr(webhook_dispatcher, "LONGEST_PAUSE", 60.0)
    at, attempts = 0.0, 0
    while at < 3600:
        attempts += 1
        at += webhook_dispatcher.pause(attempts)
    assert 60 <= attempts <= 140, "neither a storm nor a long sleep"
    assert at < 3660
    assert webhook_dispatcher.GIVE_UP_SECONDS > 24 * 3600


def test_an_outage_ends_in_dead_letters_once_patience_is_over_and_they_are_sent_again(tmp_path, monkeypatch):
    """An hour on a clock that is told the time: within the patience nothing is given up, after it everything is."""
    clock = Clock()
    clock.now = time.time()
    monkeypatch.setattr(webhook_dispatcher, "GIVE_UP_SECONDS", 2 * 3600.0)
    with receiving() as receiver, Started(tmp_path / "store") as started:
        hook, port = started.hook(receiver.url, events=["decided"])["id"], receiver.port
    with Started(tmp_path / "store") as started:  # nobody listens at that port now
        started.served.service.webhooks.clock = clock

        def told():
            return started.ask("GET", HOOKS).json()["webhooks"][0]

        def passes(hours):
            """Some time goes by, with an attempt at its end."""
            failures = told()["failures"]
            clock.now += 3600 * hours
            until(lambda: told()["failures"] > failures or told()["waiting"] == 0)

        for i in range(3):
            started.agent.observe([i, 2, 3], id=f"n{i}")
        until(lambda: told()["failures"] >= 1)
        passes(1)
        assert (told()["waiting"], told()["dead"]) == (3, 0)
        for _ in range(3):
            passes(2)
        assert (told()["waiting"], told()["dead"]) == (0, 3)
        with receiving(port) as receiver:
            assert started.ask("POST", f"{HOOKS}/{hook}/resend", {}).json() == {"resent": 3}
            clock.now += 60
            until(lambda: (told()["waiting"], told()["dead"], len(receiver.heard)) == (0, 0, 3))
            assert {one["ticket"]["id"] for one in receiver.bodies()} == {"n0", "n1", "n2"}


def test_a_message_that_is_refused_is_given_up_looked_at_and_sent_again(started):
    with receiving() as receiver:
        receiver.status = lambda body: 422 if body["ticket"]["id"] == "bad" else 204
        hook = started.hook(receiver.url)["id"]
        for name in ("bad", "good"):
            started.agent.observe([1, 2, 3], id=name)
        until(lambda: started.ask("GET", HOOKS).json()["webhooks"][0]["dead"] == 1)
        dead = started.ask("GET", f"{HOOKS}/{hook}/dead").json()["messages"]
        assert [(one["error"], one["attempts"], one["body"]["ticket"]["id"]) for one in dead] == [
            ("it answered 422", webhook_dispatcher.REFUSALS, "bad")
        ]
        assert "good" in [one["ticket"]["id"] for one in receiver.bodies()], "others are sent meanwhile"
        receiver.status = 200
        assert started.ask("POST", f"{HOOKS}/{hook}/resend", {"messages": ["msg_none"]}).json() == {"resent": 0}
        assert started.ask("POST", f"{HOOKS}/{hook}/resend", {}).json() == {"resent": 1}
        until(lambda: started.ask("GET", HOOKS).json()["webhooks"][0] | {"arrived": 0, "error": None, "created": 0} == {
            "id": hook, "url": receiver.url, "events": ["decided", "answered", "corrected", "closed", "alert"],
            "created": 0, "waiting": 0, "dead": 0, "failures": 0, "error": None, "retry_at": 0.0, "arrived": 0,
        })  # fmt: skip
        last = [json.loads(body) for _, body in receiver.heard][-1]
        assert last["id"] == dead[0]["id"]


def test_a_slow_receiver_holds_up_neither_observations_nor_another_receiver(started):
    slow = threading.Event()
    with receiving() as stuck, receiving() as quick:
        stuck.status = lambda body: slow.wait(60) and 200
        for receiver in (stuck, quick):
            started.hook(receiver.url, events=["decided"])
        try:
            for i in range(30):
                started.agent.observe([1, 2, 3], id=f"x{i}")
            until(lambda: len(quick.bodies()) == 30, 50)
            assert stuck.bodies() == []
        finally:
            slow.set()
        until(lambda: len(stuck.bodies()) == 30)


def test_a_redirect_is_not_followed(started):
    with receiving() as receiver:
        receiver.status = 302
        sender = WebhookSender(TargetRule(LOCAL))
        outcome = sender.send(receiver.url, "whsec_c2VjcmV0", "msg_1", "{}")
        sender.close()
    assert (outcome.arrived, outcome.error, outcome.is_refused) == (False, "it answered 302", True)


def test_alerts_are_told_when_they_are_raised_and_when_they_are_over(started):
    with receiving() as receiver:
        started.hook(receiver.url, events=["alert"])
        started.ask("POST", f"{AT}/state/pause")
        until(lambda: len(receiver.bodies()) == 1)
        started.ask("POST", f"{AT}/state/resume")
        until(lambda: len(receiver.bodies()) == 2)
        first, second = (one["alert"] for one in receiver.bodies())
    assert first == {"kind": "state", "text": "The agent is paused: it takes no observations.", "raised": True}
    assert second == {"kind": "state", "text": "", "raised": False}


def test_a_test_message_and_an_end(started):
    with receiving() as receiver:
        made = started.hook(receiver.url, events=["alert"])
        told = started.ask("POST", f"{HOOKS}/{made['id']}/test").json()
        until(lambda: receiver.heard)
        assert receiver.bodies(made["secret"])[0] | {"at": 0} == {
            "id": told["message"], "event": "test", "at": 0, "agent": "default"
        }  # fmt: skip
        assert started.ask("DELETE", f"{HOOKS}/{made['id']}").json() == {"webhooks": []}
        assert started.ask("POST", f"{HOOKS}/{made['id']}/test").status_code == 404
        started.agent.observe([1, 2, 3])
        time.sleep(0.3)
        assert len(receiver.heard) == 1
    did = [line["did"] for line in started.ask("GET", "/api/audit").json()["lines"]]
    assert did[:2] == ["removed a webhook", "registered a webhook"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"url": "ftp://127.0.0.1/x"}, 422, "must begin with https:// or http://"),
        ({"url": "http://10.0.0.1/x"}, 422, "10.0.0.1, which is not public"),
        ({"url": "http://[::1]/x"}, 422, "which is not public"),
        ({"url": "http://[::ffff:10.0.0.1]/x"}, 422, "which is not public"),
        ({"url": "http://169.254.169.254/latest"}, 422, "which is not public"),
        ({"url": "http://ann:secret@127.0.0.1/x"}, 422, "has a password in it"),
        ({"url": "http://127.0.0.1:99999/x"}, 422, "is no URL"),
        ({"url": "http://no such host/"}, 422, "is no URL"),
        ({"url": "http://127.0.0.1/", "events": ["sold"]}, 422, "event 'sold' is unknown"),
        ({"url": "http://127.0.0.1/", "events": []}, 422, "is unknown"),
        ({"url": "http://127.0.0.1/", "secret": "mine"}, 422, "secret"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused(started, body, status, words):
    reply = started.ask("POST", HOOKS, body)
    assert (reply.status_code, words in reply.json()["error"]) == (status, True), reply.text
    assert started.ask("GET", HOOKS).json() == {"webhooks": []}


def test_only_admins_see_webhooks(started):
    for role in ("producer", "expert", "host"):
        assert started.ask("GET", HOOKS, role=role).status_code == 403
        assert started.ask("POST", HOOKS, {"url": "http://127.0.0.1/"}, role=role).status_code == 403


def test_addresses_within_are_refused_unless_the_operator_allows_them():
    with pytest.raises(ForbiddenTargetError, match=r"127\.0\.0\.1, which is not public"):
        TargetRule().resolve("http://127.0.0.1/")
    assert TargetRule(["127.0.0.0/8"]).resolve("http://127.0.0.1/").address == "127.0.0.1"
    with pytest.raises(AgentError, match="neither an address nor a network"):
        TargetRule(["nowhere"])


def test_the_secret_is_told_once_and_never_logged(started, caplog):
    with receiving() as receiver, caplog.at_level(logging.DEBUG):
        receiver.status = 500
        secret = started.hook(receiver.url)["secret"]
        started.agent.observe([1, 2, 3])
        until(lambda: len(receiver.heard) >= 2)
        seen = started.ask("GET", HOOKS).text + started.ask("GET", "/api/audit").text + caplog.text
    assert secret.startswith("whsec_")
    assert secret not in seen


def test_a_signature_holds_for_one_body_and_for_a_while():
    secret, body = "whsec_c2VjcmV0c2VjcmV0", b'{"id": 1}'
    headers = signed(secret, "msg_1", body, now=1000.0)
    verify(secret, {name.upper(): value for name, value in headers.items()}, body, now=1001.0)
    rotated = {**headers, "webhook-signature": f"v1,bm9uZQ== {headers['webhook-signature']}"}
    verify(secret, rotated, body, now=1001.0)
    for broken in (
        {**headers, "webhook-id": "msg_2"},
        {**headers, "webhook-timestamp": "1001"},
        {**headers, "webhook-signature": "v2," + headers["webhook-signature"][3:]},
        {},
    ):
        with pytest.raises(SignatureError):
            verify(secret, broken, body, now=1001.0)
    with pytest.raises(SignatureError, match="does not fit"):
        verify(secret, headers, body + b" ", now=1001.0)
    with pytest.raises(SignatureError, match="more than 300 seconds from now"):
        verify(secret, headers, body, now=2000.0)


def test_an_older_service_takes_webhooks_after_its_migration(tmp_path):
    ServiceDatabase(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "service.db")) as connection, connection:
        connection.executescript("DROP TABLE webhooks; DROP TABLE webhook_messages; UPDATE meta SET value = '4' "
                                 "WHERE key = 'format'")  # fmt: skip
    database = ServiceDatabase(tmp_path)
    with database.reading() as connection:
        assert connection.execute(select(webhooks)).all() == []
    database.close()


def test_on_postgresql_one_process_sends(postgres):
    with receiving() as receiver, Started(postgres) as started:
        made = started.hook(receiver.url, events=["answered"])
        outbox = started.served.service.webhooks
        until(lambda: outbox.all()[0].holder is not None)
        assert not outbox.claim(made["id"], "another process", 60.0)
        started.agent.observe([1, 2, 3], id="one")
        started.agent.answer("one", "cat")
        until(lambda: receiver.heard)
        assert [one["ticket"]["label"] for one in receiver.bodies(made["secret"])] == ["cat"]


def type_in(*args):
    with pytest.raises(SystemExit) as left:
        main(list(args))
    return int(left.value.code or 0)


def test_the_client_and_the_command_line_register_look_and_send_again(tmp_path, capsys):
    served = Served(str(tmp_path / "store"), webhook_networks=LOCAL)
    store = ["--store", str(tmp_path / "store")]
    with receiving() as receiver, served.on_a_socket() as url, sp.Client(url, served.tokens["admin"]) as client:
        made = client.add_webhook(receiver.url, ["alert"])
        assert [one["id"] for one in client.webhooks()] == [made["id"]]
        assert (client.dead_letters(made["id"]), client.resend(made["id"])) == ([], 0)
        assert type_in("webhook", "add", "default", receiver.url, "--event", "answered", *store) == 0
        assert capsys.readouterr().out.startswith("whsec_")
        type_in("webhook", "list", "default", *store)
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[2] for line in lines] == ["alert", "answered"]
        second = lines[1].split()[0]
        outbox = served.service.webhooks
        until(lambda: outbox.all()[1].position >= 0)
        served.agent.observe([1, 2, 3], id="one")
        served.agent.answer("one", "cat")
        until(lambda: receiver.heard)
        for command in (["dead"], ["resend"], ["remove"]):
            type_in("webhook", *command, "default", second, *store)
        assert capsys.readouterr().out.splitlines() == ["0 are sent again", f"removed {second}"]
        client.remove_webhook(made["id"])
        assert client.webhooks() == []
        assert type_in("webhook", "list", "nobody", *store) != 0
        assert "there is no agent 'nobody'" in capsys.readouterr().err


def test_costs_are_set_over_http(tmp_path):
    served = Served(str(tmp_path / "store"))
    agent = served.service.agents.create("mails", classes=["ham", "spam"], n_features=3, training="inline")
    with served.on_a_socket() as url:
        with sp.Client(url, served.tokens["admin"], agent="mails") as client:
            client.set_costs("announced=spam,true=ham:5", query_cost=0.5)
            assert agent.settings.costs == ((0, 1), (5, 0), (0.5, 0.5))
            with pytest.raises(AgentError, match="hamm"):
                client.set_costs("announced=spam,true=hamm:5")
        with sp.Client(url, served.tokens["admin"]) as client, pytest.raises(AgentError, match="always_ask cannot"):
            client.set_costs("0 5; 1 0")
        with sp.Client(url, served.tokens["expert"], agent="mails") as client, pytest.raises(AgentError):
            client.set_costs("0 5; 1 0")
    lines = served.service.audit.lines()
    assert [line["detail"] for line in lines if line["did"] == "set costs"] == ["1 costs that are not 1, question 0.5"]
