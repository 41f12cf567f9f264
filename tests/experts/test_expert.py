"""Experts: what is accepted as one, and what it answers."""

from __future__ import annotations

import pytest

import sparingly as sp
from sparingly.experts.expert import check_answers, reply


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "", "price": 1}, "the name of an expert is ''"),
        ({"name": "gpt", "price": -0.1}, "the price of gpt is -0.1"),
        ({"name": "gpt", "price": float("nan")}, "the price of gpt is nan"),
        ({"name": "gpt", "price": True}, "the price of gpt is True"),
        ({"name": "gpt", "price": 1, "accuracy": 1.0}, "accuracy is 1.0 for gpt"),
        ({"name": "gpt", "price": 1, "gold": 1}, "gold is 1 for gpt"),
        ({"name": "ann", "price": 1, "gold": True, "accuracy": 0.9}, "accuracy is 0.9 for ann, who is gold"),
    ],
)
def test_an_expert_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sp.Expert(**arguments)


@pytest.mark.parametrize("answer", [3, -1, "joy", 1.5])
def test_an_answer_outside_the_classes_is_named(answer):
    with pytest.raises(ValueError, match=f"the answer of gpt is {answer!r}"):
        reply(sp.Expert("gpt", 0.01), {"gpt": answer}, 0, 3)


def test_a_gold_expert_who_contradicts_the_truth_is_an_error():
    with pytest.raises(ValueError, match="the answer of ann is 1, but it is gold and the truth is 0"):
        reply(sp.Expert("ann", 1.0, gold=True), {"ann": 1}, 0, 3)


def test_an_answer_that_is_not_a_number_is_no_answer():
    assert reply(sp.Expert("gpt", 0.01), {"gpt": float("nan")}, 0, 3).label is None


def test_answers_are_a_mapping_with_the_experts_names():
    with pytest.raises(ValueError, match="answers are 3"):
        check_answers(3, [sp.Expert("gpt", 0.01)])
    with pytest.raises(ValueError, match="an answer of 'gpt', but the game names no experts"):
        check_answers({"gpt": 1}, [])
