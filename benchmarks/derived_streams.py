"""Streams derived from recorded answers: fewer classes, texts that tell nothing, a better language model.

Two recorded streams say little of others. Here the same texts and the same answers, mistakes included, become streams
of other kinds: with two or three classes of which one is common, with language models that are right less often than
that class is met or hardly ever wrong, with observations that have nothing to do with the classes.
`python -m benchmarks experts derived 0 1` plays them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.dataset import Dataset
from sparingly.experiments.dataset_sources import RECORDED
from sparingly.experiments.table_encoding import encode_target

TOPICS = {
    "exchange": ("exchange", "currenc"),
    "top up": ("top_up", "topping"),
    "cash": ("cash", "atm"),
    "transfer": ("transfer", "beneficiary", "receiving_money"),
    "payment": ("payment", "refund", "charge"),
    "identity": ("verify", "identity"),
    "card": ("card", "pin", "contactless"),
}
"""Of banking77's intents, by the first of these words that is in their names; what has none is about an account."""


def topic(intent: str) -> str:
    """What an intent is about.

    >>> topic("card_payment_wrong_exchange_rate"), topic("Refund_not_showing_up"), topic("age_limit")
    ('exchange', 'payment', 'account')
    """
    found = (name for name, words in TOPICS.items() if any(word in intent.lower() for word in words))
    return next(found, "account")


def named(*yes: str) -> Callable[[str], str]:
    """Whether a class is one of these.

    >>> [named("joy")(one) for one in ("joy", "fear")]
    ['yes', 'no']
    """
    return lambda label: "yes" if label in yes else "no"


def tone(emotion: str) -> str:
    """Three kinds of emotions."""
    return {"joy": "glad", "fear": "low", "sadness": "low"}.get(emotion, "hostile or ashamed")


@dataclass(frozen=True, slots=True)
class Derivation:
    """What becomes of a stream with recorded answers.

    Attributes
    ----------
    source
        The recorded stream.
    group
        The class that each of its classes becomes; as it is if None.
    heard
        The same for answers, if another: whoever names a class too often is wrong in a way of its own.
    shuffled
        Whether each text is replaced by another's, so that observations tell nothing.
    raised
        How often the first expert is right at the least: answers drawn at random become the truth.
    """

    source: str
    group: Callable[[str], str] | None = None
    heard: Callable[[str], str] | None = None
    shuffled: bool = False
    raised: float = 0.0


DERIVED = {
    "isear-joy": Derivation("isear", named("joy")),
    "isear-sadness": Derivation("isear", named("sadness")),
    "isear-anger": Derivation("isear", named("anger"), heard=named("anger", "disgust")),
    "isear-tone": Derivation("isear", tone),
    "isear-blind": Derivation("isear", shuffled=True),
    "isear-claims": Derivation("isear", named("guilt", "sadness", "shame"), shuffled=True),
    "isear-raised": Derivation("isear", raised=0.95),
    "banking-topics": Derivation("banking77", topic),
}
"""By name."""
SEED = 20
"""Of what is drawn once for a stream, whatever its order."""


def source(name: str) -> str:
    """The stream with recorded answers that a stream is, or is derived from; the name itself if it is neither."""
    return DERIVED[name].source if name in DERIVED else name


def experts(name: str) -> tuple[str, ...]:
    """The language models whose answers are recorded with a stream; none if there are no such."""
    return RECORDED.get(source(name), ())


def derive(data: Dataset, how: Derivation) -> Dataset:
    """The stream that a recorded one becomes.

    >>> said = {"gpt": np.array([1, 2, -1, 0])}
    >>> data = Dataset("isear", np.eye(4), np.array([0, 1, 2, 2]), ("anger", "fear", "joy"), answers=said)
    >>> binary = derive(data, Derivation("isear", named("joy")))
    >>> binary.classes, binary.y.tolist(), binary.answers["gpt"].tolist()
    (('no', 'yes'), [0, 0, 1, 1], [0, 1, -1, 0])
    >>> int((derive(data, Derivation("isear", named("joy"), raised=0.75)).answers["gpt"] == binary.y).sum())
    3
    """
    rng = np.random.default_rng(SEED)
    group = how.group or str
    y, classes = encode_target(np.array([group(data.classes[k]) for k in data.y]))
    places = np.array([classes.index((how.heard or group)(label)) for label in data.classes])
    answers = {name: np.where(said >= 0, places[said], -1) for name, said in data.answers.items()}
    first = next(iter(answers))
    answers[first] = _raised(answers[first], y, how.raised, rng)
    raw = np.asarray(data.raw)
    return replace(
        data, raw=raw[rng.permutation(len(y))] if how.shuffled else raw, y=y, classes=classes, answers=answers
    )


def _raised(
    said: NDArray[np.int64], y: NDArray[np.int64], accuracy: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Answers of which so many wrong ones, drawn at random, become the truth that this share is right."""
    wrong = rng.permutation(np.flatnonzero(said != y))
    mended = wrong[: max(0, int(np.ceil(accuracy * len(y))) - (len(y) - len(wrong)))]
    raised = said.copy()
    raised[mended] = y[mended]
    return raised
