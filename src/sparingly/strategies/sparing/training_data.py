"""What the models are trained on, and when: the labels that were bought, samples of the stream, the next update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.learning.label_memory import Memory
from sparingly.learning.tensor_cache import TensorCache
from sparingly.strategies.sparing.consulting.panel import NO_ANSWER
from sparingly.strategies.sparing.models.kernel import squared_distances, squared_lengths
from sparingly.strategies.sparing.open_questions import OpenQuestion
from sparingly.strategies.sparing.purchase import FIRST
from sparingly.strategies.strategy import NEVER

GROWTH = 1.5
"""An update is due once the labels have grown by this factor ..."""
PACE = 1.6
"""... or the rounds by this one, if there is any new label."""
MANY_GROWTH, MANY_PACE = 1.25, 1.3
"""With more than `MANY` classes, where labels teach for longer and one not yet learned is missed more."""
PANEL_GROWTH = 1.2
"""Beside experts who may be wrong both are this: there labels are fewer, and each counts for more."""
NEAREST = 3
"""Labels that are looked at while no model is trained yet."""
MOST_DEFERRED = 4000
"""Rows after which a reservoir sees what was deferred."""


@dataclass(frozen=True, slots=True)
class RefitSchedule:
    """Updates far apart enough that all of them cost little more than the last.

    Labels that came without a question, before the rounds began, count as the rounds that they stand for.

    Attributes
    ----------
    labels, clock
        What there was at the last update; no label if some were forgotten since.
    growth, pace
        An update is due once the labels, or the rounds if there is any new label, have grown by these factors.

    Examples
    --------
    >>> schedule = RefitSchedule()
    >>> [schedule.after_label(n, clock=n, fitted=False) for n in (19, 20)]
    [False, True]
    >>> schedule = RefitSchedule(labels=20, clock=20)
    >>> [schedule.after_label(n, clock=30, fitted=True) for n in (29, 30)], schedule.rounds(21, clock=30)
    ([False, True], 2)
    >>> taught = RefitSchedule(labels=500, clock=0)
    >>> [taught.after_label(n, clock=0, fitted=True) for n in (501, 750)], taught.rounds(501, clock=1)
    ([False, True], 799)
    """

    labels: int = 0
    clock: int = 0
    growth: float = GROWTH
    pace: float = PACE

    def after_label(self, labels: int, clock: int, fitted: bool) -> bool:
        """Whether the label that was just added brings an update: at once if the model knows forgotten ones."""
        if fitted and self.labels == 0:
            return True
        grown = labels >= max(self.labels + 1, self.growth * self.labels)
        return labels >= FIRST and (grown or clock >= self._next_round)

    def rounds(self, labels: int, clock: int) -> int:
        """After how many rounds an update is due."""
        if labels < FIRST or labels == self.labels:
            return NEVER
        return max(1, self._next_round - clock)

    @property
    def _next_round(self) -> int:
        """The round of the next update, if there is any new label."""
        return math.ceil(self.pace * max(self.clock, self.labels))

    def state_dict(self) -> dict[str, int]:
        return {"labels": self.labels, "clock": self.clock}


class Bought:
    """Observations `x`, classes `y` and folds, when each was `asked` about and how many `labels` there were then.

    Also `value`, the disagreement, and `soft`, the expected cost of what was believed: both as of then, nan before
    there was a model. And the `answers` of experts who may be wrong, where there are such.

    >>> bought = Bought(folds=2)
    >>> for k in range(4):
    ...     bought.add(torch.zeros(1), k % 2, None, clock=k, costs=torch.eye(2))
    >>> bought.forget([1], since=2)
    >>> bought["y"].tolist(), bought["asked"].tolist(), bought["fold"].tolist()
    ([0, 0, 1], [0, 2, 3], [0, 1, 0])
    """

    def __init__(self, folds: int, experts: int = 0) -> None:
        self.folds, self.experts = folds, experts
        self._memory = Memory()
        self._scaled: TensorCache[tuple[Tensor, Tensor, Tensor]] = TensorCache()

    def __len__(self) -> int:
        return self._memory.length

    def __getitem__(self, name: str) -> Tensor:
        return self._memory[name]

    def add(self, x: Tensor, y: int, question: OpenQuestion | None, *, clock: int, costs: Tensor) -> None:
        """Keep one answer; without its question, only what was answered is known."""
        asked, labels, value, soft = clock, len(self), math.nan, math.nan
        if question is not None:
            asked, labels, value = question.clock, question.labels, question.value
            believed = question.probability if question.learned is None else question.learned
            soft = float(believed @ costs[:, y]) if not math.isnan(value) else math.nan
        row = {"y": y, "fold": len(self) % self.folds, "asked": asked, "labels": labels, "soft": soft, "value": value}
        if self.experts:
            answers = (question.answers if question is not None else ()) or (NO_ANSWER,) * self.experts
            random = torch.tensor(question is not None and question.random)
            self._memory.append(x=x, **row, answers=torch.tensor(answers), random=random)
        else:
            self._memory.append(x=x, **row)

    def believe(self, beyond: int, members: dict[str, Any], costs: Tensor) -> None:
        """Note what a model trained on the first labels alone believes of those beyond, where nothing was believed."""
        unknown = self["value"][beyond:].isnan()
        soft = (members["probability"] * costs[:, self["y"][beyond:]].T).sum(1)
        for name, one in (("value", torch.tensor(members["value"])), ("soft", soft)):
            self[name][beyond:][unknown] = one[unknown].to(self[name].dtype)
        self["labels"][beyond:][unknown] = beyond

    def set_costs(self, factor: float) -> None:
        """All costs are `factor` times what they were; nan if they are others."""
        if len(self):
            for name in ("value", "soft"):
                self[name].mul_(factor)

    def disregard(self, expert: int, since: int) -> None:
        """Keep no answer of an expert from before a round."""
        if len(self):
            self["answers"][self["asked"] < since, expert] = NO_ANSWER

    def forget(self, classes: list[int], since: int) -> None:
        """Keep no label of some classes that was asked for before a round."""
        state = self._memory.state_dict()
        keep = (state["asked"] >= since) | ~torch.isin(state["y"], torch.tensor(classes))
        kept = {name: column[keep] for name, column in state.items()}
        kept["fold"] = torch.arange(int(keep.sum())) % self.folds
        self._memory = Memory()
        self._memory.load_state_dict(kept)

    def n_met(self) -> int:
        """How many classes labels have shown."""
        return len(set(self["y"].tolist())) if len(self) else 0

    def named_first(self, answers: Sequence[int]) -> int | None:
        """A class that no label has shown, named by an expert who never did beside a label; None if there is none.

        >>> bought = Bought(folds=2, experts=1)
        >>> bought.add(torch.zeros(1), 0, None, clock=0, costs=torch.eye(3))
        >>> [bought.named_first([said]) for said in (NO_ANSWER, 0, 2)]
        [None, None, 2]
        """
        y, named = self["y"], self["answers"].T
        new = (
            one
            for one, by in zip(answers, named, strict=True)
            if one >= 0 and not bool(((y == one) | (by == one)).any())
        )
        return next(new, None)

    def shares(self, n_classes: int, added: float = 1.0) -> Tensor:
        """How common each class is, with so many labels added, spread over all classes."""
        counts = torch.full((n_classes,), added / n_classes)
        if len(self):
            counts = counts + torch.bincount(self["y"], minlength=n_classes)
        return counts / counts.sum()

    def nearest(self, X: Tensor, n_classes: int) -> Tensor:
        """How common each class is among the few labels nearest to observations, `[block, class]`.

        >>> bought = Bought(folds=2)
        >>> for k in range(8):
        ...     bought.add(torch.tensor([float(k)]), int(k > 3), None, clock=k, costs=torch.eye(2))
        >>> bought.nearest(torch.tensor([[0.2], [6.8]]), 2).argmax(1).tolist()
        [0, 1]
        """
        spread, known, lengths = self._scaled.of(self._memory.column("x"), lambda _: self._scale())
        distances = squared_distances(X.flatten(1) / spread, known, lengths)
        near = self["y"][distances.topk(min(NEAREST, len(self)), largest=False).indices]
        counts = nn.functional.one_hot(near, n_classes).sum(1).float()
        return (counts + self.shares(n_classes)) / (near.shape[1] + 1)

    def _scale(self) -> tuple[Tensor, Tensor, Tensor]:
        """The features' deviations, the labels' observations divided by them, and the squared lengths of these."""
        known = self["x"].flatten(1)
        spread = known.std(0).clamp(min=1e-6)
        return spread, known / spread, squared_lengths(known / spread)

    def state_dict(self) -> dict[str, Any]:
        return self._memory.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        # Earlier states do not say which truths were bought whatever was believed: none is taken for such.
        if self.experts and state and "random" not in state:
            state = {**state, "random": torch.zeros(len(state["y"]), dtype=torch.bool)}
        self._memory.load_state_dict(state)


class Reservoir:
    """A uniform sample of the stream so far, of bounded size, with the caller's generator.

    >>> reservoir, rng = Reservoir(4), np.random.default_rng(0)
    >>> for k in range(100):
    ...     reservoir.add(torch.tensor([float(k)]), rng)
    >>> reservoir.rows.shape
    torch.Size([4, 1])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._seen = 0
        self._rows: Tensor | None = None
        self._deferred: list[tuple[Tensor, np.random.Generator]] = []
        self._deferred_rows = 0

    @property
    def seen(self) -> int:
        """How many observations it has seen."""
        return self._seen + self._deferred_rows

    @property
    def rows(self) -> Tensor:
        """The sample, `[at most size, *shape]`."""
        self.settle()
        if self._rows is None:
            raise ValueError("nothing has been seen yet")
        return self._rows[: min(self._seen, self.size)]

    def add(self, x: Tensor, rng: np.random.Generator) -> None:
        """See one more observation."""
        self.settle()
        if self._rows is None:
            self._rows = torch.empty(self.size, *x.shape)
        place = self._seen if self._seen < self.size else int(rng.integers(self._seen + 1))
        if place < self.size:
            self._rows[place] = x
        self._seen += 1

    def extend(self, X: Tensor, rng: np.random.Generator) -> None:
        """See a block of observations: the same, with the same random numbers, as one after the other.

        >>> one, all_, X = Reservoir(4), Reservoir(4), torch.arange(50.0)[:, None]
        >>> first, second = np.random.default_rng(0), np.random.default_rng(0)
        >>> for x in X:
        ...     one.add(x, first)
        >>> all_.extend(X, second)
        >>> one.rows.equal(all_.rows), first.random() == second.random()
        (True, True)
        """
        self.settle()
        if self._rows is None and len(X):
            self._rows = torch.empty(self.size, *X.shape[1:])
        room = min(len(X), max(0, self.size - self._seen))
        rows = self._rows
        if rows is None:
            return
        rows[self._seen : self._seen + room] = X[:room]
        places = rng.integers(np.arange(self._seen + room, self._seen + len(X)) + 1) if room < len(X) else np.zeros(0)
        for row in np.flatnonzero(places < self.size).tolist():
            rows[int(places[row])] = X[room + row]
        self._seen += len(X)

    def defer(self, X: Tensor, rng: np.random.Generator) -> None:
        """The same as `extend`, later: for a few rows at a time drawing costs more than all the rest.

        Whoever draws from the generator for something else must `settle` before, so that the numbers are the same.

        >>> now, later, X = Reservoir(4), Reservoir(4), torch.arange(50.0)[:, None]
        >>> first, second = np.random.default_rng(0), np.random.default_rng(0)
        >>> for few in X.split(3):
        ...     now.extend(few, first)
        ...     later.defer(few, second)
        >>> later.seen, now.rows.equal(later.rows), first.random() == second.random()
        (50, True, True)
        """
        self._deferred.append((X.clone(), rng))
        self._deferred_rows += len(X)
        if self._deferred_rows >= MOST_DEFERRED:
            self.settle()

    def settle(self) -> None:
        """See what was deferred."""
        if self._deferred:
            deferred, rng = [X for X, _ in self._deferred], self._deferred[0][1]
            self._deferred, self._deferred_rows = [], 0
            self.extend(torch.cat(deferred), rng)

    def renew(self) -> None:
        """Let what comes now replace the sample quickly: the stream has begun anew."""
        self.settle()
        self._seen = min(self._seen, self.size)

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return {"seen": self._seen, "rows": self.rows.clone() if self._rows is not None else None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._seen, self._deferred, self._deferred_rows = int(state["seen"]), [], 0
        rows = state["rows"]
        self._rows = None
        if rows is not None:
            self._rows = torch.empty(self.size, *rows.shape[1:])
            self._rows[: len(rows)] = rows
