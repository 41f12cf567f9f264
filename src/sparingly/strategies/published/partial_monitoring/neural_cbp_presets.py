"""Where NeuralCBP's text and its authors' released code differ: each point an option, each side a preset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sparingly.strategies.families.network_options import Settings, one_of, settled


@dataclass(frozen=True)
class Differences:
    """One choice for every point on which the paper's text and the code behind its tables differ.

    Attributes
    ----------
    embedding
        "paper": the first layer's output and the last layer's gradient. "released": the gradient with respect to all
        parameters, averaged over blocks of consecutive entries, and the hidden layer's output.
    pseudo_count
        "inverse": 1 / phi' G^-1 phi. "squared": 1 / phi' G^-2 phi.
    widths
        The width of an action is the largest of f2's outputs for its symbols: of their "absolute" values, or "signed",
        so that a negative width means certainty.
    ties
        Among equal W_a w_a, as when the expert is not underplayed: the "cheapest" candidate by the estimates, or the
        "lowest" action.
    rate_offset
        Added to the round, counted from 1, in the exploration rate f(t).
    stop
        Stop an update once the sum of an epoch's batch objectives, over the size of the input's first dimension, is
        this low; None makes every epoch.
    objective
        "half_squared": half the squared error, summed. "mean_squared": averaged over batch and outputs.
    residuals
        What f2 learns from: residuals and embeddings that are "fresh" at each update, or "kept" as they were when the
        answer came.
    """

    embedding: str
    pseudo_count: str
    widths: str
    ties: str
    rate_offset: int
    stop: float | None
    objective: str
    residuals: str

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            one_of(choices, **{name: getattr(self, name)})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


_CHOICES = {
    "embedding": ("paper", "released"),
    "pseudo_count": ("inverse", "squared"),
    "widths": ("absolute", "signed"),
    "ties": ("cheapest", "lowest"),
    "objective": ("half_squared", "mean_squared"),
    "residuals": ("fresh", "kept"),
}

PRESETS = {
    "paper": Differences("paper", "inverse", "absolute", "cheapest", 0, None, "half_squared", "fresh"),
    "released": Differences("released", "squared", "signed", "lowest", 1, 1e-3, "mean_squared", "kept"),
}
"""The paper's text, and the code behind its tables."""


def differences(preset: str, options: Mapping[str, Any]) -> tuple[Differences, Settings]:
    """A preset with the options that are given in its place, and the settings among what is given.

    >>> chosen, settings = differences("released", {"widths": "absolute", "width": 50})
    >>> chosen.widths, chosen.ties, settings.width
    ('absolute', 'lowest', 50)
    """
    chosen, settings = settled({name: each.as_dict() for name, each in PRESETS.items()}, preset, options)
    return Differences(**chosen), replace(settings, stop=chosen["stop"])
