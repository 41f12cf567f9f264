"""An agent with a thousand classes is made, opened and used within seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sparingly as sp

CLASSES = [f"class {i}" for i in range(1000)]
SECONDS = 5.0
"""Of a processor, so that a machine that is busy with other things does not matter; about one is needed."""


def within(call: Callable[[], Any]) -> Any:
    began = time.process_time()
    result = call()
    assert time.process_time() - began < SECONDS
    return result


@pytest.mark.parametrize("n_features", [20, None])
def test_a_thousand_classes_take_seconds(path: Path, n_features: int | None) -> None:
    x = [0.1 * i for i in range(20)]
    agent = within(lambda: sp.Agent(CLASSES, n_features, path=path))
    ticket = within(lambda: agent.observe(x))
    within(lambda: agent.answer(ticket.id, CLASSES[700]))
    agent.close()
    again = within(lambda: sp.Agent.open(path))
    assert again.ticket(ticket.id).label == CLASSES[700]
    assert again.settings.game == sp.label_efficient(1000, classes=CLASSES)
    within(lambda: again.observe(x))
    again.close()


def test_each_cost_of_many_is_checked() -> None:
    costs = [[float(i != j) for j in range(300)] for i in range(300)]
    costs[200][7] = float("nan")
    with pytest.raises(ValueError, match=r"costs\[200, 7\] is nan"):
        sp.label_efficient(costs=costs)
