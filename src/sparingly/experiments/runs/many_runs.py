"""The runner: does the runs that have no record yet, on the cores of this machine or on a Ray cluster.

Workers only compute: they give a record's bytes back, and this process alone writes, each file whole or not at all.
So a killed worker, a killed runner or a full disk costs the runs in flight and nothing else.
"""

from __future__ import annotations

import fcntl
import itertools
import logging
import math
import os
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from sparingly.experiments.runs.experiment_settings import Run, SettingsError
from sparingly.experiments.runs.run_records import Results

ENVIRONMENT = ("SPARINGLY_DATA", "SPARINGLY_CACHE", "PYTHONPATH")
"""What workers on a cluster must know of this process."""

TIDIED_UP = "ignore:resource_tracker:UserWarning"
"""A warning filter for the process by which loky tidies up after an interrupt: what it does is no news to the user."""


@dataclass(frozen=True)
class Failed:
    """A run that raised: the reason in one line, and its traceback."""

    reason: str
    details: str


Begun = TypeVar("Begun")
Outcome = tuple[str, bytes | Failed]
Pool = Callable[[list[Run]], Iterator[Outcome]]


@dataclass
class RunTally:
    """What became of the runs that were asked for."""

    done: int = 0
    already: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


def run_all(
    runs: Iterable[Run],
    results: Results,
    pool: Pool,
    *,
    retry: bool = False,
    watch: Callable[[Run, bool], None] = lambda run, well: None,
) -> RunTally:
    """Do the runs that have no record yet.

    Parameters
    ----------
    runs
        In the order to do them.
    results
        Where records go; no two runners may write to one folder at a time.
    pool
        Who computes: `local(...)` or `on_ray(...)`.
    retry
        Do again what failed before; otherwise it is left out, and listed.
    watch
        Called after every run, with whether it went well.
    """
    with alone(results):
        results.sweep()
        to_do, tally = _to_do(runs, results, retry)
        by_id = {run.id: run for run in to_do}
        for run_id, outcome in pool(to_do) if to_do else ():
            _keep(results, run_id, outcome, tally)
            watch(by_id[run_id], not isinstance(outcome, Failed))
    return tally


def missing(runs: Iterable[Run], results: Results) -> list[Run]:
    """The runs that have no record."""
    return [run for run in runs if not results.has(run.id)]


def perform(run: Run) -> Outcome:
    """One run as a worker does it: nothing is raised, nothing is written."""
    from sparingly.experiments.runs.single_run import execute

    try:
        return run.id, execute(run).to_bytes()
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        return run.id, Failed(f"{type(error).__name__}: {first}", traceback.format_exc())


def begun_within(minutes: float | None, runs: Iterable[Begun]) -> Iterator[Begun]:
    """The runs, one after the other as they are asked for, until the time since the first is over.

    >>> list(begun_within(0, [])), len(list(begun_within(None, range(3)))), list(begun_within(-1, range(3)))
    ([], 3, [])
    """
    end = math.inf if minutes is None else time.monotonic() + 60 * minutes
    return itertools.takewhile(lambda _: time.monotonic() < end, runs)


def local(workers: int | None = None, minutes: float | None = None) -> Pool:
    """The cores of this machine: processes of one thread each; no run begins after so many minutes."""

    def pool(runs: list[Run]) -> Iterator[Outcome]:
        from joblib import Parallel, delayed, parallel_config

        n, ahead = max(1, min(workers or os.cpu_count() or 1, len(runs))), begun_within(minutes, runs)
        if n == 1:
            yield from map(_perform_here, ahead)
            return
        # loky takes the data that a worker keeps for a leak, and renews the worker between two runs: no harm, no news.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        if TIDIED_UP not in sys.warnoptions:
            sys.warnoptions.append(TIDIED_UP)
        with parallel_config("loky", inner_max_num_threads=1):
            yield from Parallel(n_jobs=n, return_as="generator_unordered", pre_dispatch=n)(
                delayed(_perform_for)(os.getpid(), run) for run in ahead
            )

    return pool


def _perform_here(run: Run) -> Outcome:
    """One run in this process, with one thread, as a worker has it."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return perform(run)


def _perform_for(runner: int, run: Run) -> Outcome:
    _leave_with(runner)
    return perform(run)


@lru_cache
def _leave_with(runner: int) -> None:
    """End this process when the runner is gone, however it went: nobody would take the result."""

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def on_ray(address: str | None = None, workers: int | None = None, minutes: float | None = None) -> Pool:
    """A Ray cluster: the one at an address, or one that is started here and stopped afterwards.

    No run begins after so many minutes.

    A task whose worker dies is done again by Ray, up to ten times; then only this run has failed. With Ray's joblib
    backend a lost worker would end all runs.
    """

    def pool(runs: list[Run]) -> Iterator[Outcome]:
        with _ray(address, workers) as ray:
            task = ray.remote(num_cpus=1, max_retries=10)(perform)
            slots = max(1, workers or int(ray.cluster_resources().get("CPU", 1)))
            waiting, ahead = {}, begun_within(minutes, runs)
            while True:
                for run in ahead:
                    waiting[task.remote(run)] = run
                    if len(waiting) >= slots + 1:
                        break
                if not waiting:
                    return
                ready, _ = ray.wait(list(waiting), num_returns=1)
                yield _ray_outcome(ray, ready[0], waiting.pop(ready[0]))

    return pool


def _ray_outcome(ray: Any, reference: Any, run: Run) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
        return outcome
    except ray.exceptions.RayError as error:
        return run.id, Failed(f"{type(error).__name__}: its worker was lost too often", str(error))


@contextmanager
def _ray(address: str | None, workers: int | None) -> Iterator[Any]:
    try:
        import ray
    except ImportError as error:
        raise SettingsError("Ray is not installed: pip install 'sparingly[ray]'") from error
    known = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    started = not ray.is_initialized()
    if started:
        own: dict[str, Any] = {} if address else {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
        try:
            ray.init(
                address=address,
                runtime_env={"env_vars": known},
                log_to_driver=False,
                logging_level=logging.ERROR,
                **own,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise SettingsError(f"no Ray cluster at {address!r}: {str(error).splitlines()[0]}") from error
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


@contextmanager
def alone(results: Results) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when this process dies, however it dies."""
    with (results.folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SettingsError(f"another runner is writing to {results.folder}") from error
        yield


def _to_do(runs: Iterable[Run], results: Results, retry: bool) -> tuple[list[Run], RunTally]:
    runs = list(runs)
    tally = RunTally(already=sum(results.has(run.id) for run in runs))
    broken = {} if retry else results.failures()
    left = missing(runs, results)
    tally.skipped = [run.id for run in left if run.id in broken]
    return [run for run in left if run.id not in broken], tally


def _keep(results: Results, run_id: str, outcome: bytes | Failed, tally: RunTally) -> None:
    try:
        if isinstance(outcome, Failed):
            tally.failed[run_id] = outcome.reason
            results.add_failure(run_id, outcome.reason, outcome.details)
        else:
            results.add(run_id, outcome)
            tally.done += 1
    except OSError as error:
        raise SettingsError(
            f"{results.folder} cannot be written ({error.strerror}): {tally.done} runs of this call are kept; "
            "run again to go on"
        ) from error
