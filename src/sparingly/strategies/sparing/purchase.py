"""Whether to buy a label: expected costs, the label's worth against its net price, and checks that never end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.determinism import COLUMNS, ROWS, row_independent_product
from sparingly.strategies.sparing.worth import Worth
from sparingly.strategies.strategy import Why

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

FIRST = 20
"""Labels before there is a model."""
START = 60
"""At most so many questions, or as many as there are classes, are asked whatever the model says."""
MANY = 10
"""Classes beyond which those without a label are reckoned with, the start grows with them, and each announcement is
checked less often, so that all checks together stay as many."""
LABELS_FOR_EACH = 5
"""With more than `MANY` classes, labels a class up to which everything is asked while an average label is worth its
price; ..."""
LEAST_WORTH = 0.3
"""... from then on only what is worth at least this share of an average label: much is certain by then, and asking
about it teaches nothing."""
BLIND = 300
"""At most so many questions are asked before there is a model."""
PRIOR_SLOPE = 0.15
"""The share of the cost of guessing that each e-fold of labels is taken to remove before anything is measured."""
LEAST_PRICE = 1e-9
ANNOUNCED = "the label is worth {worth:.2f}, the question costs {net:.2f} more than guessing"
"""Why an observation is announced."""
ASKED_FIRST = "one of the first {start} questions"
"""Why an observation is asked about whatever the model says."""
GUESSED = "guess: nothing learned yet"
"""The same before there is a model."""
NEAREST = "guess: by the nearest labels, for no model is trained yet"
"""The same where labels are there already, and only the training is late."""
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
        self.blind_guess = float((self.costs @ torch.full((n,), 1 / n)).min())
        """What the announcement that is best without looking costs, if all classes are equally common."""
        mistakes = self.costs.amax(0)
        alike = torch.equal(self.costs, mistakes * (1 - torch.eye(n)))
        self._mistakes = mistakes if alike else None
        """Of a mistake where each class is true, if it is the same whatever is announced."""
        self.unit = float(game.costs[:n].max() - game.costs[:n].min())
        """The largest cost of a mistake."""
        asked = n if self.expert is None else self.expert
        price = torch.from_numpy(game.costs[asked].astype(np.float32))[:, None]
        self._price = nn.functional.pad(price, (0, COLUMNS - 1))
        """In the first column; the others are there so that a row's product does not depend on its block."""
        self.cheap = float(price.mean()) < self.unit
        """Whether the truth costs less than the largest mistake."""
        self._classes = [list(game.feedback[asked]).index(symbol) for symbol in game.symbols(asked)]

    def __call__(self, members: Tensor) -> dict[str, Any]:
        """From probabilities `[member, block, class]`, one entry a row.

        `value`, the disagreement, is what knowing which member is right would save: the cost of announcing by their
        mean, less the mean of what it would be by each alone.
        """
        each = members.numpy()
        mean = _mean(each)
        held = np.concatenate((mean[None], each))
        costs = self._expected(held.reshape(-1, held.shape[2])).reshape(held.shape)
        least = np.minimum.reduce(costs, 2)
        return {
            "probability": torch.from_numpy(mean),
            "cheapest": costs[0].argmin(1).tolist(),
            "risk": least[0].tolist(),
            "value": np.maximum(least[0] - _mean(least[1:]), 0).tolist(),
            "price": _product(mean, self._price)[:, 0].tolist(),
        }

    def _expected(self, P: Singles) -> Singles:
        """What announcing each class is expected to cost, `[block, class]`, under probabilities `[block, class]`.

        Where a mistake costs the same whatever is announced, no matrix product is needed: with very many classes it
        would take most of the time.
        """
        if self._mistakes is None:
            return _product(P, self.costs.T)
        weighed = P * self._mistakes.numpy()
        costs: Singles = _sums(weighed) - weighed
        return costs

    def outcome(self, symbol: int) -> int:
        """The class that the expert's symbol (its index) stands for."""
        return self._classes[symbol]


def scale(before: Tensor, after: Tensor) -> float:
    """By what all costs were multiplied; nan if they have not all become more, or less, alike.

    >>> costs = 1 - torch.eye(2)
    >>> scale(costs, 5 * costs), scale(costs, costs + torch.tensor([[0, 4], [0, 0]]))
    (5.0, nan)
    """
    factor = float(after.max()) / float(before.max()) if float(before.max()) > 0 else math.nan
    return factor if factor > 0 and torch.allclose(after, factor * before) else math.nan


def _mean(members: Singles) -> Singles:
    """The mean over the first axis, one after the other: numpy and torch sum in an order that depends on the size."""
    total: Singles = members[0].copy()
    for member in members[1:]:
        total += member
    total /= np.float32(len(members))
    return total


