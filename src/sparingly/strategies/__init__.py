"""Who decides: published algorithms, baselines and Sparing, on the games and the learning parts.

The module can be called: `sparingly.strategies()` is every strategy by name.
"""

from __future__ import annotations

import sys
from types import ModuleType

from sparingly.strategies.baselines.always_ask import AlwaysAsk
from sparingly.strategies.baselines.explore_then_commit import ExploreThenCommit
from sparingly.strategies.baselines.label_budget import LabelBudget
from sparingly.strategies.baselines.never_ask import NeverAsk
from sparingly.strategies.baselines.random_asks import RandomAsks
from sparingly.strategies.baselines.uncertainty_sampling import Entropy, LeastConfidence, SmallestMargin
from sparingly.strategies.conformance import ConformanceError, check
from sparingly.strategies.published.partial_monitoring.cbp import CBP
from sparingly.strategies.published.partial_monitoring.cbp_side import CBPside
from sparingly.strategies.published.partial_monitoring.feed_exp3 import FeedExp3
from sparingly.strategies.published.partial_monitoring.neural_cbp import NeuralCBP
from sparingly.strategies.published.partial_monitoring.rand_cbp import RandCBP
from sparingly.strategies.published.partial_monitoring.rand_cbp_side import RandCBPside
from sparingly.strategies.published.partial_monitoring.tspm import TSPM
from sparingly.strategies.published.selective_sampling.alps import ALPS
from sparingly.strategies.published.selective_sampling.cesa import Cesa
from sparingly.strategies.published.selective_sampling.gappletron import Gappletron
from sparingly.strategies.published.selective_sampling.ineural import INeural
from sparingly.strategies.published.selective_sampling.margin import Margin
from sparingly.strategies.published.selective_sampling.neur_al import NeurAL
from sparingly.strategies.published.selective_sampling.neuronal import Neuronal
from sparingly.strategies.published.selective_sampling.selective_perceptron import SelectivePerceptron
from sparingly.strategies.registry import registered
from sparingly.strategies.sparing.sparing import Sparing
from sparingly.strategies.strategy import NEVER, Assessment, Decision, StateError, Strategy, Why


class _Registry(ModuleType):
    def __call__(self) -> dict[str, type[Strategy]]:
        return registered()


sys.modules[__name__].__class__ = _Registry

__all__ = [
    "ALPS",
    "AlwaysAsk",
    "Assessment",
    "CBP",
    "CBPside",
    "Cesa",
    "ConformanceError",
    "Decision",
    "Entropy",
    "ExploreThenCommit",
    "FeedExp3",
    "Gappletron",
    "INeural",
    "LabelBudget",
    "LeastConfidence",
    "Margin",
    "NEVER",
    "NeurAL",
    "NeuralCBP",
    "Neuronal",
    "NeverAsk",
    "RandCBP",
    "RandCBPside",
    "RandomAsks",
    "SelectivePerceptron",
    "SmallestMargin",
    "Sparing",
    "StateError",
    "Strategy",
    "TSPM",
    "Why",
    "check",
    "registered",
]
