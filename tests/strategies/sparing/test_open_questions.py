"""Open questions that stay in order, whichever of them go."""

from __future__ import annotations

import random

import pytest
import torch

from sparingly.strategies.sparing.open_questions import OpenQuestion, OpenQuestions


@pytest.mark.parametrize("shape", [(5,), (1, 3, 3)])
def test_what_is_nearby_is_what_all_open_questions_give(shape: tuple[int, ...]) -> None:
    """Questions are asked, answered in and out of order, given up and restored; the sum is that over all of them."""
    chance, generator = random.Random(2), torch.Generator().manual_seed(1)
    questions = OpenQuestions(patience=40)
    there: list[OpenQuestion] = []
    for clock in range(600):
        questions.expire(clock)
        there = [question for question in there if question.clock + 40 >= clock]
        x = torch.randn(shape, generator=generator)
        if there:
            squared = (torch.stack([q.x for q in there]).flatten(1) - x.flatten()).square().sum(1).double()
            assert questions.nearby(x, 3.0) == float(torch.exp(-squared / 3.0).sum())
        if chance.random() < 0.6:
            there.append(OpenQuestion(x, clock, 0, 0.0, 0.0, x, 0))
            questions.add(there[-1])
        if there and chance.random() < 0.4:
            gone = there.pop(chance.choice([0, len(there) // 2, len(there) - 1]))
            assert questions.take(gone.x) is not None
        if chance.random() < 0.02:
            state, questions = questions.state_dict(), OpenQuestions(patience=40)
            questions.load_state_dict(state)
    assert len(questions) == len(there)


def test_states_with_a_tensor_for_each_question_are_still_read() -> None:
    """Those of release 0.1 have lists where there are two tensors now."""
    questions, X = OpenQuestions(), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    questions.add(*(OpenQuestion(x, clock, 1, 0.1, 0.2, torch.ones(2) / 2, 7) for clock, x in enumerate(X)))
    state = questions.state_dict()
    assert state["x"].shape == (5, 3)
    older = {**state, "x": list(state["x"]), "probability": list(state["probability"])}
    restored = OpenQuestions()
    restored.load_state_dict(older)
    again = restored.state_dict()
    assert again["x"].equal(X)
    assert again["open"] == state["open"]
