"""`sparingly simulate`: data of the experiments, or a file, against a running service."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparingly.commands.cost_options import Cost, Costs, stated_costs

MOST = 20_000
"""So many observations of a data set are replayed at most."""

if TYPE_CHECKING:
    from sparingly.live.client.simulated_day import SimulatedDayResult
    from sparingly.live.client.simulation import SimulatedStream


def simulate(
    url: Annotated[str, typer.Option(help="The service's address.")] = "http://127.0.0.1:8000",
    secret: Annotated[
        str | None, typer.Option("--token", envvar="SPARINGLY_TOKEN", help="An admin's token of the service.")
    ] = None,
    data: Annotated[str, typer.Option(help="A CSV file, a data set's name, or `digits`.")] = "digits",
    target: Annotated[str | None, typer.Option(help="The CSV's class column; the last if not given.")] = None,
    agent: Annotated[str, typer.Option(help="The agent's name; made if it is not there.")] = "demo",
    experts: Annotated[int, typer.Option(help="How many people answer.")] = 3,
    rate: Annotated[float, typer.Option(help="Observations a second.")] = 5.0,
    count: Annotated[int, typer.Option(help="How many observations; 0 for all.")] = 0,
    thinking: Annotated[float, typer.Option(help="Seconds a person thinks, on average.")] = 2.0,
    wrong: Annotated[float, typer.Option(help="Share of answers that are wrong.")] = 0.05,
    lunch: Annotated[float, typer.Option(help="Chance of going to lunch after an answer.")] = 0.02,
    cost: Cost = None,
    costs: Costs = None,
    query_cost: Annotated[float, typer.Option(help="What a question costs, if the agent is made.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The seed of chance.")] = 0,
    day: Annotated[
        bool, typer.Option("--day", help="A day in a minute: serve, too, with a recorded model and a careless person.")
    ] = False,
    minutes: Annotated[float, typer.Option(help="How long the day lasts.")] = 1.0,
    patience: Annotated[float, typer.Option(help="For how many seconds the last answers are awaited.")] = 60.0,
    careless: Annotated[float, typer.Option(help="Share of wrong answers of the careless one.")] = 0.4,
    port: Annotated[int, typer.Option(help="On which the day is served; 0 finds a free one.")] = 0,
    bill: Annotated[Path | None, typer.Option(help="A CSV file to write the bill of the day to.")] = None,
) -> None:
    """Replay data against a running service with people who are slow, wrong at times and go to lunch.

    With --day it serves by itself: three people, of whom one is careless, and a language model whose answers were
    recorded (banking77) work on one queue; it ends with the bill, and says who was found careless when.
    """
    from sparingly.live.client import simulation

    if day:
        done = _day(data, count, seed, 60 * minutes, patience, careless, port)
        if bill is not None:
            _write_bill(done, bill)
        return
    if not secret:
        raise ValueError("an admin's token is needed: --token, or the variable SPARINGLY_TOKEN")
    people = simulation.People(experts, thinking=thinking, wrong=wrong, lunch=lunch)
    stream = simulation.shuffled(_stream(data, target), seed)
    replayed = simulation.simulate(
        url,
        secret,
        stream,
        people,
        agent=agent,
        rate=rate,
        count=count,
        costs=stated_costs(costs, cost),
        query_cost=query_cost,
        seed=seed,
        say=typer.echo,
    )
    typer.echo(f"{replayed.observations} observations, {replayed.questions} questions, {replayed.answers} answers")


def _day(
    data: str, count: int, seed: int, seconds: float, patience: float, careless: float, port: int
) -> SimulatedDayResult:
    """A day in a minute, and what it came to."""
    import numpy as np

    from sparingly.experiments import datasets
    from sparingly.live.client.simulated_day import SimulatedTeam, simulate_day
    from sparingly.live.client.simulation import Example, SimulatedStream
    from sparingly.live.service.web import logs

    found = datasets.load("banking77" if data == "digits" else data)
    if not found.answers:
        raise ValueError(f"no answers of a language model were recorded for {data}: take banking77")
    logs.configure("warning", "text", access_log=False)
    machine, said = next(iter(found.answers.items()))
    order = np.random.default_rng(seed).permutation(len(found))[: count or None]
    names, texts = [str(label) for label in found.classes], found.texts
    rows = found.rows(slice(None))
    examples = [Example(rows[i].ravel(), None if texts is None else str(texts[i]), names[found.y[i]]) for i in order]
    recorded = [names[said[i]] if said[i] >= 0 else None for i in order]
    team = SimulatedTeam(wrong=(0.03, 0.03, careless))
    done = simulate_day(
        SimulatedStream(tuple(names), examples),
        recorded,
        team,
        machine=machine,
        seconds=seconds,
        patience=patience,
        port=port,
        seed=seed,
        say=typer.echo,
    )
    for line in _result_lines(done, len(order)):
        typer.echo(line)
    return done


def _write_bill(done: SimulatedDayResult, path: Path) -> None:
    """A row for each expert, with the share of right answers and its interval, and what all of it comes to."""
    names = ("who", "answers", "cost", "right", "at least", "at most", "found careless after")
    shares = [
        (one.accuracy, one.accuracy_low, one.accuracy_high)
        if one.accuracy is not None
        else (one.model_accuracy, one.model_low, one.model_high)
        for one in done.people
    ]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(names)
        for one, right in zip(done.people, shares, strict=True):
            rows.writerow([one.expert, one.answers, round(one.cost, 2), *right, one.found_after])
        rest = {"not answered": done.unanswered, "together": sum(done.bill.values()), "by the agent": done.total}
        rows.writerows([what, "", round(cost, 2), "", "", "", ""] for what, cost in rest.items())


def _result_lines(done: SimulatedDayResult, count: int) -> list[str]:
    counts = done.statistics
    lines = [
        f"{counts.observations} messages in {done.seconds:.0f} s: {counts.questions} questions to people, "
        f"{counts.second_opinions} second opinions, {counts.known_answers} answers to planted items, "
        f"{counts.open} left open",
        f"{done.right / count:.1%} of the messages have the right class in the end",
    ]
    for one in done.people:
        right = ""
        if one.accuracy is not None:
            right = f", right {one.accuracy:.0%} ({one.accuracy_low:.0%} to {one.accuracy_high:.0%})"
        elif one.model_accuracy is not None:
            right = f", right about {one.model_accuracy:.0%} ({one.model_low:.0%} to {one.model_high:.0%})"
        lines.append(f"{one.expert:>20} {one.cost:>10.2f}  {one.answers} answers{right}")
    lines.append(f"{'not answered':>20} {done.unanswered:>10.2f}")
    sums = f"{sum(done.bill.values()):.2f}"
    lines.append(f"{'together':>20} {sums:>10}  the agent says {done.total:.2f}")
    for one in done.careless:
        lines.append(f"{one.expert} was found careless after {one.found_after} answers: {one.why}")
    if not done.careless:
        lines.append("nobody was found careless")
    if not done.adds_up:
        raise ValueError(f"the bill does not add up: {sums} and {done.total:.2f}")
    return lines


def _stream(data: str, target: str | None) -> SimulatedStream:
    from sparingly.live.client import simulation

    return simulation.read_csv(Path(data), target) if data.endswith(".csv") else _of_dataset(data)


def _of_dataset(name: str) -> SimulatedStream:
    """A data set of the experiments: images are shown as such, and the rest as numbers."""
    from sparingly.experiments import datasets
    from sparingly.live.client.simulation import Example, SimulatedStream

    found = datasets.load(name)
    count = min(len(found), MOST)
    labels = [str(found.classes[y]) for y in found.y[:count]]
    features = found.rows(slice(0, count))
    is_picture = found.image or name == "digits"
    examples = [
        Example(features[i].ravel(), _picture(found.raw[i]) if is_picture else None, labels[i]) for i in range(count)
    ]
    return SimulatedStream(tuple(str(label) for label in found.classes), examples)


def _picture(pixels: Any) -> bytes:
    """A PNG, dark on light as on paper if it has no colours."""
    import numpy as np
    from PIL import Image

    values = np.asarray(pixels, dtype=float)
    values = np.moveaxis(values, 0, -1) if values.ndim == 3 and values.shape[0] in (1, 3) else values
    values = np.squeeze(values)
    if values.ndim == 1:
        side = round(values.size**0.5)
        values = values.reshape(side, side)
    scaled = 255 * values / max(values.max(), 1e-9) if values.max() <= 16 else values
    image = Image.fromarray((255 - scaled if values.ndim == 2 else scaled).astype(np.uint8))
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
