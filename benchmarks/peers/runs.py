"""One run of one peer on one stream, and the file that keeps them all."""

from __future__ import annotations

import importlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.trial import Expert, Peer, Settings, Trial
from sparingly.experiments.datasets import Dataset, load
from sparingly.experiments.streams import stream

RUNS = Path("docs/results/peers/runs.jsonl")
PRICE = 1.0
Record = dict[str, Any]


@lru_cache(maxsize=2)
def dataset(name: str, preprocessing: str) -> Dataset:
    return load(name, preprocessing=preprocessing, flat=True)


def matrix(costs: str, n_classes: int) -> NDArray[np.float64]:
    """Costs by name, `[announced, true]`: every error 1, or (of two classes) a wrong 1 half of that."""
    return 1.0 - np.eye(n_classes) if costs == "uniform" else np.array([[0.0, 1.0], [0.5, 0.0]])


def missing(peer: Peer) -> str:
    """Why a peer cannot be run here; nothing if it can."""
    for package in peer.packages:
        try:
            importlib.import_module(package)
        except Exception as error:  # a Java machine that does not start raises errors of its own
            return f"{peer.name} is left out: {package} cannot be imported ({type(error).__name__}: {error})"
    return ""


class Records:
    """Every run made so far, one line each; a run that is there is not made again."""

    def __init__(self, path: Path = RUNS, horizon: int = 10_000) -> None:
        self.path, self.horizon = path, horizon
        lines = path.read_text().splitlines() if path.exists() else []
        self.all: list[Record] = [json.loads(line) for line in lines]

    def of(self, data: str, costs: str, peer: str, settings: Settings | None = None) -> list[Record]:
        wanted = {"data": data, "costs": costs, "peer": peer} | ({} if settings is None else {"settings": settings})
        return [record for record in self.all if wanted.items() <= record.items()]

    def cost(self, data: str, costs: str, peer: Peer, settings: Settings, seed: int) -> float:
        """What a run costs; it is made if it is not there."""
        for record in self.of(data, costs, peer.name, settings):
            if record["seed"] == seed:
                return float(record["cost"])
        record = self._make(data, costs, peer, settings, seed)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        self.all.append(record)
        return float(record["cost"])

    def _make(self, data: str, costs: str, peer: Peer, settings: Settings, seed: int) -> Record:
        options = dict(settings)
        rounds = stream(dataset(data, options.pop("preprocessing", "streaming")), seed, self.horizon)
        trial = Trial(rounds.X, matrix(costs, rounds.dataset.n_classes), Expert(rounds.y), seed)
        peer.play(trial, **options)
        asked = trial.expert.asked
        cost = np.where(asked, PRICE, trial.costs[trial.announced, rounds.y]).sum()
        what = {"data": data, "costs": costs, "peer": peer.name, "settings": settings, "seed": seed}
        found = {"rounds": len(asked), "cost": float(cost), "asked": int(asked.sum())}
        return what | found | {"seconds": round(trial.clock.seconds, 3)}
