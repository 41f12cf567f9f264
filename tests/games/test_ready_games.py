"""The classes of the literature, the thresholds of a question's price, and what options are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparingly.games import (
    analyze,
    apple_tasting,
    bandit,
    dynamic_pricing,
    full_information,
    label_efficient,
    no_information,
)


@pytest.mark.parametrize(
    ("game", "kind"),
    [
        (label_efficient(2), "hard"),
        (label_efficient(10), "hard"),
        (label_efficient(costs=[[0, 1], [0.5, 0]]), "hard"),
        (apple_tasting(), "easy"),
        (full_information(2), "easy"),
        (full_information(4), "easy"),
        (full_information(costs=[[0, 1, 2], [0, 2, 3]]), "trivial"),
        (bandit(2), "easy"),
        (bandit(3), "easy"),
        (dynamic_pricing(2), "easy"),
        (dynamic_pricing(3), "hard"),
        (dynamic_pricing(6), "hard"),
        (no_information(2), "hopeless"),
        (no_information(1), "trivial"),
        (bandit(1), "trivial"),
    ],
)
def test_the_class_is_that_of_the_literature(game, kind):
    assert analyze(game).observability == kind


@pytest.mark.parametrize(
    ("n_classes", "price", "expert", "kind"),
    [
        (3, 1.0, "dominated", "hard"),
        (3, 2 / 3 + 1e-6, "dominated", "hard"),
        (3, 2 / 3, "degenerate", "hard"),
        (2, 1 / 2, "degenerate", "easy"),
        (3, 2 / 3 - 1e-6, "pareto", "hard"),
        (3, 1 / 2 + 1e-6, "pareto", "hard"),
        (3, 1 / 2, "pareto", "easy"),
        (5, 0.1, "pareto", "easy"),
        (2, 0.3, "pareto", "easy"),
        (4, 0.0, "pareto", "trivial"),
        (4, -1.0, "pareto", "trivial"),
        (40, 0.3, "pareto", "easy"),
    ],
)
def test_when_asking_is_ever_the_cheapest_action(n_classes, price, expert, kind):
    geometry = analyze(label_efficient(n_classes, query_cost=price))
    assert n_classes in getattr(geometry, expert)
    assert geometry.observability == kind


@pytest.mark.parametrize(("price", "expert"), [(0.34, "dominated"), (1 / 3, "degenerate"), (0.33, "pareto")])
def test_the_value_of_the_announcing_game_is_the_threshold(price, expert):
    assert 2 in getattr(analyze(label_efficient(costs=[[0, 1], [0.5, 0]], query_cost=price)), expert)


def test_costs_by_announced_class_separate_and_by_true_class_do_not():
    announced = label_efficient(costs=[[0, 1, 1], [1, 0, 1], [0.25, 0.25, 0]])
    true = label_efficient(costs=[[0, 1, 0.25], [1, 0, 0.25], [1, 1, 0]])
    assert (0, 1) not in analyze(announced).neighbors
    assert analyze(true).neighbors == ((0, 1), (0, 2), (1, 2))


def test_experts_and_questions_are_actions_of_their_own():
    game = label_efficient(
        classes=["cat", "dog", "fox"],
        experts=[1.0, 0.3],
        questions={"pet?": [("cat", "dog"), ("fox",)], "dog?": [(1,), (0, 2)]},
        question_costs=[0.1, 0.2],
    )
    assert game.actions[3:] == ("ask expert 0", "ask expert 1", "ask pet?", "ask dog?")
    assert game.costs[3:].tolist() == [[1.0] * 3, [0.3] * 3, [0.1] * 3, [0.2] * 3]
    assert game.feedback[5] == ("cat dog", "cat dog", "fox")
    assert game.feedback[6] == ("cat fox", "dog", "cat fox")


def test_coarse_questions_alone_may_do_together():
    blind = label_efficient(3, experts=0, questions=[[(0, 1), (2,)]])
    assert analyze(blind).observability == "hopeless"
    both = label_efficient(3, experts=0, questions=[[(0, 1), (2,)], [(0,), (1, 2)]])
    assert analyze(both).observability == "hard"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the number of classes"),
        ({"n_classes": 1}, "two or more classes, not 1"),
        ({"n_classes": 2.5}, "n_classes is 2.5"),
        ({"n_classes": True}, "n_classes is True"),
        ({"n_classes": 3, "costs": [[0, 1], [1, 0]]}, "the number of classes differs: 3 from n_classes, 2 from costs"),
        ({"classes": ["a", "a"]}, "the name of"),
        ({"costs": [[0, 1, 1], [1, 0, 1]]}, "costs is 2 x 3: it must be square, rows are what is announced"),
        ({"costs": [[0, float("nan")], [1, 0]]}, r"costs\[0, 1\] is nan"),
        ({"n_classes": 2, "query_cost": float("nan")}, "the price of the expert is nan"),
        ({"n_classes": 2, "query_cost": "1"}, "the price of the expert is '1'"),
        ({"n_classes": 2, "experts": 0}, "at least one expert or question"),
        ({"n_classes": 2, "experts": -1}, "experts is -1"),
        ({"n_classes": 2, "experts": "two"}, "experts is 'two'"),
        ({"n_classes": 3, "questions": [[(0, 1)]]}, r"questions\[0\] names class 2 0 times"),
        ({"n_classes": 3, "questions": [[(0, 1), (1, 2)]]}, r"questions\[0\] names class 1 2 times"),
        ({"n_classes": 3, "questions": [[(0, 1, 2)]]}, r"questions\[0\] has a single or an empty part"),
        ({"n_classes": 3, "questions": [[(0, 1), (5,)]]}, r"questions\[0\] names class 5"),
        ({"n_classes": 2, "questions": [[(0,), (1,)]], "question_costs": [1, 2]}, "2 prices for 1 questions"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        label_efficient(**options)


@pytest.mark.parametrize("make", [bandit, dynamic_pricing, full_information, no_information])
@pytest.mark.parametrize("size", [0, -1, 1.5, "3"])
def test_sizes_are_checked(make, size):
    with pytest.raises(ValueError, match=f"is {size!r}"):
        make(size)


def test_a_data_frame_names_the_classes():
    frame = pd.DataFrame([[0, 1], [5, 0]], index=["cat", "dog"], columns=["cat", "dog"])
    assert label_efficient(costs=frame) == label_efficient(costs=[[0, 1], [5, 0]], classes=["cat", "dog"])
    with pytest.raises(ValueError, match=r"costs has rows \['cat', 'dog'\] and columns \['dog', 'cat'\]"):
        label_efficient(costs=frame[["dog", "cat"]])


def test_a_matrix_of_any_kind_gives_the_same_game():
    rows = [[0, 1], [0.5, 0]]
    assert label_efficient(costs=np.array(rows)) == label_efficient(costs=rows) == label_efficient(2, rows)


def test_a_list_of_prices_is_one_for_each_expert() -> None:
    assert label_efficient(2, query_cost=[1.0, 0.6]) == label_efficient(2, experts=[1.0, 0.6])
    assert label_efficient(2, query_cost=[1.0, 0.6], experts=2) == label_efficient(2, experts=[1.0, 0.6])
    with pytest.raises(ValueError, match=r"query_cost is .*one for each of the experts"):
        label_efficient(2, query_cost=[1.0, 0.6], experts=3)
