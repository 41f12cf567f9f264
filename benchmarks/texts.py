"""Streams of texts with many classes: what each strategy costs beside a line drawn with hindsight.

`python -m benchmarks.texts` makes the missing runs, one line a run in docs/results/texts/runs.jsonl, order by order,
and writes the tables of both encoders, minilm.csv and static.csv beside the runs; `python -m benchmarks texts` only
writes them. Orders 0 to 4 are for reporting only. Every run plays a whole data set in the order of its seed; an error
and a question cost 1. `--encoder static` makes the runs of another encoder than the usual one; a run says which one it
had.

The line labels the first n texts, trains a logistic regression on their encoding and announces for the rest; the best
n, and the best strength of its regularisation, are chosen afterwards. Peers have texts as their users would give them:
river's BagOfWords, and for the others the same encoding that ours have; of each, the best setting on order 1000.
river's ComplementNB goes through all words for every text (0.15 s of processor time with 77 classes and 400 labels), so
its MultinomialNB is played.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sparingly as sp
from benchmarks.peers import skactiveml, vw
from benchmarks.peers.trial import Expert, Trial
from benchmarks.result_files import keep
from sparingly.encoders import text_encoder
from sparingly.experiments.datasets import Dataset, load
from sparingly.experiments.streams import Moments, _standardised
from sparingly.strategies.sparing.class_names import spoken

RUNS = Path(__file__).parent.parent / "docs" / "results" / "texts" / "runs.jsonl"
DATA = ("banking77", "clinc150_in_scope", "isear")
ORDERS = range(5)
CHOOSING = 1000
TOLD = "sparing, length told"
OURS = ("sparing", TOLD, "neural_cbp", "neuronal", "margin")
LABELS = (100, 200, 400, 800, 1200, 1600, 2000, 2400, 3200, 4000, 4800, 6400)
STRENGTHS = (3.0, 30.0, 300.0)
ENCODERS = ("minilm", "static")
NAMES = {"line": "line with hindsight", "sparing": "Sparing", TOLD: "Sparing, length told", "neural_cbp": "NeuralCBP"}
WORDS = "words"
"""Stands for an encoder where there is none: river counts words by itself."""
Spec = dict[str, Any]

GRIDS: dict[str, list[Spec]] = {
    "river": [
        {"model": model, "discount": discount}
        for model, discounts in (("MultinomialNB", (1, 3, 30)), ("logistic", (3, 30, 300)))
        for discount in discounts
    ],
    "scikit-activeml": [
        {"strategy": "VariableUncertainty", "model": "logistic", "strength": strength, "budget": budget}
        for strength in (10.0, 100.0)
        for budget in (0.03, 0.1, 0.2)
    ],
    "VW --cs_active": [{"mellowness": mellowness, "rate": 0.5, "products": False} for mellowness in (3e-4, 1e-3, 3e-3)],
}


@lru_cache(maxsize=len(DATA))
def _data(name: str, encoder: str) -> Dataset:
    return load(name, "encoded", encoder=encoder)


def played_in(data: str, encoder: str, seed: int, *, standardised: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places of the texts in the order of a seed, their encodings and their classes."""
    dataset = _data(data, encoder)
    order = np.random.default_rng(seed).permutation(len(dataset))
    X = np.ascontiguousarray(dataset.raw[order], dtype=np.float32)
    if standardised:
        X = _standardised(X, *Moments(X).after(np.arange(1, len(X) + 1)))
    return order, X, dataset.y[order]


def ours(data: str, encoder: str, seed: int, who: str) -> Spec:
    """One of our strategies, as `run` and agents make it: what scales features by itself gets them as they are."""
    kind = sp.strategies()[who.split(",")[0]]
    _, X, y = played_in(data, encoder, seed, standardised=not kind.scales)
    classes = _data(data, encoder).classes
    game = sp.label_efficient(len(classes))
    options: Spec = {"horizon": len(y)} if who == TOLD else {}
    if kind is sp.Sparing:
        options["class_vectors"] = text_encoder(encoder)([spoken(name) for name in classes])
    began = time.process_time()
    strategy = kind(game, n_features=X.shape[1], seed=seed, **options)
    cost, asked = 0.0, 0
    for one in sp.play(strategy, game, zip(X, y.tolist(), strict=True)):
        cost += one.cost
        asked += one.action >= game.n_outcomes
    return {"cost": cost, "asked": int(asked), "seconds": round(time.process_time() - began, 1)}


def line(data: str, encoder: str, seed: int) -> Spec:
    """Label the first n, train once, announce for the rest."""
    from sklearn.linear_model import LogisticRegression

    _, X, y = played_in(data, encoder, seed, standardised=False)
    began, tried = time.process_time(), {}
    for n in (n for n in LABELS if n < len(y)):
        for strength in STRENGTHS:
            model = LogisticRegression(C=strength, max_iter=200).fit(X[:n], y[:n])
            tried[n, strength] = n + float((model.predict(X[n:]) != y[n:]).sum())
    best = min(tried, key=lambda pair: tried[pair])
    found = {"cost": tried[best], "asked": best[0], "settings": {"C": best[1]}}
    return {**found, "seconds": round(time.process_time() - began, 1)}


