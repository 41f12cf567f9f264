"""Classes that turn up later: one event of the journal each, at which every learner grows by one output.

The journal has actions by the numbers they had at the time; the tickets' rows, by those they have now. A new class's
announcement is numbered before all questions, so the questions' numbers grow by one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, update

from sparingly.live.agent.agent_settings import AgentSettings, check_game, checked_classes
from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.store import journal
from sparingly.live.store.migrations import write_meta
from sparingly.live.store.store import Store
from sparingly.live.store.tables import tickets
from sparingly.live.tickets.ticket_records import Label
from sparingly.live.training.strategy_maker import maker
from sparingly.strategies.strategy import Strategy

EVERYONE = "*"
"""Among the people who may add classes: whoever answers questions."""
MOST_CLASSES = 10_000


def checked_people(people: Sequence[str]) -> tuple[str, ...]:
    """The names of people who may add classes.

    >>> checked_people(["ann", "bob", "ann"])
    ('ann', 'bob')
    """
    if isinstance(people, str) or not all(isinstance(name, str) and name.strip() for name in people):
        raise AgentError(f"people is {people!r}: give the names of those who may add classes, or ['*'] for everyone")
    return tuple(dict.fromkeys(people))


def grown(settings: AgentSettings, label: Label, cost: float | None) -> AgentSettings:
    """The settings with one more class, or an error if it cannot be taken on."""
    if isinstance(cost, bool) or not (cost is None or (isinstance(cost, int | float) and 0 <= cost < float("inf"))):
        raise AgentError(f"cost is {cost!r}: what a mistake about the class costs must be a number, not below 0")
    if len(settings.classes) >= MOST_CLASSES:
        raise AgentError(f"there are {len(settings.classes)} classes, the most that an agent can have")
    classes = checked_classes([*settings.classes, label])
    try:
        return settings.with_game(classes, settings.game.with_class(str(label), cost))
    except ValueError as error:
        raise AgentError(str(error)) from None


def check_grows(settings: AgentSettings, instance: Strategy | None, label: Label, cost: float | None = None) -> None:
    """Try it on a strategy that has learned nothing: one that refuses classes is asked before anything is written."""
    try:
        with_class = grown(settings, label, cost)
    except OverflowError:
        raise AgentError(f"cost {shortened(cost)} is too large") from None
    check_game(with_class.game, with_class.classes)
    if settings.instance and instance is None:
        return
    shaped = settings if settings.shape is not None else replace(settings, shape=(2,)).with_game_of(settings)
    try:
        maker(shaped, instance)().add_class(str(label))
    except ValueError as error:
        raise AgentError(str(error)) from None


def write(
    connection: Connection, store: Store, label: Label, cost: float | None, expert: str | None, now: float
) -> AgentSettings:
    """Write the event, the settings and the tickets' actions; returns the settings, which count after the commit."""
    before = store.settings
    settings = grown(before, label, cost)
    seq, n = store.head(connection) + 1, len(before.classes)
    event = {"seq": seq, "at": now, "kind": journal.CLASS_ADDED, "ticket": 0, "label": n, "expert": expert}
    journal.append(connection, [event])
    connection.execute(update(tickets).where(tickets.c.action >= n).values(action=tickets.c.action + 1))
    mistake = float(settings.game.costs[n, 0])
    known = [[place, *description] for place, description in journal.added_classes(connection).items()]
    write_meta(connection, journal.ADDED_CLASSES, json.dumps([*known, [seq, str(label), mistake]]))
    write_meta(connection, "settings", settings.to_json())
    return settings


def grow_to(strategy: Strategy, connection: Connection, position: int) -> Strategy:
    """A strategy that has just been made, with the classes and costs that there were at a place of the journal."""
    named, costs = journal.added_classes(connection), journal.changed_costs(connection)
    for seq in sorted(seq for seq in (*named, *costs) if seq <= position):
        if seq in named:
            strategy.add_class(*named[seq])
        else:
            strategy.set_costs(costs[seq])
    return strategy


def may_add(settings: AgentSettings, person: str) -> bool:
    """Whether a person who is no admin may add classes."""
    return EVERYONE in settings.may_add_classes or person in settings.may_add_classes


def refresh(connection: Connection, store: Store) -> None:
    """Read the settings again if another process, or a call that is just ending, has added a class or set costs.

    Both only grow in number: a transaction that began before such a change does not take it back.
    """
    there = len(journal.added_classes(connection)) + len(journal.changed_costs(connection))
    with store.settings_lock:
        if there > store.settings.added + store.settings.cost_changes:
            store.settings = store.read_settings(connection)


def unknown(settings: AgentSettings, label: Any) -> bool:
    """Whether a label names no class."""
    return not any(type(label) is type(name) and label == name for name in settings.classes)
