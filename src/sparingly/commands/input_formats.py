"""Observations from a stream of lines: CSV with a header, or one JSON value a line."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparingly.encoders.csv_format import CsvFormat, plain_number
from sparingly.encoders.encoding_errors import EncodingError
from sparingly.encoders.fields import reads_as_number
from sparingly.encoders.pictures import names_picture, read_picture
from sparingly.live.agent.errors import AgentError


@dataclass(frozen=True)
class InputRow:
    """One observation as it was read."""

    features: Any
    id: str | int | None = None
    payload: Any = None
    label: Any = None


@contextmanager
def open_rows(
    source: str | None, kind: str | None = None, id_name: str | None = "id", payload: str | None = None
) -> Iterator[Iterator[InputRow]]:
    """The observations of a file, or of standard input if there is none or it is called -.

    How a CSV file is written is found out from all of it; of standard input, which may go on for days, from its header.
    A column of a file whose cells all name pictures holds these, from the file's own folder on.
    """
    if source in (None, "-"):
        yield read_rows(sys.stdin, kind, id_name, payload=payload)
        return
    path = Path(str(source))
    try:
        found, text = CsvFormat().read(path.read_bytes())
    except EncodingError as error:
        raise AgentError(f"{path}: {error}") from None
    rows = read_rows(io.StringIO(text, newline=""), kind, id_name, payload=payload, form=found, text=text)
    yield _with_pictures(rows, path.parent, text, found)


def read_rows(
    source: Iterable[str],
    kind: str | None = None,
    id_name: str | None = "id",
    *,
    payload: str | None = None,
    form: CsvFormat | None = None,
    text: str | None = None,
) -> Iterator[InputRow]:
    """The observations of a stream.

    A JSON line is a list of features, an object of features by name, a text, or an object with "features", and perhaps
    an id and a "payload". In CSV, what reads as a number is one, and an empty cell is a missing value.

    >>> [row.features for row in read_rows(["a,b,id\\n", "1,2,first\\n"])]
    [{'a': 1.0, 'b': 2.0}]
    >>> [row.features for row in read_rows(["a,b\\n", '"one\\n', "\\n", 'two",2\\n', " \\n"])]
    [{'a': 'one\\n\\ntwo', 'b': 2.0}]
    >>> next(read_rows(['{"features": [1, 2], "id": "first", "payload": "look"}']))
    InputRow(features=[1, 2], id='first', payload='look', label=None)
    """
    lines = iter(source)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return iter(())
    if kind is None:
        kind = "jsonl" if first.lstrip()[0] in "[{" or _is_json_text(first) else "csv"
    if kind not in ("csv", "jsonl"):
        raise AgentError(f"format {kind!r} is unknown: give csv or jsonl")
    every = itertools.chain([first], lines)
    if kind == "jsonl":
        return _jsonl((line for line in every if line.strip()), id_name, payload)
    form = form or CsvFormat().of_lines([first])
    return _csv(every, id_name, payload, form, set() if text is None else form.decimal_commas(text))


def with_labels(rows: Iterable[InputRow], target: str) -> Iterator[InputRow]:
    """The rows with the column `target` taken out as their label; None where it is empty.

    >>> [(row.features, row.label) for row in with_labels(read_rows(["a,kind\\n", "1,ham\\n"]), "kind")]
    [({'a': 1.0}, 'ham')]
    """
    for number, row in enumerate(rows, start=1):
        if not isinstance(row.features, dict) or target not in row.features:
            if row.label is None:
                raise AgentError(f"row {number} has no column {target!r}")
            yield row
            continue
        features = {name: value for name, value in row.features.items() if name != target}
        yield replace(row, features=features, label=row.features[target])


def without(rows: Iterable[InputRow], columns: Sequence[str]) -> Iterator[InputRow]:
    """The rows without some columns, each of which must be there.

    >>> [row.features for row in without(read_rows(["a,b\\n", "1,2\\n"]), ["b"])]
    [{'a': 1.0}]
    """
    for number, row in enumerate(rows, start=1):
        for column in columns:
            if not isinstance(row.features, dict) or column not in row.features:
                raise AgentError(f"row {number} has no column {column!r} to leave out")
        kept = {name: value for name, value in row.features.items() if name not in columns} if columns else row.features
        yield replace(row, features=kept)


def observation(row: InputRow) -> Any:
    """What is observed: the row, or the picture that it holds if it holds nothing else."""
    alone = list(row.features.values()) if isinstance(row.features, dict) and len(row.features) == 1 else [None]
    return alone[0] if isinstance(alone[0], Path) else row.features


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


def _csv(
    lines: Iterable[str], id_name: str | None, payload: str | None, form: CsvFormat, commas: set[str]
) -> Iterator[InputRow]:
    for number, row in enumerate(form.rows(lines), start=2):
        if None in row.values() and not any(str(cell or "").strip() for cell in row.values()):
            continue  # a line of blanks
        if None in row or None in row.values():
            raise AgentError(f"line {number} has more or fewer fields than the header")
        cells_by_name = {str(key).strip(): value for key, value in row.items()}
        name = cells_by_name.pop(id_name, None) if id_name is not None else None
        shown = _payload_of(cells_by_name, payload, number)
        cells = {key: _cell(plain_number(v, ",") if key in commas else v) for key, v in cells_by_name.items()}
        yield InputRow(cells, name, shown)


def _with_pictures(rows: Iterator[InputRow], folder: Path, text: str, form: CsvFormat) -> Iterator[InputRow]:
    """The rows, with the paths of pictures in place of their names; one that cannot be read is refused."""
    named: set[str] | None = None
    for row in rows:
        if not isinstance(row.features, dict) or not any(map(names_picture, row.features.values())):
            yield row
            continue
        if named is None:
            named = {key for key, cells in form.columns(text).items() if all(map(names_picture, cells))}
        paths = {key: folder / row.features[key].strip() for key in named if isinstance(row.features.get(key), str)}
        for path in paths.values():
            _check_picture(path)
        yield replace(row, features={**row.features, **paths})


def _check_picture(path: Path) -> None:
    try:
        read_picture(path)
    except EncodingError as error:
        raise AgentError(str(error)) from None


def _payload_of(row: dict[str, Any], payload: str | None, number: int) -> Any:
    if payload is None:
        return None
    if payload not in row:
        raise AgentError(f"line {number} has no column {payload!r} for the payload")
    return row.pop(payload) or None


def _jsonl(lines: Iterable[str], id_name: str | None, payload: str | None) -> Iterator[InputRow]:
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise AgentError(f"line {number} is not JSON: {error}") from None
        if isinstance(value, dict) and "features" in value:
            yield InputRow(value["features"], value.get(id_name), value.get(payload or "payload"), value.get("label"))
        elif isinstance(value, dict):
            shown = _payload_of(value, payload, number)
            yield InputRow({key: one for key, one in value.items() if key != id_name}, value.get(id_name), shown)
        else:
            yield InputRow(value)


def _is_json_text(line: str) -> bool:
    try:
        return isinstance(json.loads(line), str)
    except json.JSONDecodeError:
        return False


def _cell(value: str) -> float | str | None:
    """A number, a word, or None for a missing value.

    >>> _cell("2"), _cell("clerk"), _cell(" "), _cell("007")
    (2.0, 'clerk', None, '007')
    """
    if not value.strip():
        return None
    return float(value) if reads_as_number(value) else value
