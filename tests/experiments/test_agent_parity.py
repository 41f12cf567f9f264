"""What `run` evaluates is what an agent does: the same rows in the same order, the same decisions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import sparingly as sp
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.datasets import from_arrays, load
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import check, execute
from sparingly.experiments.streams import stream

NARROW = {"width": 16}
"""A network for a table with texts, whose vectors are 512 wide."""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    age = rng.integers(18, 90, n).astype(float)
    job = rng.choice(["clerk", "smith", "baker"], n)
    sold = (age > 50) ^ (job == "smith")
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "job": np.where(rng.random(n) < 0.1, None, job),
            "since": pd.date_range("2024-01-01", periods=n).strftime("%Y-%m-%d"),
            "vip": rng.random(n) < 0.5,
            "note": [" ".join(rng.choice(["please", "call", "me", "soon", "thanks"], 5)) for _ in range(n)],
            "sold": np.where(sold, "yes", "no"),
        }
    )
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path / "mine.csv"


def test_a_run_and_an_agent_make_the_same_decisions(table, tmp_path):
    run = Run(
        task=Task(dataset=str(table), target="sold", preprocessing="encoded", encoder="hashing", horizon=150),
        player=Player(strategy="sparing", options=NARROW),
        seed=3,
    )
    played = execute(run).rounds
    data = load(table, "encoded", target="sold", encoder="hashing")
    kinds = [field.kind for field in data.schema.fields.values()]
    assert kinds == ["number", "category", "date", "boolean", "text"]
    order = stream(data, 3, 150).index
    rows = pd.read_csv(table).drop(columns="sold").to_dict("records")
    with sp.Agent(list(data.classes), schema=data.schema, encoder="hashing", strategy="sparing", seed=3,
                  options=NARROW, path=tmp_path / "agent.db") as agent:  # fmt: skip
        decided = []
        for place in order:
            ticket = agent.observe(rows[place])
            decided.append((ticket.action, agent.classes.index(ticket.prediction)))
            if ticket.asks:
                agent.answer(ticket.id, data.classes[data.y[place]])
    assert decided == list(zip(played["action"].tolist(), played["prediction"].tolist(), strict=True))
    assert len({action for action, _ in decided}) == 3


def test_labels_that_are_known_are_taught_before_the_first_round(table, tmp_path):
    pd.read_csv(table).head(120).assign(sold=lambda frame: frame["sold"].where(frame.index != 3)).to_csv(
        tmp_path / "known.csv", index=False
    )
    task = Task(dataset=str(table), target="sold", preprocessing="auto", encoder="hashing", horizon=60)
    told = task.model_copy(update={"known": str(tmp_path / "known.csv"), "horizon_known": True}).noted()
    for player in (
        Player(strategy="explore_then_commit", options={"n": 20}),
        Player(strategy="sparing", options=NARROW),
    ):
        plain = Run(task=task, player=player, seed=0)
        run = Run(task=told, player=player, seed=0)
        assert run.id != plain.id
        record = execute(run)
        data = load(table, "encoded" if player.strategy == "sparing" else "streaming", target="sold", encoder="hashing")
        source = stream(data, 0, 60)
        rows, y = data.rows(np.delete(np.arange(120), 3)), np.delete(data.y[:120], 3)
        before = replace(source, before=rows)
        options = {"horizon": 60} if player.strategy == "sparing" else {}
        kind = sp.strategies()[player.strategy]
        strategy = kind(sp.label_efficient(2), data.n_features, seed=0, **player.options, **options)
        strategy.teach(before.X_before, y)
        pairs = zip(before.X, source.y.tolist(), strict=True)
        played = list(sp.play(strategy, sp.label_efficient(2), pairs))
        assert record.rounds["action"].tolist() == [one.action for one in played]
        assert record.rounds["action"].tolist() != execute(plain).rounds["action"].tolist()


def test_scaling_begins_with_what_was_known():
    rng = np.random.default_rng(0)
    data = from_arrays(rng.normal(size=(100, 2)), [0, 1] * 50, preprocessing="streaming")
    whole = stream(data, 0)
    rest = replace(whole, index=whole.index[20:], y=whole.y[20:], answers=whole.answers[20:])
    rest = replace(rest, before=data.rows(whole.index[:20]))
    np.testing.assert_allclose(rest.X, whole.X[20:], atol=1e-6)
    np.testing.assert_allclose(rest.test()[0], whole.test()[0], atol=1e-6)
    assert abs(rest.X_before.mean(axis=0)).max() < 1e-6


@pytest.mark.parametrize(
    ("column", "value", "line"),
    [("sold", "perhaps", "there is no class 'perhaps' in mine"), ("age", "old", "column 'age' is 'old'")],
)
def test_known_labels_that_do_not_fit_are_refused(table, tmp_path, column, value, line):
    frame = pd.read_csv(table).head(30).astype({column: object})
    frame.loc[2, column] = value
    frame.to_csv(tmp_path / "known.csv", index=False)
    task = Task(
        dataset=str(table), target="sold", preprocessing="auto", encoder="hashing", known=str(tmp_path / "known.csv")
    )
    with pytest.raises(DataError, match=line):
        check(Run(task=task, player=Player(strategy="never_ask")))
