"""The rows of a block that is being decided: what each offers, and which of them may be worth a question."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from sparingly.strategies.sparing.purchase import Floats, OfferBlock, PurchaseRule, lasting
from sparingly.strategies.sparing.worth import Worth


class ComingRows:
    """The rows of an assessed block, as offers; looked at once for all questions that are asked in it.

    As long as no question is open, each label that comes makes every other worth less: a row that is not worth a
    question stays so until the models are trained anew. Those that are worth one now are the only ones to look at.

    Parameters
    ----------
    risk, value, price, novelty
        As in `Offer`, one entry a row.

    Examples
    --------
    >>> value = np.array([0.0, 0.3, 0.0, 0.3, 0.0])
    >>> rows = ComingRows(np.full(5, 0.4), value, np.ones(5), np.ones(5))
    >>> rule, worth = PurchaseRule(unit=1.0), Worth(gamma=4.0, average=0.01, each=0.2, risk=0.1)
    >>> [rows.quiet(rule, worth, first, 5, clock=999 + first, known=200) for first in range(5)]
    [1, 0, 1, 0, 1]
    >>> [rows.quiet(rule, worth, first, 5, clock=999 + first, known=400) for first in range(5)]
    [5, 4, 3, 2, 1]
    """

    def __init__(self, risk: Floats, value: Floats, price: Floats, novelty: Floats) -> None:
        self._risk, self._value, self._price, self._novelty = risk, value, price, novelty
        self._net = price - risk
        self._looked: tuple[Worth, PurchaseRule, int, float] | None = None
        self._known = self._first = 0
        """How many labels there were, and the row, when it was last looked through."""
        self._asked: list[int] = []
        """The rows that were worth a question then, and how many rows there are."""
        self._all_labels = self._each_label = np.zeros(0)
        """From the first row on: what labels are worth times their number, the average one, and one for each unit of
        disagreement."""
        self._first_rates: tuple[PurchaseRule, list[float]] | None = None

    def offers(self, first: int, last: int, *, clock: int, known: int, waiting: int) -> OfferBlock:
        """Some of the rows, the first of them in the round `clock`."""
        risk, value, price, novelty = (one[first:last] for one in (self._risk, self._value, self._price, self._novelty))
        return OfferBlock(risk, value, price, novelty, clock, known, waiting)

    def first_rates(self, rule: PurchaseRule) -> list[float]:
        """Of every row: the rate of random questions about its announcement, had it not been made before."""
        if self._first_rates is None or self._first_rates[0] is not rule:
            self._first_rates = rule, rule.first_rates(self._novelty, self._price)
        return self._first_rates[1]

    def quiet(
        self, rule: PurchaseRule, worth: Worth, first: int, last: int, *, clock: int, known: int, waiting: int = 0
    ) -> int:
        """How many rows from `first` to before `last` come before one that is worth a question."""
        looked = worth, rule, clock - first, rule.least_share(known)
        if waiting or looked != self._looked or known < self._known or first < self._first:
            self._looked, self._known, self._first = None if waiting else looked, known, first
            self._look(rule, worth, last if waiting else len(self._risk), clock, waiting)
        place = bisect_left(self._asked, first)
        while (row := self._asked[place]) < last and not self._still_asked(rule, worth, row, known):
            place += 1
        return min(row, last) - first

    def _look(self, rule: PurchaseRule, worth: Worth, last: int, clock: int, waiting: int) -> None:
        """Find the rows that are worth a question, from the first on that matters."""
        offers = self.offers(self._first, last, clock=clock, known=self._known, waiting=waiting)
        to_come = rule.rounds_to_come(np.arange(clock, clock + len(offers))) + worth.further
        self._all_labels, self._each_label = to_come * worth.average, to_come * worth.each
        self._asked = [*(np.flatnonzero(rule.judge(offers, worth)) + self._first).tolist(), last]

    def _still_asked(self, rule: PurchaseRule, worth: Worth, row: int, known: int) -> bool:
        """Whether a row that was worth a question still is, with the labels that have come since."""
        if known == self._known:
            return True
        average = self._all_labels[row - self._first] / known
        label = self._each_label[row - self._first] / known * self._value[row] if rule.selection else average
        return bool(rule.worth_asking(label, average, self._net[row], self._price[row] - worth.risk, known, waiting=0))

    def numbers(self, rule: PurchaseRule, first: int, count: int, *, known: int, waiting: int) -> list[list[float]]:
        """Of rows just found quiet: the worth of a label, the net price, the risk, the price, an average label's worth.

        The same numbers, to the bit, as one row alone has.
        """
        rows, looked = slice(first, first + count), slice(first - self._first, first - self._first + count)
        average = self._all_labels[looked] / known
        label = (
            self._each_label[looked] / known * lasting(self._value[rows], known, waiting) if rule.selection else average
        )
        return [one.tolist() for one in (label, self._net[rows], self._risk[rows], self._price[rows], average)]
