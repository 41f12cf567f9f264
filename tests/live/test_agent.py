"""The agent as its user sees it."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import sparingly as sp
from sparingly.live.errors import AgentError, ConflictError, StoreError, UnknownTicketError
from sparingly.live.mind import Inline
from tests.live.conftest import QUICK, Clock

Make = Callable[..., sp.Agent]


def stream(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


def test_a_ticket_says_what_is_announced_and_why(make: Make) -> None:
    ticket = make().observe([1.0, 2.0, 3.0])
    assert ticket.asks
    assert ticket.action == 2
    assert ticket.prediction in ("cat", "dog")
    assert isinstance(ticket.why, str)
    assert ticket.why


@pytest.mark.parametrize("name", sorted(sp.strategies()))
def test_every_strategy_serves_and_continues_bit_for_bit(make: Make, path: Path, name: str) -> None:
    settings: dict[str, Any] = {"strategy": name, "options": QUICK if name == "neural_cbp" else {}}
    if name == "tspm":
        settings["query_cost"] = 0.3
    whole = make(path=path.with_name("whole.db"), **settings)
    agent = make(**settings)
    for i, x in enumerate(stream(30)):
        if i % 10 == 5:
            agent = sp.Agent.open(path)
        tickets = whole.observe(x), agent.observe(x)
        assert tickets[0] == tickets[1]
        if tickets[0].asks and i % 3:
            for one in (whole, agent):
                one.answer(tickets[0].id, "dog" if x[0] > 0 else "cat")
    agent.close()


def test_a_call_with_many_decides_as_many_calls_do(make: Make, path: Path) -> None:
    one_by_one = make(strategy="neural_cbp", options=QUICK)
    together = make(strategy="neural_cbp", options=QUICK, path=path.with_name("many.db"))
    X = stream(120)
    assert [one_by_one.observe(x) for x in X] == together.observe_many(X[:70]) + together.observe_many(X[70:])


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
    monkeypatch.setattr("sparingly.live.mind.EVERY", 5)
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


def test_the_callers_own_id_is_idempotent(make: Make) -> None:
    agent = make()
    first = agent.observe([1, 2, 3], id="a")
    assert agent.observe([1, 2, 3], id="a") == first
    assert agent.observe_many([[1, 2, 3], [4, 5, 6], [4, 5, 6]], ids=["a", "b", "b"])[0] == first
    assert len(agent.history()) == 2
    with pytest.raises(ConflictError, match="id 'a' stands for an observation with other features"):
        agent.observe([1, 2, 4], id="a")
    with pytest.raises(AgentError, match=r"id 't\.7' is of the form"):
        agent.observe([1, 2, 4], id="t.7")
    assert len(agent.history()) == 2


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda a: a.observe([1, float("nan"), 3]), AgentError, "feature 1 is nan"),
        (lambda a: a.observe([1, 2]), AgentError, "2 features, not 3"),
        (lambda a: a.observe([1, "x", 2]), AgentError, "feature 1 is 'x'"),
        (lambda a: a.observe_many([[1, 2, 3], [1, 2, np.inf]]), AgentError, "feature 2 is inf"),
        (lambda a: a.answer("0", "cow"), AgentError, "class 'cow' is unknown: the classes are cat, dog"),
        (lambda a: a.answer("0", 1), AgentError, "class 1 is unknown"),
        (lambda a: a.answer("nix", "cat"), UnknownTicketError, "there is no ticket 'nix'"),
        (lambda a: a.skip("nix"), KeyError, "there is no ticket 'nix'"),
        (lambda a: a.observe([1, 2, 3], payload=7), AgentError, "payload is .* not int"),
        (lambda a: a.observe([1, 2, 3], id=""), AgentError, "id ''"),
        (lambda a: a.questions("ann", lease_seconds=0), AgentError, "lease_seconds is 0"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    make: Make, act: Callable[[sp.Agent], Any], error: type[Exception], words: str
) -> None:
    agent = make()
    agent.observe([1, 2, 3], id="0")
    before = agent.history()
    with pytest.raises(error, match=words) as raised:
        act(agent)
    assert "\n" not in str(raised.value)
    assert agent.history() == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": ["cat"]}, "two or more classes"),
        ({"classes": ["cat", "cat"]}, "'cat' is named twice"),
        ({"costs": [[0, 1, 2], [1, 0, 2]]}, r"costs has shape \(2, 3\)"),
        ({"costs": [[0, np.nan], [1, 0]]}, "announced cat, true dog"),
        ({"query_cost": float("inf")}, "inf"),
        ({"training": "sometimes"}, "training is 'sometimes'"),
        ({"strategy": "nix"}, "strategy 'nix' is unknown"),
        ({"strategy": "neural_cbp", "options": {"nix": 1}}, "nix"),
        ({"n_features": 0}, "n_features is 0"),
        ({"max_open": -1}, "limit open is -1"),
        ({"audit_rate": 2}, "audit_rate is 2"),
    ],
)
def test_bad_settings_leave_no_file(make: Make, path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(**changes)
    assert list(path.parent.iterdir()) == []


def test_features_by_name_in_any_order_and_learned_from_the_first(make: Make, path: Path) -> None:
    agent = make(n_features=None)
    agent.observe({"a": 1, "b": 2.5})
    agent.observe(pd.Series({"b": 1.0, "a": 3.0}))
    frame = pd.DataFrame({"b": [1, 2], "a": [3, 4]})
    agent.observe_many(frame)
    for row in frame.itertuples():
        agent.observe(row)
    assert [q.features for q in agent.questions(limit=None)] == [(1, 2.5), (3, 1), (3, 1), (4, 2), (3, 1), (4, 2)]
    unnamed = make(path=path.with_name("unnamed.db"))
    unnamed.observe([1, 2, 3])
    with pytest.raises(AgentError, match="feature 'a' is named, but the first observation had no names"):
        unnamed.observe({"a": 1, "b": 2, "c": 3})
    with pytest.raises(AgentError, match="feature 'b' is missing"):
        agent.observe({"a": 1})
    with pytest.raises(AgentError, match="feature 'c' is unknown"):
        agent.observe({"a": 1, "b": 2, "c": 3})
    with pytest.raises(AgentError, match="feature 'b' is 'red'"):
        agent.observe({"a": 1, "b": "red"})


def test_images_keep_their_shape(make: Make, path: Path) -> None:
    agent = make(n_features=None, strategy="neural_cbp", options={**QUICK, "network": "lenet"})
    agent.observe(np.zeros((28, 28), dtype=np.uint8), payload=b"\x89PNG\r\n")
    agent.close()
    again = sp.Agent.open(path)
    assert again.settings.shape == (1, 28, 28)
    again.observe(np.zeros((1, 28, 28)))
    again.close()


def test_named_costs_reach_the_game(make: Make) -> None:
    frame = pd.DataFrame([[0, 5], [1, 0]], index=["cat", "dog"], columns=["cat", "dog"])
    frame.index.name, frame.columns.name = "true", "announced"
    agent = make(costs=frame, query_cost=2.0)
    assert agent.settings.costs == ((0.0, 1.0), (5.0, 0.0), (2.0, 2.0))
    with pytest.raises(AgentError, match="name them 'announced' and 'true'"):
        make(costs=pd.DataFrame([[0, 5], [1, 0]]))


def test_coarse_questions_take_a_class_or_a_part(make: Make) -> None:
    classes = ["cat", "dog", "cow"]
    parts = [[["cat", "dog"], ["cow"]], [["cat"], ["dog", "cow"]]]
    game = sp.label_efficient(classes=classes, experts=0, questions=parts)
    agent = make(classes=classes, game=game, strategy="neural_cbp")
    for x in stream(8):
        agent.observe(x)
    coarse = {q.choices: q.id for q in agent.questions(limit=None)}
    assert set(coarse) == {("cat dog", "cow"), ("cat", "dog cow")}
    agent.answer(coarse["cat dog", "cow"], "cat dog")
    agent.answer(coarse["cat", "dog cow"], "cow")
    labels = {e.id: e.label for e in agent.history()}
    assert labels[coarse["cat dog", "cow"]] == "cat dog"
    assert labels[coarse["cat", "dog cow"]] == "cow"


def test_a_strategy_instance(make: Make, path: Path) -> None:
    game = sp.label_efficient(2)
    agent = make(strategy=sp.NeuralCBP(game, 3, seed=5, epochs=2, width=16, schedule="every 2"))
    pure = sp.NeuralCBP(game, 3, seed=5, epochs=2, width=16, schedule="every 2")
    X = stream(20)
    for x in X[:10]:
        ticket = agent.observe(x)
        decision = pure.decide(pure.assess(x[None]), 0)
        assert (ticket.action, ticket.asks) == (decision.action, decision.asks)
    agent.close()
    again = sp.Agent.open(path)
    assert [again.observe(x).action for x in X[10:]] == [pure.decide(pure.assess(x[None]), 0).action for x in X[10:]]
    again.close()


def test_an_instance_that_was_already_trained_begins_where_it_is(make: Make, path: Path) -> None:
    strategy = sp.NeuralCBP(sp.label_efficient(2), 3, seed=5, epochs=2, width=16, schedule="every 2")
    X = stream(30)
    for x in X[:10]:
        if strategy.decide(strategy.assess(x[None]), 0).asks:
            strategy.learn(x, 2, "1")
    agent = make(strategy=strategy)
    first = [agent.observe(x).why for x in X[10:20]]
    assert first == [strategy.decide(strategy.assess(x[None]), 0).why.words for x in X[10:20]]
    agent._mind = None
    agent.close()
    assert sp.Agent.open(path).observe(X[20]).why == strategy.decide(strategy.assess(X[20:21]), 0).why.words


def test_an_instance_that_cannot_be_made_again_is_asked_for(make: Make, path: Path) -> None:
    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def strategy() -> sp.Strategy:
        return sp.NeuralCBP(sp.label_efficient(2), 3, network=network(), schedule="every 2")

    make(strategy=strategy()).observe([1, 2, 3])
    with pytest.raises(AgentError, match="pass the strategy it was made with"):
        sp.Agent.open(path)
    again = sp.Agent.open(path, strategy=strategy())
    assert len(again.history()) == 1
    again.close()


def test_one_process_at_a_time(make: Make, path: Path) -> None:
    agent = make()
    code = f"import sparingly as sp; sp.Agent.open({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "InUseError" in done.stderr
    assert "is in use by process" in done.stderr
    agent.observe([1, 2, 3])


def test_opening_again_in_one_process_takes_the_file_over(make: Make, path: Path) -> None:
    old = make()
    old.observe([1, 2, 3])
    new = sp.Agent.open(path)
    assert len(new.history()) == 1
    with pytest.raises(StoreError, match="is closed: another agent"):
        old.observe([1, 2, 3])
    new.close()


def test_made_again_with_the_same_settings_it_continues(make: Make) -> None:
    make().observe([1, 2, 3])
    assert len(make().history()) == 1
    with pytest.raises(StoreError, match="seed is 0, not 1"):
        make(seed=1)
    assert not make(max_open=1).observe([4, 5, 6]).asks
    assert make(max_open=2).observe([4, 5, 6]).asks


def test_calls_from_many_threads_are_all_kept_once(make: Make) -> None:
    agent = make()
    X = stream(64)
    threads = [
        threading.Thread(target=lambda k=k: [agent.observe(X[k * 8 + i], id=k * 8 + i) for i in range(8)])
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(int(e.id) for e in agent.history()) == list(range(64))


def test_an_agent_that_was_forgotten_gives_its_file_back(make: Make, path: Path) -> None:
    def forget() -> None:
        sp.Agent(["cat", "dog"], 3, path=path, strategy="always_ask").observe([1, 2, 3])

    forget()
    gc.collect()
    assert len(make().history()) == 1


def test_the_number_of_threads_does_not_matter(make: Make, path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(12, 3000)).astype(np.float32)
    said = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        options = {"epochs": 2, "schedule": "every 2"}
        agent = make(n_features=3000, strategy="neural_cbp", options=options, path=path.with_name(f"{threads}.db"))
        for x in X:
            ticket = agent.observe(x)
            if ticket.asks:
                agent.answer(ticket.id, "dog")
        assert torch.get_num_threads() == threads
        assert isinstance(agent._mind, Inline)
        assert agent._mind._learner is not None
        said.append(agent._mind._learner.state())
    torch.set_num_threads(1)
    assert said[0] == said[1]
