"""Late answers: an agent in real time with training in the background, and what late answers cost at the least."""

from __future__ import annotations

import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from sparingly.experiments.dataset import Dataset
from sparingly.experiments.streams import Stream
from sparingly.strategies.sparing.beliefs import Beliefs

PER_SECOND = 8
"""Observations: an answer that takes 25 s comes 200 observations later."""

SIZES = (20, 30, 45, 60, 80, 100, 125, 150, 175, 200, 250, 300, 400)
"""Labels with which the learner of `by_hindsight` is trained."""


def by_hindsight(rounds: Stream, n_classes: int, delay: int, seed: int) -> dict[str, Any]:
    """What Sparing's own learner pays that asks about the first m and announces the rest, the best m chosen afterwards.

    An answer comes `delay` rounds after its question; the learner is trained anew with every number of answers in
    `SIZES`, and before the first it announces the class that turned out to be the commonest. So the cost with late
    answers over that with answers at once is what late answers cost, whatever is asked.
    """
    X, y = torch.from_numpy(rounds.X), torch.from_numpy(rounds.y)
    wrong = [(y != torch.bincount(y).argmax()).numpy()]
    for n in SIZES:
        beliefs = Beliefs(n_classes, (X.shape[1],))
        with torch.no_grad():
            folds = torch.arange(n) % beliefs.members
            beliefs.fit(X[: max(n, 1000)], X[:n], y[:n], folds, torch.Generator().manual_seed(seed))
            wrong.append((beliefs(X).mean(0).argmax(1) != y).numpy())
    tried = {}
    for m in SIZES:
        t = np.arange(m, len(y))
        trained = np.searchsorted(SIZES, np.clip(t - delay, 0, m), side="right")
        tried[m] = m + int(np.array(wrong)[trained, t].sum())
    best = min(tried, key=lambda m: tried[m])
    return {"cost": float(tried[best]), "asked": best, "tried": tried}


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
