"""A data set and its costs in words: what a user should see before anything is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparingly.experiments.dataset import Dataset

SPELLED_OUT = 3
"""Up to so many classes each cost is said in words."""
MOST_COLUMNS = 30
MOST_CLASSES = 20

Matrix = Sequence[Sequence[float]]


def costs_in_words(classes: Sequence[str], costs: Matrix | None, query_cost: float, experts: Sequence[str] = ()) -> str:
    """What the costs say with the names of the classes, so that a matrix the wrong way round is noticed.

    >>> costs_in_words(["ham", "spam"], [[0, 5], [1, 0]], 1)
    'announcing ham when it is spam costs 5, announcing spam when it is ham costs 1; a question costs 1'
    >>> costs_in_words(["a", "b", "c", "d"], None, 0.5)
    'a wrong announcement costs 1; a question costs 0.5'
    >>> costs_in_words(["a", "b", "c", "d"], 1 - np.eye(4) + 4 * np.eye(4, k=1), 0.5)
    'announcing a when it is b costs 5, announcing b when it is c costs 5, announcing c when it is d costs 5, \
every other wrong announcement 1; a question costs 0.5'
    """
    price = f"; experts {', '.join(experts)}" if experts else f"; a question costs {query_cost:g}"
    if costs is None:
        return f"a wrong announcement costs 1{price}"
    matrix = np.asarray(costs, dtype=float)
    wrong = ~np.eye(len(classes), dtype=bool)
    values, counts = np.unique(matrix[wrong], return_counts=True)
    usual = float(values[counts.argmax()])
    every = len(classes) <= SPELLED_OUT
    stated = [
        f"announcing {classes[i]} when it is {classes[j]} costs {matrix[i, j]:g}"
        for i, j in np.argwhere(wrong)
        if every or matrix[i, j] != usual
    ]
    if not every and len(stated) > MOST_CLASSES:
        stated = [*stated[:MOST_CLASSES], f"{len(stated) - MOST_CLASSES} more differ"]
    rest = [] if every else [f"every other wrong announcement {usual:g}"]
    return ", ".join(stated + rest) + price if stated else f"a wrong announcement costs {usual:g}{price}"


def texts_read(data: Dataset, encoder: str) -> list[str]:
    """Which columns are read as texts, and in how many rows there is none."""
    if data.schema is None or not data.schema.has_texts:
        return [f"texts, encoder {encoder}"]
    lines, end = [], 0
    for name, field in data.schema.fields.items():
        end += field.width
        if field.kind == "text":
            gaps = int(data.raw[:, end - 1].sum()) if field.marks_gaps else 0
            none = f"; in {gaps:,} of {len(data):,} rows there is none" if gaps else ""
            lines.append(f"column {name!r} is read as text, encoder {encoder}{none}")
    return lines


def described(data: Dataset) -> Iterator[str]:
    """Rows, columns and how each is read, and the classes with their counts."""
    yield f"{len(data):,} rows"
    if data.schema is not None:
        fields = list(data.schema.fields.items())
        shown = [f"{name} ({field.described})" for name, field in fields[:MOST_COLUMNS]]
        more = f" and {len(fields) - MOST_COLUMNS} more" if len(fields) > MOST_COLUMNS else ""
        yield f"{len(fields)} {'column' if len(fields) == 1 else 'columns'}: {', '.join(shown)}{more}"
    counts = np.bincount(data.y, minlength=data.n_classes)
    order = np.argsort(-counts, kind="stable")
    classes = [f"{data.classes[place]} ({counts[place]:,})" for place in order[:MOST_CLASSES]]
    more = f" and {data.n_classes - MOST_CLASSES} more" if data.n_classes > MOST_CLASSES else ""
    yield f"{data.n_classes} classes: {', '.join(classes)}{more}"
