"""Agents with a language model that is recorded and a person, and streams for them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

import sparingly as sp

CLASSES = ["joy", "fear", "anger"]
HUMAN = sp.Expert("human", price=1.0, gold=True)


def stream(n: int, seed: int = 0) -> tuple[np.ndarray, list[str], list[str]]:
    """Observations, their classes, and what a model says of each that is right four times out of five."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y]
    said = np.where(rng.random(n) < 0.8, y, rng.integers(3, size=n))
    return X, [CLASSES[i] for i in y], [CLASSES[i] for i in said]


class Model:
    """A model that is called by the place of an item in the stream, and counts its calls."""

    def __init__(self, said: list[str], seconds: float = 0.0) -> None:
        self.said, self.seconds = said, seconds
        self.calls: list[int] = []
        self.open = threading.Event()
        self.open.set()

    def __call__(self, content: Any) -> str:
        self.calls.append(int(content["i"]))
        self.open.wait(20)
        return self.said[int(content["i"])]


def make(path: Any, experts: list[Any], **settings: Any) -> sp.Agent:
    small = {} if "strategy" in settings else {"options": {"width": 20, "members": 3}}
    return sp.Agent(classes=CLASSES, n_features=4, path=path, experts=experts, **{**small, **settings})


def observe(agent: sp.Agent, X: np.ndarray, start: int = 0) -> list[sp.Ticket]:
    return [agent.observe(x, id=f"i{i}", payload={"i": i}) for i, x in enumerate(X.tolist(), start=start)]
