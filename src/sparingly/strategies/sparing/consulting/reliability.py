"""How far an expert can be trusted: learned from answers heard beside the truth, and from agreement with beliefs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from scipy.special import ndtri
from torch import Tensor

from sparingly.experts import Expert

PRIOR_ACCURACY = 0.8
"""How often an expert is taken to be right before anything is known."""
PRIOR_ANSWERS = 6.0
"""How many answers that guess is worth."""
CLASS_ANSWERS = 8.0
"""How many answers about a class the overall accuracy is worth, when that about the class is estimated."""
SPREAD = 2.0
"""Wrong answers about a class that are taken to be spread as those about all classes are."""
WORSE = 0.5
"""The share of its accuracy that an expert has left who has become worse, in the bet against it."""
DOUBT = 0.3
"""The share of every belief that is given to chance when an answer is held against it."""
MISBELIEF = (-0.03, 0.15)
"""How much more often answers are right than believed, mean and deviation, before any random check: those whose truth
is not bought are those that look safe, and of these beliefs are too high."""
SURPRISE_VARIANCE = 0.15
"""Of what a random check shows less what was believed, as long as there are few; worth `FEW` of them."""
FEW = 2.0
UNVERIFIED = 2.0
"""Answers whose truth nobody told count, class by class, at most so many times as those beside a truth do: a belief
that is wrong about a class is wrong about it everywhere. With many classes truths alone say too little of each, ..."""
FEW_CLASSES = 10
"""... and from these on there is no such limit."""
LEAST = 0.02
"""No answer is held less likely in the bet: beliefs are not calibrated near 0."""
ALARM = 10_000.0
"""Wealth of that bet at which all that was learned of the expert is forgotten."""
SUSPICION = 1000.0
"""Wealth above which the expert's answers are checked more often: it starts anew at 1, so 50 comes by chance often."""
DISAGREEMENT = 100_000.0
"""Wealth of the bet that it has come to agree less with the own model above which its answers are checked more often:
that costs truths, and nothing has to be wrong with the expert."""
REMEMBERED = 500
"""Answers over which that agreement is averaged."""
FIRST_AGREED = 50
"""Answers from which on there is such a bet."""
AFTER_ALARM = 0.5
"""How often an expert is taken to be right after it has changed for the worse."""


