"""The programs behind docs/sparing.md: runs are told apart, and the line is the best of what was tried."""

import numpy as np
from benchmarks import hindsight, late_answers, sparing, sparing_parts, sparing_tables, unseen_data, untold_length

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


def test_a_line_scored_on_a_part_of_the_rounds_counts_for_all_of_them(monkeypatch):
    rounds = stream(load("digits", preprocessing="encoded"), 1000, 1000)
    whole = hindsight._mistakes(rounds, 10, 100, "forest", 1000)
    monkeypatch.setattr(hindsight, "SCORED", 300)
    part = hindsight._mistakes(rounds, 10, 100, "forest", 1000)
    assert part != whole
    assert abs(part - whole) < 0.3 * whole


def test_data_sets_never_seen_before_are_the_same_every_time():
    for name in ("image_segments", "agrawal"):
        first, again = unseen_data.load(name), unseen_data.load(name)
        assert len(first) == unseen_data.LENGTHS[name]
        assert (first.raw == again.raw).all()
        assert (first.y == again.y).all()


def test_what_the_line_owes_to_hindsight_is_chosen_without_the_seed_itself():
    lines = [{"tried": {"forest 50": cost, "mlp 200": 10.0}, "cost": min(cost, 10.0)} for cost in (1.0, 12.0, 12.0)]
    assert sparing_tables._best_elsewhere(lines, lines[0]) == "mlp 200"
    assert sparing_tables._best_elsewhere(lines, lines[1]) == "forest 50"


def test_the_price_of_an_untold_length_is_taken_from_the_first_rounds():
    runs = [
        {"data": data, "seed": 1, "prior_horizon": prior, "cost": [120.0, 0.0, cost], "commonest": [100.0, 1.0, 1.0]}
        for data in untold_length.DATASETS
        for prior, cost in zip(untold_length.BELIEFS, (1000.0, 1010.0, 1020.0, 1030.0, 1040.0), strict=True)
    ]
    last = untold_length.table(runs)[-1]
    assert last["rounds counted on"] == "0"
    assert last["adult, 1000"] == "1.20 (1.20)"
    assert last["adult, 10 000"] == last["geometric mean, 10 000"] == "1.040"


def test_what_late_answers_cost_is_seen_with_the_same_learner_and_the_best_number_of_questions(monkeypatch):
    monkeypatch.setattr(late_answers, "SIZES", (20, 40))
    rounds = stream(load("digits", preprocessing="encoded"), 1000, 300)
    at_once, late = (late_answers.by_hindsight(rounds, 10, delay, 1000) for delay in (0, 100))
    assert at_once["cost"] == min(at_once["tried"].values())
    assert 40 < late["cost"] - at_once["cost"] <= 100


def test_the_parts_of_the_time_are_parts_of_the_whole_and_methods_are_left_as_they_were():
    before = [getattr(owner, name) for owner, name in sparing_parts.PARTS.values()]
    asked, seconds = sparing_parts.parts("digits", 150)
    assert 60 <= asked <= 150
    assert 0 < seconds["training: networks"] < seconds["training"] < seconds["all"]
    assert before == [getattr(owner, name) for owner, name in sparing_parts.PARTS.values()]
