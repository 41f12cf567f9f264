"""What every test may count on: where the data lie, and that nothing is skipped unseen where it matters."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pytest
import torch
from hypothesis import HealthCheck, settings

T = TypeVar("T")

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure() -> None:
    gc.disable()  # while everything is imported, which leaves no garbage and takes many looks for it
    torch.set_num_threads(1)
    settings.load_profile("any machine")


LONG = (
    *("test_documentation.py", "test_many_runs.py", "test_crash.py", "test_service_openapi.py", "test_chaos.py"),
    *("test_service_crash.py", "test_service_promises.py", "test_first_hour.py", "test_tickets.py"),
)
"""Files whose tests take long, and so come first: at the end, one process would be left to finish them alone."""


def dealt(long: list[T], others: list[T], workers: int) -> list[T]:
    """The order in which each of the processes begins with its share of the long ones.

    `--dist worksteal` cuts the list into as many parts as there are processes, and an idle one takes over the end of
    another's: were the long ones together, one process would have them all, and nobody to take them over.

    >>> "".join(dealt(list("ABCDE"), list("opqrstuvwxyz"), workers=3))
    'ADopqBErstuCvwxyz'
    >>> dealt([1, 2, 3], [], workers=2)
    [1, 3, 2]
    """
    left, order = len(long) + len(others), list[T]()
    rest = iter(others)
    for worker in range(workers):
        size = left // (workers - worker)
        mine = long[worker::workers]
        order += [*mine, *islice(rest, max(0, size - len(mine)))]
        left -= size
    return [*order, *rest]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    long = [item for item in items if item.path.name in LONG]
    others = [item for item in items if item.path.name not in LONG]
    items[:] = dealt(long, others, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
    folder = os.environ.get("SPARINGLY_DATA")
    if folder and Path(folder).is_dir():
        return
    missing = pytest.mark.skip(reason="SPARINGLY_DATA names no folder of data sets")
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(missing)


def pytest_collection_finish() -> None:
    """From here on there is garbage; Python's collector need not look through all that was loaded before."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where CI runs, a test that was skipped has failed: everything it needs is there, or should be."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"
