"""A game's structure in words a practitioner understands, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from sparingly.games.geometry import Geometry
from sparingly.games.linear_programs import largest_minimum

_FEW = 6
_LISTED = 5000

_VERDICT = {
    "trivial": "Trivial: there is nothing to learn.",
    "easy": "Easy: the actions worth comparing tell which of them is better. "
    "Regret can be held to about the square root of the number of rounds.",
    "hard": "Hard: to learn which action is better you must sometimes pay for one that is not. "
    "Regret can be held to about the number of rounds to the power 2/3.",
    "hopeless": "Hopeless: what matters cannot be seen. Regret will grow linearly, whatever you do.",
}


def explain(geometry: Geometry) -> list[str]:
    """Return what a practitioner should know about a game, a sentence or two at a time.

    >>> from sparingly.games import analyze, label_efficient
    >>> for sentence in explain(analyze(label_efficient(classes=["ham", "spam"]))): print(sentence)
    Hard: to learn which action is better you must sometimes pay for one that is not. Regret can be held to about...
    Depending on how likely the outcomes are, the cheapest action is "announce ham" or "announce spam".
    "ask the expert" is never the cheapest action, but it is the only one that tells you anything.
    Asking would be worth its price by itself, where classes are hard to tell apart, only if it cost less than 0.5.
    """
    return [
        *_noisy_experts(geometry),
        _VERDICT[geometry.observability],
        *_cheapest(geometry),
        *_telling(geometry),
        *_question_price(geometry),
        *_blind(geometry),
    ]


def as_json(geometry: Geometry) -> str:
    """Return the structure, by action number, and the explanation as a JSON object."""
    game = geometry.game
    content = {
        "actions": game.actions,
        "outcomes": game.outcomes,
        "fingerprint": game.fingerprint,
        "observability": geometry.observability,
        "pareto": geometry.pareto,
        "degenerate": geometry.degenerate,
        "dominated": geometry.dominated,
        "informative": geometry.informative,
        "n_neighbors": len(geometry.neighbors),
        # Left out where they would fill a disk: in closed form every pair of classes is there.
        "neighbors": list(_pairs(geometry)) if len(geometry.neighbors) <= _LISTED else None,
        "explanation": explain(geometry),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _pairs(geometry: Geometry) -> Iterator[dict[str, object]]:
    for pair in geometry.neighbors:
        vectors = geometry.observers.get(pair, {})
        yield {
            "pair": pair,
            "neighborhood": geometry.neighborhood[pair],
            "locally_observable": geometry.is_locally_observable(pair),
            "globally_observable": bool(vectors),
            "observers": {str(action): vector.tolist() for action, vector in vectors.items()},
        }


def _cheapest(geometry: Geometry) -> Iterator[str]:
    names = geometry.game.actions
    if geometry.observability == "trivial":
        yield f"Whatever happens, nothing is cheaper than {_either(names, geometry.pareto)}."
    else:
        yield f"Depending on how likely the outcomes are, the cheapest action is {_either(names, geometry.pareto)}."
    if geometry.degenerate:
        verb = "is" if len(geometry.degenerate) == 1 else "are"
        yield f"{_both(names, geometry.degenerate)} {verb} at best as cheap as another action, never cheaper."
    silent = [a for a in geometry.dominated if a not in geometry.informative]
    if silent:
        verb = "is" if len(silent) == 1 else "are"
        yield f"{_both(names, silent)} {verb} never the cheapest action and tell{'s' * (len(silent) == 1)} you nothing."


def _telling(geometry: Geometry) -> Iterator[str]:
    names, informative = geometry.game.actions, geometry.informative
    dominated = [a for a in informative if a in set(geometry.dominated)]
    if not informative:
        yield "No action tells you anything about the outcome."
    elif len(informative) == geometry.game.n_actions:
        yield "Every action tells you something about the outcome."
    elif dominated == list(informative) and len(dominated) == 1:
        name = _quoted(names[dominated[0]])
        yield f"{name} is never the cheapest action, but it is the only one that tells you anything."
    elif dominated == list(informative):
        experts = _both(names, dominated)
        yield f"{experts} are never the cheapest actions, but they are the only ones that tell you anything."
    else:
        yield f"Only {_both(names, informative)} tell{'s' * (len(informative) == 1)} you anything about the outcome."
        if dominated:
            verb = "is" if len(dominated) == 1 else "are"
            yield f"Of these, {_both(names, dominated)} {verb} never the cheapest."


def _noisy_experts(geometry: Geometry) -> Iterator[str]:
    """Say what experts who may be wrong mean for the game; the rest is about the game without them."""
    noisy = [expert.name for expert in geometry.noisy_experts]
    if not noisy:
        return
    who, plural = _both(noisy, range(len(noisy))), len(noisy) > 1
    if any(expert.gold for expert in geometry.game.experts):
        yield (
            f"{who} may be wrong: how often is learned from answers heard beside the truth, and an answer is worth "
            "what it takes from the risk of the announcement."
        )
        yield f"Without {'them' if plural else who}, by what can be known for certain:"
    else:
        yield (
            f"No one tells you the truth: {who} may be wrong, and how often can only be guessed from agreement. Regret "
            f"against the truth grows linearly unless {'they are' if plural else 'it is'} right everywhere."
        )
        yield "By what can be known for certain:"


def _question_price(geometry: Geometry) -> Iterator[str]:
    """Say where asking starts to pay, for label-efficient games: at the value of the announcing game."""
    game = geometry.game
    ask = game.costs[game.n_outcomes :]
    if not game.is_label_efficient or np.ptp(ask, axis=1).max() > 0:
        return
    if geometry.error_costs is not None:
        # Announcing costs most at the distribution that makes all a_i p_i equal.
        worth = float(np.diag(game.costs[: game.n_outcomes]) @ (1 / geometry.error_costs) + game.n_outcomes - 1)
        worth /= float((1 / geometry.error_costs).sum())
    else:
        worth = largest_minimum(game.costs[: game.n_outcomes])
    if ask.min() >= worth:
        yield (
            "Asking would be worth its price by itself, where classes are hard to tell apart, "
            f"only if it cost less than {worth:.4g}."
        )
    else:
        yield f"Asking at {ask.min():.4g} is cheaper than announcing wherever the best guess costs more than that."


def _blind(geometry: Geometry) -> Iterator[str]:
    if geometry.observability != "hopeless":
        return
    game = geometry.game
    columns: dict[tuple[object, ...], list[int]] = {}
    for outcome in range(game.n_outcomes):
        columns.setdefault(tuple(row[outcome] for row in game.feedback), []).append(outcome)
    for alike in columns.values():
        if len(alike) > 1 and np.ptp(game.costs[:, alike] - game.costs[:1, alike], axis=1).max() > 0:
            kind = "classes" if game.is_label_efficient else "outcomes"
            names = _both(game.outcomes, alike)
            yield f"No action can tell {kind} {names} apart: regret will grow linearly, whatever you do."
    unseen = next(pair for pair in geometry.neighbors if not geometry.is_observable(pair))
    yield f"Nothing you can see tells whether {_either(game.actions, unseen)} is cheaper."


def _either(names: Sequence[str], chosen: Sequence[int]) -> str:
    return _joined(names, chosen, "or")


def _both(names: Sequence[str], chosen: Sequence[int]) -> str:
    return _joined(names, chosen, "and")


def _joined(names: Sequence[str], chosen: Sequence[int], word: str) -> str:
    shown = [_quoted(names[i]) for i in chosen[:_FEW]]
    if len(chosen) > _FEW:
        shown = [*shown[: _FEW - 1], f"{len(chosen) - _FEW + 1} others"]
    if len(shown) == 1:
        return shown[0]
    return f"{', '.join(shown[:-1])} {word} {shown[-1]}"


def _quoted(name: str) -> str:
    return f'"{name}"'
