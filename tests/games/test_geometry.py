"""What must not change under scaling, shifting and permuting, the observer vectors' widths, and many classes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sparingly.games import Game, analyze, label_efficient

PROPERTY = settings(max_examples=60, deadline=None)


@st.composite
def games(draw):
    n_actions, n_outcomes = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    costs = st.lists(st.integers(0, 4), min_size=n_outcomes, max_size=n_outcomes)
    symbols = st.lists(st.integers(0, 2), min_size=n_outcomes, max_size=n_outcomes)
    rows = st.lists(st.tuples(costs, symbols), min_size=n_actions, max_size=n_actions)
    drawn = draw(rows)
    return Game([cost for cost, _ in drawn], [symbol for _, symbol in drawn])


def structure(geometry, actions=None):
    """Everything that has a single answer, with actions renamed."""
    name = (lambda a: a) if actions is None else (lambda a: actions[a])
    return {
        "pareto": {name(a) for a in geometry.pareto},
        "degenerate": {name(a) for a in geometry.degenerate},
        "dominated": {name(a) for a in geometry.dominated},
        "neighborhood": {
            frozenset(map(name, pair)): frozenset(map(name, near)) for pair, near in geometry.neighborhood.items()
        },
        "informative": {name(a) for a in geometry.informative},
        "observability": geometry.observability,
    }


@PROPERTY
@given(games(), st.sampled_from([1e-9, 1 / 3, 7.0, 1e12]))
def test_scaling_costs_changes_nothing(game, scale):
    assert structure(analyze(Game(game.costs * scale, game.feedback))) == structure(analyze(game))


@PROPERTY
@given(games(), st.lists(st.floats(-100, 100), min_size=4, max_size=4))
def test_shifting_an_outcome_changes_nothing(game, shift):
    shifted = Game(game.costs + np.array(shift[: game.n_outcomes]), game.feedback)
    assert structure(analyze(shifted)) == structure(analyze(game))


@PROPERTY
@given(games(), st.randoms(use_true_random=False))
def test_the_order_of_actions_and_outcomes_changes_nothing(game, random):
    rows, columns = list(range(game.n_actions)), list(range(game.n_outcomes))
    random.shuffle(rows)
    random.shuffle(columns)
    shuffled = Game(game.costs[np.ix_(rows, columns)], [[game.feedback[r][c] for c in columns] for r in rows])
    assert structure(analyze(shuffled), rows) == structure(analyze(game))


@PROPERTY
@given(games())
def test_actions_split_into_three_kinds_and_pairs_are_in_order(game):
    geometry = analyze(game)
    kinds = geometry.pareto + geometry.degenerate + geometry.dominated
    assert sorted(kinds) == list(range(game.n_actions))
    assert list(geometry.neighbors) == sorted(geometry.neighbors)
    assert all(i < j and {i, j} <= set(geometry.neighborhood[i, j]) for i, j in geometry.neighbors)
    assert geometry.restrict({}) == (geometry.pareto, tuple(geometry.neighbors))


@PROPERTY
@given(games())
def test_observers_write_the_cost_difference_with_the_smallest_width(game):
    geometry = analyze(game)
    if geometry.observability == "hopeless":
        return
    for i, j in geometry.neighbors:
        vectors = geometry.observers[i, j]
        total = sum(geometry.signal[a].T @ v for a, v in vectors.items())
        np.testing.assert_allclose(total, game.costs[i] - game.costs[j], atol=1e-9)
        width = sum(np.ptp(v) / 2 for v in vectors.values())
        assert width == pytest.approx(smallest_width(geometry, (i, j)), abs=1e-7)


def smallest_width(geometry, pair):
    """The linear program of the definition, with one free constant, by another solver's entrance."""
    signals = [geometry.signal[a] for a in geometry.observer_actions(pair)]
    sizes = [len(signal) for signal in signals]
    n, k = sum(sizes), len(sizes)
    owner = np.repeat(np.eye(k), sizes, axis=0)
    result = linprog(
        np.r_[np.zeros(n + 1), np.ones(k)],
        A_ub=np.block([[np.eye(n), np.zeros((n, 1)), -owner], [-np.eye(n), np.zeros((n, 1)), -owner]]),
        b_ub=np.zeros(2 * n),
        A_eq=np.c_[np.vstack(signals).T, np.ones(geometry.game.n_outcomes), np.zeros((geometry.game.n_outcomes, k))],
        b_eq=geometry.game.costs[pair[0]] - geometry.game.costs[pair[1]],
        bounds=[(None, None)] * (n + 1 + k),
    )
    return result.fun


