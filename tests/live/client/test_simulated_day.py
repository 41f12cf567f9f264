"""A day in a minute, shortened: everything moves, the careless one is found, and the bill adds up to the cent."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from sparingly.commands.simulate_command import _write_bill
from sparingly.live.client.simulated_day import SimulatedTeam, simulate_day
from sparingly.live.client.simulation import Example, SimulatedStream

CLASSES = ("joy", "fear", "anger", "guilt")
PATIENCE = 60


@pytest.fixture(scope="module")
def day():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=500)
    X = rng.normal(size=(500, 6)) + 0.4 * np.eye(4, 6)[y]
    said = [CLASSES[i] if rng.random() < 0.3 else CLASSES[rng.integers(4)] for i in y]
    examples = [Example(x, f"message {i}", CLASSES[k]) for i, (x, k) in enumerate(zip(X, y, strict=True))]
    team = SimulatedTeam(
        wrong=(0.03, 0.03, 0.5), thinking=0.001, person_price=0.05, second_opinions=0.2, known_answers=0.1
    )
    told = []
    result = simulate_day(
        SimulatedStream(CLASSES, examples), said, team, machine="gpt", seconds=2, patience=PATIENCE, say=told.append
    )
    return result, told


def test_the_bill_adds_up_to_the_cent(day):
    result, told = day
    assert result.statistics.observations == 500
    assert set(result.bill) >= {"Ada", "Ben", "Chloe", "gpt", "not answered"}
    assert sum(result.bill.values()) == pytest.approx(result.total, abs=0.005)
    assert result.adds_up
    assert result.bill["gpt"] == pytest.approx(result.statistics.bill["gpt"])
    assert "/agents/day/people" in told[0]


def test_the_bill_is_written_with_all_that_was_paid(day, tmp_path):
    _write_bill(day[0], tmp_path / "bill.csv")
    rows = {row["who"]: row for row in csv.DictReader((tmp_path / "bill.csv").open())}
    assert {"Ada", "Ben", "Chloe", "gpt", "not answered", "together", "by the agent"} == set(rows)
    assert rows["together"]["cost"] == rows["by the agent"]["cost"] == f"{round(day[0].total, 2)}"
    assert int(rows["Chloe"]["found careless after"]) <= 150
    assert rows["Ada"]["found careless after"] == ""
    assert float(rows["Ada"]["at least"]) < float(rows["Ada"]["right"]) <= float(rows["Ada"]["at most"])


def test_the_careless_one_is_found_and_nobody_else(day):
    (found,) = day[0].careless
    assert found.expert == "Chloe"
    assert found.found_after <= 150
    assert found.stopped is not None
    assert day[0].statistics.second_opinions > 10
    assert day[0].statistics.known_answers > 5


def test_it_ends_once_everything_is_settled_and_waits_for_no_one_who_was_stopped(day):
    assert day[0].seconds < PATIENCE
    assert day[0].statistics.open == 0
