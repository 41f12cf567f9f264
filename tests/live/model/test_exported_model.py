"""A model to take away predicts what its agent would announce, from raw rows, and needs no database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparingly as sp
from sparingly.live.agent.errors import AgentError
from tests.live.conftest import QUICK, Make, stream

JOBS = ["clerk", "smith", "baker"]


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(18, 80, n).astype(float), "job": rng.choice(JOBS, n)})
    frame.loc[rng.random(n) < 0.1, "age"] = None
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame


def labels(frame: pd.DataFrame) -> list[str]:
    return ["dog" if (row.age or 0) > 45 or row.job == "smith" else "cat" for row in frame.itertuples()]


def test_raw_rows_are_predicted_as_the_agent_would(make: Make, path: Path) -> None:
    known, new = table(120), table(30, seed=1)
    agent = make(n_features=None, strategy=None, costs=[{"announced": "cat", "true": "dog", "cost": 5}], query_cost=0.4)
    agent.teach(known, labels(known))
    agent.export_model(path.with_name("pets.model"))
    model = sp.load_model(path.with_name("pets.model"))
    held = model.predict_proba(new)
    assert held.shape == (30, 2)
    assert np.allclose(held.sum(1), 1)
    rows = new.to_dict("records")
    tickets = agent.observe_many(rows)
    assert model.predict(rows) == model.predict(new) == [ticket.prediction for ticket in tickets]
    assert np.allclose(held, [list(ticket.probabilities.values()) for ticket in tickets], atol=1e-5)
    assert model.predict([{"age": 30, "job": "a word that is new"}])[0] in model.classes
    assert model.predict([]) == []
    assert model.fields == ("age", "job")
    with pytest.raises(AgentError, match="'wage' is unknown"):
        model.predict([{"age": 1, "job": "clerk", "wage": 3}])


@pytest.mark.parametrize("name", ["neural_cbp", "entropy", "explore_then_commit", "cbp_side"])
def test_every_strategy_can_be_taken_away(make: Make, path: Path, name: str) -> None:
    agent = make(strategy=name, options=QUICK if name in ("neural_cbp", "entropy") else {})
    X = stream(40)
    agent.teach(X, ["dog" if x[0] > 0 else "cat" for x in X])
    agent.export_model(path.with_name("model"))
    tickets = agent.observe_many(stream(10, 1))
    held = sp.load_model(path.with_name("model")).predict_proba(stream(10, 1))
    assert np.allclose(held[0], list(tickets[0].probabilities.values()), atol=1e-5)


def test_texts_are_encoded_as_they_were(make: Make, path: Path) -> None:
    agent = make(n_features=None, strategy=None, encoder="hashing")
    agent.teach(["win a prize", "see you at noon"] * 15, ["dog", "cat"] * 15)
    agent.export_model(path.with_name("model"))
    assert sp.load_model(path.with_name("model")).predict(["win a prize", "see you at noon"]) == ["dog", "cat"]


def test_it_needs_no_database(make: Make, path: Path) -> None:
    agent = make(strategy=None)
    agent.teach(stream(40), ["dog" if x[0] > 0 else "cat" for x in stream(40)])
    agent.export_model(path.with_name("model"))
    code = f"""
import sys
sys.modules["sqlalchemy"] = None
import sparingly as sp
print(sp.load_model({str(path.with_name("model"))!r}).predict([[3.0, 0, 0], [-3.0, 0, 0]]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "['dog', 'cat']\n", done.stderr


@pytest.mark.usefixtures("forked_trainers")
def test_an_agent_that_trains_in_the_background_exports_what_it_decides_with(make: Make, path: Path) -> None:
    agent = make(strategy="entropy", options=QUICK, training="background")
    agent.observe([1, 2, 3])
    agent.export_model(path.with_name("model"))
    assert sp.load_model(path.with_name("model")).predict([[1, 2, 3]])[0] in ("cat", "dog")


def test_what_is_no_model_is_refused_in_one_line(make: Make, path: Path) -> None:
    with pytest.raises(AgentError, match="nothing to export yet"):
        make(n_features=None).export_model(path.with_name("model"))
    assert not path.with_name("model").exists()
    with pytest.raises(AgentError, match="does not exist"):
        sp.load_model(path.with_name("absent"))
    path.with_name("text").write_text("not a model")
    with pytest.raises(AgentError, match="is not a whole model's file"):
        sp.load_model(path.with_name("text"))
    strategy = sp.strategies()["entropy"](sp.label_efficient(2), 3)
    strategy.save(path.with_name("state"))
    with pytest.raises(AgentError, match="not a model that this release reads"):
        sp.load_model(path.with_name("state"))