def test_plain_vectors_are_those_of_the_paper():
    uniform, sensitive = analyze(label_efficient(2)), analyze(label_efficient(costs=[[0, 1], [0.5, 0]]))
    assert {a: v.tolist() for a, v in uniform.observers[0, 1].items()} == {2: [-1, 1]}
    assert {a: v.tolist() for a, v in sensitive.observers[0, 1].items()} == {2: [-0.5, 1]}
    assert analyze(label_efficient(4)).observers[1, 3][4].tolist() == [0, -1, 0, 1]


def test_centred_vectors_and_their_constant():
    vectors, constant = analyze(label_efficient(costs=[[0, 1], [0.5, 0]])).centred(0, 1)
    assert {a: v.tolist() for a, v in vectors.items()} == {2: [-0.75, 0.75]}
    assert constant == 0.25


def test_unequal_widths_choose_the_narrow_observer():
    geometry = analyze(label_efficient(2, experts=2))
    assert {a: v.tolist() for a, v in geometry.observe((0, 1), {2: 1.0, 3: 0.1}).items()} == {3: [-1, 1]}
    assert {a: v.tolist() for a, v in geometry.observers[0, 1].items()} == {2: [-0.5, 0.5], 3: [-0.5, 0.5]}


@pytest.mark.parametrize(
    "game",
    [
        label_efficient(4),
        label_efficient(costs=[[0, 1], [0.5, 0]]),
        label_efficient(3, costs=[[0, 2, 5], [1, 0, 5], [1, 2, 0]], query_cost=3, experts=3),
        label_efficient(3, experts=0, questions=[[(0, 1), (2,)], [(0,), (1, 2)]]),
        label_efficient(3, query_cost=0.4),
        label_efficient(3, experts=[1.0, 0.8, 0.8]),
        label_efficient(4, experts=[1.0], questions=[[(0,), (1,), (2, 3)]], question_costs=[0.9]),
    ],
)
def test_weights_are_the_largest_entries(game):
    geometry = analyze(game)
    expected = np.zeros(game.n_actions)
    for vectors in geometry.observers.values():
        for action, vector in vectors.items():
            expected[action] = max(expected[action], np.abs(vector).max())
    np.testing.assert_allclose(geometry.weights, expected)


def test_a_hopeless_pair_is_named():
    geometry = analyze(label_efficient(3, experts=0, questions=[[(0, 1), (2,)]]))
    assert set(geometry.neighbors) - set(geometry.observers) == {(0, 1), (0, 2), (1, 2)}
    with pytest.raises(ValueError, match=r"no feedback observes which of actions 0 and 1 is cheaper"):
        geometry.observe((0, 1))
    for pair in ((0, 1), (1, 0)):
        with pytest.raises(KeyError, match="not among the pairs"):
            geometry.observers[pair]


def test_one_action_or_one_outcome_is_trivial():
    assert analyze(Game([[3.0, 1.0]], [["a", "b"]])).observability == "trivial"
    single = analyze(Game([[2.0], [1.0], [1.0]], [["a"], ["b"], ["c"]]))
    assert (single.pareto, single.dominated, single.neighbors, single.observability) == ((1, 2), (0,), (), "trivial")
    same = analyze(Game([[5.0, 5.0], [5.0, 5.0]], [["a", "a"], ["b", "b"]]))
    assert (same.pareto, same.observability) == ((0, 1), "trivial")


