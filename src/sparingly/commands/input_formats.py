"""Observations from a stream of lines: CSV with a header, or one JSON value a line."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparingly.encoders.fields import reads_as_number
from sparingly.live.agent.errors import AgentError


@dataclass(frozen=True)
class InputRow:
    """One observation as it was read."""

    features: Any
    id: str | int | None = None
    payload: Any = None
    label: Any = None


def read_rows(source: Iterable[str], kind: str | None = None, id_name: str = "id") -> Iterator[InputRow]:
    """The observations of a stream.

    A JSON line is a list of features, an object of features by name, a text, or an object with "features", and perhaps
    an id and a "payload". In CSV, what reads as a number is one, and nothing at all is a gap.

    >>> [row.features for row in read_rows(["a,b,id\\n", "1,2,first\\n"])]
    [{'a': 1.0, 'b': 2.0}]
    >>> next(read_rows(['{"features": [1, 2], "id": "first", "payload": "look"}']))
    InputRow(features=[1, 2], id='first', payload='look')
    """
    lines = (line for line in source if line.strip())
    first = next(iter(lines), None)
    if first is None:
        return iter(())
    if kind is None:
        kind = "jsonl" if first.lstrip()[0] in "[{" or _is_json_text(first) else "csv"
    if kind not in ("csv", "jsonl"):
        raise AgentError(f"format {kind!r} is unknown: give csv or jsonl")
    every = itertools.chain([first], lines)
    return _csv(every, id_name) if kind == "csv" else _jsonl(every, id_name)


def with_labels(rows: Iterable[InputRow], target: str) -> Iterator[InputRow]:
    """The rows with the column `target` taken out as their label; None where it is empty.

    >>> [(row.features, row.label) for row in with_labels(read_rows(["a,kind\\n", "1,ham\\n"]), "kind")]
    [({'a': 1.0}, 'ham')]
    """
    for number, row in enumerate(rows, start=1):
        if not isinstance(row.features, dict) or target not in row.features:
            raise AgentError(f"row {number} has no column {target!r}")
        features = {name: value for name, value in row.features.items() if name != target}
        yield replace(row, features=features, label=row.features[target])


def class_of(label: Any, classes: Sequence[Any]) -> Any:
    """The class that a cell means: 1 may be written 1, 1.0 or "1".

    >>> class_of(1.0, ["0", "1"]), class_of("ham", ["ham", "spam"]), class_of("cow", ["cat", "dog"])
    ('1', 'ham', 'cow')
    """
    spelled = {str(label).strip(), f"{label:g}" if isinstance(label, float) else ""}
    return next((name for name in classes if str(name) in spelled), label)


def batches(rows: Iterable[InputRow], size: int) -> Iterator[list[InputRow]]:
    """The rows in batches of one size; the last may be smaller."""
    stream = iter(rows)
    while batch := list(itertools.islice(stream, size)):
        yield batch


def _csv(lines: Iterable[str], id_name: str) -> Iterator[InputRow]:
    for number, row in enumerate(csv.DictReader(lines), start=2):
        if None in row or None in row.values():
            raise AgentError(f"line {number} has more or fewer fields than the header")
        name = row.pop(id_name, None)
        yield InputRow({key: _cell(value) for key, value in row.items()}, name)


def _jsonl(lines: Iterable[str], id_name: str) -> Iterator[InputRow]:
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise AgentError(f"line {number} is not JSON: {error}") from None
        if isinstance(value, dict) and "features" in value:
            yield InputRow(value["features"], value.get(id_name), value.get("payload"))
        elif isinstance(value, dict):
            yield InputRow({key: one for key, one in value.items() if key != id_name}, value.get(id_name))
        else:
            yield InputRow(value)


def _is_json_text(line: str) -> bool:
    try:
        return isinstance(json.loads(line), str)
    except json.JSONDecodeError:
        return False


def _cell(value: str) -> float | str | None:
    """A number, a word or a gap.

    >>> _cell("2"), _cell("clerk"), _cell(" "), _cell("007")
    (2.0, 'clerk', None, '007')
    """
    if not value.strip():
        return None
    return float(value) if reads_as_number(value) else value
