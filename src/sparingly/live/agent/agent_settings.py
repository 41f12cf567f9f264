"""What an agent was made with: enough to make its game and its strategy again, as plain JSON."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from sparingly.games import Game
from sparingly.live.agent.errors import AgentError, checked_text, shortened
from sparingly.live.agent.features import Schema
from sparingly.live.agent.question_limits import Limits
from sparingly.live.agent.ticket_records import Label
from sparingly.strategies import registered
from sparingly.strategies.strategy import Strategy

BY_DEFAULT = ("sparing", "neural_cbp")
"""The strategies that are tried, in this order, when none is named."""


@dataclass(frozen=True)
class Settings:
    """Everything that does not change while an agent lives, except what the first observation tells."""

    classes: tuple[Label, ...]
    costs: tuple[tuple[float, ...], ...]
    feedback: tuple[tuple[Any, ...], ...]
    actions: tuple[str, ...]
    outcomes: tuple[str, ...]
    strategy: str
    instance: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    training: str = "inline"
    audit_rate: float = 0.0
    keep: int = 20_000
    limits: Limits = field(default_factory=Limits)
    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None

    @cached_property
    def game(self) -> Game:
        return Game(self.costs, self.feedback, actions=self.actions, outcomes=self.outcomes)

    @property
    def schema(self) -> Schema:
        return Schema(self.shape, self.names)

    def with_schema(self, schema: Schema) -> Settings:
        return replace(self, shape=schema.shape, names=schema.names)

    def to_json(self) -> str:
        try:
            return json.dumps(asdict(self), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AgentError(f"the settings must be plain values: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> Settings:
        values = {name: _frozen(value) for name, value in json.loads(text).items()}
        known = {f.name for f in fields(cls)}
        values["limits"] = Limits(**values["limits"])
        return cls(**{name: value for name, value in values.items() if name in known})

    def differs(self, other: Settings) -> str | None:
        """The first setting, in words, in which an agent made with `other` would not be this one."""
        for name in ("classes", "costs", "feedback", "strategy", "options", "seed", "audit_rate"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                return f"{name} is {_listed(ours)}, not {_listed(theirs)}"
        for name in ("shape", "names"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None and ours is not None and ours != theirs:
                return f"the {name} of an observation is {_listed(ours)}, not {_listed(theirs)}"
        return None


def checked_classes(classes: Sequence[Label]) -> tuple[Label, ...]:
    """The classes, two or more, all different."""
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        raise AgentError(f"classes is {classes!r}: give the names of two or more classes")
    for name in classes:
        if not isinstance(name, str | int | float | bool):
            raise AgentError(f"class {shortened(name)} must be a string or a number")
        if isinstance(name, str):
            checked_text("class", name)
        if [str(other) for other in classes].count(str(name)) > 1:
            raise AgentError(f"class {name!r} is named twice")
    if len(classes) < 2:
        raise AgentError(f"an agent needs two or more classes, not {len(classes)}")
    return tuple(classes)


def choose_strategy(game: Game, shape: tuple[int, ...] | None, options: Mapping[str, Any], seed: int) -> str:
    """The first strategy of `BY_DEFAULT` that is there and accepts the game."""
    refusals = []
    for name in BY_DEFAULT:
        if name not in registered():
            continue
        try:
            registered()[name](game, shape or 2, seed=seed, **options)
            return name
        except ValueError as error:
            refusals.append(f"{name}: {error}")
    raise AgentError(f"no strategy plays this game ({'; '.join(refusals) or 'none is registered'}): name one")


def maker(settings: Settings, instance: Strategy | None) -> Callable[[], Strategy]:
    """A function that makes the strategy as it was before the first observation."""
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
        return registered()[settings.strategy](settings.game, shape, seed=settings.seed, **settings.options)

    return make


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _listed(value: Any) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 80 else text[:77] + "..."
