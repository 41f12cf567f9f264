"""What an agent was made with, checked and kept as JSON: enough to make its game and its strategy again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from sparingly.encoders import EncodingError, RowSchema, TextEncoder, stated_schema
from sparingly.experts import Expert, MachineExpert, Person
from sparingly.experts.class_descriptions import checked_descriptions
from sparingly.games import Game, label_efficient
from sparingly.games.costs import check_prices, read_costs
from sparingly.games.matrices import check_class
from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.agent.features import Schema
from sparingly.live.consultation.declared_experts import declared, game_with
from sparingly.live.quality.quality_checks import QualityChecks
from sparingly.live.tickets.ticket_records import Label
from sparingly.live.training.strategy_maker import choose_strategy, takes, try_strategy
from sparingly.strategies import registered
from sparingly.strategies.strategy import Strategy

_TOO_LARGE = 2**63
"""Whole numbers from here on do not fit into a column of a database."""

LARGEST_COST = 1e30
"""Sums and squares of larger ones are beyond the single precision of the models."""


@dataclass(frozen=True)
class QuestionLimits:
    """When the agent must not ask: it then announces its prediction, and says why."""

    open: int | None = None
    per_hour: int | None = None
    per_day: int | None = None
    total: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if limit.name == "cost":
                if value is not None and (type(value) not in (int, float) or not 0 <= value < math.inf):
                    raise AgentError(f"max_cost is {shortened(value)}: it must be a finite number from 0 on, or None")
            elif value is not None and not _is_whole(value):
                raise AgentError(
                    f"max_{limit.name} is {shortened(value)}: it must be a whole number from 0 to 2**63 - 1, or None"
                )

    @property
    def is_paced(self) -> bool:
        """Whether there is an allowance that is to be spent where it is worth most."""
        return (self.per_day, self.total, self.cost) != (None, None, None)


@dataclass(frozen=True)
class AgentSettings:
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
    retention_days: float | None = None
    limits: QuestionLimits = field(default_factory=QuestionLimits)
    horizon: int | None = None
    experts: tuple[tuple[Any, ...], ...] = ()
    """Name, price, whether gold, accuracy, and whether it is a machine, of each that has a name."""
    shape: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    encoder: str | None = None
    fields: Mapping[str, Any] | None = None
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """What classes mean, by name."""
    added: int = 0
    """How many of the classes were added after it was made; they are the last."""
    first_costs: tuple[tuple[float, ...], ...] | None = None
    """The costs that it was made with, [action, class], if they were changed since."""
    cost_changes: int = 0
    hold: bool = False
    """Whether nothing is announced before there is a model."""
    may_add_classes: tuple[str, ...] = ()
    """Who may add classes besides admins: people's names, or "*"."""
    quality: QualityChecks = field(default_factory=QualityChecks)
    people: tuple[str, ...] = ()
    """The experts who are one person each: whoever signs in under that name."""
    tells_names: bool = False
    """Whether a strategy that can learn from it is told what the classes are called; agents of release 0.1 were not."""

    @cached_property
    def game(self) -> Game:
        experts = [Expert(*expert[:4]) for expert in self.experts]
        return Game(self.costs, self.feedback, actions=self.actions, outcomes=self.outcomes, experts=experts)

    @property
    def machine_prices(self) -> dict[str, float]:
        """What the machines cost that can be asked, by name."""
        return {name: price for name, price, _, _, is_machine in self.experts if is_machine}

    @cached_property
    def machine_actions(self) -> frozenset[int]:
        """The actions that ask a machine."""
        return frozenset(len(self.classes) + e for e, expert in enumerate(self.experts) if expert[4])

    def questions_to_others(self, person: str) -> list[int]:
        """The actions that ask one particular person, who is not this one."""
        return [
            len(self.classes) + e for e, (name, *_) in enumerate(self.experts) if name in self.people and name != person
        ]

    @cached_property
    def schema(self) -> Schema:
        return Schema(self.shape, self.names, None if self.fields is None else RowSchema.from_dict(self.fields))

    @property
    def original(self) -> AgentSettings:
        """The settings with the classes and costs that the agent was made with."""
        n, game = len(self.classes) - self.added, self.game
        if self.added:
            game = game.of_first_classes(n)
        if self.first_costs is not None:
            game = game.with_costs(self.first_costs)
        return self if game is self.game else self.with_game(self.classes[:n], game)

    def with_game(self, classes: Sequence[Label], game: Game) -> AgentSettings:
        """The settings with other classes, and the game that has them."""
        changed = replace(
            self,
            classes=tuple(classes),
            costs=tuple(map(tuple, game.costs.tolist())),
            feedback=tuple(tuple(row) for row in game.feedback),
            actions=game.actions,
            outcomes=game.outcomes,
            added=self.added + len(classes) - len(self.classes),
        )
        vars(changed)["game"] = game  # the cached property would make the same game again
        return changed

    def with_schema(self, schema: Schema) -> AgentSettings:
        table = schema.table
        fields_told = None if table is None else table.to_dict()
        return replace(self, shape=schema.shape, names=schema.names, fields=fields_told).with_game_of(self)

    def with_game_of(self, other: AgentSettings) -> AgentSettings:
        """These settings; the game that `other` has made is not made again if it is the same."""
        if "game" in vars(other) and (self.costs, self.feedback) == (other.costs, other.feedback):
            vars(self)["game"] = other.game
        return self

    @property
    def described(self) -> str:
        """The classes, the strategy and what is observed, in words."""
        kinds = ", ".join(map(str, self.classes[:5])) + (", ..." if len(self.classes) > 5 else "")
        return f"{len(self.classes)} classes ({kinds}), strategy {self.strategy}, observes {self.schema.described}"

    def to_json(self) -> str:
        try:
            # `asdict` would copy every cost by itself, which takes seconds where there are many classes.
            values = {f.name: getattr(self, f.name) for f in fields(self)}
            return json.dumps(
                {**values, "limits": asdict(self.limits), "quality": self.quality.to_dict()}, allow_nan=False
            )
        except (TypeError, ValueError) as error:
            raise AgentError(f"the settings must be plain values: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> AgentSettings:
        values = {name: _frozen(value) for name, value in json.loads(text).items()}
        known = {f.name for f in fields(cls)}
        values["limits"] = QuestionLimits(**values["limits"])
        values["quality"] = QualityChecks(**values.get("quality", {}))
        return cls(**{name: value for name, value in values.items() if name in known})

    def differs(self, other: AgentSettings) -> str | None:
        """The first setting, in words, in which an agent made with `other` would not be this one."""
        mine = self.original if self.added and len(other.classes) < len(self.classes) else self
        fixed = ("classes", "costs", "feedback", "strategy", "options", "seed", "audit_rate", "horizon", "experts")
        for name in (*fixed, "people"):
            ours, theirs = getattr(mine, name), getattr(other, name)
            if ours != theirs and not (name == "costs" and theirs == self.original.costs):
                return f"{name} is {_listed(ours)}, not {_listed(theirs)}"
        rows_differ = _rows_differ(self, other)
        if rows_differ is not None:
            return rows_differ
        for name in ("shape", "names"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if theirs is not None and ours is not None and ours != theirs:
                return f"the {name} of an observation is {_listed(ours)}, not {_listed(theirs)}"
        return None


def new_settings(
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
    experts: Sequence[Expert | MachineExpert | Person] | None,
    feature_names: Sequence[str] | None,
    schema: Any,
    encoder: TextEncoder | None,
    limits: QuestionLimits,
    horizon: int | None,
    audit_rate: float,
    keep: int,
    retention_days: float | None,
    descriptions: Mapping[Any, str] | None,
    hold: bool,
    quality: QualityChecks,
) -> AgentSettings:
    """The settings of a new agent; the parameters are those of `Agent`."""
    instance = strategy if isinstance(strategy, Strategy) else None
    names = checked_classes(classes)
    _check_numbers(horizon, seed, keep)
    game = _played_game(names, costs, query_cost, game, experts, instance)
    plain = _plain_options(options, instance)
    stated = _stated_schema(n_features, feature_names, schema, encoder, instance)
    if not isinstance(strategy, str):
        strategy = instance.name if instance is not None else choose_strategy(game, stated.shape, plain or {}, seed)
    settings = AgentSettings(
        classes=names,
        costs=tuple(map(tuple, game.costs.tolist())),
        feedback=tuple(tuple(row) for row in game.feedback),
        actions=game.actions,
        outcomes=game.outcomes,
        experts=declared(game, experts or ()),
        strategy=strategy,
        instance=plain is None or (instance is not None and instance.name not in registered()),
        options={name: value for name, value in (plain or {}).items() if name != "seed"},
        seed=seed if instance is None else instance.seed,
        training=checked_training(training),
        audit_rate=_rate(audit_rate),
        keep=keep,
        retention_days=checked_retention(retention_days),
        limits=limits,
        horizon=horizon,
        encoder=None if encoder is None else encoder.name,
        descriptions=described_classes(descriptions, names),
        hold=bool(hold),
        quality=quality,
        people=tuple(one.name for one in experts or () if isinstance(one, Person)),
        tells_names=True,
    ).with_schema(stated)
    vars(settings)["game"] = game  # the cached property would make the same game again
    _check_horizon(settings, instance)
    try_strategy(settings, instance)
    return settings


def _check_numbers(horizon: int | None, seed: int, keep: int) -> None:
    if horizon is not None and (not _is_whole(horizon) or horizon < 1):
        raise AgentError(f"horizon is {shortened(horizon)}: it must be a positive number of observations, or None")
    for what, value in (("seed", seed), ("keep", keep)):
        if not _is_whole(value):
            raise AgentError(f"{what} is {shortened(value)}: it must be a whole number from 0 to 2**63 - 1")


def _played_game(
    classes: Sequence[Label],
    costs: Any,
    query_cost: float,
    game: Game | None,
    experts: Sequence[Expert | MachineExpert | Person] | None,
    instance: Strategy | None,
) -> Game:
    """The game that was given, that of the strategy's instance, or the one that costs and experts make; checked."""
    if experts is not None:
        game = game_with(experts, classes, costs, query_cost, game or instance)
    if game is None:
        game = _game(classes, costs, query_cost) if instance is None else instance.game
    check_game(game, classes)
    _check_instance(game, classes, costs, query_cost, instance)
    return game


def _check_horizon(settings: AgentSettings, instance: Strategy | None) -> None:
    """A horizon is for strategies that take one, and for the pace of an allowance; else it would do nothing."""
    taken = instance is None and takes("horizon", settings.strategy)
    if settings.horizon is not None and not taken and not settings.limits.is_paced:
        who = "a strategy that was made already" if instance is not None else f"strategy {settings.strategy!r}"
        raise AgentError(f"{who} takes no horizon: name one that does, or give max_total or max_cost, which it paces")


def _stated_schema(
    n_features: int | tuple[int, ...] | None,
    feature_names: Sequence[str] | None,
    fields_given: Any,
    encoder: TextEncoder | None,
    instance: Strategy | None,
) -> Schema:
    """What is known of an observation before the first one: its shape, names, or the fields of raw rows."""
    shape = _shape(n_features, feature_names, instance)
    stated = Schema(shape, tuple(map(str, feature_names)) if feature_names is not None else None)
    if fields_given is None:
        return stated
    if stated.names is not None:
        raise AgentError("give a schema or feature_names, not both")
    try:
        return stated.of_rows(stated_schema(fields_given, encoder=encoder))
    except EncodingError as error:
        raise AgentError(str(error)) from error


def _rows_differ(ours: AgentSettings, theirs: AgentSettings) -> str | None:
    """In which way the raw rows or their text encoder would be others, in words."""
    one, other = ours.schema.table, theirs.schema.table
    if one is not None and other is not None:
        fields = [{name: (f.kind, f.width) for name, f in table.fields.items()} for table in (one, other)]
        if fields[0] != fields[1]:
            return f"schema is {one.described}, not {other.described}"
    named = ours.encoder if one is None or one.encoder is None else one.encoder["name"]
    if theirs.encoder is not None and theirs.encoder != named and (one is None or one.has_texts):
        return f"text encoder is {named}, not {theirs.encoder}"
    return None


def checked_classes(classes: Sequence[Label]) -> tuple[Label, ...]:
    """The classes, two or more, all different also without the spaces around them, as a person reads them.

    >>> checked_classes(["cat", "cat "])
    Traceback (most recent call last):
    ...
    sparingly.live.agent.errors.AgentError: class 'cat ' is named twice
    """
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        raise AgentError(f"classes is {shortened(classes)}: give the names of two or more classes")
    seen: set[str | float] = set()
    for name in classes:
        if not isinstance(name, str | int | float | bool):
            raise AgentError(f"class {shortened(name)} must be a string or a number")
        if isinstance(name, int) and abs(name) >= _TOO_LARGE:
            raise AgentError(f"class {shortened(name)} is too large a number: it must be below 2**63")
        try:
            check_class(name)
        except ValueError as error:
            raise AgentError(str(error)) from None
        # JSON has no difference between 1 and 1.0, nor has a command line between 1 and "1".
        spelled = {str(name).strip()} if isinstance(name, str | bool) else {str(name), name}
        if seen & spelled:
            raise AgentError(f"class {name!r} is named twice")
        seen |= spelled
    if len(classes) < 2:
        raise AgentError(f"an agent needs two or more classes, not {len(classes)}")
    return tuple(classes)


def described_classes(descriptions: Mapping[Any, str] | None, classes: Sequence[Label]) -> dict[str, str]:
    """What the classes mean, by name, checked."""
    try:
        return checked_descriptions(descriptions, classes)
    except ValueError as error:
        raise AgentError(str(error)) from None


def _game(classes: Sequence[Label], costs: Any, query_cost: float) -> Game:
    try:
        return label_efficient(
            len(classes), costs=read_costs(costs, classes), query_cost=query_cost, classes=[str(c) for c in classes]
        )
    except ValueError as error:
        raise AgentError(str(error)) from None


def check_game(game: Game, classes: Sequence[Label]) -> None:
    """An agent can play this game."""
    if not game.is_label_efficient:
        raise AgentError("an agent needs a game whose first actions announce the classes and whose others ask")
    if game.n_outcomes != len(classes):
        raise AgentError(f"the game has {game.n_outcomes} outcomes for {len(classes)} classes")
    if game.costs.max() > LARGEST_COST:
        raise AgentError(
            f"a cost is {game.costs.max():g}: {LARGEST_COST:g} is the largest that an agent can compute with"
        )
    try:
        check_prices(game)
    except ValueError as error:
        raise AgentError(str(error)) from None


def _check_instance(
    game: Game, classes: Sequence[Label], costs: Any, query_cost: float, instance: Strategy | None
) -> None:
    if instance is not None and instance.game != game:
        raise AgentError("the strategy plays another game than the one given")
    if instance is not None and costs is not None and (_game(classes, costs, query_cost).costs != game.costs).any():
        raise AgentError("the strategy's game has other costs than those given")


def _plain_options(options: Mapping[str, Any] | None, instance: Strategy | None) -> dict[str, Any] | None:
    """The strategy's options as JSON gives them back; None if an instance's are more than plain values."""
    given = options or {} if instance is None else instance.made_with
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(given), allow_nan=False))
    except (TypeError, ValueError):
        if instance is None:
            raise AgentError(f"options is {options!r}: it must be plain values") from None
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


def checked_training(training: str) -> str:
    if training not in ("inline", "background"):
        raise AgentError(f"training is {training!r}: it must be 'inline' or 'background'")
    return training


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE


def checked_retention(days: float | None) -> float | None:
    if days is None:
        return None
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days < 1e6:
        raise AgentError(f"retention_days is {shortened(days)}: it must be a positive number of days, or None")
    return float(days)


def _rate(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise AgentError(f"audit_rate is {shortened(rate)}: it must be between 0 and 1")
    return float(rate)


def _frozen(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(map(_frozen, value)) if list in set(map(type, value)) else tuple(value)


def _listed(value: Any) -> str:
    text = repr(list(value) if isinstance(value, tuple) else value)
    return text if len(text) <= 80 else text[:77] + "..."
