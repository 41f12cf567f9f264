"""Whether to buy a label: expected costs, the label's worth against its net price, and checks that never end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.row_independence import pad_block, row_independent_product
from sparingly.strategies.sparing.worth import Worth
from sparingly.strategies.strategy import Why

FIRST = 20
"""Labels before there is a model."""
START = 60
"""Questions asked whatever the model says, at a price of one mistake."""
CHECK = 0.25
"""The share of random questions about an announcement that is under suspicion, if there are random questions."""


class ExpectedCosts:
    """Costs expected of a label-efficient game with one expert who gives the full label, or with named experts.

    Other games are refused.

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
        telling = [a for a in range(n, game.n_actions) if len(game.symbols(a)) == n]
        alone = game.n_actions == n + 1 or len(game.experts) == len(telling)
        if not game.is_label_efficient or not alone or len(telling) != game.n_actions - n:
            raise ValueError(
                "sparing plays label-efficient games with one expert who gives the full label, or with named experts, "
                f"not {game!r}"
            )
        gold = [a for a in telling if (expert := game.expert(a)) is None or expert.gold]
        self.expert = min(gold, key=lambda a: float(game.costs[a].mean()), default=None)
        """The cheapest action that tells the truth, if there is one."""
        self.costs = torch.from_numpy(game.costs[:n].astype(np.float32))
        """Of announcing each class where each is true, `[class, class]`."""
        self.unit = float(game.costs[:n].max() - game.costs[:n].min())
        """The largest cost of a mistake."""
        asked = n if self.expert is None else self.expert
        self._price = torch.from_numpy(game.costs[asked].astype(np.float32))
        self._classes = [list(game.feedback[asked]).index(symbol) for symbol in game.symbols(asked)]

    def __call__(self, members: Tensor) -> dict[str, Any]:
        """From probabilities `[member, block, class]`, one entry a row.

        `value`, the disagreement, is what knowing which member is right would save: the cost of announcing by their
        mean, less the mean of what it would be by each alone.
        """
        mean = _mean(members)
        risk, cheapest = _product(mean, self.costs.T).min(1)
        informed = _mean(_product(members.flatten(0, 1), self.costs.T).amin(1).view(len(members), -1))
        return {
            "probability": mean,
            "cheapest": cheapest.tolist(),
            "risk": risk.tolist(),
            "value": (risk - informed).clamp(min=0).tolist(),
            "price": _product(mean, self._price[:, None])[:, 0].tolist(),
        }

    def outcome(self, symbol: int) -> int:
        """The class that the expert's symbol (its index) stands for."""
        return self._classes[symbol]


def _mean(members: Tensor) -> Tensor:
    """The mean over the first axis; torch's own sums in another order with the size of the others."""
    total = members[0]
    for member in members[1:]:
        total = total + member
    return total / len(members)


def _product(X: Tensor, W: Tensor) -> Tensor:
    return row_independent_product(pad_block(X), W)[: len(X)]


@dataclass(frozen=True, slots=True)
class Check:
    """How far an announcement has been checked.

    Attributes
    ----------
    made
        How often it was made without a reason to ask.
    left
        How much probability is still to come until the next random question about it, at most 1.
    suspect
        Whether there is evidence that it has gone wrong.
    """

    made: int = 0
    left: float = 1.0
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """One observation as the strategy sees it: what announcing and asking are expected to cost, and what it has.

    Attributes
    ----------
    risk, value, price
        The expected cost of announcing, the disagreement in cost, and the expected price of asking.
    clock, known, waiting
        The round, counted from 0; labels and open questions; open questions alone.
    nearby
        How many open questions are about the same thing.
    novelty
        The squared distance to the nearest label, over its mean on the stream.
    check
        How far what would be announced has been checked.
    """

    risk: float
    value: float
    price: float
    clock: int
    known: int
    waiting: int
    nearby: float = 0.0
    novelty: float = 1.0
    check: Check = Check()


