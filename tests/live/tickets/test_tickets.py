"""The life of tickets against a simple model: whatever people do in whatever order, the agent and the model agree."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import sparingly as sp
from sparingly.live.agent.errors import AgentError, ConflictError, UnknownTicketError
from sparingly.live.store.integrity_check import check
from tests.live.conftest import Clock

LEASE = 60.0
numbers = st.integers(0, 9)
labels = st.sampled_from(["cat", "dog"])
experts = st.sampled_from([None, "ann", "bob"])


@dataclass
class Model:
    """One ticket as it should stand."""

    asks: bool
    status: str
    label: str | None = None
    expert: str | None = None
    lent_to: str | None = None
    until: float | None = None
    passed: set[str] = field(default_factory=set)

    def lease_forbids(self, expert: str | None, now: float) -> bool:
        if expert is None or self.until is None:
            return False
        return now > self.until or self.lent_to != expert

    def close(self, status: str, expert: str | None, label: str | None = None) -> None:
        self.status, self.label, self.expert, self.lent_to, self.until = status, label, expert, None, None


class Tickets(RuleBasedStateMachine):
    """What people do with an agent, and what should come of it."""

    @initialize()
    def begin(self) -> None:
        memory = Path("/dev/shm")
        self.folder = tempfile.mkdtemp(dir=memory if memory.is_dir() else None)
        self.path = Path(self.folder) / "agent.db"
        self.clock = Clock()
        self.agent = sp.Agent(
            ["cat", "dog"], 2, path=self.path, strategy="random", options={"p": 0.7}, max_open=4, clock=self.clock
        )
        self.model: dict[str, Model] = {}

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            self.agent.close()
            assert check(self.path).ok, check(self.path).problems
            shutil.rmtree(self.folder)

    @rule(number=numbers, other=st.booleans())
    def observe(self, number: int, other: bool) -> None:
        x = np.array([number, 0.5 if other else 0.0])
        name = f"o{number}"
        if name in self.model and other:
            with pytest.raises(ConflictError):
                self.agent.observe(x, id=name)
            return
        ticket = self.agent.observe([number, 0.0], id=name)
        if name in self.model:
            assert ticket.asks == self.model[name].asks
        else:
            still_open = sum(one.status == "open" for one in self.model.values())
            assert not (ticket.asks and still_open >= 4)
            self.model[name] = Model(ticket.asks, "open" if ticket.asks else "announced")

    @rule(number=numbers, label=labels, expert=experts)
    def answer(self, number: int, label: str, expert: str | None) -> None:
        one = self.model.get(f"o{number}")
        refused: type[AgentError] | None = None
        if one is None:
            refused = UnknownTicketError
        elif one.status == "withdrawn":
            refused = ConflictError
        elif one.status == "answered":
            if one.label != label and expert is not None and expert != one.expert:
                refused = ConflictError
        elif one.lease_forbids(expert, self.clock.now):
            refused = ConflictError
        done = self._does(refused, self.agent.answer, f"o{number}", label, expert=expert)
        if done and one is not None and (one.status, one.label) != ("answered", label):
            one.close("answered", expert, label)

    @rule(number=numbers, expert=experts, how=st.sampled_from(["skip", "dont_know"]))
    def set_aside(self, number: int, expert: str | None, how: str) -> None:
        one = self.model.get(f"o{number}")
        status = {"skip": "skipped", "dont_know": "unknown"}[how]
        refused: type[AgentError] | None = None
        if one is None:
            refused = UnknownTicketError
        elif one.status != status and (
            one.status in ("answered", "withdrawn", "announced") or one.lease_forbids(expert, self.clock.now)
        ):
            refused = ConflictError
        if self._does(refused, getattr(self.agent, how), f"o{number}", expert=expert) and one is not None:
            if one.status == status or (how == "skip" and expert in one.passed):
                return
            if how == "skip" and expert is not None:
                one.passed.add(expert)
                one.lent_to = one.until = one.expert = None
            else:
                one.close(status, expert)

    @rule(number=numbers)
    def withdraw(self, number: int) -> None:
        one = self.model.get(f"o{number}")
        refused = UnknownTicketError if one is None else ConflictError if one.status == "answered" else None
        if self._does(refused, self.agent.withdraw, f"o{number}") and one is not None and one.status != "withdrawn":
            one.close("withdrawn", None)

    @rule(number=numbers)
    def reopen(self, number: int) -> None:
        one = self.model.get(f"o{number}")
        refused = UnknownTicketError if one is None else ConflictError if one.status == "withdrawn" else None
        if self._does(refused, self.agent.reopen, f"o{number}") and one is not None:
            if one.passed or one.status not in ("open", "announced"):
                one.close("open" if one.asks else "announced", None)
            one.passed = set()

    @rule(expert=st.sampled_from(["ann", "bob"]), limit=st.integers(1, 3))
    def questions(self, expert: str, limit: int) -> None:
        now = self.clock.now
        free = [
            (not (one.lent_to == expert and one.until is not None and one.until >= now), order, name)
            for order, (name, one) in enumerate(self.model.items())
            if one.status == "open"
            and expert not in one.passed
            and (one.until is None or one.until < now or one.lent_to == expert)
        ]
        expected = [name for *_, name in sorted(free)][:limit]
        given_out = self.agent.questions(expert, limit=limit, lease_seconds=LEASE)
        assert [question.id for question in given_out] == expected
        for name in expected:
            self.model[name].lent_to, self.model[name].until = expert, now + LEASE

    @rule(seconds=st.sampled_from([1.0, 59.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(closes=st.booleans())
    def open_again(self, closes: bool) -> None:
        if closes:
            self.agent.close()
        self.agent = sp.Agent.open(self.path, clock=self.clock)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "agent"):
            return
        stands = [(e.id, e.asks, e.status, e.label, e.expert) for e in self.agent.history()]
        assert stands == [(name, o.asks, o.status, o.label, o.expert) for name, o in self.model.items()]
        assert [t.id for t in self.agent.pending()] == [n for n, o in self.model.items() if o.status == "open"]
        stats = self.agent.stats()
        assert stats.answered == sum(one.status == "answered" for one in self.model.values())

    def _does(self, refused: type[AgentError] | None, call: Any, *args: Any, **named: Any) -> bool:
        """Whether the call went through, which it must unless it is to be refused."""
        if refused is None:
            call(*args, **named)
            return True
        with pytest.raises(refused):
            call(*args, **named)
        return False


Tickets.TestCase.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
TestTickets = Tickets.TestCase
