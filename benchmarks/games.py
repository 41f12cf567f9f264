"""How long the structure of games and their survivors take, and how that compares with PuLP's CBC, in one run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import pulp

from sparingly.games import Game, Geometry, analyze, label_efficient
from sparingly.games.elimination import survivors_by_score
from sparingly.games.linear_programs import TOLERANCE

Signs = dict[tuple[int, int], int]


def main() -> None:
    """Print each figure with its limit."""
    _report("analyze(label_efficient(10))", _seconds(lambda: _structure(label_efficient(10)), 20), 0.050)
    seconds, megabytes = _thousand_classes()
    _report("label_efficient(1000), made and analyzed", seconds, 2.0)
    _print("  the whole process at its peak", megabytes, "MB", "limit 500 MB")
    cheap = _seconds(lambda: _structure(label_efficient(1000, query_cost=0.3)), 1)
    _report("  the same where asking pays", cheap, 2.0)
    _report("analyze(random game, N = 20, M = 10)", _seconds(lambda: _structure(_random_game()), 3), 10.0)
    _report("  with all observer vectors", _seconds(lambda: dict(analyze(_random_game()).observers), 1), 10.0)
    _closed_form()
    _linear_programs()


def _structure(game: Game) -> str:
    return analyze(game).observability


def _random_game() -> Game:
    rng = np.random.default_rng(0)
    return Game(rng.random((20, 10)), rng.integers(0, 3, (20, 10)))


def _thousand_classes() -> tuple[float, float]:
    """Measure in a process of its own, whose memory is then known."""
    code = """
import resource
from time import perf_counter
from sparingly.games import analyze, label_efficient
start = perf_counter()
geometry = analyze(label_efficient(1000))
assert geometry.observability == "hard" and len(geometry.neighbors) == 499500
assert geometry.observers[(3, 998)][1000][998] == 1 and geometry.weights[1000] == 1
print(perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, megabytes = map(float, output.split())
    return seconds, megabytes


def _closed_form() -> None:
    for n_classes, limit in ((10, 100e-6), (1000, 5e-3)):
        geometry = analyze(label_efficient(n_classes))
        signs, pairs = _class_signs(n_classes)
        if n_classes == 10:
            name = f"restrict in closed form, 10 classes, {len(pairs)} signs"
            _report(name, _seconds(lambda: geometry.restrict(pairs), 500), limit)  # noqa: B023
        name = f"restrict in closed form, {n_classes} classes, {len(pairs)} signs in a matrix"
        _report(name, _seconds(lambda: geometry.restrict(signs), 50), limit)  # noqa: B023
        assert geometry.restrict(signs) == geometry.restrict(pairs)
    scores, width = np.random.default_rng(1).dirichlet(np.ones(1000), 100), np.full(100, 0.002)
    each = _seconds(lambda: survivors_by_score(scores, width), 50) / len(scores)
    _report("survivors by score, 1000 classes, each of 100", each, 5e-3)


def _class_signs(n_classes: int) -> tuple[np.ndarray, Signs]:
    scores = np.random.default_rng(1).dirichlet(np.ones(n_classes))
    gaps = np.subtract.outer(scores, scores)
    signs = np.zeros((n_classes + 1, n_classes + 1), dtype=np.int8)
    signs[:-1, :-1] = np.sign(np.where(np.abs(gaps) > scores.max() / 2, -gaps, 0))
    return signs, {(i, j): int(signs[i, j]) for i, j in np.argwhere(np.triu(signs)).tolist()}


def _linear_programs() -> None:
    rng = np.random.default_rng(0)
    game = label_efficient(costs=rng.integers(1, 11, (10, 10)) / 10 * (1 - np.eye(10)))
    ours, theirs = [], []
    for _ in range(5):
        geometry = analyze(game)
        signs = _signs(geometry, rng)
        start = perf_counter()
        survivors = geometry.restrict(signs)
        ours.append(perf_counter() - start)
        start = perf_counter()
        same = _pulp_survivors(geometry, signs)
        theirs.append(perf_counter() - start)
        assert survivors == same, (survivors, same)
    _print("restrict by linear programs, 10 classes, nothing remembered", median(ours) * 1e3, "ms")
    _print("  each of a stream of 1000 observations", _stream_seconds(analyze(game), rng) * 1e3, "ms")
    _print("  PuLP and CBC, a solve for each action and pair", median(theirs) * 1e3, "ms")
    ratio = median(t / o for t, o in zip(theirs, ours, strict=True))
    _print("  PuLP and CBC take longer by a factor of", ratio, "", "limit 10")


def _stream_seconds(geometry: Geometry, rng: np.random.Generator) -> float:
    stream = [_signs(geometry, rng) for _ in range(1000)]
    start = perf_counter()
    for signs in stream:
        geometry.restrict(signs)
    return (perf_counter() - start) / len(stream)


def _signs(geometry: Geometry, rng: np.random.Generator) -> Signs:
    expected = geometry.game.costs @ rng.dirichlet(np.full(geometry.game.n_outcomes, 0.3))
    gaps = {(i, j): expected[i] - expected[j] for i, j in geometry.neighbors}
    return {pair: int(np.sign(gap)) for pair, gap in gaps.items() if abs(gap) > 0.25}


def _pulp_survivors(geometry: Geometry, signs: Signs) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    actions = tuple(i for i in geometry.pareto if _pulp_meets(geometry.game, signs, i, i))
    return actions, tuple(pair for pair in geometry.neighbors if _pulp_meets(geometry.game, signs, *pair))


def _pulp_meets(game: Game, signs: Signs, i: int, j: int) -> bool:
    costs = game.costs
    problem = pulp.LpProblem("cell", pulp.LpMaximize)
    p = [pulp.LpVariable(f"p{y}", 0, 1) for y in range(game.n_outcomes)]
    slack = pulp.LpVariable("slack", -2, 1)
    problem += slack
    problem += pulp.lpSum(p) == 1
    for k in range(game.n_actions):
        problem += pulp.lpDot((costs[k] - costs[i]).tolist(), p) >= 0
    problem += pulp.lpDot((costs[i] - costs[j]).tolist(), p) == 0
    for (a, b), sign in signs.items():
        problem += pulp.lpDot((sign * (costs[a] - costs[b])).tolist(), p) >= slack
    status = problem.solve(pulp.PULP_CBC_CMD(msg=False))
    return pulp.LpStatus[status] == "Optimal" and slack.value() > TOLERANCE


def _seconds(run: Callable[[], object], times: int) -> float:
    taken = []
    for _ in range(times):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    # Whatever else the machine does only adds to a time.
    return min(taken)


def _report(name: str, seconds: float, limit: float) -> None:
    _print(name, seconds * 1e3, "ms", f"limit {limit * 1e3:g} ms")


def _print(name: str, value: float, unit: str, limit: str = "") -> None:
    print(f"{name:62} {value:10.3f} {unit:2}  {limit}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
