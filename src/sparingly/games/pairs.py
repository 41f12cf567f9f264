"""Sequences and mappings over pairs of actions that hold nothing but a rule, so that a thousand classes fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, isqrt
from typing import TypeVar, overload

Pair = tuple[int, int]
V = TypeVar("V")


class AllPairs(Sequence[Pair]):
    """Every pair i < j of sorted actions, in order, without a list of them.

    >>> pairs = AllPairs((0, 2, 5))
    >>> len(pairs), pairs[1], (2, 5) in pairs, (5, 2) in pairs, pairs == ((0, 2), (0, 5), (2, 5))
    (3, (0, 5), True, False, True)
    """

    def __init__(self, actions: Sequence[int]) -> None:
        self._actions = tuple(actions)
        self._members = frozenset(self._actions)

    def __len__(self) -> int:
        return comb(len(self._actions), 2)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        if isinstance(index, slice):
            return tuple(self[k] for k in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no pair {index} among {len(self)}")
        after = len(self) - 1 - index % len(self)
        # Counted from the end, the pairs whose first action is the r-th last start at comb(r, 2).
        r = _triangle_root(after)
        return self._actions[-r - 1], self._actions[-(after - comb(r, 2)) - 1]

    def __iter__(self) -> Iterator[Pair]:
        return combinations(self._actions, 2)

    def __contains__(self, pair: object) -> bool:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return False
        return pair[0] in self._members and pair[1] in self._members and pair[0] < pair[1]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AllPairs):
            return len(self) == len(other) and (len(self) == 0 or self._actions == other._actions)
        if not isinstance(other, tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"AllPairs({len(self)} pairs of {len(self._actions)} actions)"


class PairMapping(Mapping[Pair, V]):
    """Values over pairs, each found by a rule when first asked for.

    >>> gaps = PairMapping(AllPairs((0, 1, 4)), lambda pair: pair[1] - pair[0])
    >>> gaps[(1, 4)], len(gaps), dict(gaps)
    (3, 3, {(0, 1): 1, (0, 4): 4, (1, 4): 3})
    """

    # Few enough to be worth keeping, and far too few to fill the memory.
    _KEPT = 10_000

    def __init__(self, pairs: Sequence[Pair], rule: Callable[[Pair], V]) -> None:
        self._pairs = pairs
        self._members = pairs if isinstance(pairs, AllPairs) else frozenset(pairs)
        self._rule = rule
        self._found: dict[Pair, V] = {}

    def __getitem__(self, pair: Pair) -> V:
        if pair in self._found:
            return self._found[pair]
        if pair not in self._members:
            raise KeyError(f"{pair} is not among the pairs i < j")
        value = self._rule(pair)
        if len(self._found) < self._KEPT:
            self._found[pair] = value
        return value

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __contains__(self, pair: object) -> bool:
        return pair in self._members

    def __repr__(self) -> str:
        return f"PairMapping({len(self)} pairs)" if len(self) > 20 else repr(dict(self))


def every_pair(actions: Sequence[int]) -> Sequence[Pair]:
    """Return all pairs of sorted actions: a plain tuple while it is small, a rule beyond."""
    return tuple(combinations(actions, 2)) if len(actions) <= 64 else AllPairs(actions)


def _triangle_root(number: int) -> int:
    """Return the largest r with comb(r, 2) <= number."""
    return (1 + isqrt(1 + 8 * number)) // 2
