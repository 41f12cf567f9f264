"""What `run`, `reproduce` and `report` do: options become studies, the studies are run, and a report is written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import Field

from sparingly.commands.cost_options import stated_costs
from sparingly.encoders.text_encoders import chosen_name
from sparingly.experiments import array_cache, dataset_sources, datasets, openml
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.data_description import costs_in_words, described, texts_read
from sparingly.experiments.reports.advice import in_text
from sparingly.experiments.reports.comparison import Digest, complete_seeds, digest
from sparingly.experiments.reports.paper_runs import paper_runs
from sparingly.experiments.reports.report import Report, make_report, write_report
from sparingly.experiments.runs import expert_study, paper_studies
from sparingly.experiments.runs.duration_estimates import Estimates, in_time
from sparingly.experiments.runs.experiment_settings import (
    PlainSettings,
    Player,
    Run,
    SettingsError,
    Study,
    Task,
    read_toml,
    study_of,
)
from sparingly.experiments.runs.many_runs import Pool, RunTally, local, missing, on_ray, run_all
from sparingly.experiments.runs.run_records import Results
from sparingly.experiments.streams import stream
from sparingly.games.costs import read_costs

SHORT = 2000
"""With fewer rows it matters whether strategies are told how many there are."""


class RunOptions(PlainSettings):
    """Where runs are done, and where their records go."""

    out: Path = Path("results")
    on: Literal["local", "ray"] = "local"
    address: str | None = None
    workers: int | None = None
    retry: bool = False
    dry_run: bool = False
    minutes: Annotated[float, Field(gt=0)] | None = None

    def pool(self, workers: int) -> Pool:
        if self.on == "local":
            return local(workers, self.minutes)
        return on_ray(self.address, self.workers, self.minutes)


class RunFilter(PlainSettings):
    """Which of many runs are to be done: those on some data sets, by some strategies; all if nothing is said."""

    data: tuple[str, ...] = ()
    strategy: tuple[str, ...] = ()

    def among(self, runs: list[Run]) -> list[Run]:
        """The runs that are wanted; a name that none of the runs has is refused.

        >>> runs = [Run(task=Task(dataset="mnist"), player=Player(strategy=name)) for name in ("cesa", "margin")]
        >>> [run.player.strategy for run in RunFilter(strategy=("margin",)).among(runs)], len(RunFilter().among(runs))
        (['margin'], 2)
        """
        known = {"data": [run.task.dataset for run in runs], "strategy": [run.player.strategy for run in runs]}
        for option, names in known.items():
            for name in getattr(self, option):
                if name not in names:
                    raise SettingsError(f"--{option} {name}: there are {', '.join(dict.fromkeys(names))}")
        data, strategies = self.data or known["data"], self.strategy or known["strategy"]
        return [run for run in runs if run.task.dataset in data and run.player.strategy in strategies]


class OwnStudy(Task):
    """A study of one's own: every strategy on every data set."""

    dataset: str = ""
    preprocessing: datasets.Choice = "auto"
    data: tuple[str, ...] = ("digits",)
    strategy: tuple[str, ...] = ("sparing", "neural_cbp", "never_ask,start=0", "never_ask", "always_ask")
    seeds: int = 5
    first_seed: int = 0
    name: str = "mine"

    def study(self, costs: Any = None) -> Study:
        """The runs, with costs in any form that `read_costs` takes."""
        common = self.model_dump(include=set(Task.model_fields), exclude={"dataset", "costs", "encoder"})
        tasks = [
            Task(dataset=name, costs=self._costs_on(name, costs), encoder=self._encoder_on(name), **common)
            for name in self.data
        ]
        players = [player_of(text) for text in self.strategy]
        return study_of(tasks, players, name=self.name, seeds=self.seeds, first_seed=self.first_seed)

    def _encoder_on(self, dataset: str) -> str | None:
        """The text encoder by its own name, so that the runs are the same wherever they run; None without texts."""
        data = self._loaded(dataset)
        has_texts = data.texts is not None or (data.schema is not None and data.schema.has_texts)
        return chosen_name(self.encoder) if has_texts else None

    def _loaded(self, dataset: str) -> datasets.Dataset:
        from sparingly.experiments.runs.single_run import dataset_of

        return dataset_of(self.model_copy(update={"dataset": dataset}).noted(), "encoded")

    def _costs_on(self, dataset: str, costs: Any) -> tuple[tuple[float, ...], ...] | None:
        if costs is None:
            return None
        classes = self._loaded(dataset).classes
        try:
            matrix = read_costs(costs, classes)
        except ValueError as error:
            raise SettingsError(f"{dataset}: {error}") from error
        return None if matrix is None else tuple(map(tuple, matrix.tolist()))


