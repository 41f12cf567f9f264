"""The strategy of an agent: which one plays its game if none is named, and how it is made from the settings."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sparingly.games import Game
from sparingly.live.agent.errors import AgentError
from sparingly.strategies import registered
from sparingly.strategies.strategy import Strategy

if TYPE_CHECKING:
    from sparingly.live.agent.agent_settings import AgentSettings

BY_DEFAULT = ("sparing", "neural_cbp")
"""The strategies that are tried, in this order, when none is named."""


def choose_strategy(game: Game, shape: tuple[int, ...] | None, options: Mapping[str, Any], seed: int) -> str:
    """The first strategy of `BY_DEFAULT` that is there and accepts the game."""
    refusals = []
    for name in BY_DEFAULT:
        if name not in registered():
            continue
        try:
            registered()[name](game, shape or 2, seed=seed, **options)
            return name
        except (ValueError, RuntimeError, MemoryError) as error:
            refusals.append(f"{name}: {error}")
    raise AgentError(f"no strategy plays this game ({'; '.join(refusals) or 'none is registered'}): name one")


def maker(settings: AgentSettings, instance: Strategy | None) -> Callable[[], Strategy]:
    """A function that makes the strategy as it was before the first observation, and before any class was added."""
    settings = settings.original
    if instance is not None:
        template = copy.deepcopy(instance)
        return lambda: copy.deepcopy(template)
    if settings.instance:
        raise AgentError(f"strategy {settings.strategy!r} was an instance: pass the strategy it was made with")
    if settings.strategy not in registered():
        raise AgentError(
            f"strategy {settings.strategy!r} is not registered: pass the instance, or one of {', '.join(registered())}"
        )

    def make() -> Strategy:
        assert settings.shape is not None
        shape = settings.shape if len(settings.shape) > 1 else settings.shape[0]
        options = dict(settings.options)
        if settings.horizon is not None and takes("horizon", settings.strategy):
            options.setdefault("horizon", settings.horizon)
        if settings.tells_names and takes("class_vectors", settings.strategy):
            options.setdefault("class_vectors", settings.schema.only_encoder)
        return registered()[settings.strategy](settings.game, shape, seed=settings.seed, **options)

    return make


def try_strategy(settings: AgentSettings, instance: Strategy | None) -> None:
    """Make the strategy once, so that a setting it refuses is refused now and not at the first observation."""
    if instance is None and settings.strategy not in registered():
        raise AgentError(f"strategy {settings.strategy!r} is unknown: there are {', '.join(registered())}")
    if settings.shape is not None and instance is None:
        try:
            maker(settings, None)()
        except (TypeError, ValueError, RuntimeError, MemoryError) as error:
            raise AgentError(f"strategy {settings.strategy!r} refuses these settings: {error}") from None


def takes(option: str, strategy: str) -> bool:
    """Whether a registered strategy takes an option, such as the number of observations to expect."""
    made = registered().get(strategy)
    return made is not None and option in inspect.signature(made.__init__).parameters
