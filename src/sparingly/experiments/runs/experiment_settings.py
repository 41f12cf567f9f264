"""A run is a readable id plus plain settings; a study is the runs that belong together."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from sparingly.encoders import EncodingError
from sparingly.encoders.csv_format import CsvFormat
from sparingly.experiments.csv_files import DataError, file_hash
from sparingly.experiments.datasets import Choice, Unlabelled, names
from sparingly.experiments.picture_files import content_hash

Option = bool | int | float | str | None


class SettingsError(ValueError):
    """Settings that cannot be run; the message is one line that names the value."""


class PlainSettings(BaseModel):
    """Settings: plain values, checked, unchangeable, and nothing besides."""

    model_config = ConfigDict(frozen=True, extra="forbid")


_AS_BEFORE = (("order", "shuffle"), ("class_order", "sorted"), ("unlabelled", "drop"))
"""Settings that are no part of a run's id, for there was no choice when the first ids were made."""
_NEWER = {
    "task": {
        "text",
        "encoder",
        "separator",
        "quote",
        "decimal",
        "encoding",
        "missing",
        "unlabelled",
        "order",
        "class_order",
        "data_hash",
        "known",
        "known_hash",
        "horizon_known",
        "expert",
    },
    "player": {"code_hash"},
}
"""Settings that did not exist at first: where they say nothing, runs of that time keep their ids."""


class Task(PlainSettings):
    """What is played, but for the seed: the data, the costs, the experts, and noise, drift and delay.

    Attributes
    ----------
    dataset
        A name, or a path to a CSV or Parquet file with its `target` column (and columns to `drop`).
    preprocessing
        `paper`, `streaming`, `encoded`, or `auto`: `encoded` for strategies that scale by themselves, else `streaming`.
    text, encoder
        Columns of a file that are texts, whatever they look like, and the text encoder.
    separator, quote, decimal, encoding, missing
        How a CSV file is written, where that should not be found out, and words in it that stand for a missing value.
    unlabelled
        Rows of a file without a label: `drop` leaves them out, `keep` scales the features by them, too.
    order
        `shuffle`: the rows in an order that the seed gives; `file`: as they stand in the file.
    class_order
        `sorted`: the classes' numbers follow their names; `drawn`: the seed draws them.
    known
        A file like that of the data with labels that are there already: they are taught before the first round.
    data_hash, known_hash
        Of the content of the files: `study_of` notes them, so that a changed file is another task.
    horizon
        Rounds; fewer if the data end before.
    horizon_known
        Whether a strategy that can use it is told how many rounds there will be.
    costs
        `costs[announced][true]`; uniform if not given.
    query_cost
        What a question costs.
    expert
        Who can be asked, where there are several: `gpt35:0.01`, whose answers are recorded with the data set,
        `human:1:gold`, or a synthetic one, `gpt:0.01:accuracy=0.8` (see `SyntheticExpert`). Their prices count then.
    noise
        Share of answers drawn at random.
    drift
        Class 0 and class 1 swap names: at half time (`abrupt`), or from one third to two thirds (`gradual`).
    delay
        Rounds until an answer reaches the strategy.
    test_rows
        The weighted F1 is measured on so many held-out observations at most; null: on all of them.
    """

    dataset: str
    preprocessing: Choice = "paper"
    target: str | None = None
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    encoder: str | None = None
    separator: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    unlabelled: Unlabelled = "drop"
    order: Literal["shuffle", "file"] = "shuffle"
    class_order: Literal["sorted", "drawn"] = "sorted"
    known: str | None = None
    data_hash: str | None = None
    known_hash: str | None = None
    horizon: Annotated[int, Field(ge=1)] = 10_000
    horizon_known: bool = False
    costs: tuple[tuple[float, ...], ...] | None = None
    query_cost: Annotated[float, Field(ge=0)] = 1.0
    expert: tuple[str, ...] = ()
    noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    drift: Literal["none", "abrupt", "gradual"] = "none"
    delay: Annotated[int, Field(ge=0)] = 0
    test_rows: Annotated[int, Field(ge=1)] | None = 2000

    @field_validator("costs")
    @classmethod
    def _square(cls, costs: tuple[tuple[float, ...], ...] | None) -> tuple[tuple[float, ...], ...] | None:
        if costs is not None and any(len(row) != len(costs) for row in costs):
            raise ValueError("costs must have a row and a column for each class")
        return costs

    @property
    def csv(self) -> CsvFormat:
        """How a CSV file is written, as far as that is stated."""
        try:
            return CsvFormat(self.encoding, self.separator, self.quote, self.decimal)
        except EncodingError as error:
            raise SettingsError(str(error)) from error

    def noted(self) -> Task:
        """The task with the hashes of its files, if it has any."""
        data = None if self.dataset in names() else self.dataset
        files = {"data_hash": data, "known_hash": self.known}
        hashes = {name: content_hash(file) for name, file in files.items() if file and Path(file).exists()}
        return self.model_copy(update=hashes) if hashes else self


