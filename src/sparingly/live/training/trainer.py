"""The trainer: a process of its own that follows the journal, trains, and sends back each finished state.

`BackgroundDecider` starts it. The first line of its standard input says where the agent's database is; the process ends
when that input ends, so it never outlives the process that started it. On standard output it sends records: the place
in the journal and the length of the state, as two 8-byte numbers, and the state. A record with an empty state says
whether this trainer is the one that learns (1) or not (0).
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
from collections.abc import Callable
from typing import IO

from sparingly.live.agent.agent_settings import maker
from sparingly.live.agent.errors import StoreError
from sparingly.live.store.store import Store
from sparingly.live.training.decider import Learner
from sparingly.strategies.strategy import Strategy

HEADER = struct.Struct("<QQ")
PAUSE = 0.02
SEND_EVERY = 1000
AT_ONCE = 64
"""The most events that are seen before a finished state is sent."""

Send = Callable[[int, bytes], None]


class Trainer:
    """Follows the journal with a learner of its own.

    Parameters
    ----------
    send
        Called with the place and the state whenever there are new parameters.
    """

    def __init__(self, store: Store, make: Callable[[], Strategy], send: Send) -> None:
        self._store = store
        self._make = make
        self._send = send
        self._learner: Learner | None = None
        self._sent = (-1, -1)

    @property
    def learns(self) -> bool:
        return self._learner is not None

    def step(self) -> bool:
        """See the next events, if any; whether there were."""
        if not self._store.backend.holds_learner_lock():
            self._become(None)
            return False
        with self._store.reading() as connection:
            head = self._store.head(connection)
            if self._learner is None:
                self._become(Learner.restore(self._make, connection))
        learner = self._learner
        assert learner is not None
        if learner.position == head:
            return False
        self._catch_up(learner, head)
        return True

    def _catch_up(self, learner: Learner, head: int) -> None:
        """See some events, or all at once from a snapshot on if something already seen was taken back."""
        if not learner.catch_up(self._store.reading, min(head, learner.position + AT_ONCE)):
            with self._store.reading() as connection:
                learner = Learner.restore(self._make, connection)
            learner.catch_up(self._store.reading, head)
            self._become(learner)
        position, generation = self._sent
        if learner.strategy.generation != generation or learner.position - position >= SEND_EVERY:
            self._sent = (learner.position, learner.strategy.generation)
            self._send(learner.position, learner.state())

    def _become(self, learner: Learner | None) -> None:
        """Begin or stop learning; a record with an empty state tells `BackgroundDecider` which."""
        if self.learns != (learner is not None):
            self._send(int(learner is not None), b"")
        self._learner = learner
        self._sent = (-1, -1)


def write_record(stream: IO[bytes], position: int, state: bytes) -> None:
    stream.write(HEADER.pack(position, len(state)))
    stream.write(state)
    stream.flush()


def read_record(stream: IO[bytes]) -> tuple[int, bytes] | None:
    """The next record, or None when there will be no more."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    position, length = HEADER.unpack(header)
    state = stream.read(length)
    return (position, state) if len(state) == length else None


def main() -> None:
    """Train until the standard input ends."""
    order = json.loads(sys.stdin.buffer.readline())
    os.nice(order["nice"])
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    store = Store.open(order["url"], claim=False)
    trainer = Trainer(store, maker(store.settings, None), lambda at, state: write_record(out, at, state))
    pause = 0.0
    while not select.select([sys.stdin], [], [], pause)[0]:
        try:
            pause = 0.0 if trainer.step() else PAUSE
        except StoreError:
            pause = 1.0
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
