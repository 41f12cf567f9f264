"""A label budget for any strategy: never more than so many questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.published.partial_monitoring.neural_cbp import NeuralCBP
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why

Factory = Callable[..., Strategy]


class LabelBudget(Strategy):
    """Plays as another strategy does, but announces where that would ask beyond the budget.

    Parameters
    ----------
    of
        The strategy: its name, a class, or a function of (game, n_features, seed=...) that makes one.
    share
        At most this share of the rounds so far, rounded up, are questions.
    number
        At most so many questions in all; with a share too, both hold.
    options
        The other strategy's keyword arguments.

    >>> from sparingly import label_efficient
    >>> from sparingly.strategies import AlwaysAsk
    >>> strategy = LabelBudget(label_efficient(2), 1, of=AlwaysAsk, share=0.25)
    >>> [strategy.decide(strategy.assess([[0.0]]), 0).asks for _ in range(8)]
    [True, False, False, False, True, False, False, False]
    >>> LabelBudget(label_efficient(2), 1, of="always_ask", number=3).inner.name
    'always_ask'
    >>> around = LabelBudget.around(AlwaysAsk(label_efficient(2), 1), number=2)
    >>> sum(around.decide(around.assess([[0.0]]), 0).asks for _ in range(8))
    2
    """

    name = "label_budget"
    summary = "any strategy, with a limit on its questions"
    reference = "baseline"
    playable = "label-efficient games"
    stops_asking = True
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        of: str | Factory = NeuralCBP,
        share: float | None = None,
        number: int | None = None,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        if not game.is_label_efficient:
            raise ValueError(f"{self.name} plays label-efficient games, where it can announce instead, not {game!r}")
        if share is not None and not 0 <= share <= 1:
            raise ValueError(f"share is {share}: it is a share of the rounds, from 0 to 1")
        self.share = 0.1 if share is None and number is None else share
        self.number = number
        self.asked = 0
        self.inner = _factory(of)(game, n_features, seed=seed, **(options or {}))

    @classmethod
    def around(cls, strategy: Strategy, *, share: float | None = None, number: int | None = None) -> Self:
        """A budget for a strategy that exists."""
        made = cls(strategy.game, strategy.shape, of=lambda *_, **__: strategy, share=share, number=number)
        made.seed = strategy.seed
        return made

    def left(self) -> bool:
        """Whether the budget allows a question at this round."""
        within_share = self.share is None or self.asked < self.share * (self.clock + 1)
        return within_share and (self.number is None or self.asked < self.number)

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        return {"inner": self.inner.assess(X)}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        before = self.inner.generation
        decision = self.inner.decide(assessment.values["inner"], row)
        self.generation += self.inner.generation - before
        if decision.asks and not self.left():
            self.inner.forgo(assessment.X[row])
            why = Why(
                "the budget is spent after {asked} questions; it would ask because "
                + str(decision.why).replace("{", "{{").replace("}", "}}"),
                {"asked": self.asked},
            )
            return decision.prediction, decision.prediction, why
        self.asked += decision.asks
        return decision.action, decision.prediction, decision.why

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        before = self.inner.generation
        self.inner.learn(x, action, self.game.symbols(action)[symbol])
        self.generation += self.inner.generation - before

    def _forgo(self, x: Tensor) -> None:
        self.inner.forgo(x)

    def _teach(self, X: Tensor, action: int, outcomes: Sequence[int]) -> None:
        self.inner.teach(X, np.asarray(outcomes))

    def _train(self) -> None:
        pass

    def _due_in(self) -> int:
        return self.inner.rounds_to_update()

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self.inner.scores(X))

    def _identity(self) -> dict[str, Any]:
        return {"of": self.inner.name}

    def _state(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "asked": self.asked}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state["inner"])
        self.asked = int(state["asked"])


def _factory(of: str | Factory) -> Factory:
    """The strategy of a name, or whatever makes one."""
    if callable(of):
        return of
    from sparingly.strategies.registry import registered  # which has this strategy, too

    if of not in registered() or of == LabelBudget.name:
        others = ", ".join(name for name in registered() if name != LabelBudget.name)
        raise ValueError(f"of is {of!r}: a label budget is for one of {others}")
    return registered()[of]
