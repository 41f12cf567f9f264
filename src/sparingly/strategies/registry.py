"""Every strategy by name: a new one is a file, and one line here."""

from __future__ import annotations

from sparingly.strategies.baselines.always_ask import AlwaysAsk
from sparingly.strategies.baselines.always_expert import AlwaysExpert
from sparingly.strategies.baselines.answer_as_feature import AnswerAsFeature
from sparingly.strategies.baselines.confidence_dial import ConfidenceDial
from sparingly.strategies.baselines.explore_then_commit import ExploreThenCommit
from sparingly.strategies.baselines.explore_then_trust import ExploreThenTrust
from sparingly.strategies.baselines.label_budget import LabelBudget
from sparingly.strategies.baselines.majority import Majority
from sparingly.strategies.baselines.never_ask import NeverAsk
from sparingly.strategies.baselines.random_asks import RandomAsks
from sparingly.strategies.baselines.uncertainty_sampling import Entropy, LeastConfidence, SmallestMargin
from sparingly.strategies.published.partial_monitoring.cbp import CBP
from sparingly.strategies.published.partial_monitoring.cbp_side import CBPside
from sparingly.strategies.published.partial_monitoring.feed_exp3 import FeedExp3
from sparingly.strategies.published.partial_monitoring.neural_cbp import NeuralCBP
from sparingly.strategies.published.partial_monitoring.rand_cbp import RandCBP
from sparingly.strategies.published.partial_monitoring.rand_cbp_side import RandCBPside
from sparingly.strategies.published.partial_monitoring.tspm import TSPM
from sparingly.strategies.published.selective_sampling.alps import ALPS
from sparingly.strategies.published.selective_sampling.center_classifier import CenterClassifier
from sparingly.strategies.published.selective_sampling.cesa import Cesa
from sparingly.strategies.published.selective_sampling.gappletron import Gappletron
from sparingly.strategies.published.selective_sampling.hull_classifier import HullClassifier
from sparingly.strategies.published.selective_sampling.ineural import INeural
from sparingly.strategies.published.selective_sampling.margin import Margin
from sparingly.strategies.published.selective_sampling.neur_al import NeurAL
from sparingly.strategies.published.selective_sampling.neuronal import Neuronal
from sparingly.strategies.published.selective_sampling.selective_perceptron import SelectivePerceptron
from sparingly.strategies.published.several_experts.cache_and_distil import CacheAndDistil
from sparingly.strategies.published.several_experts.ocats import OCaTS
from sparingly.strategies.published.several_experts.online_cascade import OnlineCascade
from sparingly.strategies.published.several_experts.several_teachers import SeveralTeachers
from sparingly.strategies.sparing.sparing import Sparing
from sparingly.strategies.strategy import Strategy

_ALL: tuple[type[Strategy], ...] = (
    Sparing,
    NeuralCBP,
    Neuronal,
    INeural,
    NeurAL,
    ALPS,
    Gappletron,
    Cesa,
    SelectivePerceptron,
    Margin,
    LeastConfidence,
    Entropy,
    SmallestMargin,
    LabelBudget,
    ExploreThenCommit,
    CBP,
    RandCBP,
    CBPside,
    RandCBPside,
    FeedExp3,
    TSPM,
    CenterClassifier,
    HullClassifier,
    OnlineCascade,
    OCaTS,
    CacheAndDistil,
    SeveralTeachers,
    AnswerAsFeature,
    ConfidenceDial,
    ExploreThenTrust,
    AlwaysExpert,
    Majority,
    AlwaysAsk,
    NeverAsk,
    RandomAsks,
)


def registered() -> dict[str, type[Strategy]]:
    """Every strategy by name."""
    return {strategy.name: strategy for strategy in _ALL}
