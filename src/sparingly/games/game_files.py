"""Games in TOML and JSON files, and as a table for the terminal."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any

from rich.table import Table

from sparingly.experts.expert import Expert, named_experts
from sparingly.games.costs import read_costs
from sparingly.games.game import Game
from sparingly.games.ready_games import READY

_FIELDS = ("actions", "outcomes", "costs", "feedback")
_EXPERTS = "experts"


def read_game(path: str | Path) -> Game:
    """Read a game from a TOML or JSON file.

    The file holds `costs` and `feedback` (and `actions` and `outcomes`, their names), or the name of a ready game
    as `game` and its options.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "spam.toml"
    >>> _ = file.write_text('game = "label_efficient"\\nclasses = ["ham", "spam"]\\nquery_cost = 0.2\\n')
    >>> read_game(file).actions
    ('announce ham', 'announce spam', 'ask the expert')
    """
    content = _parsed(Path(path))
    try:
        return _from_content(content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def write_game(game: Game, path: str | Path) -> None:
    """Write costs, feedback and names to a file ending in .toml or .json.

    Only symbols such a file can hold are written: strings, numbers and booleans (and None in JSON).
    """
    path = Path(path)
    kinds: tuple[type, ...] = (str, int, float, bool)
    if path.suffix == ".json":
        kinds += (type(None),)
    elif path.suffix != ".toml":
        raise ValueError(f"{path} ends in neither .toml nor .json")
    for i, row in enumerate(game.feedback):
        for j, symbol in enumerate(row):
            if type(symbol) not in kinds:
                raise ValueError(f"feedback[{i}, {j}] is {symbol!r}: {path.suffix[1:].upper()} cannot hold it")
    content = dict(zip(_FIELDS, (game.actions, game.outcomes, game.costs.tolist(), game.feedback), strict=True))
    if game.experts:
        content[_EXPERTS] = [_table(expert) for expert in game.experts]
    path.write_text(_json(content) if path.suffix == ".json" else _toml(content), encoding="utf-8")


def game_table(game: Game) -> Table:
    """Return the game as a table with each cell's cost and symbol."""
    table = Table("action", *game.outcomes, title=repr(game))
    for name, costs, symbols in zip(game.actions, game.costs, game.feedback, strict=True):
        table.add_row(name, *(f"{cost:g}  {symbol}" for cost, symbol in zip(costs, symbols, strict=True)))
    return table


def _parsed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is neither TOML nor JSON: it is not text") from None
    problems = []
    for name, parse in (("TOML", tomllib.loads), ("JSON", json.loads)):
        try:
            content = parse(text)
        except (ValueError, RecursionError) as error:
            problems.append(f"{name}: {error}")
        else:
            if isinstance(content, dict):
                return content
            problems.append(f"{name}: {type(content).__name__} instead of a table")
    likely = problems[1] if path.suffix == ".json" or text.lstrip().startswith("{") else problems[0]
    raise ValueError(f"{path} is neither TOML nor JSON ({likely})")


def _from_content(content: dict[str, Any]) -> Game:
    if "game" not in content:
        missing = [field for field in ("costs", "feedback") if field not in content]
        unknown = [field for field in content if field not in (*_FIELDS, _EXPERTS)]
        if missing:
            raise ValueError(
                f"{missing[0]} is missing: a game needs costs and feedback, or `game`, a ready game's name"
            )
        if unknown:
            raise ValueError(f"{unknown[0]} is not part of a game: it has {', '.join(_FIELDS)}")
        return Game(**{**content, _EXPERTS: _experts(content)})
    name = content.pop("game")
    if not isinstance(name, str) or name not in READY:
        raise ValueError(f"game is {name!r}: it must be one of {', '.join(READY)}")
    allowed = list(signature(READY[name]).parameters)
    unknown = [field for field in content if field not in allowed]
    if unknown:
        raise ValueError(f"{unknown[0]} is not an option of {name}: it has {', '.join(allowed) or 'none'}")
    if name == "label_efficient" and "costs" in content:
        content["costs"] = _label_efficient_costs(content)
    return READY[name](**content)


def _experts(content: dict[str, Any]) -> tuple[Expert, ...]:
    given = content.get(_EXPERTS, ())
    experts = named_experts(given)
    if given and not experts:
        raise ValueError(f"experts is {given!r}: it must be a list of experts, each with a name and a price")
    return experts


def _table(expert: Expert) -> dict[str, Any]:
    return {name: value for name, value in asdict(expert).items() if value is not None}


def _label_efficient_costs(content: dict[str, Any]) -> Any:
    """A matrix, or the costs with names, as the agent and the command line take them."""
    costs, classes = content["costs"], content.get("classes")
    if classes is None and isinstance(content.get("n_classes"), int):
        classes = [str(number) for number in range(content["n_classes"])]
    if isinstance(costs, list) and all(isinstance(row, list) for row in costs):
        return costs
    if classes is None:
        raise ValueError("costs with names need classes: name the classes as `classes`")
    return read_costs(costs, classes)


def _json(content: dict[str, Any]) -> str:
    fields = (f"  {json.dumps(field)}: {_block(value, '  ')}" for field, value in content.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _toml(content: dict[str, Any]) -> str:
    # TOML writes strings, numbers and arrays as JSON does, except that it escapes DEL.
    experts = content.pop(_EXPERTS, ())
    fields = [f"{field} = {_block(value, '')}\n" for field, value in content.items()]
    for expert in experts:
        fields.append("\n[[experts]]\n")
        fields += [f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in expert.items()]
    return "".join(fields).replace("\x7f", "\\u007f")


def _block(value: Sequence[Any], indent: str) -> str:
    if not isinstance(value[0], list | tuple):
        return json.dumps(value, ensure_ascii=False)
    rows = ",\n".join(f"{indent}  {json.dumps(row, ensure_ascii=False)}" for row in value)
    return f"[\n{rows}\n{indent}]"
