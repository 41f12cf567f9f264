"""What several experts cost together: `python -m benchmarks experts`, or some orders: `... experts isear 0 1`.

Each line is one order of one stream: a mistake costs 1; the human is gold; language models answer as recorded.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import sparingly as sp
from sparingly.experiments.datasets import load

LANGUAGE_MODELS = {"isear": ("gpt35", "llama2_70b"), "banking77": ("deepseek_v41_flash",)}
HUMAN_PRICES = (1.0, 0.3, 0.1)
MODEL_PRICES = (0.01, 0.05)
ORDERS = range(5)


def order(name: str, seed: int) -> tuple[int, int, list[tuple[Any, int, dict[str, int | None]]]]:
    """The number of features and of classes, and the stream in an order of its own."""
    data = load(name, "encoded", encoder="static")
    X, y = data.X, data.y
    answers = {expert: data.answers[expert] for expert in LANGUAGE_MODELS[name]}
    places = np.random.default_rng(seed).permutation(len(X))
    said = [{e: None if a[i] < 0 else int(a[i]) for e, a in answers.items()} for i in places]
    return X.shape[1], int(y.max()) + 1, [(X[i], int(y[i]), one) for i, one in zip(places, said, strict=True)]


def play(name: str, seed: int, human: float, price: float, *, alone: bool = False) -> dict[str, Any]:
    """One order with everyone, or with the human alone."""
    n_features, n_classes, stream = order(name, seed)
    experts = [] if alone else [sp.Expert(expert, price) for expert in LANGUAGE_MODELS[name]]
    game = sp.label_efficient(n_classes, experts=[*experts, sp.Expert("human", human, gold=True)])
    strategy = sp.Sparing(game, n_features, seed=seed)
    stream = [(x, y, {} if alone else said) for x, y, said in stream]
    rounds = list(sp.play(strategy, game, stream))
    asked = Counter(expert for one in rounds for expert in one.asked)
    cost, paid = sum(one.cost for one in rounds), sum(one.paid for one in rounds)
    return {
        "stream": name,
        "order": seed,
        "human": human,
        "price": price,
        "alone": alone,
        "cost": round(cost, 1),
        "mistakes": round(cost - paid, 1),
        "asked": dict(asked),
        "always": {e: sum(s[e] != y for _, y, s in stream) + price * len(stream) for e in stream[0][2]},
    }


def lines(names: list[str], seeds: list[int]) -> Iterator[dict[str, Any]]:
    for name in names:
        for seed in seeds:
            for human in HUMAN_PRICES:
                yield play(name, seed, human, MODEL_PRICES[0], alone=True)
                for price in MODEL_PRICES:
                    yield play(name, seed, human, price)


def command(words: list[str]) -> int:
    """Names of streams and numbers of orders; everything if there are none."""
    names = [word for word in words if word in LANGUAGE_MODELS] or list(LANGUAGE_MODELS)
    seeds = [int(word) for word in words if word.isdecimal()] or list(ORDERS)
    for line in lines(names, seeds):
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
