"""How long runs will take, from how long others took."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from typing import Any

from sparingly.experiments.runs.experiment_settings import Run, Task
from sparingly.experiments.runs.run_records import Results

MOST = 500
"""Records that are looked at."""
UNKNOWN = 4e-4
"""Seconds a round where nothing of the kind has run yet ..."""
STARTING = 4.0
"""Seconds of work for which one more process is worth its start, most of which is importing PyTorch."""
REPORT = 3.0
"""Seconds for the report, most of which is drawing."""
SLOW = {"ineural": 4e-3, "lenet": 1.5e-2}
"""... and of the strategy and the network that take ten times as long and more."""


class Estimates:
    """Seconds a round by data set and strategy, else by strategy, else a guess; learns as runs end.

    >>> from sparingly.experiments.runs.experiment_settings import Player, Task
    >>> from pathlib import Path
    >>> estimates = Estimates(Results(Path("nothing-here")))
    >>> [estimates.seconds(Run(task=Task(dataset="digits"), player=Player(strategy=s))) for s in ("margin", "ineural")]
    [4.0, 40.0]
    """

    def __init__(self, results: Results, lengths: Mapping[Task, int] | None = None) -> None:
        self.lengths = lengths or {}
        self.seen: dict[tuple[str, ...], tuple[float, int]] = {}
        for kept in itertools.islice(results.kept(), MOST):
            self.learn(kept.run, kept.seconds, kept.rounds)

    def learn(self, run: Run, seconds: float, rounds: int) -> None:
        for key in self._keys(run):
            total, played = self.seen.get(key, (0.0, 0))
            self.seen[key] = (total + seconds, played + rounds)

    def rounds(self, run: Run) -> int:
        """How many rounds a run has: the horizon, or fewer if the data are known to end before."""
        return self.lengths.get(run.task, run.task.horizon)

    def seconds(self, run: Run) -> float:
        for key in self._keys(run):
            if key in self.seen:
                total, rounds = self.seen[key]
                return total / max(1, rounds) * self.rounds(run)
        kinds = (str(run.player.options.get("network")), run.player.strategy)
        return next((SLOW[kind] for kind in kinds if kind in SLOW), UNKNOWN) * self.rounds(run)

    def known(self, run: Run) -> bool:
        return any(key in self.seen for key in self._keys(run))

    def workers(self, runs: Iterable[Run]) -> int:
        """How many processes of this machine are worth their start: one, this very process, for little work.

        >>> from sparingly.experiments.runs.experiment_settings import Player, Task
        >>> from pathlib import Path
        >>> run = Run(task=Task(dataset="digits", horizon=100), player=Player(strategy="margin"))
        >>> estimates = Estimates(Results(Path("nothing-here")))
        >>> estimates.workers([run]), estimates.workers([run] * 10_000) == os.cpu_count()
        (1, True)
        """
        return max(1, min(os.cpu_count() or 1, int(sum(map(self.seconds, runs)) / STARTING)))

    def total(self, runs: Iterable[Run], workers: int) -> float:
        """Seconds until all of them are done."""
        seconds = [self.seconds(run) for run in runs]
        starting = STARTING if workers > 1 else 0.0
        return REPORT + starting + sum(seconds) / max(1, workers) if seconds else 0.0

    @staticmethod
    def _keys(run: Run) -> list[tuple[str, ...]]:
        options: Any = sorted(run.player.options.items())
        return [(run.task.dataset, run.player.strategy, str(options)), (run.player.strategy,)]


def in_time(seconds: float) -> str:
    """A duration in words.

    >>> in_time(42), in_time(3700), in_time(300)
    ('42 s', '1 h 2 min', '5 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