def test_outcomes_of_very_different_scales():
    geometry = analyze(Game([[0, 1e-6], [1e6, 0]], [["a", "a"], ["b", "c"]]))
    assert (geometry.pareto, geometry.neighbors, geometry.observability) == ((0, 1), ((0, 1),), "easy")


@pytest.mark.parametrize("price", [1e3, 1e9, 1e15, 1e300])
def test_a_forbidding_price_changes_nothing_else(price):
    for costs in ([[0, 1, 2], [1, 0, 2], [1, 1, 0]], [[0, 1, 3], [2, 0, 1], [1, 2, 0]]):
        expected, found = (analyze(label_efficient(costs=costs, query_cost=q)) for q in (10.0, price))
        assert structure(found) == structure(expected)
        assert found.restrict({(0, 1): 1}) == expected.restrict({(0, 1): 1})
        assert found.dominated == (3,)


def test_rounding_is_no_difference():
    third = label_efficient(3, costs=np.full((3, 3), 0.1 + 0.2) * (1 - np.eye(3)), query_cost=0.2)
    assert 3 in analyze(third).degenerate
    twins = analyze(Game([[0.1 + 0.2, 1], [0.3, 1], [1, 0]], [["a", "b"]] * 3))
    assert (twins.pareto, twins.neighbors) == ((0, 1, 2), ((0, 2), (1, 2)))


def test_a_thousand_classes_are_a_rule_not_a_list():
    geometry = analyze(label_efficient(1000))
    assert len(geometry.neighbors) == len(geometry.observers) == len(geometry.neighborhood) == 499_500
    assert geometry.neighborhood[3, 998] == (3, 998)
    assert geometry.observers[3, 998][1000][[3, 998]].tolist() == [-1, 1]
    assert geometry.observability == "hard"
    assert geometry.weights.tolist() == [0.0] * 1000 + [1.0]


def test_a_geometry_can_be_copied_and_sent():
    for game in (label_efficient(3), label_efficient(3, query_cost=0.6)):
        geometry = analyze(game)
        geometry.restrict({(0, 1): 1})
        for twin in (copy.deepcopy(geometry), pickle.loads(pickle.dumps(geometry))):
            assert structure(twin) == structure(geometry)
            assert twin.restrict({(0, 1): 1}) == geometry.restrict({(0, 1): 1})


@pytest.mark.parametrize("prices", [(1.0, 0.2), (1.0, 0.7), (0.7, 1.0)])
def test_of_two_experts_who_know_the_same_the_cheaper_one_observes(prices):
    geometry = analyze(label_efficient(3, experts=list(prices)))
    cheaper = 3 + prices.index(min(prices))
    assert all(set(vectors) <= {cheaper, *range(3)} for vectors in geometry.observers.values())
    assert geometry.weights[cheaper] > 0 == geometry.weights[7 - cheaper]


PARTS = [[(0,), (1,), (2, 3)]]


def test_a_coarse_question_observes_the_pairs_that_it_tells_apart_by_itself():
    geometry = analyze(label_efficient(4, experts=[1.0], questions=PARTS, question_costs=[0.9]))
    asked = {pair: tuple(geometry.observers[pair]) for pair in geometry.neighbors}
    assert asked.pop((0, 1)) == (5,)
    assert set(asked.values()) == {(4,)}
    dear = analyze(label_efficient(4, experts=[0.8], questions=PARTS, question_costs=[0.9]))
    assert {a for vectors in dear.observers.values() for a in vectors} == {4}


def test_a_cheap_coarse_question_leaves_to_the_expert_what_it_cannot_tell():
    geometry = analyze(label_efficient(4, experts=[1.0], questions=PARTS, question_costs=[0.3]))
    asked = {pair: tuple(geometry.observers[pair]) for pair in geometry.neighbors}
    assert asked == {(0, 5): (5,), (1, 5): (5,), (2, 5): (4,), (3, 5): (4,)}
