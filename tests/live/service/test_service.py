"""The service's routes: what each gives."""

from __future__ import annotations

import base64
import csv
import io
import time

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from sparingly.live.agent.errors import AgentError
from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER
from sparingly.live.service.service_limits import ServiceLimits
from tests.live.served import AT, Served, X, observed, picture


def lent(ask, role=EXPERT):
    return ask(role, "POST", f"{AT}/questions").json()["questions"]


# one question's way through it


def test_an_observation_becomes_a_question_an_answer_and_a_line_of_history(ask):
    told = ask(PRODUCER, "POST", f"{AT}/observations", {**X, "id": "a", "payload": {"text": "a furry thing"}}).json()
    guess = told.pop("prediction")
    assert told.pop("probabilities").keys() == {"cat", "dog"}
    assert told == {
        "id": "a",
        "asks": True,
        "action": 2,
        "why": "it asks about everything",
        "numbers": {},
        "status": "open",
        "asked": [],
    }
    (question,) = lent(ask)
    assert question["payload"] == {
        "kind": "text",
        "media": "text/plain",
        "image": None,
        "text": "a furry thing",
        "fields": None,
    }
    assert question["choices"] == ["cat", "dog"]
    assert question["prediction"] is None, "the guess may sway the answer"
    done = ask(EXPERT, "POST", f"{AT}/answer", {"ticket": "a", "label": "dog"}).json()
    assert (done["status"], done["prediction"], done["today"]) == ("answered", guess, {"answers": 1, "cost": 1.0})
    (entry,) = ask(ADMIN, "GET", f"{AT}/history").json()["tickets"]
    assert (entry["label"], entry["expert"], entry["status"]) == ("dog", "expert", "answered")
    statistics = ask(ADMIN, "GET", f"{AT}/statistics").json()
    assert (statistics["observations"], statistics["answered"], statistics["questions_cost"]) == (1, 1, 1.0)


def test_observations_in_one_call_are_all_taken_or_none(ask):
    block = [{**X, "id": str(i)} for i in range(5)]
    assert len(ask(PRODUCER, "POST", f"{AT}/observations/batch", {"observations": block}).json()["tickets"]) == 5
    block = [{**X, "id": "new"}, {"features": [1, 2], "id": "short"}]
    refused = ask(PRODUCER, "POST", f"{AT}/observations/batch", {"observations": block})
    assert (refused.status_code, refused.json()) == (422, {"error": "an observation has 2 features, not 3"})
    assert len(ask(ADMIN, "GET", f"{AT}/history").json()["tickets"]) == 5


def test_the_same_id_is_the_same_ticket(ask):
    assert observed(ask, id="a") == observed(ask, id="a") == "a"
    assert len(ask(ADMIN, "GET", f"{AT}/history").json()["tickets"]) == 1
    other = ask(PRODUCER, "POST", f"{AT}/observations", {"features": [9, 9, 9], "id": "a"})
    assert (other.status_code, "other features" in other.json()["error"]) == (409, True)
    assert ask(PRODUCER, "GET", f"{AT}/ticket?ticket=a").json()["id"] == "a"


def test_skip_leaves_it_to_others_and_dont_know_closes_it(ask, served):
    first = observed(ask)
    lent(ask)
    assert ask(EXPERT, "POST", f"{AT}/skip", {"ticket": first}).json()["status"] == "open"
    assert lent(ask) == []
    assert lent(ask, ADMIN)[0]["id"] == first
    assert ask(ADMIN, "POST", f"{AT}/dont-know", {"ticket": first}).json()["status"] == "unknown"
    assert served.agent.stats().unknown == 1