@dataclass(frozen=True, slots=True)
class PurchaseRule:
    """The rule: buy when the label is worth more, over the rounds to come, than the price less the cost of announcing.

    Attributes
    ----------
    unit
        The largest cost of a mistake.
    prior_horizon
        As many rounds are taken to come as there have been, and this many more.
    audit
        An announcement made m times is asked about with a probability of audit / m^(1/3), a share as in hard games of
        partial monitoring, times (1 + novelty) / 2: more often where there is no label near.
    selection
        Without it every observation counts as the average one.
    most_first
        At most so many questions are asked whatever the model says.
    horizon
        Rounds there will be in all, if that is known: then `prior_horizon` plays no part.

    Examples
    --------
    >>> rule, worth = PurchaseRule(unit=1.0), Worth(gamma=4.0, average=0.01, each=0.2, risk=0.1, reach=1.0)
    >>> for value in (0.3, 0.03):
    ...     print(*rule(Offer(0.4, value, 1.0, clock=999, known=200, waiting=0), worth))
    True the label is worth 0.90, the question costs 0.60 more than guessing
    False the label is worth 0.09, the question costs 0.60 more than guessing
    """

    unit: float
    prior_horizon: int = 2000
    audit: float = 0.06
    selection: bool = True
    most_first: int = START
    horizon: int | None = None

    def rounds_to_come(self, clock: int) -> int:
        """How many more rounds there will be after this one (counted from 0), as far as is known.

        As many as there have been, and some more; or what is left of the horizon. A stream that has outlived its
        horizon is taken to go on for as long as it has outlived it.

        >>> rule = PurchaseRule(1.0, prior_horizon=2000, horizon=1000)
        >>> [rule.rounds_to_come(clock) for clock in (0, 999, 1009)], PurchaseRule(1.0).rounds_to_come(999)
        ([999, 0, 10], 3000)
        """
        return clock + 1 + self.prior_horizon if self.horizon is None else abs(self.horizon - clock - 1)

    def __call__(self, offer: Offer, worth: Worth | None) -> tuple[bool, Why]:
        """Whether to buy, and why; `worth` is None as long as there is no model."""
        start = min(self.most_first, max(FIRST, round(START * self.unit / max(offer.price, 1e-9))))
        if offer.known < start:
            return True, Why("one of the first {start} questions", {"start": start})
        if worth is None:
            return self._audits(offer, {})
        to_come = self.rounds_to_come(offer.clock)
        average = to_come * worth.average / offer.known
        label = (to_come * worth.each / offer.known * offer.value if self.selection else average) / (1 + offer.nearby)
        net = offer.price - offer.risk
        numbers = {"worth": label, "net": net, "risk": offer.risk, "price": offer.price, "average": average}
        if net < 0:
            return True, Why("a mistake would cost {risk:.2f} on average, the question {price:.2f}", numbers)
        if label > net:
            return True, Why("the label is worth {worth:.2f}, the question costs {net:.2f} more than guessing", numbers)
        if self.selection and 0 < offer.price - worth.risk < average and not offer.waiting:
            return True, Why("an average label is worth {average:.2f}, more than it costs", numbers)
        return self._audits(offer, numbers)

    def _audits(self, offer: Offer, numbers: Mapping[str, float]) -> tuple[bool, Why]:
        rate = self.audit * (1 + offer.novelty) / 2 / (offer.check.made + 1) ** (1 / 3)
        rate = CHECK if offer.check.suspect and self.audit > 0 else min(CHECK, rate)
        audit = offer.check.left <= rate
        found = {**numbers, "probability": rate, "audit": audit}
        if audit:
            return True, Why("a random question, to check what the model is sure of (rate {probability:.4f})", found)
        if not numbers:
            return False, Why("waiting for answers", found)
        return False, Why("the label is worth {worth:.2f}, the question costs {net:.2f} more than guessing", found)
