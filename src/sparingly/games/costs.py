"""What a mistake costs, said so that no one can mix up what is announced and what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

ANNOUNCED, TRUE = "announced", "true"


def read_costs(costs: Any, classes: Sequence[Any]) -> NDArray[np.float64] | None:
    """The costs as a matrix [announced, true], or None for 1 an error.

    Three ways to say them: a matrix whose rows are what is announced and whose columns are what is true; a DataFrame
    whose two axes are named "announced" and "true", whichever way round; a list of records for the costs that are
    not 1 (0 for a right announcement).

    >>> read_costs([{"announced": "ham", "true": "spam", "cost": 0.2}], ["ham", "spam"]).tolist()
    [[0.0, 0.2], [1.0, 0.0]]
    >>> read_costs({"ham": {"spam": 0.2}}, ["ham", "spam"])
    Traceback (most recent call last):
    ...
    ValueError: a dict of costs does not say which key is announced and which is true: give \
records such as {"announced": "ham", "true": "spam", "cost": 1}
    """
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        example = f'{{"announced": "{classes[0]}", "true": "{classes[1]}", "cost": 1}}'
        raise ValueError(
            f"a dict of costs does not say which key is announced and which is true: give records such as {example}"
        )
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        return _from_frame(costs, classes)
    if isinstance(costs, Sequence) and costs and all(isinstance(record, Mapping) for record in costs):
        return _from_records(costs, classes)
    return _from_matrix(costs, classes)


def _from_matrix(costs: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    try:
        matrix = np.asarray(costs, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"costs must be a matrix of numbers [announced, true]: {error}") from None
    if matrix.shape != (len(classes), len(classes)):
        raise ValueError(
            f"costs has shape {matrix.shape}: {len(classes)} classes need {len(classes)} rows (announced) "
            f"and {len(classes)} columns (true)"
        )
    for i, j in np.argwhere(~np.isfinite(matrix)):
        raise ValueError(f"costs[announced {classes[i]}, true {classes[j]}] is {matrix[i, j]}: it must be finite")
    return matrix


def _from_frame(frame: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    axes = (frame.index.name, frame.columns.name)
    if set(axes) != {ANNOUNCED, TRUE}:
        raise ValueError(f"the axes of costs are named {axes[0]!r} and {axes[1]!r}: name them 'announced' and 'true'")
    frame = frame if axes[0] == ANNOUNCED else frame.T
    for axis in (frame.index, frame.columns):
        for name in set(classes) ^ set(axis):
            raise ValueError(f"costs and classes differ in {name!r}")
    return _from_matrix(frame.loc[list(classes), list(classes)].to_numpy(), classes)


def _from_records(records: Sequence[Mapping[str, Any]], classes: Sequence[Any]) -> NDArray[np.float64]:
    matrix = 1 - np.eye(len(classes))
    for record in records:
        if set(record) != {ANNOUNCED, TRUE, "cost"}:
            raise ValueError(f"the record of costs {dict(record)} must have 'announced', 'true' and 'cost'")
        place = []
        for axis in (ANNOUNCED, TRUE):
            if record[axis] not in classes:
                raise ValueError(f"costs names the {axis} class {record[axis]!r}, which is not among the classes")
            place.append(list(classes).index(record[axis]))
        matrix[place[0], place[1]] = record["cost"]
    return _from_matrix(matrix, classes)
