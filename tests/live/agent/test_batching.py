"""The batching queue: whatever happens, everyone who waits gets an answer, and only the culprit an error."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest

from sparingly.live.agent.batching import LARGEST_BATCH, BatchingQueue, TurnLock
from sparingly.live.agent.errors import BusyError, StoreError


class Totals:
    """Adds up numbers, and keeps the batches it was given; fails as a whole if a number is negative."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.lock = TurnLock()
        self.queue: BatchingQueue[list[int], int] = BatchingQueue(self.serve, self.lock)

    def serve(self, calls):
        self.batches.append(len(calls))
        if any(-1 in call for call in calls):
            raise OverflowError("unforeseen")
        if any(-2 in call for call in calls):
            raise StoreError("the disk is full")
        if any(-3 in call for call in calls):
            raise KeyboardInterrupt
        return [ValueError("odd") if -4 in call else sum(call) for call in calls]

    def submitted(self, executor, *requests) -> list[Future[int]]:
        """Requests that wait at the same time, served once they all do."""
        with self.lock:
            futures = [self.queue.submit(request, executor) for request in requests]
        wait(futures, timeout=60)
        return futures


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def totals():
    return Totals()


def test_those_who_wait_are_served_in_one_batch(totals, executor):
    futures = totals.submitted(executor, *([n] for n in range(20)))
    assert [future.result() for future in futures] == list(range(20))
    assert totals.batches == [20]


def test_a_batch_is_bounded_and_a_large_request_is_served_alone(totals, executor):
    futures = totals.submitted(executor, [1] * LARGEST_BATCH, [1] * (LARGEST_BATCH + 7), [1], [1])
    assert [future.result() for future in futures] == [LARGEST_BATCH, LARGEST_BATCH + 7, 1, 1]
    assert totals.batches == [1, 1, 2]


def test_an_error_of_one_request_is_its_own(totals, executor):
    good, bad, last = totals.submitted(executor, [1], [-4], [3])
    assert (good.result(), last.result(), totals.batches) == (1, 3, [3])
    assert isinstance(bad.exception(), ValueError)


def test_an_unforeseen_error_is_the_culprits_alone(totals, executor):
    good, bad, last = totals.submitted(executor, [1], [-1], [3])
    assert (good.result(), last.result()) == (1, 3)
    assert isinstance(bad.exception(), OverflowError)


def test_a_database_that_is_gone_fails_everyone_at_once(totals, executor):
    futures = totals.submitted(executor, [1], [-2], [3])
    assert [type(future.exception()) for future in futures] == [StoreError] * 3
    assert totals.batches == [3]


def test_an_interrupt_leaves_nobody_waiting(totals, executor):
    with totals.lock:
        first = totals.queue.submit([1], executor)
        with pytest.raises(KeyboardInterrupt):
            totals.queue.call([-3])
        assert isinstance(first.exception(timeout=60), StoreError)
    futures = totals.submitted(executor, [-3], [1] * LARGEST_BATCH)
    assert [type(future.exception(timeout=60)) for future in futures] == [StoreError, type(None)]


def test_a_cancelled_request_is_not_served(totals, executor):
    with totals.lock:
        futures = [totals.queue.submit([n], executor) for n in range(3)]
        assert futures[1].cancel()
    wait(futures, timeout=60)
    assert (futures[0].result(), futures[2].result(), totals.batches) == (0, 2, [2])


def test_an_executor_that_shuts_down_leaves_nobody_waiting(totals):
    executor = ThreadPoolExecutor(1)
    with totals.lock:
        futures = [totals.queue.submit([1] * LARGEST_BATCH, executor) for _ in range(3)]
        executor.shutdown(wait=False)
    wait(futures, timeout=60)
    assert [future.result() for future in futures] == [LARGEST_BATCH] * 3
    assert totals.queue.submit([1, 2], executor).result(timeout=60) == 3


def test_calls_and_submissions_share_batches(totals, executor):
    with ThreadPoolExecutor(8) as callers:
        mixed = [
            callers.submit(totals.queue.call, [n]) if n % 2 else totals.queue.submit([n], executor) for n in range(200)
        ]
        assert [future.result(timeout=60) for future in mixed] == list(range(200))


def test_whoever_waits_too_long_for_a_turn_is_refused_and_not_served_later() -> None:
    totals = Totals()
    totals.lock._busy_timeout = 0.05
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with totals.lock:
            held.set()
            free.wait(30)

    with ThreadPoolExecutor(2) as executor:
        holder = executor.submit(hold)
        held.wait(30)
        submitted = totals.queue.submit([1], executor)
        with pytest.raises(BusyError, match=r"no turn within 0\.05 s"):
            totals.queue.call([2])
        with pytest.raises(BusyError):
            submitted.result(30)
        free.set()
        holder.result(30)
        assert totals.queue.call([3]) == 3
    assert totals.batches == [1]
