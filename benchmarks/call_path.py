"""How many files a reader opens to follow one observation: files visited, and calls from one file into another."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from starlette.testclient import TestClient

import sparingly as sp
from sparingly.live.service.app import create_app
from sparingly.live.service.service import Service

SOURCE = str(Path(sp.__file__).parent)
FEATURES, WARM = 5, 3


class CallCounter:
    """A profiler for all threads that counts while it is on.

    A call counts as one between files if the nearest caller within the package is in another file.
    """

    def __init__(self) -> None:
        self._on = False
        self.files: set[str] = set()
        self.between = 0

    @contextmanager
    def installed(self) -> Iterator[None]:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.files, self.between = set(), 0
        self._on = True
        try:
            yield
        finally:
            self._on = False

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if not self._on or event != "call":
            return
        file = frame.f_code.co_filename
        if not file.startswith(SOURCE) or frame.f_code.co_name == "<module>":
            return
        self.files.add(file)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(SOURCE):
            caller = caller.f_back
        self.between += caller is not None and caller.f_code.co_filename != file


def main() -> None:
    """Count for one POST of an observation, and for one round of play with two strategies."""
    counter = CallCounter()
    with counter.installed():
        count_post(counter)
        _tell("POST observations", counter)
        _play(counter, "sparing")
        _play(counter, "neural_cbp")


def count_post(counter: CallCounter) -> None:
    """The least of fifteen calls: the profiler sees every thread, also the housekeeping that runs once a second."""
    with tempfile.TemporaryDirectory(prefix="sparingly-bench-") as folder:
        service = Service(folder)
        service.agents.create("default", classes=["a", "b"], n_features=FEATURES, strategy="sparing")
        headers = {"authorization": f"Bearer {service.tokens.create('bench', 'producer')[1]}"}
        body = {"features": [0.5] * FEATURES}
        with TestClient(create_app(service)) as client:
            for _ in range(WARM):
                client.post("/api/agents/default/observations", json=body, headers=headers).raise_for_status()
            smallest: tuple[set[str], int] | None = None
            for _ in range(15):
                with counter.counting():
                    client.post("/api/agents/default/observations", json=body, headers=headers).raise_for_status()
                if smallest is None or len(counter.files) < len(smallest[0]):
                    smallest = counter.files, counter.between
            assert smallest is not None
            counter.files, counter.between = smallest


def _play(counter: CallCounter, strategy: str) -> None:
    game = sp.label_efficient(2)
    player = sp.strategies()[strategy](game, FEATURES, seed=0)
    X = np.random.default_rng(0).normal(size=(100, FEATURES)).astype(np.float32)
    with counter.counting():
        for _ in sp.play(player, game, [(x, int(x[0] > 0)) for x in X]):
            pass
    _tell(f"play 100 rounds with {strategy}", counter)


def _tell(what: str, counter: CallCounter) -> None:
    print(f"{what}: {len(counter.files)} files visited, {counter.between} calls between files")
    for file in sorted(counter.files):
        print(f"  {Path(file).relative_to(SOURCE)}")