class Player(PlainSettings):
    """A strategy with its options, and the name that tables show.

    `strategy` is a name of the registry, or `module:Class` or `file.py:Class` for one of your own; then `code_hash` is
    the hash of the file it is in (not of what that file imports).
    """

    strategy: str
    options: dict[str, Option] = {}
    label: str = ""
    code_hash: str | None = None

    def noted(self) -> Player:
        """The player with the hash of the file that its strategy is in, if it is one of your own."""
        path = code_file(self.strategy)
        return self if path is None else self.model_copy(update={"code_hash": file_hash(path)})

    @property
    def shown(self) -> str:
        """The name in tables and figures.

        >>> Player(strategy="neuronal", options={"gamma": 3}).shown
        'neuronal gamma=3'
        """
        return self.label or " ".join([self.strategy.split(":")[-1], *_pairs(self.options)])


class Run(PlainSettings):
    """One strategy on one stream.

    >>> player = Player(strategy="neuronal", options={"gamma": 3})
    >>> Run(task=Task(dataset="digits", horizon=500), player=player, seed=4).id
    'digits-neuronal-gamma=3-seed4-...'
    """

    task: Task
    player: Player
    seed: Annotated[int, Field(ge=0)] = 0

    @property
    def id(self) -> str:
        """Readable, and different for different settings; how tables call the strategy does not matter."""
        settings = self.model_dump(mode="json", exclude={"player": {"label"}})
        for part, newer in _NEWER.items():
            kept = settings[part].items()
            settings[part] = {k: v for k, v in kept if k not in newer or (v and (k, v) not in _AS_BEFORE)}
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
        words = [Path(self.task.dataset).stem, Path(self.player.strategy).stem, *_pairs(self.player.options)]
        return re.sub(r"[^\w.=]+", "-", "-".join([*words, f"seed{self.seed}", digest]))


class Row(PlainSettings):
    """A row of a table: one strategy on one task, for every seed, or for the first few of them."""

    table: str
    task: Task
    player: Player
    seeds: int | None = None


class Study(PlainSettings):
    """The rows that are compared, and the seeds they are run with."""

    name: str
    rows: tuple[Row, ...]
    seeds: Annotated[int, Field(ge=1)] = 25
    first_seed: Annotated[int, Field(ge=0)] = 0

    def runs(self) -> Iterator[Run]:
        """Every run once, seed by seed, so that a study cut short has whole seeds."""
        seen = set()
        for seed in range(self.first_seed, self.first_seed + self.seeds):
            for row in self.rows:
                run = self.at(row, seed)
                if seed in self.seeds_of(row) and run.id not in seen:
                    seen.add(run.id)
                    yield run

    def at(self, row: Row, seed: int) -> Run:
        return Run(task=row.task, player=row.player, seed=seed)

    def seeds_of(self, row: Row) -> range:
        return range(self.first_seed, self.first_seed + min(self.seeds, row.seeds or self.seeds))


def study_of(tasks: list[Task], players: list[Player], *, name: str, seeds: int, first_seed: int = 0) -> Study:
    """Every strategy on every task; the files they are read from are noted by their hashes."""
    tasks, players = [task.noted() for task in tasks], [player.noted() for player in players]
    rows = tuple(Row(table=name, task=task, player=player) for task in tasks for player in players)
    return Study(name=name, rows=rows, seeds=seeds, first_seed=first_seed)


def code_file(strategy: str) -> Path | None:
    """The file that a strategy of one's own is in, if there is one."""
    place, own, _ = strategy.partition(":")
    if not own:
        return None
    if place.endswith(".py"):
        return Path(place) if Path(place).is_file() else None
    try:
        found = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin and Path(found.origin).is_file() else None


def read_toml(path: Path) -> dict[str, Any]:
    """Settings from a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error


def one_line(error: ValidationError) -> str:
    """What pydantic found first, in one line.

    >>> try: Task(dataset="digits", noise=3)
    ... except ValidationError as error: print(one_line(error))
    noise is 3: Input should be less than or equal to 1
    """
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place} is {first['input']!r}: {first['msg'].removeprefix('Value error, ')}"


def check_names(strategies: list[str], known: list[str]) -> None:
    """Refuse a strategy that nobody knows, with the nearest names.

    >>> check_names(["neural_cpb"], ["neural_cbp", "neuronal"])
    Traceback (most recent call last):
        ...
    sparingly....SettingsError: there is no strategy 'neural_cpb'; did you mean neural_cbp or ...?
    """
    for name in strategies:
        if ":" not in name and name not in known:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            raise SettingsError(f"there is no strategy {name!r}; {hint}")


def _pairs(options: dict[str, Option]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(options.items())]


__all__ = [
    "DataError",
    "Player",
    "Row",
    "Run",
    "SettingsError",
    "Study",
    "Task",
    "check_names",
    "one_line",
    "read_toml",
]
