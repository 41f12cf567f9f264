"""The comparison with other libraries counts what it says: every label a tool learns from is paid for."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import texts
from benchmarks.peers import ours, river, runs, skactiveml, tables, vw
from benchmarks.peers.__main__ import choose
from benchmarks.peers.trial import Expert, Peer, Trial

SHORT = [
    (river.PEER, {"model": "logistic", "rate": 0.1, "discount": 100}),
    (river.PEER, {"model": "forest", "discount": 100}),
    (skactiveml.PEER, {"strategy": "VariableUncertainty", "model": "logistic", "budget": 0.1}),
    (skactiveml.PEER, {"strategy": "Split", "model": "logistic", "budget": 0.1}),
    (skactiveml.PEER, {"strategy": "StreamProbabilisticAL", "model": "logistic", "budget": 0.1}),
    (vw.ACTIVE, {"loss": "logistic", "mellowness": 0.001, "rate": 0.5, "products": False}),
    (vw.CS_ACTIVE, {"mellowness": 0.001, "rate": 0.5, "products": False}),
    (ours.NEURAL_CBP, {}),
]


def trial(n: int = 300, costs: str = "uniform", seed: int = 0) -> tuple[Trial, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    return Trial(X, runs.matrix(costs, 2), Expert(y), seed), y


@pytest.mark.parametrize(("peer", "settings"), SHORT, ids=lambda part: getattr(part, "name", None))
def test_a_peer_learns_from_what_it_asks_and_from_nothing_else(peer: Peer, settings: dict) -> None:
    one, y = trial()
    peer.play(one, **settings)
    asked = one.expert.asked
    assert 0 < asked.sum() < len(y)
    assert (one.announced == y)[~asked].mean() > 0.75
    other, _ = trial()
    other.expert = Expert(np.where(asked, y, 1 - y))  # labels it did not ask for are turned round
    peer.play(other, **settings)
    np.testing.assert_array_equal(other.announced, one.announced)
    np.testing.assert_array_equal(other.expert.asked, asked)
    assert one.clock.seconds > 0


@pytest.mark.parametrize("strategy", ["Split", "VariableUncertainty", "StreamProbabilisticAL"])
def test_blocks_of_observations_change_no_decision_of_scikit_activeml(strategy: str, monkeypatch) -> None:
    played = []
    for block in (1, 60):
        monkeypatch.setattr(skactiveml, "BLOCK", block)
        one, _ = trial(150)
        skactiveml.PEER.play(one, strategy=strategy, model="logistic", budget=0.1)
        played.append((one.expert.asked.tolist(), one.announced.tolist()))
    assert played[0] == played[1]


def test_announcements_follow_the_costs() -> None:
    unequal, _ = trial(costs="fp")
    assert unequal.cheapest([[0.4, 0.6], [0.7, 0.3]]).tolist() == [1, 0]
    assert unequal.cheapest([[0.6, 0.4]]).tolist() == [1]  # a wrong 1 costs half
    assert trial()[0].cheapest([[0.6, 0.4]]).tolist() == [0]


def test_a_run_is_made_once_and_the_best_setting_is_chosen_on_other_seeds(tmp_path, monkeypatch) -> None:
    played = []

    def play(one: Trial, *, share: float) -> None:
        played.append((share, one.seed))
        for t in range(int(share * len(one.X))):
            one.expert.ask(t)

    peer = Peer("asks first", (), lambda n_features, n_classes: [{"share": s} for s in (1.0, 0.1, 0.5)], play)
    records = runs.Records(tmp_path / "runs.jsonl", horizon=100)
    best = choose(records, "phishing", "uniform", peer, peer.grid(9, 2))
    assert played[:3] == [(1.0, 1000), (0.1, 1000), (0.5, 1000)]
    assert {share for share, seed in played[3:]} == {0.1, 0.5}
    assert best == {"share": 0.1}
    for again in (records, runs.Records(tmp_path / "runs.jsonl", horizon=100)):
        assert choose(again, "phishing", "uniform", peer, peer.grid(9, 2)) == best
    assert len(played) == 5
    records.cost("phishing", "uniform", peer, best, 0)
    sparing = Peer("sparing", (), lambda n_features, n_classes: [{}], lambda one: play(one, share=0.2))
    records.cost("phishing", "uniform", sparing, {}, 0)
    monkeypatch.setattr(tables, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(tables, "RESULT", tmp_path / "tables.md")
    tables.PAGE.write_text("words\n<!-- peers -->\nold\n<!-- end of peers -->\nmore words\n")
    tables.write(records, [("phishing", "uniform")], [peer, sparing], [0])
    text = tables.PAGE.read_text()
    costs = [records.cost("phishing", "uniform", who, how, 0) for who, how in ((sparing, {}), (peer, best))]
    shown = [f"**{cost:.0f}**" if cost == min(costs) else f"{cost:.0f}" for cost in costs]
    assert f"| Sparing | {shown[0]} |\n| the best of the other libraries | {shown[1]} |\n" in text
    assert f"| phishing | 100 | 1 | {shown[1]} (10) | {shown[0]} (20) |" in text
    assert f"| phishing | uniform | asks first | 1 | {costs[1]:.0f} | 10 | " in text
    assert "old" not in text
    assert text.startswith("words\n")
    assert text.endswith("more words\n")


def test_what_is_not_installed_is_named() -> None:
    absent = Peer("nobody", ("no_such_package",), river.PEER.grid, river.PEER.play)
    assert runs.missing(absent).startswith(
        "nobody is left out: no_such_package cannot be imported (ModuleNotFoundError"
    )
    assert runs.missing(river.PEER) == ""


def test_costs_of_texts_are_compared_with_the_line_of_the_same_order() -> None:
    runs = [
        {"data": data, "who": who, "seed": seed, "cost": cost * (1 + seed)}
        for data in texts.DATA
        for who, cost in (("line", 100.0), ("sparing", 80.0))
        for seed in range(2)
    ]
    line, ours = texts.table([*runs, {"data": "isear", "who": "river", "seed": 0, "cost": 9.0}])[:2]
    assert line["over the line"] == "1.000"
    assert (ours["who"], ours["isear"], ours["over the line"]) == ("Sparing", "120 (2)", "0.800")
