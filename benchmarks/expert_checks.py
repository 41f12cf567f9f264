"""Two checks on experts who may be wrong: one who becomes worse, and whether what is learned of them is right."""

from __future__ import annotations

import numpy as np
import torch

import sparingly as sp
from benchmarks.expert_runs import Run, Runs
from sparingly.experts.synthetic import SyntheticExpert
from sparingly.strategies.sparing.consulting.reliability import Reliability

CHANGE, LENGTH, LAST = 5000, 10_000, 2000
CLASSES, FEATURES = 4, 8
TRUTHS = 100


def drift(runs: Runs, orders: list[int]) -> None:
    """An expert falls from 0.9 to 0.5: when it is no longer trusted, and what the end costs beside never having it."""
    for seed in orders:
        if runs.known("made", seed, "drift") is None:
            runs.keep({"stream": "made", "order": seed, "way": "drift", **_drift(seed)})


def _drift(seed: int) -> Run:
    rng = np.random.default_rng([seed, 1])
    y = rng.integers(CLASSES, size=LENGTH)
    X = rng.normal(size=(LENGTH, FEATURES)).astype(np.float32)
    X[np.arange(LENGTH), y] += 2
    said = SyntheticExpert(0.9, after=CHANGE, then=0.5).answers(X, y, CLASSES, seed=seed)
    ends, noticed = {}, None
    for models in ([], [sp.Expert("gpt", 0.01)]):
        game = sp.label_efficient(CLASSES, experts=[*models, sp.Expert("human", 1.0, gold=True)])
        strategy = sp.Sparing(game, FEATURES, seed=seed)
        items = [
            (x, int(c), {"gpt": int(a)} if models else {}) for x, c, a in zip(X, y.tolist(), said.tolist(), strict=True)
        ]
        rounds = list(sp.play(strategy, game, items))
        ends["beside" if models else "alone"] = sum(one.cost for one in rounds[-LAST:])
        if strategy.panel is not None:
            after = [one for one in strategy.panel.reliability[0].changes if one >= CHANGE]
            noticed = after[0] - CHANGE if after else None
    return {"noticed": noticed, **{f"end_{name}": round(cost, 2) for name, cost in ends.items()}}


def coverage(runs: Runs, orders: list[int]) -> None:
    """How far off the accuracy is that is learned from a hundred answers beside the truth, and its interval."""
    for seed in orders:
        if runs.known("made", seed, "coverage") is None:
            runs.keep({"stream": "made", "order": seed, "way": "coverage", **_coverage(seed)})


def _coverage(seed: int, trials: int = 200) -> Run:
    rng = np.random.default_rng([seed, 2])
    flat, off, covered = torch.full((CLASSES,), 1 / CLASSES), [], []
    for accuracy in rng.uniform(0.4, 0.97, size=trials):
        one, truths = Reliability(sp.Expert("gpt", 0.01), CLASSES), rng.integers(CLASSES, size=TRUTHS)
        wrong = (truths + rng.integers(1, CLASSES, size=TRUTHS)) % CLASSES
        for y, said in zip(truths, np.where(rng.random(TRUTHS) < accuracy, truths, wrong), strict=True):
            one.hear(flat, int(said), clock=0)
            one.check(int(y), int(said), flat, clock=0)
        low, high = one.interval()
        off.append(abs(one.accuracy - accuracy))
        covered.append(low <= accuracy <= high)
    return {"off": round(float(np.mean(off)), 4), "covered": round(float(np.mean(covered)), 4), "trials": trials}


def show(runs: Runs) -> None:
    for run in runs.every("drift"):
        ratio = run["end_beside"] / run["end_alone"]
        print(
            f"from 0.9 to 0.5, order {run['order']}: noticed after {run['noticed']} rounds, end at {ratio:.2f} of alone"
        )
    for run in runs.every("coverage"):
        print(f"after {TRUTHS} truths, order {run['order']}: {run['off']:.3f} off, covered {run['covered']:.1%}")
    ends = [
        (learned, run["stream"], run["order"], name)
        for run in runs.every("sparing")
        for name, learned in run.get("learned", {}).items()
    ]
    held = []
    for (_, low, high), stream, seed, name in ends:
        always = runs.known(stream, seed, "always")
        if always is not None:
            held.append(low <= 1 - always["mistakes_of"][name] / always["rounds"] <= high)
    if held:
        print(f"the interval at the end of a run held the share of right answers in {sum(held)} of {len(held)} cases")
