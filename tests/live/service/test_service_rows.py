"""The service takes texts and raw rows, and shows them to whoever is asked."""

from __future__ import annotations

from sparingly.live.service.auth.tokens import ADMIN, EXPERT, PRODUCER

MAILS, SHOP = "/api/agents/mails", "/api/agents/shop"


def test_a_text_is_features_and_payload_in_one(ask):
    ask(ADMIN, "POST", "/api/agents", {"name": "mails", "classes": ["card", "money"], "encoder": "hashing"})
    told = ask(PRODUCER, "POST", f"{MAILS}/observations", {"text": "Where is my card?", "id": "one"})
    assert (told.status_code, told.json()["id"]) == (200, "one")
    block = {"observations": [{"text": "a second"}, {"features": {"text": "a third"}}]}
    assert ask(PRODUCER, "POST", f"{MAILS}/observations/batch", block).status_code == 200
    questions = ask(EXPERT, "POST", f"{MAILS}/questions?limit=3").json()["questions"]
    assert [q["payload"]["text"] for q in questions] == ["Where is my card?", "a second", "a third"]
    described = ask(ADMIN, "GET", MAILS).json()
    assert (described["encoder"], described["fields"]) == ("hashing", {"text": "text"})
    for body, said in (
        ({"text": ""}, "the text is empty"),
        ({"text": "both", "features": [1]}, "the body: give features or a text"),
        ({}, "give features or a text"),
        ({"features": [1, 2]}, "a row has 2 values, not 1"),
    ):
        refused = ask(PRODUCER, "POST", f"{MAILS}/observations", body)
        assert refused.status_code == 422
        assert said in refused.json()["error"]


def test_rows_with_words_and_gaps_by_a_stated_schema(ask):
    fields = {"age": "number", "job": ["clerk", "smith"]}
    ask(ADMIN, "POST", "/api/agents", {"name": "shop", "classes": ["buys", "leaves"], "fields": fields})
    row = {"age": None, "job": "baker"}
    assert ask(PRODUCER, "POST", f"{SHOP}/observations", {"features": row}).status_code == 200
    (question,) = ask(EXPERT, "POST", f"{SHOP}/questions").json()["questions"]
    assert question["payload"]["fields"] == row
    refused = ask(PRODUCER, "POST", f"{SHOP}/observations", {"features": {"age": "old", "job": "smith"}})
    assert refused.json() == {"error": "field 'age' is 'old': it must be a number"}
    wrong = ask(ADMIN, "POST", "/api/agents", {"name": "x", "classes": ["a", "b"], "fields": {"age": "numeric"}})
    assert (wrong.status_code, wrong.json()["error"][:26]) == (422, "field 'age' is 'numeric': ")
