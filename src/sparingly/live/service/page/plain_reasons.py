"""Why the agent asks or announces, for people: what it holds likely, and not what a label is worth to it."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

CLOSE = 0.5
"""A guess is close to the best one if it is at least this share as likely."""

UNSURE = 0.8
"""Below this probability the best guess alone is a reason to ask."""

MOST, LEAST = 6, 0.02
"""So many classes are called likely, and none that is less likely than this."""


def plain_reason(
    why: str, asks: bool, probabilities: Mapping[Any, float], numbers: Mapping[str, Any], *, names: bool = True
) -> str:
    """The reason in a sentence; without `names` it does not tell which class the agent would announce.

    A reason without numbers is the strategy's own.

    >>> close, numbers = {"joy": 0.48, "guilt": 0.41, "anger": 0.11}, {"risk": 0.52, "price": 0.5}
    >>> plain_reason("the label is worth 0.21", True, close, numbers)
    'two guesses are close: joy 48 %, guilt 41 %'
    >>> plain_reason("the label is worth 0.21", True, close, numbers, names=False)
    'two guesses are close: 48 % and 41 %'
    >>> plain_reason("the question costs 0.9 more", False, {"joy": 0.95, "guilt": 0.05}, {"risk": 0.05})
    'joy is 95 % likely: asking would cost more than it saves'
    >>> plain_reason("guess: nothing learned yet", False, close, numbers)
    'guess: nothing learned yet'
    >>> plain_reason("it asks about everything", True, close, {})
    'it asks about everything'
    """
    if why.startswith(("guess:", "held:")):
        return why
    if "start" in numbers:
        return f"it is still learning: {why}"
    if not numbers or not probabilities or max(probabilities.values()) - min(probabilities.values()) < 1e-6:
        return why
    best = heapq.nlargest(4, probabilities, key=probabilities.__getitem__)
    first = probabilities[best[0]]
    guess = str(best[0]) if names else "the best guess"
    if not asks:
        return f"{guess} is {_percent(first)} likely: {_announced(why)}"
    if numbers.get("audit") or "random" in why:
        return f"a random check: {guess} is {_percent(first)} likely, and some of the sure ones are asked about, too"
    near = [name for name in best if probabilities[name] >= CLOSE * first]
    if len(near) > 1:
        return _close(near, probabilities, names)
    if first < UNSURE:
        return f"{guess} is only {_percent(first)} likely"
    return f"{guess} is {_percent(first)} likely, but {_worth_it(numbers)}"


def likely_classes(probabilities: Mapping[Any, float], *, in_order: bool) -> list[Any]:
    """The few likeliest classes: likeliest first, or as they stand, so that the list does not tell the best guess.

    >>> likely_classes({"joy": 0.3, "guilt": 0.6, "anger": 0.09, "fear": 0.01}, in_order=True)
    ['guilt', 'joy', 'anger']
    >>> likely_classes({"joy": 0.3, "guilt": 0.6, "anger": 0.09, "fear": 0.01}, in_order=False)
    ['joy', 'guilt', 'anger']
    """
    if not probabilities or max(probabilities.values()) - min(probabilities.values()) < 1e-6:
        return []
    best = heapq.nlargest(MOST, probabilities, key=probabilities.__getitem__)
    found = [name for name in best if probabilities[name] >= LEAST]
    return found if in_order else [name for name in probabilities if name in found]


def _close(near: list[Any], probabilities: Mapping[Any, float], names: bool) -> str:
    count = "two" if len(near) == 2 else "three" if len(near) == 3 else "several"
    shares = [f"{name} {_percent(probabilities[name])}" if names else _percent(probabilities[name]) for name in near]
    listed = ", ".join(shares) if names else ", ".join(shares[:-1]) + f" and {shares[-1]}"
    return f"{count} guesses are close: {listed}"


def _announced(why: str) -> str:
    """What follows from a guess that was announced: a limit may have forbidden the question."""
    _, _, refusal = why.partition("; not asked, for ")
    return f"it was not asked, for {refusal}" if refusal else "asking would cost more than it saves"


def _worth_it(numbers: Mapping[str, Any]) -> str:
    risk, price = numbers.get("risk"), numbers.get("price")
    if risk is not None and price is not None and risk > price:
        return "a mistake would cost more than the question"
    return "the answer will help with others like it"


def _percent(probability: float) -> str:
    return f"{100 * probability:.0f} %"
