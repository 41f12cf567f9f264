"""Calls experts beside the agent, so that no call of the agent waits for them."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from sparingly.experts import ExpertReply, MachineExpert
from sparingly.experts.machine_expert import INTERRUPTED, OVER_BUDGET
from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.consultation import expert_calls
from sparingly.live.consultation.expert_calls import CALLED, DUE, NOT_NEEDED, PendingCall
from sparingly.live.consultation.heard_answers import hear_calls

if TYPE_CHECKING:
    from sparingly.live.agent.agent_settings import AgentSettings
    from sparingly.live.agent.runtime import AgentRuntime

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Replies that are taken in one transaction, decided on together while observations wait."""
GIVE_WAY_SECONDS = 0.001
"""Between two such transactions, so that whoever waits for the agent comes first."""
UNDER_WAY_SECONDS = 600.0
"""For how long another process takes a call to be under way, unless it hears more of it."""
CLOSE_SECONDS = 10.0
"""How long closing waits for calls that are under way; the rest is cut off."""
RETRY_SECONDS = 1.0


class CallRate:
    """At most so many calls a minute: a token bucket that holds those of ten seconds, one at least.

    The service's `TokenBuckets` keep one for each caller, and refuse a call that finds too little in it; here there is
    one bucket, from which as many of the waiting calls are taken as it holds.

    >>> rate = CallRate(60.0, now=0.0)
    >>> rate.take(20, now=0.0), rate.take(20, now=2.0), rate.wait(now=2.0)
    (10, 2, 1.0)
    """

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._rate = None if per_minute is None else per_minute / 60
        self._most = 0.0 if self._rate is None else max(1.0, 10 * self._rate)
        self._held, self._at = self._most, now

    def take(self, wanted: int, now: float) -> int:
        """How many of the calls that are wanted may be made now."""
        if self._rate is None:
            return wanted
        self._held = min(self._most, self._held + (now - self._at) * self._rate)
        self._at = now
        taken = min(wanted, int(self._held))
        self._held -= taken
        return taken

    def wait(self, now: float) -> float:
        """After how many seconds one more may be made."""
        if self._rate is None or self._held >= 1:
            return 0.0
        return max(0.0, (1 - self._held) / self._rate - (now - self._at))


