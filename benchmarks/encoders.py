"""Which text encoder to take: quality after 100, 500 and 2000 labels, and time: `python -m benchmarks.encoders`.

A logistic regression on the encoding of so many labelled texts announces the classes of 3000 others. Writes
docs/results/encoders.csv as it goes; `python -m benchmarks.encoders minilm` measures that encoder, and leaves the rows
of others as they are. `python -m benchmarks encoders` only measures the time.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from sparingly.encoders import TextEncoder, text_encoder
from sparingly.encoders.hashing_encoder import hashed
from sparingly.experiments.array_cache import encoded_texts
from sparingly.experiments.datasets import load

DATA = ("banking77", "clinc150", "isear")
LABELS = (100, 500, 2000)
SEEDS = 5
TEST = 3000
RESULTS = Path("docs/results/encoders.csv")


def encoders() -> dict[str, TextEncoder]:
    """By name; the two beside each other are only measured, since 768 numbers cost a strategy three times the work."""
    static, hashing = text_encoder("static"), text_encoder("hashing")
    both = TextEncoder("static and hashing", lambda texts: np.hstack([static._vectors(texts), hashed(texts)]))
    return {"minilm": text_encoder("minilm"), "static": static, "hashing": hashing, "static and hashing": both}


def speeds(encoder: TextEncoder, texts: list[str]) -> tuple[float, float]:
    """Texts a second of processor time in batches, and milliseconds for one, without the cache."""
    encoder._vectors(texts[:10])
    began = time.process_time()
    for start in range(0, 2000, 1000):
        encoder._vectors(texts[start : start + 1000])
    alone = []
    for text in texts[2000:2200]:
        start_one = time.process_time()
        encoder._vectors([text])
        alone.append(time.process_time() - start_one)
    return 2000 / (time.process_time() - began - sum(alone)), median(alone) * 1e3


def accuracy(X: np.ndarray, y: np.ndarray, labels: int, seed: int) -> float:
    """Of a logistic regression, on texts that it has not seen."""
    from sklearn.linear_model import LogisticRegression

    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:TEST], order[TEST : TEST + labels]
    model = LogisticRegression(C=30, max_iter=200).fit(X[train], y[train])
    return float((model.predict(X[test]) == y[test]).mean())


def main() -> None:
    texts = list(load("banking77").texts or ())
    for name, encoder in encoders().items():
        many, one = speeds(encoder, texts)
        print(f"{name:20} {many:8.0f} texts a second, {one:.2f} ms for one alone")


def study(names: list[str]) -> None:
    kept = list(csv.DictReader(RESULTS.open())) if RESULTS.exists() else []
    rows: dict[tuple[str, str], dict[str, object]] = {(row["data"], row["encoder"]): dict(row) for row in kept}
    for data in DATA:
        dataset = load(data, encoder="hashing")
        texts = list(dataset.texts or ())
        for name, encoder in encoders().items():
            if names and name not in names:
                continue
            many, one = speeds(encoder, texts)
            X = encoded_texts(texts, encoder)
            row = {
                "data": data,
                "encoder": name,
                "width": encoder.width,
                "texts a second": round(many),
                "ms for one": round(one, 2),
            }
            for labels in LABELS:
                found = [accuracy(X, dataset.y, labels, seed) for seed in range(SEEDS)]
                row[f"{labels} labels"] = round(float(np.mean(found)), 3)
            rows[data, name] = row
            print(row, flush=True)
            with RESULTS.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows[key] for key in sorted(rows, key=lambda key: DATA.index(key[0])))


if __name__ == "__main__":
    study(sys.argv[1:])
