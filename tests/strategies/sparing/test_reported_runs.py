"""The programs behind docs/sparing.md: runs are told apart, and the line is the best of what was tried."""

import numpy as np
from benchmarks import hindsight, sparing

from sparingly.experiments.datasets import load
from sparingly.experiments.streams import stream


def test_every_run_has_a_key_of_its_own_so_that_missing_ones_are_found():
    for group in sparing.GROUPS:
        keys = [sparing._key(spec) for spec in sparing.specs(group)]
        assert len(set(keys)) == len(keys)


def test_the_line_is_the_best_of_what_was_tried_and_knows_the_commonest_class():
    rounds = stream(load("digits", preprocessing="encoded"), 1000, 120)
    found = hindsight.line(rounds, 10, seed=1000, price=0.5)
    assert set(found["tried"]) == {"commonest 0", "everything 120", "forest 50", "boosting 50"}
    assert found["cost"] == min(found["tried"].values())
    assert found["tried"]["everything 120"] == 60
    assert found["tried"]["commonest 0"] == 120 - np.bincount(rounds.y).max()
    assert found["tried"]["forest 50"] >= 25


def test_ratios_compare_runs_of_one_stream_and_price():
    line = {"group": "table_prices", "who": "line", "data": "adult", "seed": 30, "price": 5.0, "cost": 100.0}
    ours = {**line, "who": "sparing", "cost": 90.0}
    other = {**ours, "price": 0.1}
    assert sparing.against_the_line([line, ours, other]) == {("adult", 10_000, 5.0, False): [0.9]}
