"""The commands of the experiments: demo, run, reproduce, report, datasets, query.

What they need is imported when they run, so that every other command starts quickly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sparingly.commands.cost_options import Cost, Costs

OUT = Path("results")
Seeds = Annotated[int | None, typer.Option(help="How many seeds.")]
Horizon = Annotated[int | None, typer.Option(help="Rounds of a run.")]
Out = Annotated[Path | None, typer.Option(help="The folder of the results.")]
On = Annotated[str | None, typer.Option(help="`local` or `ray`.")]
Address = Annotated[str | None, typer.Option(help="A running Ray cluster; otherwise one is started here.")]
Workers = Annotated[
    int | None, typer.Option(help="Processes; if not given, as many of the cores as are worth their start.")
]
Retry = Annotated[bool | None, typer.Option("--retry", help="Do again what failed before.")]
DryRun = Annotated[bool | None, typer.Option("--dry-run", help="Say what would run and how long, and stop.")]
Minutes = Annotated[
    float | None, typer.Option(help="Begin no run after so many minutes; the same command goes on later.")
]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="A TOML file; options given here win over it.")]


def register(app: typer.Typer) -> None:
    """Add the commands to an app."""
    for command in (demo, run, reproduce, report, query):
        app.command()(command)
    app.command("datasets")(list_datasets)


def demo(
    picture: Annotated[Path, typer.Option(help="Where to draw the cumulative costs.")] = Path("demo.png"),
    seed: Annotated[int, typer.Option(help="The order of the streams, and the strategies' own.")] = 0,
    horizon: Annotated[int, typer.Option(help="Play at most this many observations of each stream; 0: as it is.")] = 0,
) -> None:
    """Play two real streams with and without asking, and show what asking is worth."""
    from sparingly.experiments import demo as scenes

    scenes.demo(picture, seed=seed, horizon=horizon or None)
    typer.echo("")
    typer.echo("To see it ask people: `sparingly serve --classes cat,dog`, and with the token that it shows")
    typer.echo("`sparingly simulate --token TOKEN`, which says where to watch simulated people answer.")


def run(
    data: Annotated[list[str] | None, typer.Option(help="A data set's name, or a CSV or Parquet file.")] = None,
    images: Annotated[list[str] | None, typer.Option(help="A folder of pictures, with one subfolder a class.")] = None,
    target: Annotated[str | None, typer.Option(help="The class column of a file.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Columns of a file to leave out: id,when.")] = None,
    text: Annotated[list[str] | None, typer.Option(help="Columns of a file that hold texts.")] = None,
    separator: Annotated[
        str | None, typer.Option(help="Between the cells of a CSV file; found out if not given.")
    ] = None,
    quote: Annotated[str | None, typer.Option(help="Around cells of a CSV file; found out if not given.")] = None,
    decimal: Annotated[str | None, typer.Option(help="`.` or `,`, if it should not be found out.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV file's characters: `utf-8`, `cp1252`, ...")] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="A word in a CSV file that stands for a missing value.")
    ] = None,
    unlabelled: Annotated[
        str | None, typer.Option(help="Rows without a label: `drop` (the default), or `keep` them to scale by.")
    ] = None,
    known: Annotated[
        str | None, typer.Option(help="A file of labelled rows that are there already: learned first, for free.")
    ] = None,
    order: Annotated[str | None, typer.Option(help="`shuffle` (the default) or `file`: the order of the rows.")] = None,
    encoder: Annotated[str | None, typer.Option(help="For texts: `minilm`, `static`, `hashing`, a model.")] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="A name, `file.py:Class` or `module:Class`, with options: `neuronal,gamma=3`."),
    ] = None,
    preprocessing: Annotated[
        str | None, typer.Option(help="`paper`, `streaming`, `encoded` or `auto`: what suits the strategy.")
    ] = None,
    cost: Cost = None,
    costs: Costs = None,
    query_cost: Annotated[float | None, typer.Option(help="What a question costs.")] = None,
    expert: Annotated[
        list[str] | None,
        typer.Option(help="Who can be asked: `gpt35:0.01` (recorded), `human:1:gold`, `gpt:0.01:accuracy=0.8`."),
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Share of answers drawn at random.")] = None,
    drift: Annotated[str | None, typer.Option(help="`none`, `abrupt` or `gradual`: two classes swap names.")] = None,
    delay: Annotated[int | None, typer.Option(help="Rounds until an answer arrives.")] = None,
    seeds: Seeds = None,
    first_seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    horizon: Horizon = None,
    horizon_known: Annotated[
        bool | None, typer.Option("--horizon-known", help="Tell strategies how many rows there will be.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The study's name.")] = None,
    out: Out = None,
    on: On = None,
    address: Address = None,
    workers: Workers = None,
    retry: Retry = None,
    minutes: Minutes = None,
    dry_run: DryRun = None,
    settings: SettingsFile = None,
) -> None:
    """Compare strategies on data sets: yours, or ready ones."""
    given = {key: value for key, value in locals().items() if key != "settings"}
    with refusals():
        from sparingly.commands.run_studies import run_own_study

        run_own_study({key: value for key, value in given.items() if value is not None}, settings)


def reproduce(
    what: Annotated[
        str | None, typer.Argument(help="q1 to q4, all, q1_app to q3_app, or experts; lists them if left out.")
    ] = None,
    seeds: Seeds = None,
    horizon: Horizon = None,
    first_seed: Annotated[int | None, typer.Option(help="The first seed.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="Only the runs on this data set.")] = None,
    strategy: Annotated[list[str] | None, typer.Option(help="Only the runs of this strategy.")] = None,
    out: Out = None,
    on: On = None,
    address: Address = None,
    workers: Workers = None,
    retry: Retry = None,
    minutes: Minutes = None,
    dry_run: DryRun = None,
    settings: SettingsFile = None,
) -> None:
    """Run the paper's experiments, with a report that puts its figures beside ours; or those with several experts."""
    given = {key: value for key, value in locals().items() if key not in ("what", "settings")}
    with refusals():
        from sparingly.commands.run_studies import run_paper
        from sparingly.experiments.runs.paper_studies import described

        if what is None:
            typer.echo("\n".join(described()))
            return
        run_paper(what, {key: value for key, value in given.items() if value is not None}, settings)


