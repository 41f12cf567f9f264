"""One run: a strategy plays a stream, and everything worth keeping is written down."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly import __version__
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.datasets import Dataset, known_rows, load, suited
from sparingly.experiments.picture_files import content_hash
from sparingly.experiments.runs.experiment_settings import Player, Run, SettingsError, Task, check_names, code_file
from sparingly.experiments.runs.expert_answers import RunExperts
from sparingly.experiments.runs.run_records import Record
from sparingly.experiments.streams import Drift, Stream, stream

LABEL_COUNTS = (10, 25, 50, 100, 150, 250, 300, 400, 500, 750, 1000, 2500, 5000, 7500, 9000)
"""The paper measures F1 when a strategy has so many labels."""
PHASES = {"assess": "assess", "decide": "decide", "learn": "learn", "_update": "train", "scores": "test"}
READ = {
    "dataset",
    "target",
    "drop",
    "text",
    "encoder",
    "separator",
    "quote",
    "decimal",
    "encoding",
    "missing",
    "unlabelled",
    "data_hash",
}
"""The settings of a task that say how its data are read."""
DRIFTS = {"none": None, "abrupt": Drift(0.5, 0.5), "gradual": Drift(1 / 3, 2 / 3)}


def execute(run: Run) -> Record:
    """Play a run from its settings alone, on one thread.

    >>> from sparingly.experiments.runs.experiment_settings import Player
    >>> record = execute(Run(task=Task(dataset="digits", horizon=100), player=Player(strategy="always_ask"), seed=0))
    >>> record.regret, record.queries, [labels for labels, _, _ in record.f1]
    (100.0, 100, [10, 25, 50, 100, 100])
    """
    from sparingly.learning.determinism import one_thread

    with one_thread():
        return _executed(run)


def _executed(run: Run) -> Record:
    from sparingly.experiments.play import play

    clock = Stopwatch()
    with clock.phase("load"):
        source, taught = _source(run)
        experts = _experts(run, source)
        game = _game(run.task, source.dataset, experts)
        strategy = make_strategy(run, game, source)
        items = zip(source.X, source.answers.tolist(), strict=True) if experts is None else experts.items()
    clock.watch(strategy)
    if len(taught):
        with clock.phase("teach"):
            strategy.teach(source.X_before[: len(taught)], taught)
    if source.before is not None and len(source.before) > len(taught):
        strategy.preview(source.X_before[len(taught) :])
    scores = HeldOutScores(strategy, source, run.task.test_rows)
    rounds = RoundColumns(len(source), [] if experts is None else [one.name for one in experts.experts])
    with clock.phase("rest"):
        for played in play(strategy, game, items, delay=run.task.delay):
            rounds.add(played)
            scores.look(played.t)
        scores.measure(len(source))
    cost = game.costs[rounds.columns["action"], source.y] if experts is None else rounds.cost
    cheapest = game.costs if experts is None else game.costs[: game.n_outcomes]
    kept = rounds.columns | {
        "outcome": source.y.astype(np.int16),
        "answer": source.answers.astype(np.int16),
        "cost": cost,
        "regret": cost - cheapest.min(axis=0)[source.y],
    }
    counts = np.zeros((game.n_actions, game.n_outcomes), dtype=np.int64)
    np.add.at(counts, (rounds.columns["action"], source.y), 1)
    summary = [] if experts is None else experts.summary(strategy, rounds.asked)
    seconds, classes = clock.seconds(), source.dataset.classes
    return Record(run, kept, scores.measured, counts.tolist(), versions(), seconds, classes, summary)


def check(run: Run) -> None:
    """Raise what would stop a run before its first round: no such data, costs that do not fit, an option unknown."""
    source, taught = _source(run)
    strategy = make_strategy(run, _game(run.task, source.dataset, _experts(run, source)), source)
    if len(taught):
        try:
            strategy.teach(source.X_before[:1], taught[:1])
        except ValueError as error:
            raise SettingsError(f"{run.player.shown} cannot be taught {run.task.known}: {error}") from error


def make_strategy(run: Run, game: Any, source: Stream) -> Any:
    """The strategy that a run names, with its options."""
    kind = find_strategy(run.player.strategy, run.player.code_hash)
    shape, options = source.dataset.shape, dict(run.player.options)
    if run.task.horizon_known and takes_horizon(run.player):
        options.setdefault("horizon", len(source))
    if "class_vectors" in inspect.signature(kind).parameters:
        options.setdefault("class_vectors", _class_vectors(source.dataset, run.task))
    try:
        return kind(game, shape[0] if len(shape) == 1 else shape, seed=run.seed, **options)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{run.player.shown} cannot play {source.dataset.name}: {error}") from error


def takes_horizon(player: Player) -> bool:
    """Whether a strategy can use how many rounds there will be."""
    return "horizon" in inspect.signature(find_strategy(player.strategy, player.code_hash)).parameters


def _class_vectors(dataset: Dataset, task: Task) -> Any:
    """What the classes are called, encoded as observations are where these are one text each; else None."""
    is_text = dataset.texts is not None or (dataset.schema is not None and dataset.schema.is_text)
    if not is_text or task.class_order == "drawn":
        return None
    from sparingly.encoders import text_encoder
    from sparingly.strategies.sparing.class_names import encoded_names

    names = encoded_names(list(map(str, dataset.classes)), text_encoder(task.encoder), dataset.shape)
    return names if dataset.shape == names.shape[1:] else None


def find_strategy(name: str, code_hash: str | None = None) -> Any:
    """A strategy by its name in the registry, or as `module:Class` or `file.py:Class`, whose file has this hash."""
    from sparingly.strategies import registered

    known = registered()
    check_names([name], list(known))
    return known[name] if name in known else _own_strategy(name, code_hash)


@lru_cache
def _own_strategy(name: str, code_hash: str | None) -> Any:
    _check_unchanged(code_file(name), code_hash)
    place, _, kind = name.partition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        return getattr(module, kind)
    except (ImportError, OSError, AttributeError) as error:
        raise SettingsError(f"the strategy {name!r} cannot be loaded: {error}") from error


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what the numbers of a run depend on."""
    import torch

    return {
        "sparingly": __version__,
        "numpy": np.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


class HeldOutScores:
    """Measures F1 on the held-out set whenever the number of labels passes one of the paper's counts."""

    def __init__(self, strategy: Any, source: Stream, rows: int | None) -> None:
        self.strategy, self.source, self.rows = strategy, source, rows
        self.ahead = list(LABEL_COUNTS)
        self.measured: list[tuple[int, int, float]] = []

    def look(self, t: int) -> None:
        """Measure if a count was reached in this round."""
        if self.ahead and self.strategy.n_labels >= self.ahead[0]:
            count = self.ahead.pop(0)
            self.measure(t, count)

    def measure(self, t: int, count: int | None = None) -> None:
        from sklearn.metrics import f1_score

        X, y = self.source.test(t)
        X, y = X[: self.rows], y[: self.rows]
        blocks = [self.strategy.scores(X[i : i + 1000]).argmax(axis=1) for i in range(0, len(X), 1000)]
        f1 = f1_score(y, np.concatenate(blocks), average="weighted", zero_division=0)
        self.measured.append((self.strategy.n_labels if count is None else count, t, float(f1)))


class RoundColumns:
    """Columns that fill as rounds are played; where experts have names, also who was asked and what was paid.

    `why` is the sentence of each decision's reason, and a column `why_NAME` has each number that such a sentence uses.
    """

    def __init__(self, horizon: int, experts: Sequence[str] = ()) -> None:
        self.columns: dict[str, NDArray[Any]] = {
            "action": np.zeros(horizon, dtype=np.int16),
            "prediction": np.zeros(horizon, dtype=np.int16),
            "width": np.full(horizon, np.nan, dtype=np.float32),
            "gap": np.full(horizon, np.nan, dtype=np.float32),
            "why": np.full(horizon, "", dtype=object),
        }
        self.cost = np.zeros(horizon)
        self.asked = {name: np.zeros(horizon, dtype=bool) for name in experts}
        if experts:
            self.columns |= {"paid": np.zeros(horizon)} | {f"asked_{name}": one for name, one in self.asked.items()}

    def add(self, played: Any) -> None:
        row = played.t - 1
        self.columns["action"][row] = played.action
        self.columns["prediction"][row] = played.prediction
        self.cost[row] = played.cost
        if self.asked:
            self.columns["paid"][row] = played.paid
        for name in played.asked if self.asked else ():
            self.asked[name][row] = True
        self.columns["why"][row] = played.why.sentence
        for name, value in played.why.values.items():
            if isinstance(value, bool | int | float | np.number):
                self._number(name)[row] = value

    def _number(self, name: str) -> NDArray[Any]:
        """The column of a number that a reason may have; nan where it has not."""
        column = name if name in ("width", "gap") else f"why_{name}"
        if column not in self.columns:
            self.columns[column] = np.full(len(self.cost), np.nan, dtype=np.float32)
        return self.columns[column]


class Stopwatch:
    """Time by phase, each moment counted once: a phase inside another is taken out of it."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._open = [0.0]
        self._start, self._cpu = time.perf_counter(), time.process_time()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.spent[name] = self.spent.get(name, 0.0) + took - self._open.pop()
            self._open[-1] += took

    def watch(self, strategy: Any) -> None:
        """Time the strategy's methods, on this object only."""
        for method, name in PHASES.items():
            setattr(strategy, method, self._timed(getattr(strategy, method), name))

    def _timed(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            with self.phase(name):
                return method(*arguments)

        return timed

    def seconds(self) -> dict[str, float]:
        phases = {name: round(seconds, 4) for name, seconds in self.spent.items()}
        total, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return phases | {"total": round(total, 4), "cpu": round(cpu, 4)}


def _source(run: Run) -> tuple[Stream, NDArray[np.int64]]:
    """The stream of a run, what is there before it, and the classes of that as far as they are known."""
    task, flat = run.task, run.player.options.get("network") != "lenet"
    auto = task.preprocessing == "auto"
    preprocessing = suited(find_strategy(run.player.strategy, run.player.code_hash)) if auto else task.preprocessing
    dataset = dataset_of(task, preprocessing, flat)
    drift = DRIFTS[task.drift]
    source = stream(
        dataset,
        run.seed,
        task.horizon,
        noise=task.noise,
        drift=drift,
        shuffled=task.order == "shuffle",
        class_order=task.class_order,
    )
    if task.known is None:
        return replace(source, before=dataset.unlabelled), np.empty(0, dtype=np.int64)
    _check_unchanged(Path(task.known), task.known_hash)
    if dataset.preprocessing == "paper":
        raise SettingsError("labels that are known before need the preprocessing streaming, encoded or auto")
    how: dict[str, Any] = {"encoder": task.encoder, "csv": task.csv, "missing": task.missing}
    X, y = known_rows(source.dataset, task.known, str(task.target), **how)
    return replace(source, before=X if dataset.unlabelled is None else np.concatenate([X, dataset.unlabelled])), y


def dataset_of(task: Task, preprocessing: Any, flat: bool = True) -> Dataset:
    """The data of a task, read once."""
    return _dataset(Task(**task.model_dump(include=READ)), preprocessing, flat)


@lru_cache(maxsize=32)
def _dataset(task: Task, preprocessing: Any, flat: bool) -> Dataset:
    _check_unchanged(Path(task.dataset), task.data_hash)
    return load(
        task.dataset,
        preprocessing,
        flat=flat,
        target=task.target,
        drop=task.drop,
        text=task.text,
        encoder=task.encoder,
        csv=task.csv,
        missing=task.missing,
        unlabelled=task.unlabelled,
    )


def _check_unchanged(path: Path | None, noted: str | None) -> None:
    if noted is not None and (path is None or not path.exists() or content_hash(path) != noted):
        raise DataError(f"{path} has changed since the run was planned: start the command again")


def _experts(run: Run, source: Stream) -> RunExperts | None:
    return RunExperts(run.task, source, run.seed) if run.task.expert else None


def _game(task: Task, dataset: Dataset, experts: RunExperts | None = None) -> Any:
    from sparingly.games import label_efficient

    if task.costs is not None and len(task.costs) != dataset.n_classes:
        raise SettingsError(f"costs are for {len(task.costs)} classes, {dataset.name} has {dataset.n_classes}")
    try:
        if experts is not None:
            return label_efficient(dataset.n_classes, costs=task.costs, experts=experts.experts)
        return label_efficient(dataset.n_classes, costs=task.costs, query_cost=task.query_cost)
    except ValueError as error:
        raise SettingsError(str(error)) from error
