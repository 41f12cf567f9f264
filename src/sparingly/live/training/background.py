"""Training in the background: another process trains, and this one decides with the parameters it sent last."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

import sparingly
from sparingly.learning import state_files
from sparingly.live.agent.agent_settings import maker
from sparingly.live.agent.errors import StoreError
from sparingly.live.agent.features import Vector
from sparingly.live.agent.turn_lock import TurnLock
from sparingly.live.store import snapshots
from sparingly.live.store.store import Store
from sparingly.live.training.decider import (
    EVERY,
    Decider,
    FollowingDecider,
    InlineDecider,
    Learner,
    Make,
    SharedDecider,
    keep_snapshot,
)
from sparingly.live.training.trainer import PAUSE, Trainer, read_record
from sparingly.strategies.strategy import Decision, Strategy

log = logging.getLogger(__name__)

KEEP_SECONDS = 10.0
"""Seconds between two snapshots in a file; in a database that other processes follow, one second."""
NICE = 10


class BackgroundDecider:
    """Decides with the last finished parameters while the next are trained in another process or thread.

    Parameters
    ----------
    lock
        Held by the agent during its calls, so that a snapshot is written between two of them.
    worker
        "process", or "thread" for a strategy that cannot be made again in another process.
    """

    def __init__(self, store: Store, make: Make, lock: TurnLock, worker: str) -> None:
        self._store = store
        self._make = make
        self._lock = lock
        self._follower = FollowingDecider(make, polls_snapshots=False)
        self._arrived: tuple[int, Strategy] | None = None
        self._latest: tuple[int, bytes] | None = None
        self._kept = (0, time.monotonic())
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.learns = False
        work = [self._listen if worker == "process" else self._train_in_thread]
        work += [self._poll] if store.backend.is_shared else []
        self._threads = [threading.Thread(target=one, name="sparingly-training", daemon=True) for one in work]
        for thread in self._threads:
            thread.start()

    def follow(self, connection: Connection, head: int) -> None:
        arrived, self._arrived = self._arrived, None
        if arrived is not None:
            self._follower.adopt(*arrived)
        self._follower.follow(connection, head)

    def decide(self, X: Sequence[Vector]) -> list[Decision]:
        return self._follower.decide(X)

    def scores(self, X: Sequence[Vector]) -> NDArray[np.float64]:
        return self._follower.scores(X)

    def commit(self, head: int) -> None:
        self._follower.commit(head)

    def rollback(self) -> None:
        self._follower.rollback()

    def keep_snapshot_if_due(self, *, closing: bool = False) -> None:
        """When closing, write the last state that arrived; all others are written as they arrive."""
        if closing and self._latest is not None and self._latest[0] > self._kept[0]:
            keep_snapshot(self._store, *self._latest)

    def close(self) -> None:
        self._closed.set()
        self._stop_process()
        for thread in self._threads:
            thread.join(timeout=10)

    # the threads

    def _listen(self) -> None:
        """Receive what the trainer process sends; start another if it dies."""
        pause = 0.5
        while not self._closed.is_set():
            try:
                self._process = _start(self._store.backend.url)
                for position, state in _records(self._process):
                    self._receive(position, state)
                    pause = 0.5
            except Exception:
                log.exception("the trainer's state could not be taken")
            self.learns = False
            self._stop_process()
            if not self._closed.wait(pause):
                log.warning("the trainer ended: another is started")
            pause = min(30.0, 2 * pause)

    def _train_in_thread(self) -> None:
        trainer = Trainer(self._store, self._make, self._receive)
        while not self._closed.is_set():
            try:
                busy = trainer.step()
            except StoreError as error:
                log.warning("training waits: %s", error)
                busy = False
            if not busy:
                self._closed.wait(PAUSE)

    def _poll(self) -> None:
        """Poll the database for the snapshots of the process that learns; write them while it is this one."""
        while not self._closed.wait(0.5):
            if self.learns:
                self._keep_if_due()
                continue
            try:
                with self._store.reading() as connection:
                    newest = next(iter(snapshots.places(connection)), -1)
                    if newest > self._follower.adopted:
                        learner = Learner.restore(self._make, connection)
                        self._arrived = (learner.position, learner.strategy)
            except (StoreError, ValueError) as error:
                log.warning("the learner's snapshot could not be taken: %s", error)

    def _receive(self, position: int, state: bytes) -> None:
        if not state:
            self.learns = bool(position)
            return
        self._arrived = (position, self._make().load_state_dict(state_files.load(state)))
        self._latest = (position, state)
        self._keep_if_due()

    def _keep_if_due(self) -> None:
        """Write the last state that arrived as a snapshot, if it is newer than the last one and it is time."""
        position, state = self._latest or (0, b"")
        kept_at, kept_when = self._kept
        wait = 1.0 if self._store.backend.is_shared else KEEP_SECONDS
        if position <= kept_at or (position - kept_at < EVERY and time.monotonic() - kept_when < wait):
            return
        while not self._closed.is_set():
            if self._lock.acquire(timeout=0.1):
                try:
                    keep_snapshot(self._store, position, state)
                finally:
                    self._lock.release()
                break
        self._kept = (position, time.monotonic())

    def _stop_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def choose_decider(store: Store, instance: Strategy | None, training: str, lock: TurnLock) -> Decider:
    """The decider for an agent: by how it trains, and by whether other processes may write to its database."""
    make = maker(store.settings, instance)
    if training == "background":
        return BackgroundDecider(store, make, lock, "thread" if store.settings.instance else "process")
    return SharedDecider(store, make) if store.backend.is_shared else InlineDecider(store, make)


def _start(url: str) -> subprocess.Popen[bytes]:
    """A trainer for the agent that lives there; it inherits nothing but its two pipes."""
    source = str(Path(sparingly.__file__).parents[1])
    paths = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "sparingly.live.training.trainer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"url": url, "nice": NICE}).encode() + b"\n")
    process.stdin.flush()
    return process


def _records(process: subprocess.Popen[bytes]) -> Iterator[tuple[int, bytes]]:
    assert process.stdout is not None
    while (record := read_record(process.stdout)) is not None:
        yield record
