"""What each mistake costs, read from every form in which a user may state it: values, text or a file.

Rows are what is announced, columns are what is true. The command line, game files, the agent and the adapters all
read costs here.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games.game import Game

ANNOUNCED, TRUE, COST = "announced", "true", "cost"
FILE_ENDINGS = (".csv", ".toml", ".json")
_NAMED_PARTS = re.compile(rf"(?:^|,)\s*({ANNOUNCED}|{TRUE}|{COST})\s*=(.*?)(?=,\s*(?:{ANNOUNCED}|{TRUE}|{COST})\s*=|$)")


def read_costs(costs: Any, classes: Sequence[Any]) -> NDArray[np.float64] | None:
    """Return the costs as a matrix [announced, true], or None, which means 1 for each error.

    Parameters
    ----------
    costs
        One of: a matrix; a DataFrame whose axes are named "announced" and "true", whichever way round; records, or
        texts such as `announced=ham,true=spam:5`, of the costs that are not 1 (0 for a right announcement); a text
        with a matrix, `0 1; 5 0` or `[[0, 1], [5, 0]]`; a path that ends in .csv, .toml or .json; a list of one of
        these.
    classes
        The classes, in the order of the matrix.

    Examples
    --------
    >>> read_costs([{"announced": "ham", "true": "spam", "cost": 0.2}], ["ham", "spam"]).tolist()
    [[0.0, 0.2], [1.0, 0.0]]
    >>> read_costs("announced=spam,true=ham:5", ["ham", "spam"]).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    >>> read_costs("0 1; 5 0", ["ham", "spam"]).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    >>> read_costs("announced=spam,true=hamm:5", ["ham", "spam"])
    Traceback (most recent call last):
    ...
    ValueError: there is no class 'hamm'; did you mean ham?
    >>> read_costs({"ham": {"spam": 0.2}}, ["ham", "spam"])
    Traceback (most recent call last):
    ...
    ValueError: a dict of costs does not say which key is announced and which is true: give \
records such as {"announced": "ham", "true": "spam", "cost": 1}
    """
    if isinstance(costs, list | tuple) and len(costs) == 1 and isinstance(costs[0], str):
        costs = costs[0]
    if isinstance(costs, Path) or (isinstance(costs, str) and costs.strip().lower().endswith(FILE_ENDINGS)):
        return _from_file(Path(str(costs).strip()), classes)
    if isinstance(costs, str):
        costs = _parse_text(costs, classes)
    if costs is None:
        return None
    if isinstance(costs, Mapping):
        example = f'{{"announced": "{classes[0]}", "true": "{classes[1]}", "cost": 1}}'
        raise ValueError(
            f"a dict of costs does not say which key is announced and which is true: give records such as {example}"
        )
    if hasattr(costs, "columns") and hasattr(costs, "index"):
        return _from_frame(costs, classes)
    if isinstance(costs, Sequence) and costs and all(isinstance(one, Mapping | str) for one in costs):
        records = [_parse_named(one, classes) if isinstance(one, str) else one for one in costs]
        return _from_records(records, classes)
    return _from_matrix(costs, classes)


def cost_records(matrix: NDArray[np.float64], classes: Sequence[Any]) -> list[dict[str, Any]]:
    """The costs that are not 1 (0 for a right announcement) as records: `read_costs` reads them back.

    >>> cost_records(np.array([[0.0, 1.0], [5.0, 0.0]]), ["ham", "spam"])
    [{'announced': 'spam', 'true': 'ham', 'cost': 5.0}]
    """
    unusual = np.argwhere(matrix != 1 - np.eye(len(classes))).tolist()
    return [{ANNOUNCED: classes[i], TRUE: classes[j], COST: float(matrix[i, j])} for i, j in unusual]


def check_prices(game: Game) -> None:
    """Refuse a question that pays whoever asks it: in theory it is a game, in practice a slip.

    >>> from sparingly.games import label_efficient
    >>> check_prices(label_efficient(2, query_cost=-1.0))
    Traceback (most recent call last):
    ...
    ValueError: the price of 'ask the expert' is -1: it must not be negative
    """
    for action, price in enumerate(game.costs.min(axis=1)[game.n_outcomes :], start=game.n_outcomes):
        if price < 0:
            raise ValueError(f"the price of {game.actions[action]!r} is {price:g}: it must not be negative")


# text


def _parse_text(text: str, classes: Sequence[Any]) -> Any:
    """A matrix or records, from a text on the command line."""
    if text.strip().startswith(("[", "{")):
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"costs {text!r} are not JSON: {error}") from None
    if "=" in text:
        return [text]
    try:
        return [[float(cost) for cost in row.replace(",", " ").split()] for row in text.strip().strip(";").split(";")]
    except ValueError:
        raise ValueError(
            f"costs {text!r} are not numbers: write a row for each announced class, as in '0 1; 0.5 0', "
            f"or name a file that ends in {', '.join(FILE_ENDINGS[:-1])} or {FILE_ENDINGS[-1]}"
        ) from None


def _parse_named(text: str, classes: Sequence[Any]) -> dict[str, Any]:
    """One cost with names: `announced=ham,true=spam:5`, or with `,cost=5` at its end."""
    found = [(name, value.strip()) for name, value in _NAMED_PARTS.findall(text)]
    parts = dict(found)
    if found and COST not in parts:
        name, value = found[-1]
        parts[name], _, parts[COST] = (part.strip() for part in value.rpartition(":"))
    if sorted(parts) != sorted((ANNOUNCED, TRUE, COST)) or len(found) > len(parts):
        raise ValueError(f"cost {text!r} must look like {ANNOUNCED}={classes[0]},{TRUE}={classes[1]}:5")
    try:
        return {ANNOUNCED: parts[ANNOUNCED], TRUE: parts[TRUE], COST: float(parts[COST])}
    except ValueError:
        raise ValueError(
            f"cost {text!r} must look like {ANNOUNCED}={classes[0]},{TRUE}={classes[1]}:5: "
            f"{parts[COST]!r} is not a number"
        ) from None


# files


def _from_file(path: Path, classes: Sequence[Any]) -> NDArray[np.float64]:
    """Costs from a CSV file that names its axes, or from TOML or JSON; an error names the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text") from None
    try:
        if path.suffix.lower() == ".csv":
            return _from_csv(text, classes)
        return _from_document(json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text), classes)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None


