"""Counts of what people say beside the answers that stand, and what that has cost."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, select

from sparingly.games import Game
from sparingly.live.store.tables import disagreements, opinions, tickets
from sparingly.live.tickets.ticket_records import ANSWERED


class OpinionCounts(NamedTuple):
    """Numbers by their names in `Statistics`, and what second opinions have cost by the expert that was asked."""

    numbers: dict[str, Any]
    bill: dict[str, float]


def opinion_counts(connection: Connection, game: Game) -> OpinionCounts:
    """How many second opinions, answers to planted items and disagreements there are."""
    o, t, d = opinions.c, tickets.c, disagreements.c
    said = select(o.reason, t.action, func.count(), func.sum(o.price)).join(tickets, t.seq == o.ticket)
    said = said.where(and_(o.label.is_not(None), o.reason != "first")).group_by(o.reason, t.action)
    second, known, known_cost = 0, 0, 0.0
    bill: dict[str, float] = {}
    for reason, action, count, price in connection.execute(said):
        if reason == "known":
            known, known_cost = known + count, known_cost + float(price or 0.0)
            continue
        second += count
        expert = game.expert(action)
        if expert is not None:
            bill[expert.name] = bill.get(expert.name, 0.0) + float(price or 0.0)
    waits = select(func.count()).select_from(disagreements.join(tickets, t.seq == d.ticket))
    open_ones = int(connection.execute(waits.where(and_(d.state != "settled", t.status == ANSWERED))).scalar_one())
    numbers = {"second_opinions": second, "disagreements": open_ones, "known_answers": known, "known_cost": known_cost}
    return OpinionCounts(numbers, bill)
