"""What several experts cost together, beside every single way to use them.

`python -m benchmarks experts` prints the table of the runs kept in docs/results/experts, one line a run, and writes it
to table.csv there. With words it makes the missing runs of these streams and orders first:
`python -m benchmarks experts isear banking77 0 1`; `all` are all streams with the orders 0 to 4, which are for
reporting only; `human=1` plays that price of the human alone, `ours` no single way, `static` texts by that encoder;
`derived` are all streams derived from recorded answers, with a human at 1 and at 0.3, in a table of their own,
derived.csv; `drift` and `coverage`, also with orders, are two checks of their own.

A mistake costs 1; the human is gold. Language models answer as recorded; on MNIST, Adult and shuttle two synthetic
experts, of whom one is weak in a region. The single ways: always one expert, the human alone with Sparing, the answers
as features of Sparing, and a confidence dial at the best of its thresholds, chosen afterwards for that very order; on
derived streams always the commonest class, too.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import expert_checks
from benchmarks.derived_streams import DERIVED
from benchmarks.derived_streams import experts as recorded_experts
from benchmarks.expert_runs import ENCODERS, KEPT, STREAMS, Runs

HUMAN_PRICES = (1.0, 0.3, 0.1)
DERIVED_PRICES = (1.0, 0.3)
"""Of the human on derived streams."""
MODEL_PRICES = (0.01, 0.05)
ORDERS = range(5)
THRESHOLDS = (0.5, 0.7, 0.9)
Line = dict[str, Any]


def make(runs: Runs, stream: str, order: int, humans: Sequence[float] = HUMAN_PRICES, *, ours: bool = False) -> None:
    """The missing runs of one order at some prices of the human, ours first, or ours alone."""
    for human in humans:
        for price in MODEL_PRICES:
            runs.get(stream, order, "sparing", human=human, price=price)
    runs.get(stream, order, "always")
    if ours:
        return
    for human in humans:
        runs.get(stream, order, "human alone", human=human)
        runs.get(stream, order, "answers as features", human=human)
    for threshold in THRESHOLDS:
        runs.get(stream, order, f"dial at {threshold}")


def single_ways(runs: Runs, stream: str, order: int, human: float, price: float) -> dict[str, float]:
    """What each single way costs; decisions of the ways below do not depend on the models' price, so it is added."""
    found = {"always the human": human * runs.rounds(stream, order)}
    always = runs.known(stream, order, "always") or {"mistakes_of": {}}
    for name, mistakes in always["mistakes_of"].items():
        found[f"always {name}"] = mistakes + price * always["rounds"]
    if stream in DERIVED and "not_commonest" in always:
        found["commonest class"] = always["not_commonest"]
    named = [("human alone", human), ("answers as features", human)]
    for way, paid in [*named, *((f"dial at {threshold}", None) for threshold in THRESHOLDS)]:
        run = runs.known(stream, order, way, human=paid)
        if run is not None:
            calls = sum(number for name, number in run["asked"].items() if name != "human")
            found[way] = run["mistakes"] + price * calls + human * run["asked"].get("human", 0)
    return found


def table(runs: Runs, streams: list[str], orders: list[int]) -> Iterator[Line]:
    """Ours beside the best single way, for all that has been played."""
    for stream in streams:
        for order in orders:
            for human in HUMAN_PRICES:
                for price in MODEL_PRICES:
                    ours = runs.known(stream, order, "sparing", human=human, price=price)
                    if ours is None or runs.known(stream, order, "always") is None:
                        continue
                    ways = single_ways(runs, stream, order, human, price)
                    best = min(ways, key=lambda way: ways[way])
                    yield {
                        "stream": f"{stream} {order}",
                        "encoder": runs.encoder if recorded_experts(stream) else "",
                        "human": human,
                        "price": price,
                        "ours": ours["cost"],
                        "asked": ours["asked"],
                        "best": best,
                        "costs": ways[best],
                        "ratio": ours["cost"] / ways[best],
                        "ways": ways,
                    }


def show(lines: list[Line]) -> None:
    for one in lines:
        said = ", ".join(f"{name} {number}" for name, number in one["asked"].items())
        print(
            f"{one['stream']:12} {one['encoder']:6} human {one['human']:<4g} models {one['price']:<5g} "
            f"sparing {one['ours']:8.1f} best single way {one['costs']:8.1f} ({one['best']}) "
            f"ratio {one['ratio']:.3f}  [{said}]"
        )
        print("             " + ", ".join(f"{way} {cost:.0f}" for way, cost in sorted(one["ways"].items())))
    if lines:
        ratios = [one["ratio"] for one in lines]
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        over = sum(ratio > 1.03 for ratio in ratios)
        print(f"{len(ratios)} cases: geometric mean {mean:.3f}, worst {max(ratios):.3f}, {over} above 1.03")


def write(lines: list[Line], path: Path) -> None:
    """The table as a file, for pages to be held against; `ways` says how many single ways were played."""
    names = ("stream", "encoder", "order", "human", "models", "sparing", "questions")
    names += ("best single way", "costs", "ratio", "ways")
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(names)
        for one in lines:
            stream, order = one["stream"].split()
            played = [
                stream,
                one["encoder"],
                order,
                f"{one['human']:g}",
                f"{one['price']:g}",
                one["ours"],
                one["asked"].get("human", 0),
            ]
            rows.writerow([*played, one["best"], round(one["costs"], 2), round(one["ratio"], 4), len(one["ways"])])


def command(words: list[str]) -> int:
    """Streams and orders to play, or nothing to show what has been played."""
    runs = Runs(encoder=next((word for word in words if word in ENCODERS), ENCODERS[0]))
    every = (*STREAMS, *DERIVED)
    chosen = [word for word in every if word in words or ("derived" in words and word in DERIVED)]
    orders = [int(word) for word in words if word.isdecimal()]
    prices = {f"human={human:g}": human for human in HUMAN_PRICES}
    named = (*every, *prices, *ENCODERS, "ours", "all", "derived", "drift", "coverage")
    unknown = [word for word in words if word not in named and not word.isdecimal()]
    if unknown:
        sys.exit(f"there is no stream {unknown[0]!r}: there are {', '.join(named)}, and numbers of orders")
    checks = [word for word in words if word in ("drift", "coverage")]
    if "all" in words or chosen or (orders and not checks):
        for order in orders or ORDERS:
            for stream in chosen or STREAMS:
                usual = DERIVED_PRICES if stream in DERIVED else HUMAN_PRICES
                make(
                    runs,
                    stream,
                    order,
                    [prices[word] for word in words if word in prices] or usual,
                    ours="ours" in words,
                )
    for check in ("drift", "coverage"):
        if check in checks or "all" in words:
            getattr(expert_checks, check)(runs, orders or list(ORDERS))
    tables = {"table.csv": list(STREAMS), "derived.csv": list(DERIVED)} if not words else {"": chosen or list(STREAMS)}
    for file, streams in tables.items():
        lines = all_encoders(streams, orders or list(ORDERS))
        show(lines)
        if file:
            write(lines, KEPT.with_name(file))
    expert_checks.show(runs)
    return 0


def all_encoders(streams: list[str], orders: list[int]) -> list[Line]:
    """The table, texts by each encoder that was played."""
    return [
        line
        for encoder in ENCODERS
        for line in table(Runs(encoder=encoder), streams, orders)
        if line["encoder"] in (encoder, "" if encoder == ENCODERS[0] else encoder)
    ]


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
