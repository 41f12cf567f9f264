"""Runs with several experts, kept as lines of a file: each is made once."""

from __future__ import annotations

import json
import time
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import sparingly as sp
from benchmarks.derived_streams import DERIVED, derive, experts, source
from sparingly.encoders import text_encoder
from sparingly.experiments.datasets import load
from sparingly.experts.synthetic import SyntheticExpert
from sparingly.strategies.registry import registered
from sparingly.strategies.sparing.class_names import spoken

KEPT = Path(__file__).parent.parent / "docs" / "results" / "experts" / "runs.jsonl"
STREAMS = ("isear", "banking77", "mnist", "adult", "shuttle")
ENCODERS = ("minilm", "static")
"""Of texts; runs that do not name theirs had `static`, and no names of classes."""
LENGTH = 10_000
"""Rounds of the streams with synthetic experts."""
SYNTHETIC = {"gpt": SyntheticExpert(0.8), "junior": SyntheticExpert(0.9, weak_region=0.3, there=0.4)}
Run = dict[str, Any]


class Order(NamedTuple):
    """A stream in one order: the number of features and of classes, `(x, y, what experts say)`, names of classes."""

    n_features: int
    n_classes: int
    items: list[tuple[Any, int, dict[str, int | None]]]
    class_vectors: np.ndarray | None = None
    """What the classes are called, encoded as the texts are."""


@lru_cache(maxsize=1)
def order(name: str, seed: int, encoder: str = ENCODERS[0]) -> Order:
    """A stream in an order of its own."""
    recorded = experts(name)
    data = load(source(name), "encoded", encoder=encoder) if recorded else load(name, "encoded")
    data = derive(data, DERIVED[name]) if name in DERIVED else data
    places = np.random.default_rng(seed).permutation(len(data.y))[: None if recorded else LENGTH]
    X, y = np.asarray(data.raw if data.X is None else data.X)[places], data.y[places]
    n_classes = data.n_classes
    if recorded:
        answers = {expert: data.answers[expert][places] for expert in recorded}
    else:
        answers = {
            expert: one.answers(X, y, n_classes, seed=100 * seed + k)
            for k, (expert, one) in enumerate(SYNTHETIC.items())
        }
    said = [{e: None if a[t] < 0 else int(a[t]) for e, a in answers.items()} for t in range(len(y))]
    X = X.reshape(len(X), -1)
    names = text_encoder(encoder)([spoken(name) for name in data.classes]) if recorded else None
    return Order(X.shape[1], n_classes, list(zip(X, y.tolist(), said, strict=True)), names)


def play(way: str, stream: Order, seed: int, *, human: float, price: float) -> Run:
    """One order, in one way; Sparing knows what classes are called where observations are texts, as agents tell it."""
    n_features, n_classes, items, names = stream
    alone = way == "human alone"
    models = [] if alone else [sp.Expert(name, price) for name in items[0][2]]
    game = sp.label_efficient(n_classes, experts=[*models, sp.Expert("human", human, gold=True)])
    strategy: Any
    if way.startswith("dial at "):
        options = {"threshold": float(way.split()[-1]), "learner": "ensemble"}
        strategy = registered()["confidence_dial"](game, n_features, seed=seed, **options)
    elif way == "answers as features":
        strategy = registered()["answer_as_feature"](game, n_features, seed=seed)
    else:
        strategy = sp.Sparing(game, n_features, seed=seed, class_vectors=names)
    began = time.process_time()
    rounds = list(sp.play(strategy, game, [(x, y, {} if alone else said) for x, y, said in items]))
    cost, paid = sum(one.cost for one in rounds), sum(one.paid for one in rounds)
    found: Run = {"cost": round(cost, 2), "mistakes": round(cost - paid, 2)}
    found["asked"] = dict(Counter(expert for one in rounds for expert in one.asked))
    panel = getattr(strategy, "panel", None)
    if panel is not None:
        found["learned"] = {
            one.expert.name: [round(one.accuracy, 4), *(round(end, 4) for end in one.interval())]
            for one in panel.reliability
        }
    return {**found, "seconds": round(time.process_time() - began, 1)}


class Runs:
    """What has been played, by stream, order, way and prices; the rest is played when it is asked for."""

    def __init__(self, kept: Path = KEPT, *, encoder: str = ENCODERS[0]) -> None:
        self._kept, self.encoder = kept, encoder
        lines = kept.read_text().splitlines() if kept.exists() else []
        self._runs = {self._key(**(run := json.loads(line))): run for line in lines}

    @staticmethod
    def _key(
        stream: str,
        order: int,
        way: str,
        human: float | None = None,
        price: float | None = None,
        encoder: str = "static",
        **_: Any,
    ) -> tuple[Any, ...]:
        return stream, order, way, human, price, encoder

    def _encoded(self, stream: str, way: str) -> Run:
        """The encoder, where the run depends on it."""
        return {"encoder": self.encoder} if experts(stream) and way != "always" else {}

    def known(self, stream: str, order: int, way: str, **prices: float | None) -> Run | None:
        return self._runs.get(self._key(stream, order, way, **self._encoded(stream, way), **prices))

    def every(self, way: str) -> list[Run]:
        return [run for run in self._runs.values() if run["way"] == way]

    def rounds(self, stream: str, order: int) -> int:
        run = self.known(stream, order, "always")
        return run["rounds"] if run else 0

    def get(self, stream: str, seed: int, way: str, **prices: float | None) -> Run:
        """A run, played if it has not been; prices that its decisions do not depend on are not given."""
        found = self.known(stream, seed, way, **prices)
        if found is not None:
            return found
        data = order(stream, seed, self.encoder)
        if way == "always":
            mistakes = {name: sum(said[name] != y for _, y, said in data.items) for name in data.items[0][2]}
            commonest = Counter(y for _, y, _ in data.items).most_common(1)[0][1]
            result: Run = {
                "rounds": len(data.items),
                "mistakes_of": mistakes,
                "not_commonest": len(data.items) - commonest,
            }
        else:
            result = play(way, data, seed, human=prices.get("human") or 1.0, price=prices.get("price") or 0.01)
        return self.keep(
            {"stream": stream, "order": seed, "way": way, **self._encoded(stream, way), **prices, **result}
        )

    def keep(self, run: Run) -> Run:
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        with self._kept.open("a") as file:
            file.write(json.dumps(run) + "\n")
        self._runs[self._key(**run)] = run
        print(json.dumps(run), flush=True)
        return run
