"""Progress of many runs: runs, rounds, and how long it will still take."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from sparingly.experiments.runs.duration_estimates import Estimates, in_time
from sparingly.experiments.runs.experiment_settings import Run


class Progress:
    """A bar on a terminal, a line now and then elsewhere."""

    QUIET = 30.0
    """Seconds between two lines where there is no terminal."""

    def __init__(self, to_do: list[Run], estimates: Estimates, workers: int) -> None:
        self.left = {run.id: run for run in to_do}
        self.n, self.rounds = len(to_do), sum(map(estimates.rounds, to_do))
        self.estimates, self.workers = estimates, workers
        self.expected = {run.id: estimates.seconds(run) for run in to_do}
        self.failed = 0
        self._start = self._last_shown = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and self.n:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True))
            self._task = self._bar.add_task(self.line(), total=self.n)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self.n:
            self._say()

    def tick(self, run: Run, well: bool) -> None:
        """A run has ended."""
        self.left.pop(run.id, None)
        self.failed += not well
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=self.line())
        elif time.monotonic() - self._last_shown > self.QUIET:
            self._say()

    def line(self) -> str:
        """What is done and what is to come; the estimate is corrected by how long the runs so far really took."""
        ahead = sum(self.expected[run_id] for run_id in self.left)
        behind = sum(self.expected.values()) - ahead
        spent = time.monotonic() - self._start
        pace = spent / behind if behind else 1 / self.workers
        rounds = self.rounds - sum(map(self.estimates.rounds, self.left.values()))
        done = f"{self.n - len(self.left)}/{self.n} runs, {rounds:,}/{self.rounds:,} rounds, {in_time(spent)}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{done}, about {in_time(ahead * pace)} to go{failed}"

    def _say(self) -> None:
        self._last_shown = time.monotonic()
        sys.stderr.write(self.line() + "\n")
        sys.stderr.flush()
