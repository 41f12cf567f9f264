"""What a strategy remembers of its open questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from sparingly.strategies.strategy import NEVER


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """One question as it was asked: what the strategy believed then.

    Attributes
    ----------
    x
        The observation.
    clock
        The round, counted from 0.
    announced
        What it would have announced.
    risk
        What it expected that announcement to cost; nan before there was a model.
    value
        The disagreement of the ensemble, in cost; nan before there was a model.
    probability
        Of each class, `[class]`.
    labels
        How many labels it had.
    answers
        What each expert who may be wrong had said, where there are such.
    random
        Whether it was a random check.
    learned
        The probability by labels alone, where classes' names have a part in `probability`.
    """

    x: Tensor
    clock: int
    announced: int
    risk: float
    value: float
    probability: Tensor
    labels: int
    answers: tuple[int, ...] = ()
    random: bool = False
    learned: Tensor | None = None


class OpenQuestions:
    """The open questions: asked, not yet answered, not yet too old to hope for.

    Parameters
    ----------
    patience
        After this many rounds an answer is no longer waited for; it is still learned from if it comes.
    """

    def __init__(self, patience: int = 1000) -> None:
        self.patience = patience
        self._open: list[OpenQuestion] = []
        self._keys: list[bytes] = []
        """Of each, what its observation is known by."""
        self._rows = torch.empty(0, 0)
        self._first = self._filled = 0
        """From the first row on, so many are those of the open questions, in their order."""

    def __len__(self) -> int:
        return len(self._open)

    def add(self, *questions: OpenQuestion) -> None:
        self._open += questions
        self._keys += [_key(q.x) for q in questions]

    def expire(self, clock: int) -> None:
        """Give up the questions that have waited too long."""
        if self._open and self._open[0].clock + self.patience < clock:
            gone = next((i for i, q in enumerate(self._open) if q.clock + self.patience >= clock), len(self._open))
            self._drop_oldest(gone)
            del self._open[:gone], self._keys[:gone]

    def rounds_to_expiry(self, clock: int) -> int:
        """For how many rounds from now, this one included, no open question is given up.

        >>> questions = OpenQuestions(patience=10)
        >>> questions.add(OpenQuestion(torch.zeros(1), 5, 0, 0.0, 0.0, torch.ones(2) / 2, 0))
        >>> questions.rounds_to_expiry(15)
        1
        """
        return max(0, self._open[0].clock + self.patience + 1 - clock) if self._open else NEVER

    def take(self, x: Tensor) -> OpenQuestion | None:
        """Close the oldest question about an observation, if there is one."""
        if not self._open:
            return None
        try:
            place = self._keys.index(_key(x))
        except ValueError:
            return None
        self._drop(place)
        del self._keys[place]
        return self._open.pop(place)

    def nearby(self, x: Tensor, reach: float) -> float:
        """How many open questions are about the same thing: each counts by its distance against a reach."""
        if not self._open:
            return 0.0
        apart = self._stacked().numpy() - x.flatten().numpy()
        apart *= apart
        exponent = torch.from_numpy(apart).sum(1).double()
        exponent /= -max(reach, 1e-30)
        return float(exponent.exp_().sum())

    def _stacked(self) -> Tensor:
        """The open questions' observations, `[open, features]`; only those that came or moved are copied."""
        count, width = len(self._open), self._open[0].x.numel()
        if self._first + count > len(self._rows) or self._rows.shape[1] != width:
            self._rows, self._first, self._filled = self._open[0].x.new_empty(2 * count + 64, width), 0, 0
        if self._filled < count:
            rows = self._rows.numpy()
            for place in range(self._filled, count):
                rows[self._first + place] = self._open[place].x.flatten().numpy()
            self._filled = count
        return self._rows[self._first : self._first + count]

    def _drop_oldest(self, count: int) -> None:
        """The oldest go; they are the first, for questions are added in the order of the clock."""
        self._first, self._filled = self._first + count, max(0, self._filled - count)

    def _drop(self, place: int) -> None:
        """One goes; the rows before it move up, which are few, for most answers come in the order of the questions."""
        if place < self._filled:
            before = self._rows[self._first : self._first + place]
            self._rows[self._first + 1 : self._first + place + 1] = before.clone()
            self._drop_oldest(1)

    def add_class(self) -> None:
        """What was believed of the open questions had no place for the new class."""
        self._open = [
            replace(
                q,
                probability=nn.functional.pad(q.probability, (0, 1)),
                learned=None if q.learned is None else nn.functional.pad(q.learned, (0, 1)),
            )
            for q in self._open
        ]

    def set_costs(self, factor: float) -> None:
        """All costs are `factor` times what they were; nan if they are others: what was expected says nothing then."""
        self._open = [replace(q, risk=factor * q.risk, value=factor * q.value) for q in self._open]

    def state_dict(self) -> dict[str, Any]:
        return {
            "open": [
                [q.clock, q.announced, None if math.isnan(q.risk) else [q.risk, q.value], q.labels] for q in self._open
            ],
            "x": torch.stack([q.x for q in self._open]) if self._open else [],
            "probability": torch.stack([q.probability for q in self._open]) if self._open else [],
            **(
                {"answers": [[int(q.random), *q.answers] for q in self._open]}
                if any(q.answers for q in self._open)
                else {}
            ),
            **(
                {"learned": torch.stack([q.probability if q.learned is None else q.learned for q in self._open])}
                if any(q.learned is not None for q in self._open)
                else {}
            ),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; those of release 0.1 have lists of tensors, one for each question."""
        self._open, self._keys = [], []
        self._first = self._filled = 0
        heard = state.get("answers", [(0,)] * len(state["open"]))
        learned = state.get("learned", [None] * len(state["open"]))
        for (clock, announced, known, labels), x, p, said, by_labels in zip(
            state["open"], state["x"], state["probability"], heard, learned, strict=True
        ):
            risk, value = (math.nan, math.nan) if known is None else known
            numbers = (int(clock), int(announced), float(risk), float(value))
            random, answers = bool(said[0]), tuple(int(one) for one in said[1:])
            self.add(OpenQuestion(x, *numbers, p, int(labels), answers, random, by_labels))


def _key(x: Tensor) -> bytes:
    """The numbers of an observation; those of two that are equal are the same, for -0 is 0."""
    return (x.numpy() + 0.0).tobytes()
