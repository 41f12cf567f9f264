"""The trainer processes that all agents of this process share: few, woken on demand, replaced when they die."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sparingly
from sparingly.live.training.trainer_process import CLOSED, IDLE, LEARNS, READY, TrainerRecord, read_record

log = logging.getLogger(__name__)

NICE = 10
CLOSE_SECONDS = 5.0
"""The longest wait for a trainer process to close an agent's database; then the process is killed."""

Receive = Callable[[TrainerRecord], None]


class Enrolment:
    """An agent's place in the pool, until it is closed.

    Whoever writes to the journal sets `head`, where it ends, and then wakes the trainer if it `is_idle`.
    """

    def __init__(self, number: int, url: str, receive: Receive, worker: _Worker) -> None:
        self.number = number
        self.url = url
        self.receive = receive
        self.closed = threading.Event()
        self.head = 0
        self.is_idle = False
        self._worker = worker

    @property
    def process(self) -> int | None:
        """The id of the process that trains the agent; None while it is being started."""
        return self._worker.pid

    def wake(self) -> None:
        """Let the trainer read the journal up to `head`."""
        self._worker.wake(self)

    def close(self) -> None:
        """The trainer process has closed the database when this returns."""
        self._worker.remove(self)


class TrainerPool:
    """At most so many trainer processes; an agent is trained by the one that has fewest.

    A process starts with its first agent and ends with its last.

    Parameters
    ----------
    size
        The most processes; one for each processor but one when left out.
    most_bytes
        Of the learners' states in a process; beyond it those that have waited longest are given up until needed.
    """

    def __init__(self, size: int | None = None, most_bytes: int = 200_000_000) -> None:
        self.pid = os.getpid()
        self._workers = [_Worker(most_bytes) for _ in range(size or max(1, (os.cpu_count() or 1) - 1))]
        self._numbers = itertools.count(1)
        self._mutex = threading.Lock()

    def enrol(self, url: str, receive: Receive) -> Enrolment:
        """Train the agent that lives at `url`; `receive` gets what its trainer sends, in a thread of the pool."""
        with self._mutex:
            worker = min(self._workers, key=lambda worker: worker.load)
            enrolment = Enrolment(next(self._numbers), url, receive, worker)
            worker.add(enrolment)
        return enrolment

    def processes(self) -> list[int]:
        """The ids of the trainer processes that run now."""
        return [worker.pid for worker in self._workers if worker.pid is not None]


class _Worker:
    """One trainer process, its agents, and the thread that listens to it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._mutex = threading.Lock()
        self._agents: dict[int, Enrolment] = {}
        self._closing: dict[int, Enrolment] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._listening = False
        self._emptied = threading.Event()

    @property
    def pid(self) -> int | None:
        process = self._process
        return None if process is None else process.pid

    @property
    def load(self) -> int:
        return len(self._agents)

    def add(self, agent: Enrolment) -> None:
        with self._mutex:
            self._agents[agent.number] = agent
            self._emptied.clear()
            self._send(open=agent.number, url=agent.url)
            if not self._listening:
                self._listening = True
                threading.Thread(target=self._listen, name="sparingly-trainers", daemon=True).start()

    def wake(self, agent: Enrolment) -> None:
        with self._mutex:
            if agent.is_idle:
                agent.is_idle = False
                self._send(wake=agent.number)

    def remove(self, agent: Enrolment) -> None:
        with self._mutex:
            process = self._process
            there = self._agents.pop(agent.number, None)
            if there is None or process is None or not self._is_ready:
                # The process has no database open yet: it need not be waited for.
                if self._set_if_emptied() and process is not None:
                    _end_input(process)
                    process.kill()
                return
            self._closing[agent.number] = agent
            self._send(close=agent.number)
        if not agent.closed.wait(CLOSE_SECONDS):
            process.kill()
            # The thread that listens may be busy with a record: the process is not to be left as a zombie until then.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
            agent.closed.wait(CLOSE_SECONDS)
        with self._mutex:
            if self._set_if_emptied():
                _end_input(process)

    def _set_if_emptied(self) -> bool:
        if not self._agents and not self._closing:
            self._emptied.set()
        return self._emptied.is_set()

    def _send(self, **command: Any) -> None:
        """A command, if the process is ready for it; one that has died is replaced and told everything again."""
        if self._is_ready and self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.write(json.dumps(command).encode() + b"\n")
                self._process.stdin.flush()

    def _listen(self) -> None:
        """Take what the process sends; start another when it dies, as long as there are agents."""
        pause = 0.5
        while (process := self._start()) is not None:
            assert process.stdout is not None
            while (record := read_record(process.stdout)) is not None:
                self._deliver(record)
                pause = 0.5
            was_ended = process.stdin is not None and process.stdin.closed
            self._reap(process)
            if not was_ended and not self._emptied.wait(pause):
                log.warning("a trainer process ended: another is started")
                pause = min(30.0, 2 * pause)

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._mutex:
            if not self._agents:
                self._listening = False
                return None
            self._process = _start_process(self._most_bytes)
            return self._process

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        with self._mutex:
            self._process, self._is_ready = None, False
            closing, self._closing = self._closing, {}
            left = list(self._agents.values())
        _end_input(process)
        process.kill()
        process.wait()
        for agent in closing.values():
            agent.closed.set()
        for agent in left:
            self._hand_over(agent, TrainerRecord(LEARNS, agent.number, 0))

    def _deliver(self, record: TrainerRecord) -> None:
        with self._mutex:
            agent = self._agents.get(record.agent)
            if record.kind == READY:
                self._is_ready = True
                for waiting in self._agents.values():
                    waiting.is_idle = False
                    self._send(open=waiting.number, url=waiting.url)
            elif record.kind == CLOSED and record.agent in self._closing:
                self._closing.pop(record.agent).closed.set()
            elif record.kind == IDLE and agent is not None:
                # In this order: whoever sets a new head now sees that the trainer is idle, or is seen here.
                agent.is_idle = True
                if agent.head > record.position:
                    agent.is_idle = False
                    self._send(wake=agent.number)
        if agent is not None and record.kind != IDLE:
            self._hand_over(agent, record)

    def _hand_over(self, agent: Enrolment, record: TrainerRecord) -> None:
        try:
            agent.receive(record)
        except Exception:
            log.exception("a trainer's state could not be taken")


_pool: TrainerPool | None = None
_pool_mutex = threading.Lock()


def shared_pool() -> TrainerPool:
    """The pool of this process, made when it is first needed."""
    global _pool
    with _pool_mutex:
        if _pool is None or _pool.pid != os.getpid():
            _pool = TrainerPool()
        return _pool


def _start_process(most_bytes: int) -> subprocess.Popen[bytes]:
    """A trainer process; it inherits nothing but its two pipes and the standard error."""
    source = str(Path(sparingly.__file__).parents[1])
    paths = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "sparingly.live.training.trainer_process", str(NICE), str(most_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )


def _end_input(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
