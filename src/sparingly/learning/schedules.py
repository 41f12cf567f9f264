"""When strategies update their networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class UpdateSchedule(Protocol):
    """When updates are due."""

    def due(self, t: int) -> bool:
        """Whether an update follows round t, counted from 1."""

    def next(self, t: int) -> int:
        """The first round after t, both counted from 1, that an update follows."""


@dataclass(frozen=True)
class PaperSchedule:
    """After each round up to 50, every 50 rounds below 1000, every 500 after.

    >>> schedule = PaperSchedule()
    >>> [schedule.next(t) for t in (0, 49, 50, 949, 950, 1000, 1001)]
    [1, 50, 100, 950, 1000, 1500, 1500]
    """

    def due(self, t: int) -> bool:
        return t <= 50 or (t < 1000 and t % 50 == 0) or t % 500 == 0

    def next(self, t: int) -> int:
        if t < 50:
            return t + 1
        step = 50 if t < 1000 else 500
        return t - t % step + step


@dataclass(frozen=True)
class ReleasedSchedule:
    """The paper's schedule with the rounds counted from 0, as the released code counts them: one round later.

    >>> schedule = ReleasedSchedule()
    >>> [schedule.next(t) for t in (0, 49, 50, 51, 951, 1001)]
    [1, 50, 51, 101, 1001, 1501]
    """

    def due(self, t: int) -> bool:
        return PaperSchedule().due(t - 1)

    def next(self, t: int) -> int:
        return PaperSchedule().next(t - 1) + 1


@dataclass(frozen=True)
class Every:
    """After every k rounds.

    >>> [Every(5).next(t) for t in (0, 4, 5)]
    [5, 5, 10]
    """

    k: int

    def due(self, t: int) -> bool:
        return t % self.k == 0

    def next(self, t: int) -> int:
        return t - t % self.k + self.k


@dataclass(frozen=True)
class Geometric:
    """After round 1, then each time the rounds have grown by `factor`.

    >>> schedule, t, rounds = Geometric(1.5), 0, []
    >>> while t < 60:
    ...     t = schedule.next(t)
    ...     rounds.append(t)
    >>> rounds
    [1, 2, 3, 5, 8, 12, 18, 27, 41, 62]
    """

    factor: float = 1.2

    def due(self, t: int) -> bool:
        return self.next(t - 1) == t

    def next(self, t: int) -> int:
        due = 1
        while due <= t:
            due = max(due + 1, int(due * self.factor + 0.5))
        return due


@dataclass(frozen=True)
class AfterAnswers:
    """After every answer and at no round, as the authors' own codes of several strategies learn.

    >>> AfterAnswers().due(50)
    False
    """

    def due(self, t: int) -> bool:
        return False

    def next(self, t: int) -> int:
        return t + 1_000_000_000


def update_schedule(name: str | UpdateSchedule) -> UpdateSchedule:
    """A schedule by name ("paper", "released", "answers", "every K", "geometric", "geometric F"), or the object itself.

    >>> update_schedule("every 10")
    Every(k=10)
    """
    if not isinstance(name, str):
        return name
    word, _, number = name.partition(" ")
    try:
        if word == "paper" and not number:
            return PaperSchedule()
        if word == "released" and not number:
            return ReleasedSchedule()
        if word == "answers" and not number:
            return AfterAnswers()
        if word == "every" and int(number) >= 1:
            return Every(int(number))
        if word == "geometric" and (not number or float(number) > 1):
            return Geometric(float(number)) if number else Geometric()
    except ValueError:
        pass
    raise ValueError(
        f"schedule {name!r} is not known: give 'paper', 'released', 'answers', 'every K', 'geometric' or 'geometric F'"
    )
