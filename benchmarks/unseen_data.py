"""Seven data sets that nothing was tuned on: three that river carries with it, and four of its generators."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np

from sparingly.experiments.dataset import Dataset, from_arrays

LENGTHS = {
    "bananas": 5300,
    "image_segments": 2310,
    "phishing": 1250,
    "waveform": 5000,
    "led": 10_000,
    "agrawal": 10_000,
    "random_rbf": 10_000,
}
"""By name: how many rows there are, or are made."""
NAMES = tuple(LENGTHS)


def load(name: str) -> Dataset:
    """One of them, always with the same rows; nothing is fetched.

    >>> [(load(name).n_features, load(name).n_classes, len(load(name))) for name in ("bananas", "led")]
    [(2, 2, 5300), (7, 10, 10000)]
    """
    rows, labels = zip(*itertools.islice(_source(name), LENGTHS[name]), strict=True)
    columns = sorted(rows[0], key=str)
    X = np.array([[float(row[column]) for column in columns] for row in rows], dtype=np.float32)
    return from_arrays(X, np.array([str(label) for label in labels]), name=name)


def _source(name: str) -> Iterable[tuple[dict[Any, Any], Any]]:
    from river import datasets

    made: dict[str, Any] = {
        "bananas": datasets.Bananas,
        "image_segments": datasets.ImageSegments,
        "phishing": datasets.Phishing,
        "waveform": lambda: datasets.synth.Waveform(seed=1),
        "led": lambda: datasets.synth.LED(seed=1, noise_percentage=0.1),
        "agrawal": lambda: datasets.synth.Agrawal(classification_function=4, perturbation=0.05, seed=1),
        "random_rbf": lambda: datasets.synth.RandomRBF(seed_model=1, seed_sample=2, n_classes=4, n_features=10),
    }
    return iter(made[name]())
