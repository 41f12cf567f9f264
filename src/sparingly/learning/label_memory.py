"""What has been learned from so far: rows that are kept for ever, in tensors that grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Memory:
    """Named columns of rows, appended one row at a time; each column is one tensor whose capacity doubles.

    >>> memory = Memory(device="cpu")
    >>> for k in range(3):
    ...     memory.append(x=torch.full((2,), float(k)), symbol=torch.tensor(k), cost=k / 2)
    >>> len(memory), memory["x"].tolist(), memory["symbol"].tolist(), memory["cost"].tolist()
    (3, [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [0, 1, 2], [0.0, 0.5, 1.0])
    """

    def __init__(self, device: str = "cpu") -> None:
        self._device = device
        self._columns: dict[str, Tensor] = {}
        self._numbers: dict[str, NDArray[np.generic]] = {}
        """Columns of plain numbers as arrays on the same memory, into which a number is written at once."""
        self._rooms: dict[str, int] = {}
        """How many rows each column has room for."""
        self.length = 0
        """How many rows there are."""

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Tensor:
        return self._columns[name][: self.length]

    def column(self, name: str) -> Tensor:
        """A column with its spare rows: the same tensor, and unchanged, as long as no row was added."""
        return self._columns[name]

    def append(self, **row: Tensor | float) -> None:
        """Append one row, of tensors or plain numbers; numbers become what `torch.tensor` makes of the first."""
        for name, value in row.items():
            if self.length >= self._rooms.get(name, 0):
                self._make_room(name, value)
            if isinstance(value, Tensor) or self._device != "cpu":
                self._columns[name][self.length] = value
                continue
            numbers = self._numbers.get(name)
            if numbers is None:
                numbers = self._numbers[name] = self._columns[name].numpy()
            numbers[self.length] = value
        self.length += 1

    def _make_room(self, name: str, value: Tensor | float) -> None:
        """See to it that a column, a new one of values like this if there is none, can take one more row."""
        column, like = self._columns.get(name), torch.as_tensor(value)
        if column is None:
            column = torch.empty(16, *like.shape, dtype=like.dtype, device=self._device)
        elif self.length == len(column):
            column = torch.cat([column, torch.empty_like(column)])
        self._columns[name], self._rooms[name] = column, len(column)
        self._numbers.pop(name, None)

    def extend(self, **rows: Tensor) -> None:
        """Append many rows at once, as many in each column."""
        self._numbers, self._rooms = {}, {}
        for name, values in rows.items():
            kept = self._columns[name][: self.length] if name in self._columns else values[:0]
            self._columns[name] = torch.cat([kept, values.to(self._device)])
        self.length += len(next(iter(rows.values())))

    def __getstate__(self) -> dict[str, Any]:
        """Copies make their own arrays: one of these would be of the memory of the original."""
        return {**self.__dict__, "_numbers": {}, "_rooms": {}}

    def clear(self) -> None:
        """Forget every row."""
        self.length = 0

    def state_dict(self) -> dict[str, Any]:
        return {name: self[name].clone() for name in self._columns}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        lengths = {len(column) for column in state.values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns of a memory have different lengths: {sorted(lengths)}")
        self.length = lengths.pop() if lengths else 0
        self._numbers, self._rooms = {}, {}
        self._columns = {name: column.to(self._device).clone() for name, column in state.items() if self.length}
