"""From what a user says when an agent is made to its settings: a mistake is named before anything is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sparingly.games import Game, label_efficient
from sparingly.games.costs import read_costs
from sparingly.live.agent.agent_settings import Settings, checked_classes, choose_strategy, maker
from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.question_limits import Limits
from sparingly.live.agent.ticket_records import Label
from sparingly.strategies import registered
from sparingly.strategies.strategy import Strategy


def made_settings(
    classes: Sequence[Label],
    n_features: int | tuple[int, ...] | None,
    *,
    costs: Any,
    query_cost: float,
    seed: int,
    training: str,
    strategy: str | Strategy | None,
    options: Mapping[str, Any] | None,
    game: Game | None,
    feature_names: Sequence[str] | None,
    limits: Limits,
    audit_rate: float,
    keep: int,
) -> Settings:
    """The settings of a new agent; the parameters are those of `Agent`."""
    instance = strategy if isinstance(strategy, Strategy) else None
    names = checked_classes(classes)
    if game is None:
        game = _game(names, costs, query_cost) if instance is None else instance.game
    _check_game(game, names, costs, query_cost, instance)
    plain = _plain(instance.made_with if instance is not None else options or {})
    if plain is None and instance is None:
        raise AgentError(f"options is {options!r}: it must be plain values")
    shape = _shape(n_features, feature_names, instance)
    if not isinstance(strategy, str):
        strategy = instance.name if instance is not None else choose_strategy(game, shape, plain or {}, seed)
    settings = Settings(
        classes=names,
        costs=tuple(tuple(float(c) for c in row) for row in game.costs),
        feedback=tuple(tuple(row) for row in game.feedback),
        actions=game.actions,
        outcomes=game.outcomes,
        strategy=strategy,
        instance=plain is None or (instance is not None and instance.name not in registered()),
        options={name: value for name, value in (plain or {}).items() if name != "seed"},
        seed=seed if instance is None else instance.seed,
        training=checked_training(training),
        audit_rate=_rate(audit_rate),
        keep=keep,
        limits=limits,
        shape=shape,
        names=tuple(map(str, feature_names)) if feature_names is not None else None,
    )
    try_strategy(settings, instance)
    return settings


def _game(classes: Sequence[Label], costs: Any, query_cost: float) -> Game:
    try:
        return label_efficient(
            len(classes), costs=read_costs(costs, classes), query_cost=query_cost, classes=[str(c) for c in classes]
        )
    except ValueError as error:
        raise AgentError(str(error)) from None


def _check_game(game: Game, classes: Sequence[Label], costs: Any, query_cost: float, instance: Strategy | None) -> None:
    if not game.is_label_efficient:
        raise AgentError("an agent needs a game whose first actions announce the classes and whose others ask")
    if game.n_outcomes != len(classes):
        raise AgentError(f"the game has {game.n_outcomes} outcomes for {len(classes)} classes")
    if instance is not None and instance.game != game:
        raise AgentError("the strategy plays another game than the one given")
    if instance is not None and costs is not None and (_game(classes, costs, query_cost).costs != game.costs).any():
        raise AgentError("the strategy's game has other costs than those given")


def _plain(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Options as JSON gives them back, or None if they are more than plain values."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(options), allow_nan=False))
    except (TypeError, ValueError):
        return None
    return plain


def _shape(
    n_features: int | tuple[int, ...] | None, names: Sequence[str] | None, instance: Strategy | None
) -> tuple[int, ...] | None:
    if instance is not None:
        return instance.shape
    if n_features is None:
        return (len(names),) if names is not None else None
    shape = (n_features,) if isinstance(n_features, int) else tuple(n_features)
    if not shape or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in shape):
        raise AgentError(f"n_features is {n_features!r}: it must be a positive number or a shape of positive numbers")
    if names is not None and (len(names),) != shape:
        raise AgentError(f"there are {len(names)} feature names for {n_features} features")
    return shape


def try_strategy(settings: Settings, instance: Strategy | None) -> None:
    """Make the strategy once, so that a setting it refuses is refused now and not at the first observation."""
    if instance is None and settings.strategy not in registered():
        raise AgentError(f"strategy {settings.strategy!r} is unknown: there are {', '.join(registered())}")
    if settings.shape is not None and instance is None:
        try:
            maker(settings, None)()
        except (TypeError, ValueError) as error:
            raise AgentError(f"strategy {settings.strategy!r} refuses these settings: {error}") from None


def checked_training(training: str) -> str:
    if training not in ("inline", "background"):
        raise AgentError(f"training is {training!r}: it must be 'inline' or 'background'")
    return training


def _rate(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise AgentError(f"audit_rate is {rate!r}: it must be between 0 and 1")
    return float(rate)