def run_own_study(given: Mapping[str, Any], settings: Path | None) -> None:
    """A study of one's own, from options and a settings file; options win."""
    from sparingly.experiments.runs.single_run import dataset_of, takes_horizon

    from_file = read_toml(settings) if settings else {}
    if {"cost", "costs"} & set(given):
        from_file = {name: value for name, value in from_file.items() if name not in ("cost", "costs")}
    chosen = from_file | dict(given)
    costs = stated_costs(chosen.pop("costs", None), chosen.pop("cost", None))
    folders = chosen.pop("images", ())
    for folder in folders:
        if not Path(folder).is_dir():
            what = "it is a file, no folder" if Path(folder).exists() else "there is no such folder"
            raise DataError(f"--images {folder}: {what}")
    if folders:
        chosen["data"] = [*chosen.get("data", ()), *folders]
    options = _run_options(chosen)
    study = OwnStudy.model_validate(chosen).study(costs)
    _check(study)
    tasks = list({row.task: None for row in study.rows})
    lengths = {task: played_rows(task, dataset_of(task, "encoded")) for task in tasks}
    for task in tasks:
        for line in task_notes(task, whole=options.dry_run):
            typer.echo(line)
        players = [row.player for row in study.rows if row.task == task and "horizon" not in row.player.options]
        if lengths[task] < SHORT and not task.horizon_known and any(map(takes_horizon, players)):
            typer.echo(
                f"{task.dataset}: nobody is told that there are {lengths[task]:,} rows (--horizon-known tells it)"
            )
    _do([study], options, lengths)


def run_paper(what: str, given: Mapping[str, Any], settings: Path | None) -> None:
    """The paper's experiments: one, several with commas between, or `all`."""
    chosen = (read_toml(settings) if settings else {}) | dict(given)
    options = _run_options(chosen)
    only = RunFilter.model_validate({key: chosen.pop(key) for key in RunFilter.model_fields if key in chosen})
    unknown = set(chosen) - {"seeds", "horizon", "first_seed"}
    if unknown:
        raise SettingsError(f"{sorted(unknown)[0]!r} is not a setting of reproduce")
    names = paper_studies.ALL if what == "all" else tuple(what.split(","))
    studies = [
        expert_study.study(**chosen) if name == expert_study.NAME else paper_studies.study(name, **chosen)
        for name in names
    ]
    _do(studies, options, only=only)


def _run_options(chosen: dict[str, Any]) -> RunOptions:
    """Take the options of `RunOptions` out of all that were given."""
    return RunOptions.model_validate({key: chosen.pop(key) for key in RunOptions.model_fields if key in chosen})


def player_of(text: str) -> Player:
    """A strategy with options from a command line.

    >>> player_of("neuronal,gamma=3,preset=released").options
    {'gamma': 3, 'preset': 'released'}
    """
    name, *parts = text.split(",")
    options: dict[str, Any] = {}
    for part in parts:
        key, found, value = part.partition("=")
        if not found:
            raise SettingsError(f"{part!r} in the strategy {text!r} is not of the form option=value")
        options[key.strip()] = _value(value.strip())
    return Player(strategy=name.strip(), options=options)


def task_notes(task: Task, *, whole: bool) -> list[str]:
    """What a user should see of a task before it is run; the whole of it in a dry run."""
    from sparingly.experiments.runs.single_run import dataset_of

    data = dataset_of(task, "encoded")
    lines = [*data.notes, *(described(data) if whole else ())]
    if task.encoder is not None:
        lines += texts_read(data, task.encoder)
    lines.append(costs_in_words(data.classes, task.costs, task.query_cost, task.expert))
    if whole or task.order == "file":
        orders = {"shuffle": "in random order, another for each seed (--order file keeps it)", "file": "in their order"}
        lines.append(f"{played_rows(task, data):,} rows are played {orders[task.order]}, the others are held out")
    if task.known is not None:
        lines.append(f"the labelled rows of {task.known} are learned before the first round, for free")
    return [f"{task.dataset}: {line}" for line in lines]


def played_rows(task: Task, data: datasets.Dataset) -> int:
    """How many rounds a run of the task has."""
    return len(stream(data, 0, task.horizon))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check(study: Study) -> None:
    """Find out before the first run what would stop all of them."""
    from sparingly.experiments.runs.single_run import check

    for row in study.rows:
        check(Run(task=row.task, player=row.player, seed=study.first_seed))


def _do(
    chosen: list[Study],
    options: RunOptions,
    lengths: Mapping[Task, int] | None = None,
    only: RunFilter | None = None,
) -> None:
    from sparingly.experiments.runs.progress import Progress

    results = Results(options.out)
    runs = list({run.id: run for study in chosen for run in study.runs()}.values())
    runs = sorted((only or RunFilter()).among(runs), key=lambda run: run.seed)
    if (options.out / "sparingly.json").is_file() or not options.dry_run:
        results.open()
    estimates = Estimates(results, lengths or {})
    to_do = missing(runs, results)
    workers = options.workers or (estimates.workers(to_do) if options.on == "local" else os.cpu_count() or 1)
    for line in changes(to_do, results):
        typer.echo(line)
    typer.echo(_plan(runs, to_do, estimates, workers))
    if options.dry_run:
        return
    for study in chosen:
        results.add_study(study)
    with Progress(to_do, estimates, workers) as progress:
        tally = run_all(runs, results, options.pool(workers), retry=options.retry, watch=progress.tick)
    _tell(tally, to_do, options)
    whole = [study for study in chosen if any(complete_seeds(results, study, row) for row in study.rows)]
    if whole:
        report, files = write_report_of(results, options.out / "report.html", [study.name for study in whole])
        for advice, _ in report.advice:
            for line in in_text(advice):
                typer.echo(line)
        for path in files[:2]:
            typer.echo(str(path))
    if tally.failed or tally.skipped:
        raise typer.Exit(1)