def test_undo_lends_the_question_again_to_whoever_took_it_back(ask):
    first, second = observed(ask), observed(ask)
    lent(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": first, "label": "dog"})
    assert lent(ask)[0]["id"] == second
    undone = ask(EXPERT, "POST", f"{AT}/undo", {"ticket": first}).json()
    assert (undone["question"]["id"], undone["question"]["expert"]) == (first, "expert")
    assert lent(ask, ADMIN) == [], "both are with the expert"
    assert ask(EXPERT, "POST", f"{AT}/answer", {"ticket": first, "label": "cat"}).status_code == 200


def test_a_question_taken_back_goes_to_no_one_else_in_between(ask, served, monkeypatch):
    """Whoever asks for questions just as an answer is taken back does not get that one."""
    ticket = observed(ask)
    lent(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    reopen, others = type(served.agent).reopen, []

    def reopen_and_look(agent, *args, **more):
        question = reopen(agent, *args, **more)
        others.extend(agent.questions("someone quick"))
        return question

    monkeypatch.setattr(type(served.agent), "reopen", reopen_and_look)
    assert ask(EXPERT, "POST", f"{AT}/undo", {"ticket": ticket}).json()["question"]["id"] == ticket
    assert others == []


def test_a_skip_taken_back_is_ones_own(ask, served):
    ticket = observed(ask)
    served.tokens["other"] = served.service.tokens.create("other", "expert")[1]
    for role in (EXPERT, "other"):
        assert lent(ask, role)[0]["id"] == ticket
        ask(role, "POST", f"{AT}/skip", {"ticket": ticket})
    assert ask(EXPERT, "POST", f"{AT}/undo", {"ticket": ticket}).status_code == 200
    ask(EXPERT, "POST", f"{AT}/release", {"ticket": ticket})
    assert lent(ask, "other") == [], "they have skipped it"


def test_a_ticket_of_another_agent_is_unknown_here(ask):
    ask(ADMIN, "POST", "/api/agents", {"name": "fruit", "classes": ["cat", "dog"], "strategy": "always_ask"})
    ask(PRODUCER, "POST", "/api/agents/fruit/observations", {**X, "id": "theirs"})
    for what in ("answer", "correct", "skip", "dont-know", "undo", "release", "withdraw"):
        body = {"ticket": "theirs", **({"label": "dog"} if what in ("answer", "correct") else {})}
        refused = ask(ADMIN, "POST", f"{AT}/{what}", body)
        assert (refused.status_code, refused.json()) == (404, {"error": "there is no ticket 'theirs'"})
    assert ask(ADMIN, "GET", "/api/agents/fruit/history").json()["tickets"][0]["status"] == "open"


def test_an_expert_corrects_what_was_their_own_and_an_admin_anything(ask, served):
    ticket = observed(ask)
    body = {"ticket": ticket, "label": "cat"}
    early = ask(EXPERT, "POST", f"{AT}/correct", body)
    assert (early.status_code, early.json()["error"]) == (409, "ticket 't.1' is open: only an answer can be corrected")
    lent(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    other = served.service.tokens.create("other", "expert")[1]
    served.tokens["other"] = other
    assert ask("other", "POST", f"{AT}/correct", body).status_code == 409
    refused = ask("other", "POST", f"{AT}/undo", {"ticket": ticket})
    assert "was answered by expert, not by other" in refused.json()["error"]
    assert ask(ADMIN, "POST", f"{AT}/correct", body).status_code == 200
    assert served.agent.history()[0].label == "cat"
    lines = ask(ADMIN, "GET", "/api/audit").json()["lines"]
    assert [(line["who"], line["did"], line["detail"]) for line in lines if line["ticket"] == ticket] == [
        ("admin", "corrected", "cat"),
        ("expert", "answered", "dog"),
    ]


def test_a_question_is_never_with_two_people(ask):
    for _ in range(5):
        observed(ask)
    mine = {q["id"] for q in ask(EXPERT, "POST", f"{AT}/questions?limit=3").json()["questions"]}
    theirs = {q["id"] for q in ask(ADMIN, "POST", f"{AT}/questions?limit=3").json()["questions"]}
    assert (len(mine), len(theirs), mine & theirs) == (3, 2, set())
    refused = ask(EXPERT, "POST", f"{AT}/answer", {"ticket": min(theirs), "label": "dog"})
    assert (refused.status_code, "leased to admin" in refused.json()["error"]) == (409, True)
    assert ask(ADMIN, "POST", f"{AT}/undo", {"ticket": min(mine)}).status_code == 409


def test_an_expired_lease_takes_no_answer(ask):
    ticket = observed(ask)
    ask(EXPERT, "POST", f"{AT}/questions?lease_seconds=0.05")
    time.sleep(0.1)
    refused = ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    assert refused.status_code == 409
    assert refused.json()["error"] == "the lease of ticket 't.1' has run out: ask for questions again"


def test_a_question_given_back_is_anyones(ask):
    ticket = observed(ask)
    lent(ask)
    assert ask(ADMIN, "POST", f"{AT}/release", {"ticket": ticket}).json()["status"] == "open"
    assert lent(ask, ADMIN) == [], "it was not the admin's to give"
    ask(EXPERT, "POST", f"{AT}/release", {"ticket": ticket})
    assert lent(ask, ADMIN)[0]["id"] == ticket


def test_an_admin_releases_and_answers_what_is_leased_to_others(ask, served):
    first, second = observed(ask), observed(ask)
    served.tokens["other"] = served.service.tokens.create("other", "expert")[1]
    assert len(ask(EXPERT, "POST", f"{AT}/questions?limit=2").json()["questions"]) == 2
    refused = ask("other", "POST", f"{AT}/release", {"ticket": first, "expert": "expert"})
    assert (refused.status_code, "not those of expert" in refused.json()["error"]) == (403, True)
    assert ask(ADMIN, "POST", f"{AT}/release", {"ticket": first, "expert": "expert"}).json()["status"] == "open"
    assert lent(ask, "other")[0]["id"] == first
    assert ask(ADMIN, "POST", f"{AT}/answer", {"ticket": second, "label": "dog"}).status_code == 200
    entry = served.agent.ticket(second)
    assert (entry.label, entry.expert) == ("dog", "admin")
    late = ask(EXPERT, "POST", f"{AT}/answer", {"ticket": second, "label": "cat"})
    assert (late.status_code, late.json()["error"]) == (409, "ticket 't.2' was answered by admin, not by expert")
    trail = [(line["did"], line["ticket"], line["detail"]) for line in served.service.audit.lines(limit=2)]
    assert trail == [("answered", second, "dog"), ("released", first, "expert")]


def test_an_admins_answer_corrects_no_one_unless_it_says_so(ask, served):
    ticket = observed(ask)
    lent(ask)
    ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": "dog"})
    assert ask(ADMIN, "POST", f"{AT}/answer", {"ticket": ticket, "label": "cat"}).status_code == 409
    assert ask(ADMIN, "POST", f"{AT}/correct", {"ticket": ticket, "label": "cat"}).status_code == 200
    assert served.agent.ticket(ticket).expert == "admin"


def test_how_many_and_how_long(tmp_path):
    served = Served(str(tmp_path / "few"), ServiceLimits(leases=2, max_lease_seconds=1000))
    ids = [served.agent.observe([i, 0, 0]).id for i in range(4)]
    with TestClient(served.app, headers=served.headers(EXPERT)) as client:
        for query, message in (
            ("limit=3", "limit is 3: one person may hold 2 questions at a time"),
            ("lease_seconds=1001", "lease_seconds is 1001: 1000 are the most, and a lease can be renewed"),
        ):
            refused = client.post(f"{AT}/questions?{query}")
            assert (refused.status_code, refused.json()["error"]) == (422, message)
        for _ in range(2):
            taken = client.post(f"{AT}/questions?limit=2&lease_seconds=1000").json()["questions"]
            assert [q["id"] for q in taken] == ids[:2]
            assert 990 < taken[0]["seconds_left"] <= 1000
        client.post(f"{AT}/answer", json={"ticket": ids[0], "label": "dog"})
        client.post(f"{AT}/questions?limit=2")
        refused = client.post(f"{AT}/undo", json={"ticket": ids[0]})
        assert (refused.status_code, "expert holds 2 questions, and 2 are the most" in refused.text) == (409, True)
        assert served.agent.ticket(ids[0]).label == "dog"
        client.post(f"{AT}/release", json={"ticket": ids[2]})
        assert client.post(f"{AT}/undo", json={"ticket": ids[0]}).status_code == 200
        assert client.post(f"{AT}/renew?lease_seconds=2000", json={"ticket": ids[0]}).status_code == 422
        assert client.post(f"{AT}/renew?lease_seconds=900", json={"ticket": ids[0]}).json()["seconds_left"] > 890
        refused = client.post(f"{AT}/renew", json={"ticket": ids[3]})
        assert (refused.status_code, "is not leased to expert" in refused.text) == (409, True)


@pytest.mark.parametrize("limits", [{"lease_seconds": 4000}, {"lease_seconds": 0}, {"leases": 1}])
def test_limits_on_leases_that_make_no_sense(limits):
    with pytest.raises(AgentError, match="lease"):
        ServiceLimits(**limits)


def test_the_guess_is_told_when_the_admin_says(ask):
    for reveal, before, after in (("before", True, True), ("never", False, False), ("after", False, True)):
        assert ask(ADMIN, "PUT", f"{AT}/reveal", {"reveal": reveal}).json()["reveal"] == reveal
        told = ask(PRODUCER, "POST", f"{AT}/observations", X).json()
        guess = told["prediction"]
        assert lent(ask)[0]["prediction"] == (guess if before else None)
        done = ask(EXPERT, "POST", f"{AT}/answer", {"ticket": told["id"], "label": "dog"}).json()
        assert done["prediction"] == (guess if after else None)


def test_several_agents_by_name(ask):
    made = ask(ADMIN, "POST", "/api/agents", {"name": "fruit", "classes": [1, 2.5, "pear"], "strategy": "always_ask"})
    assert (made.status_code, made.json()["classes"]) == (201, [1, 2.5, "pear"])
    assert ask(PRODUCER, "GET", "/api/agents").json() == {"agents": ["default", "fruit"]}
    told = ask(PRODUCER, "POST", "/api/agents/fruit/observations", {"features": {"width": 1, "height": 2}}).json()
    ask(EXPERT, "POST", "/api/agents/fruit/questions")
    assert ask(EXPERT, "POST", "/api/agents/fruit/answer", {"ticket": told["id"], "label": 1.0}).status_code == 200
    assert ask(ADMIN, "GET", "/api/agents/fruit").json()["feature_names"] == ["width", "height"]
    assert lent(ask) == [], "the other agent asked nothing"
    again = ask(ADMIN, "POST", "/api/agents", {"name": "fruit", "classes": ["a", "b"]})
    assert (again.status_code, again.json()["error"]) == (409, "there is already an agent named 'fruit'")


def test_export_gives_the_labelled_data(ask):
    for label, name in (("cat", "a"), ("dog", "b")):
        ticket = observed(ask, id=name)
        lent(ask)
        ask(EXPERT, "POST", f"{AT}/answer", {"ticket": ticket, "label": label})
    told = ask(ADMIN, "GET", f"{AT}/export")
    assert told.headers["content-disposition"] == 'attachment; filename="default.csv"'
    rows = list(csv.DictReader(told.text.splitlines()))
    assert [(row["id"], row["label"], row["expert"], float(row["x2"])) for row in rows] == [
        ("a", "cat", "expert", 3.0),
        ("b", "dog", "expert", 3.0),
    ]
    table = pq.read_table(io.BytesIO(ask(ADMIN, "GET", f"{AT}/export?format=parquet").content))
    assert table.column("label").to_pylist() == ["cat", "dog"]


def test_health_readiness_and_metrics(ask, client):
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready"}
    observed(ask)
    text = ask(ADMIN, "GET", "/metrics").text
    assert 'sparingly_observations_total{agent="default"} 1.0' in text
    assert 'sparingly_agent_open{agent="default"} 1.0' in text
    route = "/api/agents/{agent}/observations"
    assert f'sparingly_requests_total{{method="POST",route="{route}",status="200"}} 1.0' in text


# images


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_an_image_is_known_by_its_content(ask, kind):
    data = picture(kind)
    observed(ask, payload={"image": base64.b64encode(data).decode()})
    shown = lent(ask)[0]["payload"]
    assert (shown["kind"], shown["media"]) == ("image", f"image/{kind.lower()}")
    assert base64.b64decode(shown["image"]) == data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<svg onload=alert(1)>", "the image is none of PNG, JPEG"),
        (picture()[:60], "the image is broken"),
        (picture("JPEG")[:400], "the image is broken"),
        (b"", "the image is none of"),
    ],
)
def test_a_broken_image_is_refused(ask, data, said):
    refused = ask(PRODUCER, "POST", f"{AT}/observations", {**X, "payload": {"image": base64.b64encode(data).decode()}})
    assert refused.status_code == 422
    assert said in refused.json()["error"]


def test_an_image_can_be_uploaded_as_a_file(ask):
    ask(ADMIN, "POST", "/api/agents", {"name": "pictures", "classes": ["a", "b"], "strategy": "always_ask"})
    at = "/api/agents/pictures/observations"
    ask(PRODUCER, "POST", at, {"features": [[0.0] * 4] * 4})
    told = ask(PRODUCER, "POST", f"{at}/image", files={"image": ("x.txt", picture())}, data={"id": "p"})
    assert told.json()["id"] == "p"
    for files, data, said in (
        ({"image": ("x.png", b"nonsense")}, {}, "the image is none of"),
        ({"image": ("x.png", picture()[:60])}, {}, "the image is broken"),
        ({"image": ("x.png", picture(size=(1, 1)))}, {}, "the image has 1 x 1 pixels: 2 x 2 are the least"),
        ({"image": ("x.png", picture(size=(20_000, 20_000)))}, {}, "the image has more than 40000000 pixels"),
        ({"image": ("x.png", picture())}, {"features": "[1"}, "features is not JSON"),
        ({"image": ("x.png", picture())}, {"features": "3"}, "features must be numbers"),
    ):
        refused = ask(PRODUCER, "POST", f"{at}/image", files=files, data=data)
        assert (refused.status_code, said in refused.json()["error"]) == (422, True)
    flat = ask(PRODUCER, "POST", f"{AT}/observations/image", files={"image": ("x.png", picture())})
    assert "not that of an image" in flat.json()["error"]
