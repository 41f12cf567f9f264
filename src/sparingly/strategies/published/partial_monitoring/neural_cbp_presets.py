"""Where NeuralCBP's text and its authors' released code differ: each point an option, each side a preset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sparingly.learning.schedules import UpdateSchedule
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
    start
        "each": every action once, in order. "question_first": the question, which is the released code's action 0,
        before the announcements. "informative": only actions that tell something.
    wait
        How many rounds after the start the first update may come: the released code counts rounds from 0 and updates
        once t > N, so it waits 2, and does not make up its mind on one label.
    schedule
        When the networks learn: after rounds 50, 100, ... ("paper"), or after 51, 101, ... ("released").
    confident
        Of a pair whose gap is "above" its width, or "reaches" it.
    contradiction
        What is kept where the confident signs exclude every distribution: the "pareto" actions, or "all" actions.
    """

    embedding: str
    pseudo_count: str
    widths: str
    ties: str
    rate_offset: int
    stop: float | None
    objective: str
    residuals: str
    start: str
    wait: int
    schedule: str | UpdateSchedule
    confident: str
    contradiction: str

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(choices, **{name: getattr(self, name)})
        if self.wait < 0:
            raise ValueError(f"wait is {self.wait}: it must not be negative")

    def of_state(self) -> dict[str, Any]:
        """What a state depends on: not when its networks learned, nor how a choice was made from them."""
        return {name: getattr(self, name) for name in _OF_STATE}


_CHOICES = {
    "embedding": ("paper", "released"),
    "pseudo_count": ("inverse", "squared"),
    "widths": ("absolute", "signed"),
    "ties": ("cheapest", "lowest"),
    "objective": ("half_squared", "mean_squared"),
    "residuals": ("fresh", "kept"),
    "start": ("each", "question_first", "informative"),
    "confident": ("above", "reaches"),
    "contradiction": ("pareto", "all"),
}
_OF_STATE = ("embedding", "pseudo_count", "widths", "ties", "rate_offset", "stop", "objective", "residuals")

PRESETS = {
    "paper": Differences(
        embedding="paper",
        pseudo_count="inverse",
        widths="absolute",
        ties="cheapest",
        rate_offset=0,
        stop=None,
        objective="half_squared",
        residuals="fresh",
        start="each",
        wait=0,
        schedule="paper",
        confident="above",
        contradiction="pareto",
    ),
    "released": Differences(
        embedding="released",
        pseudo_count="squared",
        widths="signed",
        ties="lowest",
        rate_offset=1,
        stop=1e-3,
        objective="mean_squared",
        residuals="kept",
        start="question_first",
        wait=2,
        schedule="released",
        confident="reaches",
        contradiction="all",
    ),
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
    start: str | None = None,
    wait: int | None = None,
    schedule: str | UpdateSchedule | None = None,
    confident: str | None = None,
    contradiction: str | None = None,
) -> Differences:
    """A preset with what is given in its place; a `stop` of None is given, since it makes every epoch.

    >>> chosen = differences("released", widths="absolute", stop=None)
    >>> chosen.widths, chosen.ties, chosen.stop
    ('absolute', 'lowest', None)
    """
    chosen = preset_options(
        {name: vars(each) for name, each in PRESETS.items()},
        preset,
        embedding=embedding,
        pseudo_count=pseudo_count,
        widths=widths,
        ties=ties,
        rate_offset=rate_offset,
        objective=objective,
        residuals=residuals,
        start=start,
        wait=wait,
        schedule=schedule,
        confident=confident,
        contradiction=contradiction,
    )
    return Differences(**chosen if stop == "preset" else {**chosen, "stop": stop})
