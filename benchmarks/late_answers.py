"""An agent in real time: observations at a steady pace, training in the background, people who take their time."""

from __future__ import annotations

import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.streams import Stream

PER_SECOND = 8
"""Observations: an answer that takes 25 s comes 200 observations later."""


def live(rounds: Stream, data: Dataset, seconds: float, seed: int) -> dict[str, Any]:
    """Observe at a steady pace and answer every question after some seconds; what questions and mistakes cost."""
    classes = [str(one) for one in range(data.n_classes)]
    cost = asked = guesses = 0
    waiting: deque[tuple[float, str, str]] = deque()
    with tempfile.TemporaryDirectory() as folder:
        agent = sp.Agent(classes, data.n_features, path=Path(folder) / "agent.db", seed=seed, training="background")
        began = time.monotonic()
        for t, (x, y) in enumerate(zip(rounds.X, rounds.answers.tolist(), strict=True)):
            _answer_due(agent, waiting, began + t / PER_SECOND)
            ticket = agent.observe(x)
            if ticket.asks:
                waiting.append((time.monotonic() + seconds, ticket.id, classes[y]))
            asked += ticket.asks
            cost += 1 if ticket.asks else ticket.prediction != classes[y]
            guesses += str(ticket.why).startswith("guess")
        agent.close()
    majority = float(len(rounds.y) - np.bincount(rounds.y).max())
    return {"cost": float(cost), "asked": int(asked), "guesses": guesses, "majority": majority}


def _answer_due(agent: sp.Agent, waiting: deque[tuple[float, str, str]], until: float) -> None:
    """Wait for the time of the next observation, and give the answers that are due before it."""
    while waiting and waiting[0][0] <= until:
        when, ticket, label = waiting.popleft()
        time.sleep(max(0.0, when - time.monotonic()))
        agent.answer(ticket, label)
    time.sleep(max(0.0, until - time.monotonic()))