def _from_csv(text: str, classes: Sequence[Any]) -> NDArray[np.float64]:
    r"""A matrix with names, whose top-left cell says which axis is which, or the columns announced, true and cost.

    >>> _from_csv("announced\\true,ham,spam\nham,0,1\nspam,5,0\n", ["ham", "spam"]).tolist()
    [[0.0, 1.0], [5.0, 0.0]]
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if any(map(str.strip, row))]
    header = rows[0] if rows else [""]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells, the header has {len(header)}")
    if sorted(header) == sorted((ANNOUNCED, TRUE, COST)):
        records = [dict(zip(header, row, strict=True)) for row in rows[1:]]
        return _from_records(records, classes)
    axes = tuple(part.strip() for part in re.split(r"[\\/]", header[0]))
    if sorted(axes) != sorted((ANNOUNCED, TRUE)):
        raise ValueError(
            rf"the top-left cell is {header[0]!r}: write announced\true there if each row is an announced class "
            r"(true\announced if each row is a true one)"
        )
    by_row = axes == (ANNOUNCED, TRUE)
    records = [
        dict(zip((ANNOUNCED, TRUE), (row[0], name) if by_row else (name, row[0]), strict=True)) | {COST: cell}
        for row in rows[1:]
        for name, cell in zip(header[1:], row[1:], strict=True)
    ]
    for axis in ([row[0] for row in rows[1:]], header[1:]):
        _check_axis(axis, classes)
    return _from_records(records, classes)


def _from_document(content: Any, classes: Sequence[Any]) -> NDArray[np.float64]:
    """The content of a TOML or JSON file: `costs`, a matrix or records, and `classes`, the order of the matrix."""
    content = {"costs": content} if isinstance(content, list) else content
    if not isinstance(content, dict) or not isinstance(content.get("costs"), list):
        raise ValueError("costs is missing: a file of costs holds `costs`, a matrix or records, and perhaps `classes`")
    for name in content:
        if name not in ("costs", "classes"):
            raise ValueError(f"{name!r} is not part of a file of costs: it holds `costs` and perhaps `classes`")
    order = content.get("classes", list(classes))
    if not isinstance(order, list):
        raise ValueError(f"classes is {order!r}: it must be a list of names")
    _check_axis(order, classes)
    found = read_costs(content["costs"], order)
    assert found is not None
    places = [[str(name) for name in order].index(str(name)) for name in classes]
    return found[np.ix_(places, places)]


# values


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
    for i, j in np.argwhere(~(np.isfinite(matrix) & (matrix >= 0))):
        wanted = "not be negative" if np.isfinite(matrix[i, j]) else "be finite"
        raise ValueError(f"costs[announced {classes[i]}, true {classes[j]}] is {matrix[i, j]:g}: it must {wanted}")
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
    stated: dict[tuple[int, int], Any] = {}
    for record in records:
        if set(record) != {ANNOUNCED, TRUE, COST}:
            raise ValueError(f"the record of costs {dict(record)} must have 'announced', 'true' and 'cost'")
        cell = _place(record[ANNOUNCED], classes), _place(record[TRUE], classes)
        named = f"costs[announced {record[ANNOUNCED]}, true {record[TRUE]}]"
        try:
            matrix[cell] = float(record[COST])
        except (TypeError, ValueError):
            raise ValueError(f"{named} is {record[COST]!r}: it must be a number") from None
        if cell in stated and stated[cell] != record[COST]:
            raise ValueError(f"{named} is given twice: {stated[cell]} and {record[COST]}")
        stated[cell] = record[COST]
    return _from_matrix(matrix, classes)


def _place(name: Any, classes: Sequence[Any]) -> int:
    """The number of a class; one that is not a text is found by its text too, since a command line has only texts."""
    if name in classes:
        return list(classes).index(name)
    texts = [str(one) for one in classes]
    if isinstance(name, str) and name in texts:
        return texts.index(name)
    near = get_close_matches(str(name), texts, n=1)
    raise ValueError(f"there is no class {name!r}; {f'did you mean {near[0]}?' if near else _listed(texts)}")


def _listed(names: Sequence[str], most: int = 20) -> str:
    return f"there are {', '.join(names[:most])}" + (" ..." if len(names) > most else "")


def _check_axis(names: Sequence[Any], classes: Sequence[Any]) -> None:
    """Each class once, in any order."""
    places = [_place(name, classes) for name in names]
    for place, name in enumerate(classes):
        if places.count(place) != 1:
            raise ValueError(f"the class {name!r} is there {places.count(place)} times: name each class once")
