"""What is accepted as a matrix of costs, a matrix of symbols and a list of names; everything else names its cell."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_NAME = 200
_AXES = "rows are actions and columns are outcomes"


def cost_matrix(costs: Any, name: str = "costs", axes: str = _AXES) -> NDArray[np.float64]:
    """Return finite costs as a fresh float matrix, or name the cell that is wrong.

    >>> cost_matrix([[0, 1], [1]])
    Traceback (most recent call last):
    ...
    ValueError: costs[1, 1] is missing: row 1 has 1 entry, another has 2
    """
    if isinstance(costs, np.ndarray) and costs.ndim == 2 and costs.size and costs.dtype.kind in "fiu":
        matrix = np.array(costs, dtype=np.float64)
        if np.isfinite(matrix).all():
            return matrix
    rows = _rows(costs, name, axes)
    if all(set(map(type, row)) == {float} for row in rows):
        matrix = np.array(rows)
        if np.isfinite(matrix).all():
            return matrix
    return np.array([[_cost(value, f"{name}[{i}, {j}]") for j, value in enumerate(row)] for i, row in enumerate(rows)])


class SymbolMatrix(tuple[tuple[Hashable, ...], ...]):
    """Rows of symbols that may also be indexed as a matrix.

    >>> symbols = SymbolMatrix((("-", "-"), ("A", "B")))
    >>> symbols[1, 0], symbols[1], symbols.shape
    ('A', ('A', 'B'), (2, 2))
    """

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self[0])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            row, column = key
            return super().__getitem__(row)[column]
        return super().__getitem__(key)


def symbol_matrix(feedback: Any, shape: tuple[int, int]) -> SymbolMatrix:
    """Return hashable symbols of the given shape as tuples, or name the cell that is wrong.

    >>> symbol_matrix([["-", "-"], [["A"], "B"]], (2, 2))
    Traceback (most recent call last):
    ...
    ValueError: feedback[1, 0] is ['A']: every symbol must be hashable
    """
    rows = _rows(feedback, "feedback", _AXES)
    found = len(rows), len(rows[0])
    if found != shape:
        hint = ", it looks transposed" if found[::-1] == shape else ""
        raise ValueError(f"feedback is {found[0]} x {found[1]} but costs is {shape[0]} x {shape[1]}: {_AXES}{hint}")
    for i, row in enumerate(rows):
        _check_symbols(row, i)
    return SymbolMatrix(tuple(row) for row in rows)


def checked_names(names: Sequence[str] | None, kind: str, size: int, other_size: int) -> tuple[str, ...]:
    """Return as many distinct names as the matrix has actions (or outcomes); numbered names for None."""
    if names is None:
        return tuple(f"{kind} {i}" for i in range(size))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{kind}s is {names!r}: it must be a list of names")
    names = tuple(str(name) for name in names)
    if len(names) != size:
        hint = f" ({_AXES}: is the matrix transposed?)" if len(names) == other_size else ""
        raise ValueError(f"{len(names)} {kind}s are named but the matrix has {size}{hint}")
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            raise ValueError(f"{kind}s[{i}] is {name!r}, the name of {kind} {first[name]}: names must differ")
    return names


def check_class(name: Any) -> None:
    """Refuse the name of a class that a person cannot see, a database cannot keep, or a line cannot hold.

    >>> check_class("  ")
    Traceback (most recent call last):
    ...
    ValueError: class '  ' has no visible character
    """
    if not isinstance(name, str):
        if isinstance(name, float) and not math.isfinite(name):
            raise ValueError(f"class {name} is not a finite number")
        return
    if any(unicodedata.category(c) == "Cs" for c in name):
        raise ValueError(f"class {name[:60]!r} is not valid Unicode: it has half of a surrogate pair")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise ValueError(f"class {name[:60]!r} has a control character")
    if not any(c.isprintable() and not c.isspace() for c in name):
        raise ValueError(f"class {name[:60]!r} has no visible character")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"class {name[:60]!r}... has {len(name)} characters: {LONGEST_NAME} are the most")


def _rows(matrix: Any, name: str, axes: str) -> list[list[Any]]:
    if isinstance(matrix, str | bytes | dict) or not isinstance(matrix, Iterable):
        raise ValueError(f"{name} is {matrix!r}: it must be a matrix, {axes}")
    rows = [_row(row, f"{name}[{i}]", axes) for i, row in enumerate(getattr(matrix, "values", matrix))]
    if not rows or not any(rows):
        raise ValueError(f"{name} is empty: a game needs at least one action and one outcome")
    width = max(map(len, rows))
    for i, row in enumerate(rows):
        if len(row) != width:
            entries = "1 entry" if len(row) == 1 else f"{len(row)} entries"
            raise ValueError(f"{name}[{i}, {len(row)}] is missing: row {i} has {entries}, another has {width}")
    return rows


def _row(row: Any, name: str, axes: str) -> list[Any]:
    if isinstance(row, str | bytes | dict) or not isinstance(row, Iterable):
        raise ValueError(f"{name} is {row!r}: it must be a row of a matrix, {axes}")
    # Plain Python values, so that symbols hash and print alike wherever they came from.
    values = list(row.tolist()) if isinstance(row, np.ndarray) else list(row)
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    return values


def _cost(value: Any, cell: str) -> float:
    if value is None:
        raise ValueError(f"{cell} is missing: every cost must be a finite number")
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{cell} is {value!r}: every cost must be a finite number") from None
    except OverflowError:
        raise ValueError(f"{cell} is too large: every cost must be finite") from None
    if not np.isfinite(number):
        raise ValueError(f"{cell} is {number}: every cost must be finite")
    return number


def _check_symbols(row: list[Any], i: int) -> None:
    try:
        distinct = set(row)
    except TypeError:
        j = next(j for j, symbol in enumerate(row) if not _is_hashable(symbol))
        raise ValueError(f"feedback[{i}, {j}] is {row[j]!r}: every symbol must be hashable") from None
    for symbol in distinct:
        if symbol != symbol:
            raise ValueError(f"feedback[{i}, {row.index(symbol)}] is {symbol!r}: a symbol must equal itself")


def _is_hashable(symbol: Any) -> bool:
    try:
        hash(symbol)
    except TypeError:
        return False
    return True
