"""What `run` evaluates is what an agent does: the same rows in the same order, the same decisions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sparingly as sp
from sparingly.experiments.datasets import load
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import execute
from sparingly.experiments.streams import stream


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
        player=Player(strategy="sparing"),
        seed=3,
    )
    played = execute(run).rounds
    data = load(table, "encoded", target="sold", encoder="hashing")
    kinds = [field.kind for field in data.schema.fields.values()]
    assert kinds == ["number", "category", "date", "boolean", "text"]
    order = stream(data, 3, 150).index
    rows = pd.read_csv(table).drop(columns="sold").to_dict("records")
    with sp.Agent(list(data.classes), schema=data.schema, encoder="hashing", strategy="sparing", seed=3,
                  path=tmp_path / "agent.db") as agent:  # fmt: skip
        decided = []
        for place in order:
            ticket = agent.observe(rows[place])
            decided.append((ticket.action, agent.classes.index(ticket.prediction)))
            if ticket.asks:
                agent.answer(ticket.id, data.classes[data.y[place]])
    assert decided == list(zip(played["action"].tolist(), played["prediction"].tolist(), strict=True))
    assert len({action for action, _ in decided}) == 3
