"""Always an expert: every observation is decided by one of them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.expert_strategy import Said
from sparingly.strategies.families.taught_strategy import TaughtStrategy
from sparingly.strategies.strategy import Shape, Why


class AlwaysExpert(TaughtStrategy):
    """Asks one expert about everything and announces the answer; where none comes, what was learned from the others.

    Parameters
    ----------
    expert
        Its name; the cheapest by default.
    learner
        See `TaughtStrategy`.

    >>> from sparingly import Expert, label_efficient, play
    >>> game = label_efficient(2, experts=[Expert("gpt", 0.01), Expert("human", 1.0, gold=True)])
    >>> rounds = list(play(AlwaysExpert(game, 1), game, [([0.0], 1, {"gpt": 1}), ([1.0], 0, {"gpt": 1})]))
    >>> [(one.asked, one.prediction, one.cost) for one in rounds]
    [(('gpt',), 1, 0.01), (('gpt',), 1, 1.01)]
    """

    name = "always_expert"
    summary = "asks one expert about everything and announces the answer"
    reference = "baseline"
    beats_random = False

    def __init__(
        self, game: Game, n_features: Shape, *, expert: str | None = None, learner: str = "logistic", seed: int = 0
    ) -> None:
        super().__init__(game, n_features, learner=learner, seed=seed)
        self.asks = self.experts.find(expert)

    def _whom(self, x: Tensor, probability: Tensor, said: Said, asked: Sequence[int]) -> tuple[int | None, Why]:
        return self.asks, Why("{name} decides everything", {"name": self.game.actions[self.asks]})