def _sums(X: Singles) -> Singles:
    """Of each row, `[block, 1]`; torch's sum of a row does not depend on the rows beside it."""
    return torch.from_numpy(X).sum(1, keepdim=True).numpy()


def _product(X: Singles, W: Tensor) -> Singles:
    """X @ W, a row whatever its block is."""
    padded = np.zeros((len(X) + -len(X) % ROWS, X.shape[1]), dtype=np.float32)
    padded[: len(X)] = X
    return row_independent_product(torch.from_numpy(padded), W).numpy()[: len(X)]


class Check(NamedTuple):
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


class Offer(NamedTuple):
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
    guess
        The expected cost of the best announcement without looking at the observation; None where other experts than
        the one who knows the truth can be asked.
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
    guess: float | None = None


@dataclass(frozen=True, slots=True)
class OfferBlock:
    """Coming observations, each as in `Offer`, as long as no question is asked in between; one entry a row."""

    risk: Floats
    value: Floats
    price: Floats
    novelty: Floats
    clock: int
    known: int
    waiting: int

    def __len__(self) -> int:
        return len(self.risk)


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
        An announcement made m times is asked about with a probability of audit / sqrt(m), times (1 + novelty) / 2, more
        often where there is no label near, and times the root of the largest mistake over the price: that balances
        what checks cost with what a change costs until it is noticed.
    selection
        Without it every observation counts as the average one.
    most_first
        At most so many questions are asked whatever the model says (`start`).
    horizon
        Rounds there will be in all, if that is known: then `prior_horizon` plays no part.
    choosy
        While an average label is worth its price everything is asked; if choosy, only where it is worth what this
        question costs beyond guessing, too: after experts' answers much is nearly certain, and where the truth is
        cheap an announcement may cost nearly as much on average while most are certain.
    indiscriminate
        So many labels long everything is asked while an average label is worth its price; then only what is worth
        `LEAST_WORTH` of an average label. None for as long as that is so.

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
    audit: float = 0.12
    selection: bool = True
    most_first: int = START
    horizon: int | None = None
    choosy: bool = False
    indiscriminate: int | None = None

    def rounds_to_come(self, clock: Any) -> Any:
        """How many more rounds there will be after this one (counted from 0), as far as is known.

        As many as there have been, and some more; or what is left of the horizon. A stream that has outlived its
        horizon is taken to go on for as long as it has outlived it.

        >>> rule = PurchaseRule(1.0, prior_horizon=2000, horizon=1000)
        >>> [rule.rounds_to_come(clock) for clock in (0, 999, 1009)], PurchaseRule(1.0).rounds_to_come(999)
        ([999, 0, 10], 3000)
        """
        return clock + 1 + self.prior_horizon if self.horizon is None else abs(self.horizon - clock - 1)

    def start(self, offer: Offer, most: int) -> int:
        """How many questions are asked whatever the model says, at most `most`.

        As long as a label would be worth its price if each e-fold of labels removed the same share of what guessing
        costs: few where the question is dear or the stream is short.

        >>> rule = PurchaseRule(1.0, horizon=1000)
        >>> [rule.start(Offer(0.5, 0.0, price, 0, 0, 0, guess=0.3), 60) for price in (0.2, 1.0, 2.0, 5.0)]
        [60, 60, 26, 10]
        """
        if offer.guess is None:
            return self.most_first
        net = offer.price - offer.guess
        if net <= 0:
            return most
        to_come: int = self.rounds_to_come(offer.clock)
        return min(most, round(PRIOR_SLOPE * to_come * offer.guess / net))

    def starts(self, offers: OfferBlock, guess: float, most: int) -> Floats:
        """The same for each row of a block, whatever is asked in between.

        >>> rule, prices = PurchaseRule(1.0, horizon=1000), np.array([0.2, 1.0, 2.0, 5.0])
        >>> rule.starts(OfferBlock(prices, prices, prices, prices, 0, 0, 0), 0.3, 60).tolist()
        [60.0, 60.0, 26.0, 10.0]
        """
        net = offers.price - guess
        wanted = PRIOR_SLOPE * self.rounds_to_come(offers.clock + np.arange(len(net))) * guess
        return np.where(net <= 0, most, np.minimum(most, np.rint(wanted / np.where(net <= 0, 1.0, net))))

    def __call__(self, offer: Offer, worth: Worth | None) -> tuple[bool, Why]:
        """Whether to buy, and why; `worth` is None as long as there is no model."""
        if worth is None or offer.known < self.most_first:
            # Without a model, be it that answers or a training are late, the choice is between asking and guessing.
            start = self.start(offer, BLIND if worth is None else self.most_first)
            if offer.known < start:
                return True, self.asked_first(start, offer.known)
        if worth is None:
            return self._checks(offer, {})
        to_come = self.rounds_to_come(offer.clock) + worth.further
        average = to_come * worth.average / offer.known
        disagreement = lasting(offer.value, offer.known, offer.waiting)
        label = to_come * worth.each / offer.known * disagreement if self.selection else average
        label /= 1 + offer.nearby
        net = offer.price - offer.risk
        numbers = {"worth": label, "net": net, "risk": offer.risk, "price": offer.price, "average": average}
        if net < 0:
            return True, Why("a mistake would cost {risk:.2f} on average, the question {price:.2f}", numbers)
        if label > net:
            return True, Why(ANNOUNCED, numbers)
        usual = offer.price - worth.risk
        pays = 0 < (max(usual, net) if self.choosy else usual) < average
        if self.selection and pays and label >= self.least_share(offer.known) * average and not offer.waiting:
            return True, Why("an average label is worth {average:.2f}, more than it costs", numbers)
        return self._checks(offer, numbers)

    def least_share(self, known: int) -> float:
        """Of an average label, what one is worth at the least to be asked for because that one is worth its price."""
        return 0.0 if self.indiscriminate is None or known < self.indiscriminate else LEAST_WORTH

    def asked_first(self, start: int, known: int) -> Why:
        """Why a question is asked whatever the model says; beyond the usual number, because there is still none."""
        return Why(ASKED_FIRST, {"start": start if known >= self.most_first else min(start, self.most_first)})

    def _checks(self, offer: Offer, numbers: Mapping[str, float]) -> tuple[bool, Why]:
        """Whether it is time for a random question; if not, the announcement stands."""
        first = self.audit * (1 + offer.novelty) / 2 * math.sqrt(self.unit / max(offer.price, LEAST_PRICE))
        rate = self.check_rate(first, offer.check.made, offer.check.suspect)
        audit = offer.check.left <= rate
        found = {**numbers, "probability": rate, "audit": audit}
        if audit:
            return True, Why("a random question, to check what the model is sure of (rate {probability:.4f})", found)
        guessed = GUESSED if offer.known - offer.waiting < FIRST else NEAREST
        return False, Why(ANNOUNCED if numbers else guessed, found)

    def judge(self, offers: OfferBlock, worth: Worth) -> NDArray[np.bool_]:
        """Which rows of a block are worth a question, the same as one by one."""
        to_come = self.rounds_to_come(np.arange(offers.clock, offers.clock + len(offers))) + worth.further
        average = to_come * worth.average / offers.known
        disagreement = lasting(offers.value, offers.known, offers.waiting)
        label = to_come * worth.each / offers.known * disagreement if self.selection else average
        net, usual = offers.price - offers.risk, offers.price - worth.risk
        asks: NDArray[np.bool_] = self.worth_asking(label, average, net, usual, offers.known, offers.waiting)
        return asks

    def worth_asking(self, label: Any, average: Any, net: Any, usual: Any, known: int, waiting: int) -> Any:
        """Whether rows are worth a question, or one row is, whatever checks say.

        Parameters
        ----------
        label, average
            What its label is worth, and an average one.
        net, usual
            The price less what its announcement is expected to cost, and less what announcements usually do.
        """
        asks = (net < 0) | (label > net)
        if self.selection and not waiting:
            usual = np.maximum(usual, net) if self.choosy else usual
            asks |= (usual > 0) & (usual < average) & (label >= self.least_share(known) * average)
        return asks

    def first_rates(self, novelty: Floats, price: Floats) -> list[float]:
        """The rates of random questions about rows' announcements, had none been made before."""
        rates: list[float] = (
            self.audit * (1 + novelty) / 2 * np.sqrt(self.unit / np.maximum(price, LEAST_PRICE))
        ).tolist()
        return rates

    def check_rate(self, first_rate: float, made: int, suspect: bool) -> float:
        """The rate of random questions about an announcement that was made so often."""
        rate = min(CHECK, first_rate / math.sqrt(made + 1))
        return CHECK if suspect and self.audit > 0 else rate


def first_true(found: NDArray[np.bool_]) -> int:
    """The place of the first that holds; how many there are if none does.

    >>> first_true(np.array([False, True])), first_true(np.array([False, False])), first_true(np.array([], dtype=bool))
    (1, 2, 0)
    """
    place = int(found.argmax()) if len(found) else 0
    return place if len(found) and found[place] else len(found)


def lasting(value: Any, known: int, waiting: int) -> Any:
    """The disagreement that is left once the open questions are answered: it falls as labels grow.

    >>> lasting(0.2, known=200, waiting=150)
    0.05
    """
    return value * ((known - waiting) / known) if waiting else value