def peer(data: str, encoder: str, seed: int, who: str, settings: Spec) -> Spec:
    """A peer with these settings."""
    encoder = ENCODERS[-1] if encoder == WORDS else encoder
    order, X, y = played_in(data, encoder, seed, standardised=False)
    trial = Trial(X, 1.0 - np.eye(_data(data, encoder).n_classes), Expert(y), seed)
    if who == "river":
        texts = _data(data, encoder).texts
        assert texts is not None
        _river(trial, [texts[place] for place in order], **settings)
    else:
        (skactiveml._play if who == "scikit-activeml" else vw._cs_active)(trial, **settings)
    asked = trial.expert.asked
    cost = float(np.where(asked, 1.0, trial.announced != y).sum())
    return {"cost": cost, "asked": int(asked.sum()), "seconds": round(trial.clock.seconds, 1), "settings": settings}


def _river(trial: Trial, texts: list[str], *, model: str, discount: float, warm: int = 50) -> None:
    """river's EntropySampler over words counted by BagOfWords (and tf-idf for the linear model)."""
    from river import active, compose, feature_extraction, linear_model, multiclass, naive_bayes, optim

    pipeline = (
        compose.Pipeline(feature_extraction.BagOfWords(ngram_range=(1, 2)), naive_bayes.MultinomialNB())
        if model == "MultinomialNB"
        else compose.Pipeline(
            feature_extraction.TFIDF(),
            multiclass.OneVsRestClassifier(linear_model.LogisticRegression(optimizer=optim.SGD(1.0))),
        )
    )
    sampler = active.EntropySampler(pipeline, discount_factor=discount, seed=trial.seed)
    for t, text in trial.each(lambda t: texts[t]):
        p, asks = sampler.predict_proba_one(text)
        trial.announced[t] = max(p, key=p.get) if p else 0
        if asks or t < warm:
            sampler.learn_one(text, trial.expert.ask(t))


def records() -> list[Spec]:
    """Every run made so far."""
    return [json.loads(text) for text in RUNS.read_text().splitlines()] if RUNS.exists() else []


def made(data: str, encoder: str, who: str, seed: int, settings: Spec | None = None) -> Spec:
    """A run; it is made if it is not there."""
    wanted = {"data": data, "encoder": encoder, "who": who, "seed": seed}
    for one in records():
        if wanted.items() <= one.items() and settings in (None, one.get("settings")):
            return one
    if who == "line":
        found = line(data, encoder, seed)
    else:
        found = ours(data, encoder, seed, who) if settings is None else peer(data, encoder, seed, who, settings)
    with RUNS.open("a") as file:
        file.write(json.dumps({**wanted, **found}) + "\n")
    print({**wanted, **found}, flush=True)
    return found


def make(whos: list[str], encoder: str, seeds: list[int]) -> None:
    """The runs that are missing, all strategies of an order before the next."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="sklearn")
    for seed in seeds:
        for data in DATA:
            for who in (one for one in ("sparing", "line", *OURS[1:]) if one in whos):
                made(data, encoder, who, seed)
            for who in (one for one in GRIDS if one in whos):
                by = WORDS if who == "river" else encoder
                best = min(GRIDS[who], key=lambda settings: made(data, by, who, CHOOSING, settings)["cost"])
                made(data, by, who, seed, best)


def main() -> None:
    """The tables of both encoders, each in a file of its own; questions and seconds are only printed."""
    for encoder in ENCODERS:
        print(f"encoder {encoder}, mean cost (orders):")
        reported = [one for one in records() if one["seed"] in ORDERS and one["encoder"] in (encoder, WORDS)]
        keep(f"texts/{encoder}.csv", table(reported))
        for who in OURS:
            for data in DATA:
                print(f"{who:22}{data:20}{_described(reported, data, who)}")


def table(reported: list[Spec]) -> list[dict[str, str]]:
    """The mean cost of everyone on every data set, with the number of orders in brackets, and all over the line."""
    rows = []
    for who in ("line", *OURS, *GRIDS):
        row, logs = {"who": NAMES.get(who, who)}, []
        for data in DATA:
            costs = [one["cost"] for one in reported if (one["data"], one["who"]) == (data, who)]
            row[data] = f"{np.mean(costs):.0f} ({len(costs)})" if costs else "-"
            logs.append(np.log(_over_the_line(reported, data, who)).mean() if costs else np.nan)
        row["over the line"] = "-" if np.isnan(logs).any() else f"{np.exp(np.mean(logs)):.3f}"
        if any(row[data] != "-" for data in DATA):
            rows.append(row)
    return rows


def _over_the_line(reported: list[Spec], data: str, who: str) -> list[float]:
    """What someone costs over the line of the same order."""
    of = [one for one in reported if one["data"] == data]
    line = {one["seed"]: one["cost"] for one in of if one["who"] == "line"}
    return [one["cost"] / line[one["seed"]] for one in of if one["who"] == who and one["seed"] in line]


def _described(reported: list[Spec], data: str, who: str) -> str:
    runs = [one for one in reported if (one["data"], one["who"]) == (data, who)]
    if not runs:
        return "-"
    asked, seconds = (np.mean([one[what] for one in runs]) for what in ("asked", "seconds"))
    ratios = _over_the_line(reported, data, who)
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"{asked:.0f} asked, {seconds:.0f} s, {np.exp(np.log(ratios).mean()):.3f} of the line ({each})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("whos", nargs="*", default=["line", *OURS, *GRIDS])
    parser.add_argument("--encoder", default=ENCODERS[0])
    parser.add_argument("--orders", type=int, nargs="*", default=list(ORDERS))
    given = parser.parse_args()
    make(given.whos, given.encoder, given.orders)
    main()