class _ExpertThreads:
    """One expert: the threads that call it, and the calls that they have."""

    def __init__(
        self, machine: MachineExpert, finished: deque[tuple[PendingCall, ExpertReply]], wake: threading.Event
    ) -> None:
        self.machine = machine
        self.rate = CallRate(machine.limits.per_minute, time.monotonic())
        self.under_way: dict[tuple[int, int], PendingCall] = {}
        self._finished, self._wake = finished, wake
        self._waiting: SimpleQueue[PendingCall | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def free(self) -> int:
        return self.machine.limits.concurrent - len(self.under_way)

    def call(self, call: PendingCall) -> None:
        self.under_way[call.ticket, call.place] = call
        if len(self._threads) < min(self.machine.limits.concurrent, len(self.under_way)):
            thread = threading.Thread(target=self._work, name=f"expert {self.machine.name}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._waiting.put(call)

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            reply = self.machine.ask(call.inquiry)
            self._finished.append((call, reply))
            self._wake.set()


class Consultation:
    """Makes the calls that are due, and takes what they bring.

    A call is marked in the database before it is made, and what it brought is written with what the agent decides
    then. So after a crash it is known which calls may have been paid: they are not made again, unless the expert is
    repeatable.

    Parameters
    ----------
    runtime
        Of the agent.
    machines
        The experts that can be called.
    """

    def __init__(self, runtime: AgentRuntime, machines: Sequence[MachineExpert]) -> None:
        check_machines(runtime.store.settings, machines)
        self._runtime = runtime
        self._finished: deque[tuple[PendingCall, ExpertReply]] = deque()
        self._woken = threading.Event()
        self._closing = threading.Event()
        self._experts = {one.name: _ExpertThreads(one, self._finished, self._woken) for one in machines}
        self._is_shared = runtime.store.backend.is_shared
        self._is_first = True
        self._has_skipped = False
        """Whether some calls were not needed: others may be due that were not looked at."""
        self._thread = threading.Thread(target=self._run, name="sparingly-consultation", daemon=True)
        self._woken.set()
        self._thread.start()

    def wake(self) -> None:
        """Look for calls that are due, unless every expert is busy: then a call that ends wakes the thread."""
        if any(expert.free > 0 for expert in self._experts.values()):
            self._woken.set()

    def close(self) -> None:
        """Make no more calls; those under way may end, for a while."""
        self._closing.set()
        self._woken.set()
        self._thread.join(timeout=CLOSE_SECONDS + 5)
        for expert in self._experts.values():
            expert.close()

    def _run(self) -> None:
        wait: float | None = 0.0
        while not self._closing.is_set():
            if wait == GIVE_WAY_SECONDS:
                self._closing.wait(wait)
            else:
                self._woken.wait(wait)
            self._woken.clear()
            wait = self._try_turn()
        deadline = time.monotonic() + CLOSE_SECONDS
        while time.monotonic() < deadline and (
            self._finished or any(expert.under_way for expert in self._experts.values())
        ):
            self._woken.wait(0.1)
            self._woken.clear()
            if self._runtime.is_closed:
                return
            self._try_turn()

    def _try_turn(self) -> float | None:
        """Take what has come, make what is due; the seconds until there may be more to do, None for a call to come."""
        try:
            return self._turn()
        except StoreError as error:
            if not self._runtime.is_closed:
                log.warning("experts wait: %s", error)
        except Exception:
            log.exception("experts wait")
        self._runtime.rollback_decider()
        return RETRY_SECONDS

    def _turn(self) -> float | None:
        replies = [self._finished[i] for i in range(min(AT_ONCE, len(self._finished)))]
        runtime = self._runtime
        if not (
            replies or self._is_first or self._is_shared or any(expert.free > 0 for expert in self._experts.values())
        ):
            return self._wait()
        for call, _ in replies:
            self._experts[call.expert].under_way.pop((call.ticket, call.place), None)
        with runtime.lock, runtime.writing() as connection:
            cut_off = self._cut_off(connection)
            if replies or cut_off:
                hear_calls(runtime, [*replies, *cut_off], connection)
            claimed, over_budget = ([], []) if self._closing.is_set() else self._claim(connection)
            if over_budget:
                hear_calls(runtime, over_budget, connection)
        self._is_first = False
        for _ in replies:
            self._finished.popleft()
        for call in claimed:
            self._experts[call.expert].call(call)
        if replies:
            with runtime.lock:
                runtime.decider.keep_snapshot_if_due()
        return GIVE_WAY_SECONDS if self._finished or over_budget or self._has_skipped else self._wait()

    def _wait(self) -> float | None:
        """Seconds until a call may be due by itself; None if only `wake` or an ended call can bring one."""
        now = time.monotonic()
        waits = [wait for expert in self._experts.values() if expert.free > 0 and (wait := expert.rate.wait(now)) > 0]
        if self._is_shared:
            waits.append(UNDER_WAY_SECONDS / 10)
        return min(waits, default=None)

    def _cut_off(self, connection: Connection) -> list[tuple[PendingCall, ExpertReply]]:
        """The calls that a crash has cut off: made again if that does no harm, else taken for paid and lost."""
        if not (self._is_first or self._is_shared):
            return []
        now = self._runtime.clock()
        if self._is_shared:
            mine = [call for expert in self._experts.values() for call in expert.under_way.values()]
            expert_calls.renew(connection, mine, now + UNDER_WAY_SECONDS)
        lost, again = [], []
        for row in expert_calls.cut_off(connection, now if self._is_shared else None):
            expert = self._experts.get(row.expert)
            if expert is None:
                continue
            if expert.machine.repeatable:
                again.append(row)
            else:
                lost.append((row, expert.machine.silent(INTERRUPTED, "the process that called it ended meanwhile")))
        expert_calls.mark(connection, again, state=DUE, until=None)
        return lost

    def _claim(self, connection: Connection) -> tuple[list[PendingCall], list[tuple[Any, ExpertReply]]]:
        """Mark the calls that are made now; and those that are not made, since the money is spent."""
        claimed: list[Any] = []
        over_budget: list[tuple[Any, ExpertReply]] = []
        now, settings = self._runtime.clock(), self._runtime.store.settings
        self._has_skipped = False
        for name, expert in self._experts.items():
            if expert.free < 1:
                continue
            rows = expert_calls.to_come(connection, name, expert.free)
            wanted = [row for row in rows if expert_calls.is_waited_for(row, settings)]
            skipped = [row for row in rows if not expert_calls.is_waited_for(row, settings)]
            expert_calls.mark(connection, skipped, state=NOT_NEEDED, price=0.0, closed=now)
            self._has_skipped |= bool(skipped)
            affordable = self._affordable(connection, expert, now) if wanted else 0
            over_budget += [
                (
                    row,
                    expert.machine.silent(OVER_BUDGET, f"{expert.machine.limits.cost_per_day:g} a day are spent", 0.0),
                )
                for row in wanted[affordable:]
            ]
            wanted = wanted[:affordable]
            made = wanted[: expert.rate.take(len(wanted), time.monotonic())]
            expert_calls.mark(connection, made, state=CALLED, until=now + UNDER_WAY_SECONDS)
            claimed += made
        return expert_calls.read(connection, claimed, settings) if claimed else [], over_budget

    def _affordable(self, connection: Connection, expert: _ExpertThreads, now: float) -> int:
        """How many more calls the money of a day allows, those under way counted as they are expected to cost."""
        most, price = expert.machine.limits.cost_per_day, expert.machine.expert.price
        if most is None:
            return expert.free
        left = most - expert_calls.spent(connection, expert.machine.name, now) - price * len(expert.under_way)
        return max(0, int(left / price + 1e-9)) if price > 0 else (expert.free if left > 0 else 0)


def check_machines(settings: AgentSettings, machines: Sequence[MachineExpert]) -> None:
    """The experts that are given are the agent's own, and are machines there, too."""
    prices = settings.machine_prices
    for one in machines:
        if one.name not in prices:
            raise AgentError(f"{one.name!r} is no expert that this agent calls: there is {', '.join(prices) or 'none'}")
        if one.expert.price != prices[one.name]:
            raise AgentError(
                f"the price of {one.name} is {prices[one.name]:g} for this agent, not {one.expert.price:g}"
            )


def started_consultation(runtime: AgentRuntime, machines: Sequence[MachineExpert]) -> Consultation:
    """A consultation at work, of which the agent knows."""
    consultation = Consultation(runtime, machines)
    runtime.wake_consultation = consultation.wake
    return consultation
