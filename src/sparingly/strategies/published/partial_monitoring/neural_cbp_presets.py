"""Where NeuralCBP's text and its authors' released code differ: each point an option, each side a preset."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sparingly.strategies.families.network_options import check_choice, preset_options


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
            check_choice(choices, **{name: getattr(self, name)})

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


def differences(
    preset: str,
    *,
    embedding: str | None = None,
    pseudo_count: str | None = None,
    widths: str | None = None,
    ties: str | None = None,
    rate_offset: int | None = None,
    stop: float | Literal["preset"] | None = "preset",
    objective: str | None = None,
    residuals: str | None = None,
) -> Differences:
    """A preset with what is given in its place; a `stop` of None is given, since it makes every epoch.

    >>> chosen = differences("released", widths="absolute", stop=None)
    >>> chosen.widths, chosen.ties, chosen.stop
    ('absolute', 'lowest', None)
    """
    chosen = preset_options(
        {name: asdict(each) for name, each in PRESETS.items()},
        preset,
        embedding=embedding,
        pseudo_count=pseudo_count,
        widths=widths,
        ties=ties,
        rate_offset=rate_offset,
        objective=objective,
        residuals=residuals,
    )
    return Differences(**chosen if stop == "preset" else {**chosen, "stop": stop})
