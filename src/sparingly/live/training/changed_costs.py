"""Costs that change while an agent lives: one event of the journal each, from which on every learner has them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sparingly.games.costs import read_costs
from sparingly.games.game import Game
from sparingly.live.agent.agent_settings import AgentSettings, check_game
from sparingly.live.agent.errors import AgentError
from sparingly.live.store import journal
from sparingly.live.store.migrations import write_meta
from sparingly.live.store.store import Store
from sparingly.live.training.strategy_maker import maker
from sparingly.strategies.strategy import Strategy


def changed_game(settings: AgentSettings, costs: Any, query_cost: float | None) -> Game:
    """The agent's game with other costs of mistakes, or another price of a question, or both."""
    game, n = settings.game, len(settings.classes)
    matrix = game.costs.copy()
    try:
        given = read_costs(costs, settings.classes)
        if given is not None:
            if given.shape != (n, n):
                raise ValueError(f"costs have the shape {given.shape}, not {(n, n)}: [announced, true]")
            matrix[:n] = given
        if query_cost is not None:
            if game.n_actions != n + 1 or game.experts:
                raise ValueError("query_cost is for an agent with one question: experts keep the prices they have")
            matrix[n] = float(query_cost)
        changed = game.with_costs(matrix)
    except (ValueError, TypeError) as error:
        raise AgentError(str(error)) from None
    check_game(changed, settings.classes)
    return changed


def check_takes(settings: AgentSettings, instance: Strategy | None, game: Game) -> None:
    """Try it on a strategy that has learned nothing: one that refuses is asked before anything is written."""
    if settings.instance and instance is None:
        return
    shaped = settings if settings.shape is not None else replace(settings, shape=(2,)).with_game_of(settings)
    strategy = maker(shaped, instance)()
    try:
        strategy.set_costs(game.of_first_classes(strategy.game.n_outcomes).costs)
    except ValueError as error:
        raise AgentError(str(error)) from None


def write(connection: Connection, store: Store, game: Game, who: str | None, now: float) -> AgentSettings:
    """Write the event and the settings; returns these, which count after the commit."""
    before, seq = store.settings, store.head(connection) + 1
    first = before.first_costs if before.first_costs is not None else before.original.costs
    settings = replace(before.with_game(before.classes, game), first_costs=first, cost_changes=before.cost_changes + 1)
    settings = settings.with_game_of(before.with_game(before.classes, game))
    event = {"seq": seq, "at": now, "kind": journal.COSTS_SET, "ticket": 0, "expert": who}
    journal.append(connection, [event])
    known = [[place, costs] for place, costs in journal.changed_costs(connection).items()]
    write_meta(connection, journal.CHANGED_COSTS, json.dumps([*known, [seq, np.asarray(game.costs).tolist()]]))
    write_meta(connection, "settings", settings.to_json())
    return settings
