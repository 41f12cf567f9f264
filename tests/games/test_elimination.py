"""The closed form against the linear programs, the forms signs come in, and what contradicts itself."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from sparingly.games import Game, Survivors, analyze, label_efficient, survivors_by_score
from sparingly.games.cells import normalised
from sparingly.games.elimination import CellElimination, restrict_classes
from sparingly.games.pairs import AllPairs


def by_programs(geometry):
    return CellElimination(normalised(geometry.game.costs), geometry.pareto, geometry.neighbors)


def edges(signs):
    return [(i, j) if sign > 0 else (j, i) for (i, j), sign in signs.items()]


@pytest.mark.parametrize("errors", [(1, 1, 1), (1, 0.25, 3)])
def test_every_sign_pattern_of_three_classes(errors):
    geometry = analyze(label_efficient(costs=np.array([errors] * 3) * (1 - np.eye(3)), query_cost=5))
    assert geometry.error_costs is not None
    programs = by_programs(geometry)
    pairs = list(combinations(range(3), 2))
    for pattern in product((-1, 0, 1), repeat=3):
        signs = {pair: sign for pair, sign in zip(pairs, pattern, strict=True) if sign}
        assert geometry.restrict(signs) == programs.restrict(edges(signs)), signs


@pytest.mark.parametrize("n_classes", [4, 5, 10])
def test_random_sign_patterns(n_classes):
    rng = np.random.default_rng(n_classes)
    geometry = analyze(label_efficient(n_classes))
    programs = by_programs(geometry)
    contradictions = 0
    for _ in range(60):
        order = rng.normal(size=n_classes)
        kept = rng.random(len(geometry.neighbors)) < rng.random()
        signs = {
            (i, j): 1 if order[j] > order[i] else -1 for (i, j), k in zip(geometry.neighbors, kept, strict=True) if k
        }
        if signs and rng.random() < 0.3:
            pair = list(signs)[int(rng.integers(len(signs)))]
            signs[pair] *= -1
        found = geometry.restrict(signs)
        contradictions += found.contradiction
        assert found == programs.restrict(edges(signs))
    assert 0 < contradictions < 60


def test_remembered_programs_answer_as_fresh_ones_do():
    rng = np.random.default_rng(0)
    game = label_efficient(costs=rng.integers(1, 6, (5, 5)) * (1 - np.eye(5)))
    geometry = analyze(game)
    remembered = by_programs(geometry)
    for _ in range(150):
        expected = game.costs @ rng.dirichlet(np.ones(5))
        gaps = {(i, j): expected[i] - expected[j] for i, j in geometry.neighbors}
        signs = {pair: int(np.sign(gap)) for pair, gap in gaps.items() if abs(gap) > rng.random()}
        assert remembered.restrict(edges(signs)) == by_programs(geometry).restrict(edges(signs))


def test_a_matrix_says_the_same_as_a_mapping():
    rng = np.random.default_rng(3)
    for game in (label_efficient(6), label_efficient(4, query_cost=0.6), label_efficient(6, experts=[1.0, 2.0])):
        geometry = analyze(game)
        for _ in range(40):
            pairs = [pair for pair in combinations(range(game.n_actions), 2) if rng.random() < 0.3]
            signs = {pair: int(rng.choice([-1, 1])) for pair in pairs}
            upper = np.zeros((game.n_actions,) * 2, dtype=np.int8)
            for pair, sign in signs.items():
                upper[pair] = sign
            expected = geometry.restrict(signs)
            for matrix in (upper, -upper.T, upper - upper.T):
                assert geometry.restrict(matrix) == expected


def test_scores_with_a_common_width():
    rng = np.random.default_rng(4)
    geometry = analyze(label_efficient(costs=np.array([2.0, 1.0, 0.5, 1.5]) * (1 - np.eye(4)), query_cost=9))
    p, width = rng.dirichlet(np.ones(4), 50), rng.uniform(0, 0.4, 50)
    scores = geometry.error_costs * p
    mask = survivors_by_score(scores, width)
    for row in range(50):
        gaps = {(i, j): scores[row, j] - scores[row, i] for i, j in geometry.neighbors}
        signs = {pair: int(np.sign(gap)) for pair, gap in gaps.items() if abs(gap) > width[row]}
        assert geometry.restrict(signs).actions == tuple(np.flatnonzero(mask[row]))


def test_contradictions_have_a_name():
    for game in (label_efficient(3), label_efficient(3, query_cost=0.6)):
        geometry = analyze(game)
        circle = geometry.restrict({(0, 1): 1, (1, 2): 1, (0, 2): -1})
        assert circle == Survivors((), ())
        assert circle.contradiction
        assert geometry.restrict({(0, 1): 1, (1, 0): 1}).contradiction
        assert geometry.restrict({(2, 2): 1}).contradiction
        assert not geometry.restrict({}).contradiction
    twins = analyze(Game([[0, 1], [0, 1], [1, 0]], [["a", "b"]] * 3))
    assert twins.restrict({(0, 1): 1}).contradiction


def test_signs_with_a_dominated_expert_use_the_programs():
    geometry = analyze(label_efficient(3))
    assert geometry.restrict({(0, 3): 1}).contradiction
    assert geometry.restrict({(0, 3): -1}).actions == (0, 1, 2)
    costly = analyze(label_efficient(3, query_cost=0.8))
    assert costly.restrict({(0, 3): 1}) == Survivors((1, 2), ((1, 2),))
    assert costly.restrict({(0, 3): 1, (1, 3): 1}) == Survivors((2,), ())
    assert costly.restrict({(0, 3): 1, (1, 3): -1}) == Survivors((1, 2), ((1, 2),))


def test_a_cheap_expert_decides_by_its_signs_alone():
    geometry = analyze(label_efficient(4, experts=[0.3, 0.4]))
    programs = by_programs(geometry)
    for pattern in product((-1, 0, 1), repeat=4):
        signs = {(i, 4): sign for i, sign in enumerate(pattern) if sign}
        assert geometry.restrict(signs) == programs.restrict(edges(signs)), signs
    assert geometry.restrict({(4, 5): 1}).contradiction
    assert geometry.restrict({(0, 5): 1}) == programs.restrict([(0, 5)])


def test_indices_of_numpy_are_indices():
    geometry = analyze(label_efficient(9, query_cost=0.6))
    one, nine = np.int64(1), np.int32(9)
    assert geometry.restrict({(one, nine): np.int8(1)}) == geometry.restrict({(1, 9): 1})
    with pytest.raises(TypeError, match="float"):
        geometry.restrict({(1.0, 2): 1})


def test_wrong_signs_are_named():
    geometry = analyze(label_efficient(3))
    with pytest.raises(ValueError, match=r"the sign of \(0, 1\) is 0"):
        geometry.restrict({(0, 1): 0})
    with pytest.raises(ValueError, match=r"the pair \(0, 4\)"):
        geometry.restrict({(0, 4): 1})
    with pytest.raises(ValueError, match=r"signs is \(3, 3\)"):
        geometry.restrict(np.zeros((3, 3), dtype=np.int8))


def test_a_thousand_classes():
    geometry = analyze(label_efficient(1000))
    everything = geometry.restrict({})
    assert len(everything.actions) == 1000
    assert len(everything.pairs) == 499_500
    assert everything.pairs[-1] == (998, 999)
    top = geometry.restrict({(7, j): -1 for j in range(1000) if j not in (7, 500)})
    assert top == Survivors((7, 500), ((7, 500),))


def test_all_pairs_are_a_sequence_like_a_tuple():
    actions = (1, 4, 5, 9, 12)
    lazy, plain = AllPairs(actions), tuple(combinations(actions, 2))
    assert lazy == plain
    assert plain == lazy
    assert lazy != plain[:-1]
    assert lazy == AllPairs(list(actions))
    assert lazy != AllPairs(actions[:-1])
    assert lazy != list(plain)
    assert "pair" not in lazy
    assert "10 pairs of 5 actions" in repr(lazy)
    assert hash(lazy) == hash(plain)
    assert [lazy[k] for k in range(-10, 10)] == [plain[k] for k in range(-10, 10)]
    assert lazy[2:7:2] == plain[2:7:2]
    assert (4, 9) in lazy
    assert (9, 4) not in lazy
    assert lazy.index((4, 9)) == plain.index((4, 9))
    with pytest.raises(IndexError, match="no pair 10"):
        lazy[10]


def test_a_cycle_among_many_is_found():
    chain = [(i, i + 1) for i in range(50)]
    assert restrict_classes(51, chain).actions == (50,)
    assert restrict_classes(51, [*chain, (50, 20)]).contradiction
