"""What the next label is worth: measured on the labels bought so far, in the currency of their price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor

PRIOR = 4.0
"""The cost that a unit of disagreement removes, as long as little is measured."""
UNSEEN = 20
"""Labels at the stream's mean disagreement that those bought are averaged with."""
DISCOUNT = 0.6
"""The share of what a label saves that the labels bought after it would not have saved anyway."""
TOLD_DISCOUNT = 0.3
"""The same where the number of rounds was told: then all of them count from the first label on."""
TOLD_EMBEDDED_DISCOUNT = 0.4
"""The same on embeddings, where the risk of announcing is not overrated (`sharpness`), ..."""
EMBEDDED_DISCOUNT = 0.3
"""... and where their number was not told: as a stream grows, fewer rounds are to come than there have been, ..."""
EMBEDDED_FURTHER = 5500
"""... but from its start on so many more than usual are counted on."""
PANEL_DISCOUNT = 0.9
"""The same beside experts who may be wrong: a label also says how far they, and what is learned from their answers, are
to be trusted."""
MANY_PANEL_DISCOUNT = 0.35
"""The same with more than `MANY` classes and a number of rounds that was not told: there many more are counted on from
the start on."""
SLOPE_ERROR = 0.4
"""The standard error of the slope of the learning curve to come, over the slope measured, besides that of measuring."""
SPREAD = 0.1
"""The standard deviation of what announcements cost with one trained ensemble rather than with another, over that
cost."""


@dataclass(frozen=True, slots=True)
class Worth:
    """How much a label saves, for each round to come and each label there is.

    If costs fall with the logarithm of the number of labels at the rate gamma v(x), v the disagreement, then one more
    average label saves gamma V / n a round, with V the mean of v on the stream, and a label at x saves that times
    v(x) over the mean of those bought.

    Attributes
    ----------
    gamma
        What a unit of disagreement, in cost, has removed of the cost.
    average
        What an average label saves, times the number of labels.
    each
        The same for a label, for each unit of its disagreement.
    risk
        What an announcement is expected to cost on the stream.
    reach
        A squared distance within which observations are alike: a tenth of the variance of the stream.
    slope, error
        What an e-fold of labels saves a round, all of it, and the standard error of that.
    asked
        What announcing those that were asked about would cost today.
    further
        Rounds that are counted on beside those that usually are.
    """

    gamma: float = 0.0
    average: float = 0.0
    each: float = 0.0
    risk: float = 0.0
    reach: float = 1.0
    slope: float = 0.0
    error: float = 0.0
    asked: float = 0.0
    further: int = 0

    @classmethod
    def measure(
        cls,
        bought: Mapping[str, Tensor],
        now: Tensor,
        stream: Mapping[str, Tensor],
        *,
        unit: float,
        learnability: bool = True,
        discount: float = DISCOUNT,
        slope: float = 0.0,
        most: float = math.inf,
    ) -> Worth:
        """Compare what each label was expected to cost when it was bought with what it would cost unseen today.

        Parameters
        ----------
        bought
            Of every label: its disagreement `value`, its expected cost `soft` and the number of `labels` at the time,
            nan where there was no model.
        now
            Its expected cost today, by a member that has not seen it.
        stream
            A sample: the disagreement `value`, the expected cost `risk`, and the observations `x`.
        unit
            The largest cost of a mistake.
        discount
            The share of what a label saves that counts.
        slope
            What an e-fold of labels saves a round at least, by a learning curve, if one was measured.
        most
            What it saves at most.

        Examples
        --------
        >>> labels = {"value": torch.full((50,), 0.1), "soft": torch.full((50,), 0.5), "labels": torch.full((50,), 50)}
        >>> stream = {"value": torch.full((9,), 0.05), "risk": torch.full((9,), 0.2), "x": torch.zeros(9, 2)}
        >>> [round(Worth.measure(labels, torch.full((50,), now), stream, unit=1).gamma, 1) for now in (0.5, 0.3)]
        [4.0, 14.0]
        """
        known = ~bought["value"].isnan()
        value = bought["value"][known]
        removed = float((bought["soft"][known] - now[known]).sum()) / unit
        grown = torch.log(len(now) / bought["labels"][known].clamp(min=1).float())
        explained = float((value * grown).sum()) / unit
        gamma = max(0.1, (removed + PRIOR) / (explained + 1.0)) if learnability else PRIOR
        mean = float(stream["value"].mean())
        paid = (float(value.sum()) + UNSEEN * mean) / (len(value) + UNSEEN)
        slope = min(max(gamma * mean, slope), most)
        saved = discount * slope
        reach = 0.1 * float(stream["x"].flatten(1).var(0, correction=0).sum())
        stream_risk = float(stream["risk"].mean())
        explaining = value * grown
        missed = (bought["soft"][known] - now[known] - gamma * explaining).square().sum().sqrt()
        error = mean * max(float(missed) / unit, PRIOR / 2) / (explained + 1.0)
        asked = (float(now.sum()) + UNSEEN * stream_risk) / (len(now) + UNSEEN)
        return cls(gamma, saved, saved / max(paid, 1e-12), stream_risk, reach, slope, error, asked)

    def scaled(self, factor: float) -> Worth:
        """The same where all costs are `factor` times what they were."""
        costs = {name: factor * getattr(self, name) for name in ("average", "risk", "slope", "error", "asked")}
        return replace(self, **costs)

    def state_dict(self) -> dict[str, float]:
        return asdict(self)
