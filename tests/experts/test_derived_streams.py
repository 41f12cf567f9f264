"""Streams derived from recorded answers."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import derived_streams, expert_runs, experts
from benchmarks.derived_streams import DERIVED, Derivation, derive, named

from sparingly.experiments.dataset import Dataset


def _recorded(n=400):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    said = np.where(rng.random(n) < 0.7, y, rng.integers(-1, 3, size=n))
    X = np.arange(n, dtype=np.float32)[:, None]
    return Dataset("isear", X, y, ("anger", "disgust", "joy"), answers={"gpt": said, "llama": said})


def test_classes_and_answers_are_grouped_alike_and_no_answer_stays_none():
    data = _recorded()
    binary = derive(data, Derivation("isear", named("joy")))
    assert binary.classes == ("no", "yes")
    assert binary.y.tolist() == (data.y == 2).tolist()
    heard = data.answers["llama"]
    assert binary.answers["llama"].tolist() == np.where(heard < 0, -1, heard == 2).tolist()


def test_an_expert_may_name_a_class_more_often_than_it_is_true():
    data = _recorded()
    grouped = derive(data, Derivation("isear", named("anger"), heard=named("anger", "disgust")))
    assert grouped.y.tolist() == (data.y == 0).tolist()
    heard = data.answers["gpt"]
    assert grouped.answers["gpt"].tolist() == np.where(heard < 0, -1, heard <= 1).tolist()


def test_shuffled_texts_leave_truths_and_answers_together():
    data = _recorded()
    shuffled = derive(data, Derivation("isear", shuffled=True))
    assert sorted(shuffled.raw[:, 0].tolist()) == data.raw[:, 0].tolist()
    assert (shuffled.raw != data.raw).mean() > 0.9
    assert shuffled.y.tolist() == data.y.tolist()
    assert shuffled.answers["gpt"].tolist() == data.answers["gpt"].tolist()


@pytest.mark.parametrize("accuracy", [0.5, 0.95])
def test_the_first_expert_is_raised_to_an_accuracy_and_never_lowered(accuracy):
    data = _recorded()
    raised = derive(data, Derivation("isear", raised=accuracy))
    before = (data.answers["gpt"] == data.y).mean()
    assert (raised.answers["gpt"] == data.y).mean() == pytest.approx(max(accuracy, before))
    assert raised.answers["llama"].tolist() == data.answers["llama"].tolist()


def test_their_table_has_the_commonest_class_among_the_single_ways(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random(40) < 0.1).astype(int).tolist()
    items = [(rng.normal(size=2).astype(np.float32), c, {"gpt35": 1}) for c in y]
    monkeypatch.setattr(expert_runs, "order", lambda name, seed, encoder: expert_runs.Order(2, 2, items))
    runs = expert_runs.Runs(tmp_path / "runs.jsonl")
    runs.get("isear-joy", 7, "always")
    found = experts.single_ways(runs, "isear-joy", 7, human=1.0, price=0.01)
    assert found["commonest class"] == sum(y) < found["always gpt35"]


def test_every_derived_stream_names_a_recorded_one():
    assert all(derived_streams.experts(name) for name in DERIVED)
    assert derived_streams.source("shuttle") == "shuttle"
    assert not derived_streams.experts("shuttle")