def report(
    results: Annotated[Path, typer.Argument(help="The folder of the results, or of a summary.")] = OUT,
    out: Annotated[Path | None, typer.Option(help="The HTML file; the Markdown is written beside it.")] = None,
    study: Annotated[list[str] | None, typer.Option(help="Only these studies.")] = None,
    reference: Annotated[str, typer.Option(help="The strategy that others are tested against.")] = "Neural-CBP",
    title: Annotated[str, typer.Option(help="The headline.")] = "Strategies compared",
    summary: Annotated[
        Path | None, typer.Option(help="Also write the summary (four CSV files) into this folder.")
    ] = None,
    earlier: Annotated[
        Path | None, typer.Option(help="A summary's folder: its rows stand in, marked, where there is no run yet.")
    ] = None,
    paper_runs: Annotated[
        Path | None,
        typer.Option(help="A CSV file of the paper's own runs; by default `paper/runs.csv` beside the data."),
    ] = None,
) -> None:
    """Write a self-contained HTML report, and the same in Markdown."""
    with refusals():
        from sparingly.commands.run_studies import write_report_of
        from sparingly.experiments.runs.run_records import Results

        place = out or results / "report.html"
        _, files = write_report_of(Results(results), place, study, reference, title, summary, paper_runs, earlier)
        for path in files[:2]:
            typer.echo(str(path))


def query(
    sql: Annotated[str, typer.Argument(help="SQL over the tables runs, rounds and f1.")],
    results: Annotated[Path, typer.Option("--results", "--out", help="The folder of the results.")] = OUT,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")] = False,
) -> None:
    """Ask all records a question in SQL (DuckDB)."""
    with refusals():
        from sparingly.experiments.runs.experiment_settings import SettingsError
        from sparingly.experiments.runs.run_records import Results

        relation = Results(results).must_exist().query(sql)
        if relation is None:
            raise SettingsError("the query gives no rows: use select")
        typer.echo(relation.df().to_csv(index=False) if as_csv else str(relation), nl=not as_csv)


def list_datasets(
    fetch: Annotated[list[str] | None, typer.Option(help="Get a data set from OpenML; needs internet.")] = None,
) -> None:
    """List the data sets and whether they are here, or fetch one."""
    with refusals():
        from sparingly.commands import run_studies
        from sparingly.experiments import datasets

        for name in fetch or ():
            typer.echo(str(run_studies.fetch(name)))
        if not fetch:
            for name in datasets.names():
                typer.echo(run_studies.describe(name))


@contextmanager
def refusals() -> Iterator[None]:
    """Bad input is one line on the error stream and exit code 2; an interrupt says how to go on."""
    try:
        yield
    except ImportError as error:
        _refuse(f"{error}: pip install 'sparingly[experiments]'")
    except KeyboardInterrupt:
        _refuse("interrupted; what is done is kept, the same command goes on", 130)
    except ValueError as error:
        from pydantic import ValidationError

        from sparingly.experiments.csv_files import DataError
        from sparingly.experiments.runs.experiment_settings import SettingsError, one_line

        if isinstance(error, ValidationError):
            _refuse(one_line(error))
        if isinstance(error, SettingsError | DataError):
            _refuse(str(error))
        raise


def _refuse(line: str, code: int = 2) -> NoReturn:
    typer.echo(f"sparingly: {line}", err=True)
    raise typer.Exit(code) from None
