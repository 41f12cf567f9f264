"""Who has which question, and how many may be asked."""

from __future__ import annotations

import pytest

from sparingly.live.agent.errors import AgentError, ConflictError
from tests.live.conftest import Clock, Make, stream


def test_a_lease_keeps_a_question_to_one_expert_until_it_runs_out(make: Make, clock: Clock) -> None:
    agent = make()
    ids = [agent.observe(x, payload=f"look at {i}").id for i, x in enumerate(stream(2))]
    (ann,) = agent.questions("ann", lease_seconds=60)
    (bob,) = agent.questions("bob", lease_seconds=60)
    assert (ann.id, bob.id) == (ids[0], ids[1])
    assert ann.payload is not None
    assert ann.payload.content == "look at 0"
    assert ann.choices == ("cat", "dog")
    assert agent.questions("carl") == []
    assert agent.questions("ann")[0].id == ids[0]
    with pytest.raises(ConflictError, match="leased to ann"):
        agent.answer(ids[0], "cat", expert="bob")
    clock.now += 601
    with pytest.raises(ConflictError, match=f"lease of ticket '{ids[0]}' has run out"):
        agent.answer(ids[0], "cat", expert="ann")
    assert agent.questions("carl")[0].id == ids[0]
    agent.answer(ids[0], "dog", expert="carl")
    with pytest.raises(ConflictError, match="was answered by carl, not by ann"):
        agent.answer(ids[0], "cat", expert="ann")
    agent.answer(ids[0], "dog", expert="ann")
    assert agent.history()[0].expert == "carl"


def test_a_lease_is_renewed_by_its_expert_and_once_run_out_by_whoever_comes_first(make: Make, clock: Clock) -> None:
    agent = make()
    ticket = agent.observe([1, 2, 3]).id
    with pytest.raises(ConflictError, match="is not leased to ann"):
        agent.renew(ticket, "ann")
    agent.questions("ann", lease_seconds=60)
    clock.now += 50
    assert agent.renew(ticket, "ann", lease_seconds=60).until == clock.now + 60
    with pytest.raises(ConflictError, match="leased to ann"):
        agent.renew(ticket, "bob")
    clock.now += 61
    agent.renew(ticket, "ann")
    agent.release(ticket, expert="bob")
    assert agent.waiting()[0].expert == "ann"
    agent.release(ticket, expert="ann")
    with pytest.raises(ConflictError, match="is not leased to ann"):
        agent.renew(ticket, "ann")
    agent.answer(ticket, "dog", expert="ann")
    with pytest.raises(ConflictError, match="is answered"):
        agent.renew(ticket, "ann")


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_lease_that_makes_no_sense(make: Make, seconds: float) -> None:
    agent = make()
    ticket = agent.observe([1, 2, 3]).id
    for call in (agent.questions, lambda _, **more: agent.lend(ticket, "ann", **more)):
        with pytest.raises(AgentError, match=f"lease_seconds is {seconds}"):
            call("ann", lease_seconds=seconds)


def test_a_named_experts_skip_leaves_the_question_to_the_others(make: Make) -> None:
    agent = make()
    ticket = agent.observe([1, 2, 3])
    agent.questions("ann")
    agent.skip(ticket.id, expert="ann")
    assert agent.questions("ann") == []
    assert agent.questions("bob")[0].id == ticket.id
    agent.reopen(ticket.id)
    assert agent.questions("ann")[0].id == ticket.id


@pytest.mark.parametrize(
    ("limit", "asked", "words", "wait"),
    [("max_open", 2, "2 questions may be open at a time", 0), ("max_per_hour", 2, "in an hour", 3601)],
)
def test_limits_announce_instead(make: Make, clock: Clock, limit: str, asked: int, words: str, wait: float) -> None:
    agent = make(**{limit: 2})
    tickets = [agent.observe(x) for x in stream(2)] + agent.observe_many(stream(3, 1))
    assert [t.asks for t in tickets] == [True] * asked + [False] * 3
    assert words in tickets[-1].why
    assert tickets[-1].action == ["cat", "dog"].index(str(tickets[-1].prediction))
    clock.now += wait
    agent.answer(tickets[0].id, "cat")
    assert agent.observe([0, 0, 0]).asks
    assert limit != "max_open" or not agent.observe([0, 0, 1]).asks
