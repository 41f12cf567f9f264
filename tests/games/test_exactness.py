"""Hold the linear programs against rational arithmetic: polytopes cut vertex by vertex, ranks by elimination."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparingly.games import Game, analyze, label_efficient
from sparingly.games.cells import label_cells
from sparingly.games.ready_games import apple_tasting, bandit, dynamic_pricing

Vector = tuple[Fraction, ...]


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), Fraction(0))


def minus(a: Vector, b: Vector) -> Vector:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def rank(rows: list[Vector]) -> int:
    rows = list(rows)
    found = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((r for r in range(found, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for r in range(found + 1, len(rows)):
            factor = rows[r][column] / rows[found][column]
            if factor:
                rows[r] = tuple(x - factor * y for x, y in zip(rows[r], rows[found], strict=True))
        found += 1
    return found


class Polytope:
    """Vertices of a part of the simplex, each with the constraints that are tight there."""

    def __init__(self, points: dict[Vector, frozenset[int]], n_cuts: int):
        self.points, self.n_cuts = points, n_cuts

    @classmethod
    def simplex(cls, size: int) -> Polytope:
        units = [tuple(Fraction(int(i == j)) for j in range(size)) for i in range(size)]
        return cls({unit: frozenset(range(size)) - {i} for i, unit in enumerate(units)}, size)

    def cut(self, normal: Vector) -> Polytope:
        """The part where normal . p >= 0."""
        valued = [(p, tight, dot(normal, p)) for p, tight in self.points.items()]  # to look a point up takes long
        kept = {p: tight | ({self.n_cuts} if value == 0 else set()) for p, tight, value in valued if value >= 0}
        inside, outside = ([one for one in valued if one[2] * side > 0] for side in (1, -1))
        for a, tight_a, above in inside:
            for b, tight_b, below in outside:
                common = tight_a & tight_b
                if any(common <= tight for p, tight, _ in valued if p is not a and p is not b):
                    continue
                share = above / (above - below)
                point = tuple(x + share * (y - x) for x, y in zip(a, b, strict=True))
                kept[point] = common | {self.n_cuts}
        return Polytope({p: frozenset(tight) for p, tight in kept.items()}, self.n_cuts + 1)

    def face(self, normal: Vector) -> Polytope:
        """The part where normal . p = 0, if normal . p >= 0 everywhere."""
        return Polytope({p: tight for p, tight in self.points.items() if dot(normal, p) == 0}, self.n_cuts)

    @property
    def dimension(self) -> int:
        points = list(self.points)
        return rank([minus(p, points[0]) for p in points[1:]]) if points else -1


class Exact:
    """The definitions, word by word, over the rationals."""

    def __init__(self, costs: list[Vector], feedback: list[list[int]]):
        self.costs, self.feedback = costs, feedback
        self.n_actions, self.n_outcomes = len(costs), len(costs[0])
        self.cells = [self.cell(i) for i in range(self.n_actions)]
        full = self.n_outcomes - 1
        self.pareto = tuple(i for i, cell in enumerate(self.cells) if cell.dimension == full)
        self.dominated = tuple(i for i, cell in enumerate(self.cells) if cell.dimension == -1)
        self.degenerate = tuple(i for i in range(self.n_actions) if i not in self.pareto + self.dominated)
        self.common = {(i, j): self.cells[i].face(minus(costs[j], costs[i])) for i, j in combinations(self.pareto, 2)}
        self.neighbors = tuple(pair for pair, cell in self.common.items() if 0 <= cell.dimension == full - 1)
        self.neighborhood = {pair: self.containing(self.common[pair]) for pair in self.neighbors}

    def cell(self, i: int) -> Polytope:
        cell = Polytope.simplex(self.n_outcomes)
        for other in self.costs:
            cell = cell.cut(minus(other, self.costs[i]))
        return cell

    def containing(self, part: Polytope) -> tuple[int, ...]:
        best = {p: min(dot(c, p) for c in self.costs) for p in part.points}
        return tuple(k for k, c in enumerate(self.costs) if all(dot(c, p) == best[p] for p in part.points))

    def signal(self, action: int) -> list[Vector]:
        symbols = list(dict.fromkeys(self.feedback[action]))
        return [tuple(Fraction(int(h == s)) for h in self.feedback[action]) for s in symbols]

    def observable(self, pair: tuple[int, int], actions: range | tuple[int, ...]) -> bool:
        rows = [row for a in actions for row in self.signal(a)]
        return rank(rows) == rank([*rows, minus(self.costs[pair[0]], self.costs[pair[1]])])

    @property
    def observability(self) -> str:
        if not self.neighbors:
            return "trivial"
        if all(self.observable(pair, self.neighborhood[pair]) for pair in self.neighbors):
            return "easy"
        everything = range(self.n_actions)
        return "hard" if all(self.observable(pair, everything) for pair in self.neighbors) else "hopeless"

    def meets(self, part: Polytope, normals: list[Vector]) -> bool:
        """Whether some point of the part has every normal . p > 0: no normal may vanish on what is left of it."""
        for normal in normals:
            part = part.cut(normal)
        return bool(part.points) and all(any(dot(n, p) > 0 for p in part.points) for n in normals)

    def restrict(self, signs: dict[tuple[int, int], int]) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        normals = [tuple(s * x for x in minus(self.costs[i], self.costs[j])) for (i, j), s in signs.items()]
        actions = tuple(i for i in self.pareto if self.meets(self.cells[i], normals))
        return actions, tuple(pair for pair in self.neighbors if self.meets(self.common[pair], normals))


def random_costs(rng: np.random.Generator, n_actions: int, n_outcomes: int) -> list[Vector]:
    """Small rationals with ties, among them duplicates, mixtures of two rows, and rows raised above a mixture."""
    denominator = int(rng.choice([1, 2, 3, 7, 10]))
    largest = int(rng.choice([1, 2, 4, 12]))
    rows = [
        tuple(Fraction(int(x), denominator) for x in rng.integers(0, largest + 1, n_outcomes)) for _ in range(n_actions)
    ]
    for i in range(1, n_actions):
        kind = rng.random()
        a, b = rows[int(rng.integers(i))], rows[int(rng.integers(i))]
        share = Fraction(int(rng.integers(0, 4)), 3)
        if kind < 0.12:
            rows[i] = a
        elif kind < 0.3:
            rows[i] = tuple(share * x + (1 - share) * y for x, y in zip(a, b, strict=True))
        elif kind < 0.4:
            raised = rng.integers(0, 2, n_outcomes)
            rows[i] = tuple((x + y) / 2 + Fraction(int(r), 5) for x, y, r in zip(a, b, raised, strict=True))
    order = rng.permutation(n_actions)
    return [rows[i] for i in order]


def random_game(rng: np.random.Generator) -> Exact:
    n_actions, n_outcomes = int(rng.integers(1, 8)), int(rng.choice([1, 2, 3, 3, 4, 4, 5]))
    n_symbols = int(rng.integers(1, n_outcomes + 1))
    feedback = rng.integers(0, n_symbols, (n_actions, n_outcomes)).tolist()
    return Exact(random_costs(rng, n_actions, n_outcomes), feedback)


def check_structure(exact: Exact, scale: float = 1.0, shift: tuple[float, ...] | None = None) -> None:
    costs = np.array([[float(x) for x in row] for row in exact.costs]) * scale + (
        0.0 if shift is None else np.array(shift)
    )
    geometry = analyze(Game(costs, exact.feedback))
    assert geometry.pareto == exact.pareto
    assert geometry.degenerate == exact.degenerate
    assert geometry.dominated == exact.dominated
    assert geometry.neighbors == exact.neighbors
    assert dict(geometry.neighborhood) == exact.neighborhood
    assert geometry.observability == exact.observability
    if exact.observability == "hopeless":
        return
    for i, j in geometry.neighbors:
        total = sum(geometry.signal[a].T @ v for a, v in geometry.observers[(i, j)].items())
        np.testing.assert_allclose(total, costs[i] - costs[j], atol=1e-9 * scale, rtol=1e-9)
        assert all(geometry.game.informative_mask[a] and v.any() for a, v in geometry.observers[(i, j)].items())


def random_signs(rng: np.random.Generator, exact: Exact) -> dict[tuple[int, int], int]:
    """Mostly the signs at some distribution, now and then one turned round; neighbors mostly, other pairs too."""
    everything = list(combinations(range(exact.n_actions), 2))
    pool = list(exact.neighbors) if exact.neighbors and rng.random() < 0.7 else everything
    weights = [Fraction(int(x)) for x in rng.integers(0, 5, exact.n_outcomes)]
    signs = {}
    for k in rng.permutation(len(pool))[: int(rng.integers(0, 6))]:
        i, j = pool[k]
        gap = dot(minus(exact.costs[i], exact.costs[j]), tuple(weights))
        sign = (1 if gap > 0 else -1) * (-1 if rng.random() < 0.15 else 1)
        signs.update({(i, j): sign} if rng.random() < 0.8 else {(j, i): -sign})
    return signs


@pytest.mark.parametrize("seed", range(8))
def test_structure_agrees_with_rational_arithmetic(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        check_structure(random_game(rng))


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e15])
def test_the_scale_and_origin_of_costs_do_not_matter(scale):
    rng = np.random.default_rng(99)
    for _ in range(20):
        exact = random_game(rng)
        check_structure(exact, scale)
        check_structure(exact, scale, tuple(scale * rng.normal(size=exact.n_outcomes)))


@pytest.mark.parametrize("seed", range(8))
def test_survivors_agree_with_rational_arithmetic(seed):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(16):
        exact = random_game(rng)
        geometry = analyze(Game([[float(x) for x in row] for row in exact.costs], exact.feedback))
        for _ in range(6):
            signs = random_signs(rng, exact)
            assert geometry.restrict(signs) == exact.restrict(signs), (exact.costs, signs)


def exact_copy(game: Game) -> Exact:
    costs = [tuple(Fraction(x).limit_denominator(1000) for x in row) for row in game.costs.tolist()]
    return Exact(costs, [list(row) for row in game.feedback])


READY = [
    label_efficient(3),
    label_efficient(4, query_cost=0.6),
    label_efficient(3, query_cost=2 / 3),
    label_efficient(2, query_cost=0.5),
    label_efficient(4, query_cost=0.3),
    label_efficient(3, query_cost=0),
    label_efficient(costs=[[0, 1], [0.5, 0]]),
    label_efficient(costs=[[0, 1, 1], [1, 0, 1], [0.25, 0.25, 0]]),
    label_efficient(costs=[[0, 1, 0.25], [1, 0, 0.25], [1, 1, 0]]),
    label_efficient(3, experts=[1.0, 0.4, 0.4], questions=[[(0, 1), (2,)]], question_costs=0.1),
    label_efficient(3, experts=0, questions=[[(0, 1), (2,)]], question_costs=1.0),
    apple_tasting(),
    bandit(2),
    dynamic_pricing(4),
]


@pytest.mark.parametrize("game", READY, ids=lambda game: f"{game.n_actions}x{game.n_outcomes}-{game.fingerprint[:4]}")
def test_ready_games_agree_with_rational_arithmetic(game):
    exact = exact_copy(game)
    check_structure(exact)
    rng = np.random.default_rng(5)
    geometry = analyze(game)
    for _ in range(20):
        signs = random_signs(rng, exact)
        assert geometry.restrict(signs) == exact.restrict(signs), signs


def by_true_class(rng: np.random.Generator) -> Game:
    """Label-efficient games around the prices where asking starts to pay, for one class or for all."""
    n_classes = int(rng.integers(2, 5))
    errors = rng.integers(1, 5, n_classes)
    diagonal = rng.integers(0, 2, n_classes)
    costs = np.where(np.eye(n_classes, dtype=bool), diagonal, diagonal + errors).astype(float)
    worth = (n_classes - 1) / (1 / errors).sum()
    prices = [worth, worth / 2, 1.0, 0.5, 0.0, -1.0, 2.0, float(errors.min()), float(errors.max())]
    experts = diagonal + rng.choice(prices, int(rng.integers(1, 4)))[:, None] + np.zeros(n_classes)
    if rng.random() < 0.5:
        experts[0] += rng.integers(-1, 3, n_classes) / 2
    asks = [[int(rng.integers(0, 2)) if y else 2 for y in range(n_classes)] for _ in experts]
    asks = [[*range(n_classes)] if rng.random() < 0.7 or len(set(ask)) < 2 else ask for ask in asks]
    return Game(np.vstack([costs, experts]), [["-"] * n_classes] * n_classes + asks)


@pytest.mark.parametrize("seed", range(4))
def test_closed_forms_agree_with_rational_arithmetic(seed):
    rng = np.random.default_rng(2000 + seed)
    closed = 0
    for _ in range(25):
        exact = exact_copy(by_true_class(rng))
        check_structure(exact)
        geometry = analyze(by := Game([[float(x) for x in row] for row in exact.costs], exact.feedback))
        closed += label_cells(by) is not None
        for _ in range(3):
            signs = random_signs(rng, exact)
            assert geometry.restrict(signs) == exact.restrict(signs), (exact.costs, signs)
    assert closed > 15