class Reliability:
    """What one expert says where each class is true, `q(answer | class)`.

    Strongly pooled: one number for the expert, shrunk towards it a number for each class, and wrong answers spread
    by what is confused with what. Truths count 1; items whose truth nobody told count by what is believed of them, so
    that asking for the truth just where answers are doubtful does not make the expert look bad.

    A bet runs that the expert has become worse: each answer multiplies its wealth by how much likelier it is from
    someone with half of the accuracy. While the expert stays as it is the wealth stays small; a wealth of `ALARM`
    forgets what was learned of it. Another bet, that it has come to agree less often with the own model, needs no truth
    and no good model: it only calls for checks.

    Examples
    --------
    >>> gpt = Reliability(Expert("gpt", 0.01), n_classes=3)
    >>> for truth, said in [(0, 0)] * 30 + [(1, 1)] * 20 + [(1, 2)] * 10:
    ...     gpt.check(truth, said, torch.full((3,), 1 / 3), clock=0)
    >>> [round(value, 2) for value in gpt.matrix[:, 2].tolist()], round(gpt.accuracy, 2)
    ([0.03, 0.3, 0.83], 0.83)
    """

    def __init__(self, expert: Expert, n_classes: int) -> None:
        self.expert, self.n_classes = expert, n_classes
        self._guess = expert.accuracy or PRIOR_ACCURACY
        self.truths = torch.zeros(n_classes, n_classes)
        """Answers beside the truth, `[class, answer]`."""
        self.beliefs = torch.zeros(n_classes, n_classes)
        """Answers beside what was believed instead."""
        self.calls, self.silent = 0.0, 0.0
        self.verified = (0.0, 0.0)
        """Right answers among those whose truth was bought for a reason, and how many these are."""
        self.left = (0.0, 0.0)
        """Of all others, how many are believed to be right, and how many these are."""
        self.checks = (0.0, 0.0, 0.0)
        """Random checks of these: how many, and the sums of r and r^2, where r is 1 or 0 less the belief."""
        self.wealth, self.since = 1.0, 0
        self.agreement = (0.0, 0.0, 1.0)
        """How many of the last answers agreed with the own model, how many these are, and the wealth of that bet."""
        self.changes: list[int] = []
        self.former: Tensor | None = None
        """`q[class, answer]` as it was before the expert last changed."""
        self._matrix: Tensor | None = None

    @property
    def accuracy(self) -> float:
        """How often it is right."""
        return self._accuracy()[0]

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """Within which its accuracy is with this probability."""
        mean, deviation = self._accuracy()
        reach = float(ndtri((1 + level) / 2)) * deviation
        return max(0.0, mean - reach), min(1.0, mean + reach)

    def _accuracy(self) -> tuple[float, float]:
        """Its mean and standard deviation.

        Answers whose truth was bought for a reason count as they are. All others count by what was believed of them,
        and by how far random checks show that to be off.
        """
        right, verified = self.verified
        believed, left = self.left
        off, deviation = self._misbelief()
        number = verified + left + PRIOR_ANSWERS
        mean = (PRIOR_ANSWERS * self._guess + right + believed + left * off) / number
        mean = min(max(mean, 0.02), 0.99)
        return mean, math.hypot(deviation * left / number, math.sqrt(mean * (1 - mean) / number))

    def _misbelief(self) -> tuple[float, float]:
        """By how much the answers that nobody told the truth of are right more often than believed: mean, deviation."""
        number, total, squares = self.checks
        prior, deviation = MISBELIEF
        if number == 0:
            return prior, deviation
        mean = total / number
        spread = max(0.0, squares / number - mean * mean)
        variance = (number * spread + FEW * SURPRISE_VARIANCE) / (number + FEW) / number
        share = deviation**2 / (deviation**2 + variance)
        return prior + share * (mean - prior), math.sqrt(share * variance)

    @property
    def answers(self) -> float:
        """The share of calls that bring an answer."""
        return 1 - self.silent / (self.calls + 2)

    @property
    def suspect(self) -> bool:
        return self.wealth > SUSPICION or self.agreement[2] > DISAGREEMENT

    @property
    def matrix(self) -> Tensor:
        """`q[class, answer]`, rows sum to 1."""
        if self._matrix is None:
            self._matrix = self._estimate(self.truths + self.beliefs)
        return self._matrix

    def precision(self, said: int) -> float:
        """How often it is right when it names a class; towards its accuracy as long as little is known."""
        named = (self.truths + self.beliefs)[:, said]
        return float((named[said] + CLASS_ANSWERS * self.accuracy) / (named.sum() + CLASS_ANSWERS))

    def held_out(self, y: Tensor, said: Tensor, folds: Tensor) -> Tensor:
        """`[n, class]`: q(said | class), for answers that were counted, as it would be without those of their fold."""
        columns = torch.empty(len(y), self.n_classes)
        for fold in range(int(folds.max()) + 1 if len(folds) else 0):
            rows = folds == fold
            own = torch.zeros_like(self.truths).index_put_((y[rows], said[rows]), torch.ones(1), accumulate=True)
            without = self._estimate((self.truths - own).clamp(min=0) + self.beliefs)
            columns[rows] = without[:, said[rows]].T
        return columns

    def check(self, y: int, said: int, believed: Tensor, clock: int, *, random: float | None = None) -> None:
        """Hear the truth beside an answer, after a belief `[class]` that the answer was part of.

        Of a random check, `random` is how likely the answer was held to be right: truths bought where answers are
        doubtful speak for those alone.

        The bet is on the truth given the observation and the answer: it is fair however such items are chosen.
        """
        worse = believed * self._worse()[:, said] / self.matrix[:, said]
        factor = self._bet(float(believed[y]), float(worse[y] / worse.sum()), clock)
        agreed, number, wealth = self.agreement
        self.agreement = (agreed, number, max(1.0, wealth * factor))
        self.truths[y, said] += 1
        if random is not None:
            number, total, squares = self.checks
            off = (y == said) - random
            self.checks = (number + 1, total + off, squares + off * off)
        else:
            self.verified = (self.verified[0] + (y == said), self.verified[1] + 1)
        self._matrix = None

    def recheck(self, off: Tensor) -> None:
        """Random checks by today's beliefs: 1 or 0 less how likely each answer is held to be right, `[checks]`."""
        self.checks = (float(len(off)), float(off.sum()), float(off.square().sum()))

    def leave(self, believed: float) -> None:
        """Keep an answer whose truth is not bought, unless by a random check, and how likely it is held to be right."""
        self.left = (self.left[0] + believed, self.left[1] + 1)

    def hear(self, belief: Tensor, said: int | None, clock: int, foreseen: Tensor | None = None) -> None:
        """Hear an answer, or none, beside a belief `[class]` that was formed without it.

        `foreseen` is how likely each answer was, `[class]`, if that is learned from its answers. Where it says more the
        bet is on that: an expert who is weak in a region has not become worse by being asked mostly there.
        """
        self.calls += 1
        if said is None:
            self.silent += 1
            return
        self._agree(int(belief.argmax()) == said)
        belief = (1 - DOUBT) * belief + DOUBT / self.n_classes
        likely = float(belief @ self.matrix[:, said])
        if foreseen is not None:
            likely = max(likely, (1 - DOUBT) * float(foreseen[said]) + DOUBT / self.n_classes)
        self._bet(likely, WORSE * likely + (1 - WORSE) / self.n_classes, clock)

    def believe(self, beliefs: Tensor) -> None:
        """Count answers beside what is believed of items whose truth nobody told, `[class, answer]`.

        They count for all such items, up to `UNVERIFIED`, and the share of right ones is what `accuracy` holds of them.
        """
        total = float(beliefs.sum())
        if total > 0:
            beliefs = beliefs + 1e-3 * total / self.n_classes**2
            total = float(beliefs.sum())
            held = float(beliefs.diagonal().sum()) / total
            self.left = (held * self.left[1], self.left[1])
            met = min(max(held + self._misbelief()[0], 0.02), 0.99)
            truths = float(self.truths.sum())
            unverified = max(0.0, self.verified[1] + self.left[1] - truths)
            right_part = torch.diag(beliefs.diagonal()) * (met / held)
            wrong_part = beliefs.clone().fill_diagonal_(0) * ((1 - met) / (1 - held))
            most = UNVERIFIED * (PRIOR_ANSWERS + truths) if self.n_classes <= FEW_CLASSES else math.inf
            beliefs = (right_part + wrong_part) * (min(unverified, most) / total)
        self.beliefs, self._matrix = beliefs, None

    def change_noticed(self, clock: int) -> bool:
        """Whether there is enough evidence that it has become worse; then what was learned is forgotten."""
        if self.wealth < ALARM:
            return False
        self.changes.append(clock)
        self.former = self.matrix
        self._guess, self.wealth = AFTER_ALARM, 1.0
        self.calls, self.silent, self.verified, self.left = 0.0, 0.0, (0.0, 0.0), (0.0, 0.0)
        self.checks, self.agreement = (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
        self.truths, self.beliefs, self._matrix = torch.zeros_like(self.truths), torch.zeros_like(self.beliefs), None
        return True

    def _bet(self, as_before: float, worse: float, clock: int) -> float:
        """Settle a bet that it has become worse; by what the wealth was multiplied."""
        if self.wealth <= 1:
            self.since = clock
        factor = max(worse, LEAST) / max(as_before, LEAST)
        self.wealth = max(1.0, self.wealth * factor)
        return factor

    def _agree(self, agrees: bool) -> None:
        """Bet that it agrees less often with the own model than it did; what is usual is learned meanwhile."""
        agreed, number, wealth = self.agreement
        usual = (agreed + 1) / (number + 2)
        rarer = WORSE * usual + (1 - WORSE) / self.n_classes
        if number >= FIRST_AGREED and rarer < usual:
            wealth *= rarer / usual if agrees else (1 - rarer) / (1 - usual)
        kept = 1 - 1 / REMEMBERED
        # Truths that acquit it have to count: the wealth has a limit, and what is usual follows.
        self.agreement = (kept * agreed + agrees, kept * number + 1, min(max(1.0, wealth), 10 * DISAGREEMENT))

    def _worse(self) -> Tensor:
        """The same expert with a part of its accuracy, its other answers at random."""
        return WORSE * self.matrix + (1 - WORSE) / self.n_classes

    def _estimate(self, counts: Tensor) -> Tensor:
        wrong = counts.sum(0) - counts.diagonal() + 0.5
        right = (counts.diagonal() + CLASS_ANSWERS * self.accuracy) / (counts.sum(1) + CLASS_ANSWERS)
        spread = (counts + SPREAD * wrong / wrong.sum()).fill_diagonal_(0)
        q = (1 - right)[:, None] * spread / spread.sum(1, keepdim=True)
        return q + torch.diag(right)

    def state_dict(self) -> dict[str, Any]:
        return {
            "truths": self.truths.clone(),
            "beliefs": self.beliefs.clone(),
            "numbers": [self.calls, self.silent, self.wealth, self.since, self._guess, *self.verified, *self.left],
            "checks": list(self.checks),
            "changes": list(self.changes),
            "agreement": list(self.agreement),
            "former": None if self.former is None else self.former.clone(),
            # Between two counts it stays as it is, while answers that are left change the accuracy.
            "matrix": None if self._matrix is None else self._matrix.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.truths, self.beliefs = state["truths"].clone(), state["beliefs"].clone()
        number, total, squares = (float(one) for one in state["checks"])
        self.checks = (number, total, squares)
        self.calls, self.silent, self.wealth, since, self._guess, *rest = (float(one) for one in state["numbers"])
        self.verified, self.left = (rest[0], rest[1]), (rest[2], rest[3])
        self.since, self.changes = int(since), [int(clock) for clock in state["changes"]]
        self.former = state.get("former")
        agreed, number, wealth = (float(one) for one in state.get("agreement", (0.0, 0.0, 1.0)))
        self.agreement = (agreed, number, wealth)
        self._matrix = state.get("matrix")
