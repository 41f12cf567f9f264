"""Strategies that ask experts of whom some may be wrong: who can be asked, and a round of asking and hearing."""

from __future__ import annotations

import abc
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.classifier_strategy import full_expert
from sparingly.strategies.strategy import Assessment, Heard, Shape, Strategy, Why

Said = Mapping[int, int]
"""The class that each action's expert named, in the order asked; who did not answer is not in it."""


class ExpertActions:
    """The actions of a game that ask an expert, and what the answers name.

    >>> from sparingly import Expert, label_efficient
    >>> game = label_efficient(2, experts=[Expert("gpt", 0.01), Expert("human", 1.0, gold=True)])
    >>> experts = ExpertActions(game, "majority")
    >>> experts.noisy, experts.gold, experts.cheapest, experts.find("human")
    ([2], 3, 2, 3)
    """

    def __init__(self, game: Game, strategy: str) -> None:
        self._game = game
        self._costs = torch.from_numpy(game.costs[: game.n_outcomes].astype(np.float32))
        with_full_label = full_expert(game, strategy)
        asks = range(game.n_outcomes, game.n_actions)
        named = sorted((a for a in asks if game.expert(a) is not None), key=lambda a: float(game.costs[a].mean()))
        self.noisy = [a for a in named if not game.experts[a - game.n_outcomes].gold]
        """Who may be wrong, the cheapest first."""
        gold = [a for a in named if a not in self.noisy] if named else [with_full_label]
        self.gold = gold[0] if gold else None
        """The cheapest who tells the truth, if there is one."""

    @property
    def cheapest(self) -> int:
        """Of those who may be wrong, if there are any; else the one who tells the truth."""
        return self.noisy[0] if self.noisy or self.gold is None else self.gold

    def find(self, name: str | None) -> int:
        """The action that asks an expert, the cheapest if no name is given."""
        if name is None:
            return self.cheapest
        names = [one.name for one in self._game.experts]
        if name not in names:
            raise ValueError(f"expert is {name!r}: the experts are {', '.join(names) or 'without names'}")
        return self._game.n_outcomes + names.index(name)

    def class_of(self, action: int, symbol: Hashable) -> int:
        """The class that an answer names."""
        return list(self._game.feedback[action]).index(symbol)

    def class_at(self, action: int, index: int) -> int:
        """The class that an answer names, given as the index of its symbol among the action's."""
        return self.class_of(action, self._game.symbols(action)[index])

    def announcement(self, belief: Tensor) -> int:
        """The class that costs least to announce, by what is held of the classes, `[class]`."""
        return int((self._costs @ belief.float()).argmin())

    def said(self, heard: Heard) -> dict[int, int]:
        """Who named which class."""
        return {action: self.class_of(action, symbol) for action, symbol in heard if symbol is not None}


class ExpertStrategy(Strategy):
    """Asks one expert after the other, each at most once, and announces what then costs least.

    A subclass says whom to ask (`_whom`), and perhaps what answers mean (`_belief`).

    Parameters
    ----------
    game
        Label-efficient, with any experts who name a class, whether or not they may be wrong.
    """

    playable = "label-efficient games, also with experts who may be wrong"
    noisy_experts = True
    scales = True

    def __init__(self, game: Game, n_features: Shape, *, seed: int = 0) -> None:
        super().__init__(game, n_features, seed=seed)
        self.experts = ExpertActions(game, self.name)

    @abc.abstractmethod
    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        """Whom to ask next, None to announce, and why; by the own probabilities `[class]` and what was heard."""

    def _belief(self, probability: Tensor, said: Said) -> Tensor:
        """What is held of the classes, `[class]`, once experts were heard: the last of them is believed."""
        return nn.functional.one_hot(torch.tensor(list(said.values())[-1]), len(probability)) if said else probability

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {"probability": self._scores(X)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        return self._choose_again(assessment, row, ())

    def _choose_again(self, assessment: Assessment, row: int, heard: Heard) -> tuple[int, int, Why]:
        x, probability = assessment.X[row], assessment.values["probability"][row]
        said, asked = self.experts.said(heard), [action for action, _ in heard]
        cheapest = self.experts.announcement(self._belief(probability, said))
        action, why = self._whom(x, probability, said, asked)
        return (cheapest if action is None or action in asked else action), cheapest, why


def keep_answer(memory: Memory, x: Tensor, y: int, *, is_truth: bool) -> None:
    """Keep a label in a memory; a truth replaces what another expert said of the same observation.

    >>> memory = Memory()
    >>> keep_answer(memory, torch.zeros(2), 0, is_truth=False)
    >>> keep_answer(memory, torch.zeros(2), 1, is_truth=True)
    >>> memory["y"].tolist(), memory["said"].tolist(), memory["truth"].tolist()
    ([1], [0], [True])
    """
    if not is_truth:
        memory.append(x=x, y=torch.tensor(y), said=torch.tensor(y), truth=torch.tensor(False))
        return
    same = (memory["x"] == x).flatten(1).all(1).nonzero().flatten().tolist() if len(memory) else []
    for place in same[-1:]:
        memory["y"][place], memory["truth"][place] = y, True
    if not same:
        memory.append(x=x, y=torch.tensor(y), said=torch.tensor(-1), truth=torch.tensor(True))
