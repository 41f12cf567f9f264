"""`sparingly agent`: an agent from the command line."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from sparingly.commands.cost_options import (
    Cost,
    Costs,
    Horizon,
    MaxCost,
    MaxOpen,
    MaxPerDay,
    MaxPerHour,
    MaxTotal,
    QueryCost,
    stated_costs,
)

if TYPE_CHECKING:
    from sparingly.live.agent.agent import Agent
    from sparingly.live.client.client import Client
    from sparingly.live.store.store import Store
    from sparingly.live.tickets.ticket_records import Statistics
    from sparingly.strategies.forecast import Forecast

agent = typer.Typer(help="An agent that asks people, from the command line.", no_args_is_help=True)

Place = Annotated[str, typer.Argument(metavar="FILE|URL", help="An SQLite file, or postgresql://...")]
ServedPlace = Annotated[
    str, typer.Argument(metavar="FILE|URL", help="An SQLite file, postgresql://..., or a service's http://...")
]
Token = Annotated[str | None, typer.Option(envvar="SPARINGLY_TOKEN", help="Where the agent is a service's.")]


@agent.command()
def create(
    place: Place,
    classes: Annotated[str, typer.Option(help="The classes, with commas between: cat,dog.")],
    features: Annotated[int | None, typer.Option(help="How many; otherwise the first observation tells.")] = None,
    schema: Annotated[str | None, typer.Option(help="A TOML file: what the fields of a row are.")] = None,
    encoder: Annotated[str | None, typer.Option(help="For texts: `minilm`, `static`, `hashing`, a model.")] = None,
    cost: Cost = None,
    costs: Costs = None,
    query_cost: QueryCost = 1.0,
    strategy: Annotated[str | None, typer.Option(help="A strategy's name.")] = None,
    seed: Annotated[int, typer.Option()] = 0,
    max_open: MaxOpen = None,
    max_per_hour: MaxPerHour = None,
    max_per_day: MaxPerDay = None,
    max_total: MaxTotal = None,
    max_cost: MaxCost = None,
    horizon: Horizon = None,
    audit_rate: Annotated[float, typer.Option(help="The share of questions asked at random.")] = 0.0,
    retention_days: Annotated[float | None, typer.Option(help="Days after which payloads are erased.")] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Announce nothing before there is a model.")] = False,
) -> None:
    """Make an agent."""
    from sparingly.live.agent.agent import Agent

    made = Agent(
        [name.strip() for name in classes.split(",")],
        features,
        schema=schema,
        encoder=encoder,
        costs=stated_costs(costs, cost),
        query_cost=query_cost,
        path=place,
        strategy=strategy,
        seed=seed,
        max_open=max_open,
        max_per_hour=max_per_hour,
        max_per_day=max_per_day,
        max_total=max_total,
        max_cost=max_cost,
        horizon=horizon,
        audit_rate=audit_rate,
        retention_days=retention_days,
        hold=hold,
    )
    typer.echo(f"{place}: {len(made.classes)} classes, strategy {made.settings.strategy}")
    made.close()


@agent.command()
def observe(
    place: ServedPlace,
    source: Annotated[str | None, typer.Argument(metavar="DATA", help="A file; otherwise standard input.")] = None,
    kind: Annotated[str | None, typer.Option("--format", help="csv or jsonl; otherwise the first line tells.")] = None,
    payload: Annotated[str | None, typer.Option(help="The column that people are shown instead of the row.")] = None,
    drop: Annotated[str, typer.Option(help="Columns to leave out, with commas between.")] = "",
    token: Token = None,
    id: Annotated[str, typer.Option(help="The column or key that holds the caller's own id.")] = "id",
    batch: Annotated[int, typer.Option(help="Observations that are written together.", min=1)] = 100,
) -> None:
    """Observe the rows of a file or of standard input, CSV or JSON lines; write their tickets as JSON lines.

    The agent is a file, a database, or one of a running service: http://127.0.0.1:8000/NAME.
    """
    from sparingly.commands.input_formats import batches, observation, open_rows, without

    left_out = [column.strip() for column in drop.split(",")] if drop else []
    with open_rows(source, kind, id, payload) as rows, _opened(place, token) as opened:
        for block in batches(without(rows, left_out), batch):
            X, ids = [observation(one) for one in block], [one.id for one in block]
            tickets = opened.observe_many(X, ids=ids, payloads=[one.payload for one in block])
            for ticket in tickets:
                typer.echo(json.dumps(dict(ticket)))


@agent.command()
def teach(
    place: Annotated[str, typer.Argument(metavar="[FILE|URL]", help="The agent; `agent.db` if left out.")],
    source: Annotated[str | None, typer.Argument(metavar="DATA", help="CSV or JSON lines; - reads them in.")] = None,
    target: Annotated[str, typer.Option(help="The column or key that holds the label.")] = "label",
    drop: Annotated[str, typer.Option(help="Columns to leave out, with commas between.")] = "",
    token: Token = None,
    kind: Annotated[str | None, typer.Option("--format", help="csv or jsonl; otherwise the first line tells.")] = None,
    id: Annotated[str, typer.Option(help="The column or key that holds the caller's own id.")] = "id",
) -> None:
    """Teach an agent labels that are there already: learned at once, free, counted apart from questions."""
    from sparingly.commands.input_formats import class_of, observation, open_rows, with_labels, without

    place, source = ("agent.db", place) if source is None else (place, source)
    left_out = [column.strip() for column in drop.split(",")] if drop else []
    with open_rows(source, kind, id) as rows, _opened(place, token) as opened:
        every = list(with_labels(without(rows, left_out), target))
        known = [row for row in every if row.label is not None]
        classes = opened.classes
        labels = [class_of(row.label, classes) for row in known]
        count = opened.teach([observation(row) for row in known], labels, ids=[row.id for row in known])
    unlabelled = f", {len(every) - len(known)} rows without one left out" if len(known) < len(every) else ""
    typer.echo(f"{place}: {count} labels taught{unlabelled}")


@agent.command()
def plant(
    place: Annotated[str, typer.Argument(metavar="[FILE|URL]", help="The agent; `agent.db` if left out.")],
    source: Annotated[str | None, typer.Argument(metavar="DATA", help="CSV or JSON lines; - reads them in.")] = None,
    target: Annotated[str, typer.Option(help="The column or key that holds the label.")] = "label",
    payload: Annotated[str | None, typer.Option(help="The column that people are shown instead of the row.")] = None,
    drop: Annotated[str, typer.Option(help="Columns to leave out, with commas between.")] = "",
    token: Token = None,
    kind: Annotated[str | None, typer.Option("--format", help="csv or jsonl; otherwise the first line tells.")] = None,
    id: Annotated[str, typer.Option(help="The column or key that holds the caller's own id.")] = "id",
) -> None:
    """Plant items whose classes are known among the questions, to see how often people are right."""
    from sparingly.commands.input_formats import class_of, observation, open_rows, with_labels, without
    from sparingly.live.agent.agent import Agent

    place, source = ("agent.db", place) if source is None else (place, source)
    left_out = [column.strip() for column in drop.split(",")] if drop else []
    with open_rows(source, kind, id, payload) as rows, _opened(place, token) as opened:
        known = [row for row in with_labels(without(rows, left_out), target) if row.label is not None]
        labels = [class_of(row.label, opened.classes) for row in known]
        X, ids, shown = [observation(row) for row in known], [row.id for row in known], [row.payload for row in known]
        act = opened.team.plant if isinstance(opened, Agent) else opened.plant
        count = len(act(X, labels, ids=ids, payloads=shown))
    typer.echo(f"{place}: {count} items planted")


@agent.command()
def questions(place: Place, limit: Annotated[int, typer.Option(min=1)] = 20) -> None:
    """List the open questions, oldest first."""
    from sparingly.live.store.store import Store
    from sparingly.live.tickets import leases

    store = Store.open(place, claim=False)
    with store.reading() as connection:
        rows = leases.offered(connection, None, limit, 0.0)
        for question in leases.questions_of(connection, rows, store.settings, None, None):
            typer.echo(f"{question.id}\t{_shown(question.payload)}\t{question.why}")
    store.close()


@agent.command("add-class")
def add_class(
    place: Place,
    label: Annotated[str, typer.Argument(help="The class that was not known before.")],
    cost: Annotated[
        float | None, typer.Option(help="Of every mistake about it; otherwise the largest there is.")
    ] = None,
) -> None:
    """Take on a class that turns up later; nothing that was learned is lost."""
    from sparingly.live.agent.agent import Agent

    with Agent.open(place) as opened:
        opened.add_class(label, cost=cost)
        typer.echo(f"{place}: {len(opened.classes)} classes")


@agent.command("set-costs")
def set_costs(
    place: ServedPlace,
    cost: Cost = None,
    costs: Costs = None,
    query_cost: Annotated[float | None, typer.Option(help="What a question costs; as it is if left out.")] = None,
    token: Token = None,
) -> None:
    """Change what mistakes or questions cost; the agent decides so from now on.

    The agent is a file, a database, or one of a running service: http://127.0.0.1:8000/NAME.
    """
    given = stated_costs(costs, cost)
    if given is None and query_cost is None:
        raise ValueError("say what is to change: --cost, --costs or --query-cost")
    with _opened(place, token) as opened:
        opened.set_costs(given, query_cost=query_cost)
    typer.echo(f"{place}: the costs are set")


@agent.command()
def answer(
    place: Place,
    ticket: Annotated[str | None, typer.Argument(help="The question to answer; otherwise all, by keypress.")] = None,
    label: Annotated[str | None, typer.Argument(help="The true class.")] = None,
    expert: Annotated[str, typer.Option(help="Who answers.")] = "terminal",
) -> None:
    """Answer questions: one key each, or one ticket and its label as arguments."""
    from sparingly.commands.terminal import answer_by_key
    from sparingly.live.agent.agent import Agent

    with Agent.open(place) as opened:
        if ticket is None:
            answer_by_key(opened, expert)
            return
        if label is None:
            raise ValueError(f"the label for ticket {ticket!r} is missing")
        named = {str(name): name for name in opened.classes}
        opened.answer(ticket, named.get(label, label))


@agent.command()
def stats(
    place: ServedPlace,
    as_json: Annotated[bool, typer.Option("--json", help="Write them as JSON.")] = False,
    token: Token = None,
) -> None:
    """Say how the agent is doing: one in a file, in a database, or of a running service."""
    from sparingly.live.statistics.summary import summary

    if _is_served(place):
        with _opened(place, token) as opened:
            found = opened.stats()
    else:
        found = _stats_of_store(place)
    plain = dict(found) | {"outlook": None if found.outlook is None else dict(found.outlook)}
    typer.echo(json.dumps(plain) if as_json else "\n".join(summary(found)))


def _stats_of_store(place: str) -> Statistics:
    """Without opening the agent, which another process may have."""
    from sparingly.live.agent.queries import AgentQueries
    from sparingly.live.store.store import Store

    store = Store.open(place, claim=False)
    queries = AgentQueries(store, store.reading, time.time)
    found = replace(queries.stats(), outlook=queries.outlook(_forecast(store)))
    store.close()
    return found


def _forecast(store: Store) -> Forecast | None:
    """What the strategy of the last snapshot expects of asking on."""
    from sparingly.live.agent.errors import AgentError
    from sparingly.live.store import snapshots
    from sparingly.live.training.learner import Learner
    from sparingly.live.training.strategy_maker import maker

    with store.reading() as connection:
        if next(iter(snapshots.places(connection)), None) is None:
            return None
        try:
            return Learner.restore(maker(store.settings, None), connection).strategy.forecast()
        except AgentError:  # a strategy of the user's own, which only the agent has
            return None


@agent.command()
def export(place: Place, target: Annotated[Path, typer.Argument(help="A .csv or .parquet file.")]) -> None:
    """Write the labelled observations to a file."""
    from sparingly.live.store import export as exports
    from sparingly.live.store.store import Store

    store = Store.open(place, claim=False)
    with store.reading() as connection:
        count = exports.write(target, exports.columns(store.settings), exports.labelled(connection, store.settings))
    store.close()
    typer.echo(f"{target}: {count} labelled observations")


@agent.command("export-model")
def export_model(
    place: Place,
    target: Annotated[Path, typer.Argument(help="The model's file; one that ends in .onnx is written as ONNX.")],
    kind: Annotated[str | None, typer.Option("--format", help="sparingly or onnx; otherwise the name tells.")] = None,
) -> None:
    """Write what the agent has learned to a file for `sparingly predict` and `sp.load_model`, or as ONNX."""
    from sparingly.live.agent.agent import Agent

    with Agent.open(place) as opened:
        opened.export_model(target, format=kind)
    typer.echo(f"{target}: a model with {len(opened.classes)} classes")


@agent.command()
def check(
    place: Place,
    recover: Annotated[
        Path | None, typer.Option(help="Write the labels that can be read to this .csv or .parquet.")
    ] = None,
) -> None:
    """Say whether an agent's file is whole, and if not, what can be recovered."""
    from sparingly.live.store.integrity_check import check as look
    from sparingly.live.store.salvage import recover as write_what_is_left

    report = look(place)
    for line in [*(f"problem: {one}" for one in report.problems), *report.facts]:
        typer.echo(line)
    if recover is not None:
        typer.echo(f"{recover}: {write_what_is_left(place, recover)} labelled observations recovered")
    typer.echo(f"{place} is {'whole' if report.ok else 'damaged'}")
    if not report.ok:
        raise typer.Exit(1)


@agent.command()
def erase(place: Place, tickets: Annotated[list[str], typer.Argument(help="The ids of tickets.")]) -> None:
    """Erase what tickets show of a person: payloads and features, and what was learned from them."""
    from sparingly.live.agent.agent import Agent

    with Agent.open(place) as opened:
        opened.erase(*tickets)
    typer.echo(f"{place}: {len(tickets)} erased")


def _is_served(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _opened(place: str, token: str | None) -> Agent | Client:
    """The agent of a file or database, or one of a running service, `default` if its address names none."""
    if not _is_served(place):
        from sparingly.live.agent.agent import Agent

        return Agent.open(place)
    from sparingly.live.client.client import Client

    at = urlsplit(place)
    url, name = f"{at.scheme}://{at.netloc}", at.path.strip("/").rpartition("/")[2] or "default"
    if token is None:
        raise ValueError(f"a token of the service at {url} is needed: --token, or the variable SPARINGLY_TOKEN")
    return Client(url, token, agent=name)


def _shown(payload: Any) -> str:
    if payload is None:
        return ""
    if payload.kind == "image":
        return f"an image of {len(payload.content)} bytes"
    return " ".join(str(payload.content).split())
