"""What the members of an ensemble expect announcing and asking to cost, and how far they disagree on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game


class ExpectedCosts:
    """Costs expected of a label-efficient game with one expert who gives the full label; other games are refused.

    >>> from sparingly import label_efficient
    >>> expectation = ExpectedCosts(label_efficient(2))
    >>> agreed, split = torch.tensor([[[0.6, 0.4]], [[0.6, 0.4]]]), torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]])
    >>> for members in (agreed, split):
    ...     found = expectation(members)
    ...     print(found["cheapest"], round(found["risk"][0], 2), round(found["value"][0], 2), found["price"])
    [0] 0.4 0.0 [1.0]
    [0] 0.4 0.2 [1.0]
    """

    def __init__(self, game: Game) -> None:
        n = game.n_outcomes
        if not game.is_label_efficient or game.n_actions != n + 1 or len(game.symbols(n)) != n:
            raise ValueError(
                f"sparing plays label-efficient games with one expert who gives the full label, not {game!r}"
            )
        self.expert = n
        self.costs = torch.from_numpy(game.costs[:n].astype(np.float32))
        """Of announcing each class where each is true, `[class, class]`."""
        self.unit = float(game.costs[:n].max() - game.costs[:n].min())
        """The largest cost of a mistake."""
        self._price = torch.from_numpy(game.costs[n].astype(np.float32))
        self._classes = [list(game.feedback[n]).index(symbol) for symbol in game.symbols(n)]

    def __call__(self, members: Tensor) -> dict[str, Any]:
        """From probabilities `[member, block, class]`, one entry a row.

        `value`, the disagreement, is what knowing which member is right would save: the cost of announcing by their
        mean, less the mean of what it would be by each alone.
        """
        mean = members.mean(0)
        risk, cheapest = (mean @ self.costs.T).min(1)
        informed = (members @ self.costs.T).amin(2).mean(0)
        return {
            "probability": mean,
            "cheapest": cheapest.tolist(),
            "risk": risk.tolist(),
            "value": (risk - informed).clamp(min=0).tolist(),
            "price": (mean @ self._price).tolist(),
        }

    def outcome(self, symbol: int) -> int:
        """The class that the expert's symbol (its index) stands for."""
        return self._classes[symbol]
