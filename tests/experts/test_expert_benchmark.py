"""The table of several experts beside every single way to use them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import expert_runs, experts

import sparingly as sp


def _stream(n=60):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 2)).astype(np.float32) + 3 * np.eye(2, dtype=np.float32)[y]
    said = [int(c) if t % 4 else 1 - int(c) for t, c in enumerate(y)]
    items = [(x, int(c), {"gpt": one}) for x, c, one in zip(X, y, said, strict=True)]
    return expert_runs.Order(2, 2, items, np.eye(2, dtype=np.float32))


def test_a_run_is_made_once_and_the_table_puts_ours_beside_the_cheapest_single_way(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(expert_runs, "order", lambda name, seed, encoder: _stream())
    runs = expert_runs.Runs(tmp_path / "runs.jsonl")
    for way, prices in (("always", {}), ("human alone", {"human": 1.0}), ("sparing", {"human": 1.0, "price": 0.01})):
        runs.get("isear", 7, way, **prices)
    again = expert_runs.Runs(tmp_path / "runs.jsonl")
    monkeypatch.setattr(expert_runs, "play", lambda *_, **__: pytest.fail("played twice"))
    ours = again.get("isear", 7, "sparing", human=1.0, price=0.01)
    assert ours["cost"] == pytest.approx(ours["mistakes"] + 0.01 * ours["asked"]["gpt"] + ours["asked"]["human"])
    [line] = experts.table(again, ["isear"], [7])
    assert line["ways"]["always the human"] == 60
    assert line["ways"]["always gpt"] == pytest.approx(15 + 0.6)
    assert line["costs"] == min(line["ways"].values())
    experts.show([line])
    assert "1 cases: geometric mean" in capsys.readouterr().out
    experts.write([line], tmp_path / "table.csv")
    header, row = (tmp_path / "table.csv").read_text().splitlines()
    written = dict(zip(header.split(","), row.split(","), strict=True))
    assert written["order"] == "7"
    assert float(written["sparing"]) == ours["cost"]
    assert written["best single way"] == line["best"]


def test_runs_with_another_encoder_are_kept_apart(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(expert_runs, "order", lambda name, seed, encoder: seen.append(encoder) or _stream())
    kept = tmp_path / "runs.jsonl"
    kept.write_text('{"stream": "isear", "order": 7, "way": "sparing", "human": 1.0, "price": 0.01, "cost": 5}\n')
    assert expert_runs.Runs(kept, encoder="static").get("isear", 7, "sparing", human=1.0, price=0.01)["cost"] == 5
    ours = expert_runs.Runs(kept, encoder="minilm").get("isear", 7, "sparing", human=1.0, price=0.01)
    assert (ours["encoder"], seen) == ("minilm", ["minilm"])
    assert expert_runs.Runs(kept).known("isear", 7, "sparing", human=1.0, price=0.01) == ours


def test_ours_knows_what_classes_are_called(monkeypatch):
    told = []

    class Listening(sp.Sparing):
        def __init__(self, *args, class_vectors=None, **options):
            told.append(class_vectors)
            super().__init__(*args, class_vectors=class_vectors, **options)

    monkeypatch.setattr(sp, "Sparing", Listening)
    expert_runs.play("sparing", _stream(20), 7, human=1.0, price=0.01)
    assert told[0].tolist() == [[1, 0], [0, 1]]
