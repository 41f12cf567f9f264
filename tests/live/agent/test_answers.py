"""What people say of a ticket: late, again, corrected, taken back, set aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparingly.live.agent.errors import ConflictError
from tests.live.conftest import QUICK, Make, stream


def test_answers_may_be_late_out_of_order_and_repeated(make: Make) -> None:
    agent = make()
    ids = [agent.observe(x).id for x in stream(3)]
    for ticket_id in (ids[2], ids[0], ids[2], ids[0]):
        agent.answer(ticket_id, "dog")
    assert [(e.id, e.label, e.status) for e in agent.history()] == [
        (ids[0], "dog", "answered"),
        (ids[1], None, "open"),
        (ids[2], "dog", "answered"),
    ]
    assert [t.id for t in agent.pending()] == [ids[1]]


def test_a_correction_leaves_the_learner_that_never_saw_the_old_label(make: Make, path: Path) -> None:
    """The learner becomes the one to whom the right label was given when it was corrected, and no other before."""
    agent = make(strategy="neural_cbp", options={**QUICK, "schedule": "every 3"})
    pure = make(strategy="neural_cbp", options={**QUICK, "schedule": "every 3"}, path=path.with_name("pure.db"))
    X = stream(40)
    first = next(x for x in X if agent.observe(x, id="a") and True)
    pure.observe(first, id="a")
    agent.answer("a", "cat")
    for i, x in enumerate(X[1:20]):
        agent.observe(x, id=i)
        pure.observe(x, id=i)
    agent.answer("a", "dog")
    pure.answer("a", "dog")
    assert [agent.observe(x, id=f"z{i}") for i, x in enumerate(X[20:])] == [
        pure.observe(x, id=f"z{i}") for i, x in enumerate(X[20:])
    ]
    assert agent.history()[0].label == "dog"


def test_undo_takes_the_answer_back_and_the_question_is_open_again(make: Make, path: Path) -> None:
    options = {**QUICK, "schedule": "every 3"}
    agent = make(strategy="neural_cbp", options=options)
    pure = make(strategy="neural_cbp", options=options, path=path.with_name("pure.db"))
    X = stream(30)
    for i, x in enumerate(X[:10]):
        agent.observe(x, id=i)
        pure.observe(x, id=i)
    asked = agent.pending()[0].id
    agent.answer(asked, "cat")
    agent.reopen(asked)
    assert agent.pending()[0].id == asked
    assert agent.history() == pure.history()
    assert agent.observe_many(X[10:], ids=range(10, 30)) == pure.observe_many(X[10:], ids=range(10, 30))


def test_an_old_correction_is_learned_on_top(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparingly.live.training.decider.SNAPSHOT_EVENTS", 5)
    agent = make(keep=10)
    for i, x in enumerate(stream(60)):
        agent.observe(x, id=i)
        if i == 0:
            agent.answer("0", "cat")
    with pytest.raises(ConflictError, match="'0' was answered too long ago to be taken back"):
        agent.reopen("0")
    agent.answer("0", "dog")
    assert agent.history()[0].label == "dog"


def test_an_announced_ticket_takes_a_label_that_someone_volunteers(make: Make) -> None:
    agent = make(strategy="random", options={"p": 0.0}, n_features=3)
    ticket = agent.observe([1, 2, 3])
    assert not ticket.asks
    agent.answer(ticket.id, "dog")
    assert agent.history()[0].label == "dog"


def test_skip_dont_know_and_withdraw(make: Make) -> None:
    agent = make()
    ids = [agent.observe(x).id for x in stream(4)]
    agent.skip(ids[0])
    agent.dont_know(ids[1])
    agent.withdraw(ids[2])
    assert [e.status for e in agent.history()] == ["skipped", "unknown", "withdrawn", "open"]
    assert [t.id for t in agent.pending()] == [ids[3]]
    agent.skip(ids[0])
    agent.answer(ids[0], "cat")
    agent.reopen(ids[1])
    assert [t.id for t in agent.pending()] == [ids[1], ids[3]]
    with pytest.raises(ConflictError, match=f"'{ids[2]}' was withdrawn"):
        agent.answer(ids[2], "cat")
    with pytest.raises(ConflictError, match="is answered: it cannot be withdrawn"):
        agent.withdraw(ids[0])