def changes(to_do: list[Run], results: Results) -> list[str]:
    """Which files have changed since these runs were done before, so that they are done anew."""
    done: dict[str, set[tuple[str | None, ...]]] = {}
    for kept in results.kept():
        done.setdefault(_regardless(kept.run), set()).add(tuple(_hashes(kept.run).values()))
    counts: dict[str, int] = {}
    for run in to_do:
        before = done.get(_regardless(run))
        for place, (file, ours) in enumerate(_hashes(run).items()):
            if before and ours not in {hashes[place] for hashes in before}:
                counts[file] = counts.get(file, 0) + 1
    return [f"{file} has changed since {n} of these runs were done: they are done anew" for file, n in counts.items()]


def _hashes(run: Run) -> dict[str, str | None]:
    """The files of a run, whether or not it has them, with their hashes."""
    strategy = f"{run.player.strategy.partition(':')[0]}"
    return {
        run.task.dataset: run.task.data_hash,
        run.task.known or "known": run.task.known_hash,
        strategy: run.player.code_hash,
    }


def _regardless(run: Run) -> str:
    """A run's settings without the hashes of its files."""
    task = run.task.model_copy(update={"data_hash": None, "known_hash": None})
    return Run(task=task, player=run.player.model_copy(update={"code_hash": None}), seed=run.seed).id


def _plan(runs: list[Run], to_do: list[Run], estimates: Estimates, workers: int) -> str:
    seconds = estimates.total(to_do, workers)
    guessed = sum(not estimates.known(run) for run in to_do)
    rounds = sum(map(estimates.rounds, to_do))
    all_ = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    counts = f"{all_}, {len(runs) - len(to_do)} done, {len(to_do)} to do ({rounds:,} rounds)"
    doubt = f" ({guessed} of them guessed)" if guessed else ""
    return f"{counts}: about {in_time(seconds)} with {workers} worker{'s' * (workers > 1)}{doubt}"


def _tell(tally: RunTally, to_do: list[Run], options: RunOptions) -> None:
    for run_id, reason in tally.failed.items():
        typer.echo(f"failed: {run_id}: {reason}", err=True)
    if tally.skipped:
        typer.echo(f"{len(tally.skipped)} runs failed before and were left out; --retry does them again", err=True)
    if tally.failed:
        typer.echo(f"{len(tally.failed)} runs failed; their tracebacks are in {options.out / 'failures'}", err=True)
    left = len(to_do) - tally.done - len(tally.failed) - len(tally.skipped)
    if left:
        typer.echo(f"{left} runs were not begun in {options.minutes:g} minutes; the same command goes on with them")


def write_report_of(
    results: Results,
    out: Path,
    chosen: list[str] | None = None,
    reference: str = paper_studies.REFERENCE,
    title: str = "Strategies compared",
    summary: Path | None = None,
    theirs: Path | None = None,
    earlier: Path | None = None,
) -> tuple[Report, list[Path]]:
    """Write a report of some studies (of all, if not said), from their records or from a summary.

    `theirs` is the file of the paper's own runs, where it is not beside the data; `earlier` a summary whose rows stand
    in for those that have no run yet.
    """
    if (results.folder / "runs.csv").is_file():
        summary_data, versions = Digest.read(results.folder), []
    else:
        known = {study.name: study for study in results.must_exist().studies()}
        for name in chosen or ():
            if name not in known:
                raise SettingsError(f"there is no study {name!r} in {results.folder}; there are {', '.join(known)}")
        summary_data = digest(results, [known[name] for name in chosen or known])
        versions = [
            f"{name} {version}" for name, version in results.read(summary_data.runs["run"].iloc[0]).versions.items()
        ]
    if earlier:
        summary_data = summary_data.filled_from(Digest.read(earlier))
    if summary:
        summary_data.write(summary)
    known_runs = paper_runs(theirs)
    report = make_report(summary_data, title=title, reference=reference, versions=versions, theirs=known_runs)
    return report, write_report(report, out)


def describe(name: str) -> str:
    file = dataset_sources.file_of(name)
    if file is None:
        return f"{name:16} comes with a dependency"
    try:
        return f"{name:16} {dataset_sources.find(file)}"
    except DataError as error:
        return f"{name:16} missing: {error}"


def fetch(name: str) -> Path:
    """Get a data set from OpenML, into the data folder if it can be written, else into the cache."""
    folder = os.environ.get("SPARINGLY_DATA")
    writable = folder and os.access(folder, os.W_OK)
    return openml.fetch(name, Path(str(folder)) if writable else array_cache.cache_folder() / "data")
