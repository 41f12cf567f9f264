"""A process that trains agents by turns, a few events of each at a time; it sleeps while there is nothing to learn.

`TrainerPool` starts it. Its standard input has one command a line: `{"open": 7, "url": ...}` to train the agent that
lives there under the number 7, `{"wake": 7}` when its journal has new events, `{"close": 7}`. The process ends when
that input ends, so it never outlives the process that started it. On standard output it sends records: the kind, the
agent's number, a place in the journal and the length of the state as a header, and the state.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, NamedTuple

from sparingly.live.agent.errors import AgentError, StoreError
from sparingly.live.store.store import Store
from sparingly.live.training.strategy_maker import maker
from sparingly.live.training.trainer import Trainer

log = logging.getLogger(__name__)

HEADER = struct.Struct("<BQQQ")
READY, STATE, EVICTED, LEARNS, IDLE, CLOSED, SNAPSHOT = range(7)
"""The kinds of record: commands are taken; a state with new parameters; a last state, to be restored from; whether this
process is the one that learns (1 or 0 as the place); all is seen up to the place; the database is closed; a state with
the parameters sent before, to be kept."""

GATHER_SECONDS = 0.02
"""Between two turns of an agent, so that events that come one by one are seen together."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 30.0
"""After a database could not be read; the first also between two looks at one that other processes write to."""
NOT_OURS = 2**63
"""The position of an agent that another process trains: there is nothing to wake this one for."""


class TrainerRecord(NamedTuple):
    """What a trainer process sends about one of its agents."""

    kind: int
    agent: int
    position: int
    state: bytes = b""


def write_record(stream: IO[bytes], record: TrainerRecord) -> None:
    stream.write(HEADER.pack(*record[:3], len(record.state)) + record.state)
    stream.flush()


def read_record(stream: IO[bytes]) -> TrainerRecord | None:
    """The next record, or None when there will be no more."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    kind, agent, position, length = HEADER.unpack(header)
    state = stream.read(length)
    return TrainerRecord(kind, agent, position, state) if len(state) == length else None


class _TrainedAgent:
    """An agent that is trained here, and when its next turn is; None while there is nothing to learn."""

    def __init__(self, number: int, url: str, send: Callable[[TrainerRecord], None]) -> None:
        self.number = number
        self.due: float | None = 0.0
        self.last_turn = 0.0
        self.trainer: Trainer | None = None
        self._url = url
        self._send = send
        self._lock = threading.Lock()
        self._closed = False
        self._poll_seconds: float | None = None
        self._pause = RETRY_SECONDS

    def turn(self) -> None:
        """See the next events; once there are no more, wait to be woken."""
        self.due, began = None, time.monotonic()
        try:
            trainer = self._opened()
            has_more = trainer is not None and trainer.step()
        except StoreError as error:
            self._wait_after(error)
            return
        except Exception as error:
            # Its learner may have seen half of an event: the next turn restores it.
            if self.trainer is not None:
                self.trainer.forget()
            self._wait_after(error)
            return
        self.last_turn, self._pause = time.monotonic(), RETRY_SECONDS
        if has_more:
            self.due = began
        elif trainer is not None:
            if self._poll_seconds is not None:
                self.due = self.last_turn + self._poll_seconds
            self._send(TrainerRecord(IDLE, self.number, trainer.position if trainer.learns else NOT_OURS))

    def wake(self) -> None:
        soon = self.last_turn + GATHER_SECONDS
        self.due = soon if self.due is None else min(self.due, soon)

    def evict(self) -> None:
        learner = self.trainer.forget() if self.trainer is not None else None
        if learner is not None:
            self._send(TrainerRecord(EVICTED, self.number, learner.position, learner.state()))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self.trainer is not None:
                self.trainer.close()

    def _opened(self) -> Trainer | None:
        with self._lock:
            if self._closed:
                return None
            if self.trainer is None:
                store = Store.open(self._url, claim=False)
                self._poll_seconds = RETRY_SECONDS if store.backend.is_shared else None
                self.trainer = Trainer(store, maker(store.settings, None), self._tell)
            return self.trainer

    def _wait_after(self, error: Exception) -> None:
        if not self._closed:
            log.warning("training waits %.0f s: %s", self._pause, error, exc_info=not isinstance(error, AgentError))
        self.due = time.monotonic() + self._pause
        self._pause = min(LONGEST_RETRY_SECONDS, 2 * self._pause)

    def _tell(self, position: int, state: bytes, is_new: bool) -> None:
        kind = LEARNS if not state else STATE if is_new else SNAPSHOT
        self._send(TrainerRecord(kind, self.number, position, state))


class TrainerProcess:
    """Gives the agents their turns in the main thread, and takes commands in another.

    Parameters
    ----------
    most_bytes
        Of the states of all learners; beyond it those that have waited longest are given up until they are needed.
    """

    def __init__(self, commands: IO[bytes], records: IO[bytes], most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._commands = commands
        self._records = records
        self._writing = threading.Lock()
        self._agents: dict[int, _TrainedAgent] = {}
        self._changed = threading.Condition()

    def run(self) -> None:
        """Train until the commands end."""
        self._send(TrainerRecord(READY, 0, 0))
        threading.Thread(target=self._obey, name="commands", daemon=True).start()
        while True:
            agent = self._next()
            agent.turn()
            self._limit_memory(agent)

    def _next(self) -> _TrainedAgent:
        """Wait for the agent whose turn is due first."""
        with self._changed:
            while True:
                first = min(
                    (agent for agent in self._agents.values() if agent.due is not None),
                    key=lambda agent: agent.due or 0.0,
                    default=None,
                )
                if first is None:
                    self._changed.wait()
                    continue
                wait = (first.due or 0.0) - time.monotonic()
                if wait <= 0:
                    return first
                self._changed.wait(wait)

    def _limit_memory(self, current: _TrainedAgent) -> None:
        with self._changed:
            held = [agent for agent in self._agents.values() if agent.trainer is not None and agent.trainer.learns]
        held.sort(key=lambda agent: agent.last_turn)
        total = sum(agent.trainer.state_size for agent in held if agent.trainer is not None)
        for agent in held:
            if total <= self._most_bytes:
                break
            if agent is not current and agent.due is None and agent.trainer is not None:
                total -= agent.trainer.state_size
                agent.evict()

    def _obey(self) -> None:
        for line in self._commands:
            command = json.loads(line)
            with self._changed:
                if "open" in command:
                    number = command["open"]
                    self._agents[number] = _TrainedAgent(number, command["url"], self._send)
                elif "wake" in command and command["wake"] in self._agents:
                    self._agents[command["wake"]].wake()
                closing = self._agents.pop(command.get("close"), None)
                self._changed.notify()
            if closing is not None:
                closing.close()
                self._send(TrainerRecord(CLOSED, closing.number, 0))
        os._exit(0)

    def _send(self, record: TrainerRecord) -> None:
        try:
            with self._writing:
                write_record(self._records, record)
        except BrokenPipeError:
            os._exit(0)


def main() -> None:
    """Train what the commands on the standard input name; whatever is printed goes to the standard error."""
    os.nice(int(sys.argv[1]))
    records = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    TrainerProcess(sys.stdin.buffer, records, int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
