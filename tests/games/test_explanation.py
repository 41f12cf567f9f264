"""What is said of a game is true of it, for each kind of thing there is to say."""

from __future__ import annotations

import json

import pytest

import sparingly as sp
from sparingly.games import Game, analyze, apple_tasting, full_information, label_efficient
from sparingly.games.explanation import as_json, explain


@pytest.mark.parametrize(
    ("game", "sentence"),
    [
        (
            label_efficient(2, experts=2),
            '"ask expert 0" and "ask expert 1" are never the cheapest actions, but they are',
        ),
        (
            label_efficient(3, query_cost=2 / 3),
            '"ask the expert" is at best as cheap as another action, never cheaper.',
        ),
        (label_efficient(3, query_cost=0), 'Whatever happens, nothing is cheaper than "ask the expert".'),
        (
            label_efficient(3, query_cost=0.2),
            "Asking at 0.2 is cheaper than announcing wherever the best guess costs more",
        ),
        (label_efficient(costs=[[0, 1], [0.5, 0]]), "only if it cost less than 0.3333."),
        (label_efficient(costs=[[0, 1, 4], [2, 0, 1], [1, 3, 0]], query_cost=9), "only if it cost less than 1.25."),
        (label_efficient(3, experts=[0.3, 2.0]), 'Of these, "ask expert 1" is never the cheapest.'),
        (label_efficient(20), "or 15 others"),
        (full_information(3), "Every action tells you something about the outcome."),
        (apple_tasting(), 'Only "taste" tells you anything about the outcome.'),
        (
            Game([[0, 1], [1, 0], [2, 2]], [["a", "b"], ["a", "b"], ["-", "-"]], actions=["x", "y", "z"]),
            '"z" is never the cheapest action and tells you nothing.',
        ),
    ],
)
def test_sentences(game, sentence):
    assert any(sentence in said for said in explain(analyze(game))), explain(analyze(game))


def test_nothing_is_said_of_questions_whose_price_depends_on_the_outcome():
    game = Game([[0, 1], [1, 0], [1, 2]], [["-", "-"], ["-", "-"], ["A", "B"]])
    assert not any("Asking" in said for said in explain(analyze(game)))


def test_json_leaves_the_observers_of_a_hopeless_pair_empty():
    content = json.loads(as_json(analyze(label_efficient(3, experts=0, questions=[[(0, 1), (2,)]]))))
    pairs = {tuple(entry["pair"]): entry for entry in content["neighbors"]}
    assert pairs[0, 1]["observers"] == {}
    assert not pairs[0, 1]["globally_observable"]


def test_experts_who_may_be_wrong_are_explained():
    gpt, llama, human = sp.Expert("gpt", 0.01), sp.Expert("llama", 0.01), sp.Expert("human", 1.0, gold=True)
    words = explain(sp.analyze(sp.label_efficient(3, experts=[gpt, human])))
    assert words[0].startswith('"gpt" may be wrong: how often is learned from answers heard beside the truth')
    assert words[2].startswith("Hard")
    words = explain(sp.analyze(sp.label_efficient(3, experts=[gpt, llama])))
    assert words[0].startswith('No one tells you the truth: "gpt" and "llama" may be wrong')
    assert "grows linearly unless they are right everywhere" in words[0]
    assert words[2].startswith("Hopeless")
