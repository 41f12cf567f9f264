"""How much the own model's and each expert's word count in what is believed after their answers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2)
"""That a word may have."""
NEAR_START = 5.0
"""How much less likely, in nats, a weight e times off its start is taken to be before anything is known."""
OWN = 0.6
"""The weight of the own model before anything is known of it."""
MOST_SUBSETS = 8
"""Of the answers that are looked at for each number of them."""


class OpinionPool:
    """A logarithmic opinion pool: p(y)^alpha times the product of q_e(answer | y)^beta_e.

    The weights are those under which labels are likeliest, for each number of answers heard on their own: the first
    answer says more than a second one of an expert who errs together with the first.

    >>> pool = OpinionPool(2)
    >>> own, words = torch.zeros(1, 3), torch.tensor([[[0.8, 0.1, 0.1], [0.7, 0.1, 0.2]]]).log()
    >>> for heard in ([True, False], [True, True]):
    ...     held = pool(own, words, torch.tensor([heard])).softmax(1)
    ...     print([round(p, 2) for p in held[0].tolist()])
    [0.8, 0.1, 0.1]
    [0.87, 0.05, 0.08]
    """

    def __init__(self, n_experts: int) -> None:
        words = torch.arange(n_experts + 1).clamp(min=1)[:, None] ** -0.5
        self._starts = torch.cat([torch.full((n_experts + 1, 1), OWN), words.expand(-1, n_experts)], 1)
        self._starts[0, 0] = 1.0
        self.weights = self._starts.clone()
        """`[answers heard, own model and experts]`."""

    def __call__(self, own: Tensor, words: Tensor, heard: Tensor) -> Tensor:
        """Logits `[..., block, class]` from log-probabilities of the own model, `[..., block, class]`.

        Parameters
        ----------
        words, heard
            `log q_e(answer | class)`, `[block, expert, class]`, and whether there was an answer, `[block, expert]`.
        """
        weights = self.weights[heard.sum(1)]
        said = ((weights[:, 1:] * heard)[:, :, None] * words).sum(1)
        return weights[:, :1] * own + said

    def fit(self, own: Tensor, words: Tensor, heard: Tensor, y: Tensor) -> None:
        """Choose the weights by labels `[n]`, for each number of answers by all subsets of those that were heard."""
        n_experts = heard.shape[1]
        for number in range(1, n_experts + 1):
            subsets = list(itertools.islice(itertools.combinations(range(n_experts), number), MOST_SUBSETS))
            parts = [self._part(own, words, heard, y, subset) for subset in subsets]
            logs, classes = torch.cat([one for one, _ in parts]), torch.cat([one for _, one in parts])
            if len(classes):
                self.weights[number] = self._likeliest(logs, classes, number)

    def _part(
        self, own: Tensor, words: Tensor, heard: Tensor, y: Tensor, subset: tuple[int, ...]
    ) -> tuple[Tensor, Tensor]:
        """Of labels of which these experts said something: words `[n, own and experts, class]` and classes `[n]`."""
        rows, chosen = heard[:, subset].all(1), torch.zeros(heard.shape[1])
        chosen[list(subset)] = 1.0
        return torch.cat([own[rows, None], words[rows] * chosen[:, None]], 1), y[rows]

    def _likeliest(self, logs: Tensor, y: Tensor, number: int) -> Tensor:
        """Weight by weight, twice around; a prior holds each near its start."""
        weights, starts = self.weights[number].tolist(), self._starts[number].tolist()
        for _, k in itertools.product(range(2), range(len(weights))):
            rest = (logs * torch.tensor(weights)[:, None]).sum(1) - weights[k] * logs[:, k]
            scores = []
            for weight in WEIGHTS:
                unlikely = float(nn.functional.cross_entropy(rest + weight * logs[:, k], y, reduction="sum"))
                off = float(torch.tensor(weight / starts[k]).log())
                scores.append(unlikely + NEAR_START * off**2)
            weights[k] = WEIGHTS[scores.index(min(scores))]
        return torch.tensor(weights)

    def load(self, weights: Sequence[Any]) -> None:
        """Take weights from a state; earlier states have one weight each, for all numbers of answers."""
        if not isinstance(weights[0], Sequence):
            scale = (len(weights) - 1) ** 0.5 * self._starts[:, 1:2]
            weights = torch.cat(
                [torch.full((len(weights), 1), weights[0]), scale * torch.tensor(weights[1:])], 1
            ).tolist()
            weights[0][0] = 1.0
        self.weights = torch.tensor(weights)
