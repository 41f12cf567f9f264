"""The experts that an agent is made with: the game in which they can be asked, and what its settings keep of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparingly.experts import Expert, MachineExpert, Person
from sparingly.games import Game, label_efficient
from sparingly.games.costs import read_costs
from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.tickets.ticket_records import Label


def game_with(
    experts: Sequence[Expert | MachineExpert | Person],
    classes: Sequence[Label],
    costs: Any,
    query_cost: float,
    other: object | None,
) -> Game:
    """The game in which these experts can be asked; `other` is a game, or a strategy that has one, if there is."""
    if other is not None or query_cost != 1.0:
        given = (
            "query_cost" if other is None else "game" if isinstance(other, Game) else "strategy that was made already"
        )
        raise AgentError(f"there are experts, who have prices, and a {given}: give one of both")
    if isinstance(experts, str) or not isinstance(experts, Sequence) or not experts:
        raise AgentError(f"experts is {shortened(experts)}: give a list of experts")
    for one in experts:
        if not isinstance(one, Expert | MachineExpert | Person):
            raise AgentError(f"expert {shortened(one)} must be an Expert, a LanguageModel or another that is called")
    try:
        return label_efficient(
            len(classes),
            costs=read_costs(costs, classes),
            experts=[one.expert if isinstance(one, MachineExpert | Person) else one for one in experts],
            classes=[str(c) for c in classes],
        )
    except ValueError as error:
        raise AgentError(str(error)) from None


def declared(game: Game, experts: Sequence[Expert | MachineExpert | Person]) -> tuple[tuple[Any, ...], ...]:
    """The experts of a game as an agent's settings have them, and which of them are called."""
    machines = {one.name for one in experts if isinstance(one, MachineExpert)}
    return tuple((one.name, one.price, one.gold, one.accuracy, one.name in machines) for one in game.experts)
