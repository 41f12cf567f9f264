"""Answering at the terminal: one question at a time, one key an answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparingly.live.tickets.ticket_records import Label, Question

if TYPE_CHECKING:
    from sparingly.live.agent.agent import Agent

KEYS = "123456789abcefghijklmnoprtvwxyz"
"""The keys of the answers; the letters left out have a meaning of their own."""
SKIP, DONT_KNOW, UNDO, QUIT = "s", "d", "u", "q"


def answer_by_key(agent: Agent, expert: str, lease_seconds: float = 600.0) -> int:
    """Offer the open questions one after the other; returns how many were answered."""
    console = Console(highlight=False)
    done: list[str] = []
    while offered := agent.questions(expert, limit=1, lease_seconds=lease_seconds):
        question = offered[0]
        keys = dict(zip(KEYS, question.choices, strict=False))
        _show(console, question, keys, agent.settings.names)
        key = _key()
        if key in (QUIT, "", "\x04", "\x03"):
            break
        if key == UNDO and done:
            agent.release(question.id, expert=expert)
            agent.reopen(done.pop())
        elif key == SKIP:
            agent.skip(question.id, expert=expert)
        elif key == DONT_KNOW:
            agent.dont_know(question.id, expert=expert)
        elif key in keys:
            agent.answer(question.id, keys[key], expert=expert)
            done.append(question.id)
            console.print(f"[green]{escape(str(keys[key]))}[/]")
        else:
            console.print(f"[red]{escape(repr(key))} is none of the keys[/]")
    else:
        console.print("no open questions")
    console.print(f"{len(done)} answered")
    return len(done)


def _show(console: Console, question: Question, keys: dict[str, Label], names: Sequence[str] | None) -> None:
    console.rule(f"question {escape(question.id)}")
    payload = question.payload
    if payload is None and names is None:
        console.print("features " + escape(", ".join(f"{value:g}" for value in question.features)))
    elif payload is None:
        _show_fields(console, dict(zip(names or (), (f"{value:g}" for value in question.features), strict=False)))
    elif payload.kind == "fields":
        _show_fields(console, payload.content)
    elif payload.kind == "text":
        console.print(escape(payload.content))
    else:
        console.print(f"an image of {len(payload.content)} bytes, which a terminal cannot show")
    console.print(f"[dim]{escape(question.why)}[/]")
    choices = "  ".join(f"[bold]{key}[/] {escape(str(label))}" for key, label in keys.items())
    console.print(f"{choices}  [dim]{SKIP} skip  {DONT_KNOW} don't know  {UNDO} undo  {QUIT} quit[/]")


def _show_fields(console: Console, fields: Mapping[str, Any]) -> None:
    """All fields with their names, missing values too."""
    table = Table(show_header=False, box=None)
    for name, value in fields.items():
        table.add_row(escape(str(name)), "[dim]missing[/]" if value is None else escape(str(value)))
    console.print(table)


def _key() -> str:
    """One key, without waiting for the end of a line if this is a terminal."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()[:1]
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        return sys.stdin.read(1)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
