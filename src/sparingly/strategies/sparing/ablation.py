"""What can be taken out of Sparing, to measure what it is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ablation:
    """Sparing with parts taken out; as it stands, with everything in.

    Attributes
    ----------
    intervals
        Of the quantile encoding; 1 is a linear one.
    kernel, trees
        Without them there are only networks.
    learnability
        Without it, what labels have taught is not measured: gamma stays at its prior.
    selection
        Without it every observation counts as the average one.
    crossfit
        Without it every member of the ensemble sees every label.
    """

    intervals: int = 8
    kernel: bool = True
    trees: bool = True
    learnability: bool = True
    selection: bool = True
    crossfit: bool = True
