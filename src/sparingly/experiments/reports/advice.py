"""What to do, for the person who has to decide: what each strategy would have cost, for what, and which to take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.data_description import costs_in_words
from sparingly.experiments.runs.paper_studies import printed

EARLY = 500
"""Questions are counted in so many rows at the beginning (half of a shorter stream), and in the rest."""
KINDS = 3
"""So many kinds of mistakes are named, the dearest first."""
WORST = 8
"""So many classes are listed, those whose mistakes cost most first."""
NAMES = {
    "sparing": "Sparing",
    "neural_cbp": "NeuralCBP",
    "always_ask": "always asking",
    "never_ask start=0": "never asking",
    "never_ask": "20 labels, then the commonest",
}


@dataclass(frozen=True)
class Mistake:
    """Announcing one class when it was another: how often, and what that cost."""

    announced: str
    true: str
    times: float
    cost: float

    @property
    def words(self) -> str:
        return f"{amount(self.times)} × {self.true} called {self.announced}"


@dataclass(frozen=True)
class ClassLine:
    """One true class: how often it came, was asked about and was mistaken, and what that cost."""

    name: str
    rows: float
    asked: float
    mistaken: float
    cost: float


@dataclass(frozen=True)
class Spent:
    """What one strategy spent on one stream, mean over the seeds.

    Attributes
    ----------
    label
        As the runs call it.
    costs
        In all, one a seed.
    questions, paid
        How many, and their price.
    counts
        `[action, outcome]`: how often an action met an outcome; the actions beyond the classes are questions.
    seconds
        Of a run, processor time.
    mistakes
        By kind, the dearest first.
    classes
        By true class, those whose mistakes cost most first.
    """

    label: str
    costs: NDArray[np.float64]
    questions: float
    paid: float
    seconds: float
    mistakes: tuple[Mistake, ...]
    classes: tuple[ClassLine, ...]

    @property
    def name(self) -> str:
        """What the strategy is called here, and its options."""
        first, _, options = self.label.partition(" ")
        if self.label in NAMES or first not in NAMES:
            return NAMES.get(self.label, self.label)
        return f"{NAMES[first]} ({options})"

    @property
    def asks_always(self) -> bool:
        return self.label.startswith("always_ask")

    @property
    def asks_never(self) -> bool:
        return self.label == "never_ask start=0"

    @property
    def cost(self) -> float:
        return float(self.costs.mean())

    @property
    def wrong(self) -> float:
        return sum(mistake.times for mistake in self.mistakes)

    @property
    def for_mistakes(self) -> float:
        return self.cost - self.paid

    @property
    def kinds(self) -> str:
        """The dearest kinds of mistakes in words."""
        shown = [mistake.words for mistake in self.mistakes[:KINDS]]
        rest = sum(mistake.times for mistake in self.mistakes[KINDS:])
        return ", ".join(shown + ([f"{amount(rest)} others"] if rest else []))


@dataclass(frozen=True)
class Advice:
    """What to do on one stream.

    Attributes
    ----------
    dataset, rows, seeds
        The stream, how many rows of it were played, and in how many orders.
    costs
        In words.
    spent
        By strategy, the cheapest first.
    early
        Questions of the cheapest in the first rows: how many rows, how many questions, and how many in a hundred later.
    """

    table: str
    dataset: str
    rows: int
    seeds: int
    costs: str
    spent: tuple[Spent, ...]
    early: tuple[int, float, float]

    @property
    def best(self) -> Spent:
        return self.spent[0]

    @property
    def headline(self) -> str:
        """What the cheapest would have cost and for what, beside asking always and never."""
        best = self.best
        parts = [f"{amount(best.paid)} for {amount(best.questions)} questions"] if best.questions else []
        if best.wrong:
            parts.append(f"{amount(best.for_mistakes)} for mistakes ({best.kinds})")
        others = [one for one in self.spent[1:] if one.asks_always or one.asks_never or one.label == "sparing"]
        beside = ", ".join(f"{one.name} {amount(one.cost)}" for one in others)
        return (
            f"On this stream of {self.rows:,} rows, with these costs, {best.name} would have cost {amount(best.cost)}: "
            f"{', '.join(parts) or 'no question and no mistake'}{f'; {beside}' if beside else ''}."
        )

    @property
    def verdict(self) -> str:
        """Which to take, how sure that is, and how many questions to expect."""
        best, sure = self.best, self._sure()
        alone = len(self.spent) == 1
        if best.asks_always and not alone:
            return f"Ask about every row{sure}: nothing that learns was cheaper on this stream."
        if best.asks_never and not alone:
            return f"Never ask{sure}: at this price no question pays on this stream."
        rows, first, later = self.early
        which = f"{best.name} played alone" if alone else f"Use {best.name}{sure}"
        return (
            f"{which}: expect about {amount(first)} questions in the first {rows:,} rows, "
            f"then about {amount(later)} in 100."
        )

    def _sure(self) -> str:
        if len(self.spent) < 2:
            return ""
        second = self.spent[1]
        ahead = int((self.best.costs < second.costs).sum())
        return f" (cheaper than {second.name} in {ahead} of {self.seeds} orders)"


def advise(runs: Any, curves: Any) -> list[Advice]:
    """Advice for every stream that was played under the same costs by all strategies; none for the paper's tables."""
    known = {row.table for row in printed()}
    found = []
    for (table, dataset), part in runs.groupby(["table", "dataset"], sort=False):
        alike = part[["costs", "query_cost"]].drop_duplicates() if "counts" in part else ()
        if len(alike) == 1 and table not in known and part["counts"].notna().all():
            mine = curves[(curves["table"] == table) & (curves["dataset"] == dataset)]
            found.append(_advice(str(table), str(dataset), part, mine))
    return found


def _advice(table: str, dataset: str, part: Any, curves: Any) -> Advice:
    first = part.iloc[0]
    classes = json.loads(first["classes"])
    stated = None if first["costs"] == "uniform" else json.loads(first["costs"])
    costs = 1 - np.eye(len(classes)) if stated is None else np.array(stated)
    spent = [_spent(str(label), rows, classes, costs) for label, rows in part.groupby("label", sort=False)]
    spent.sort(key=lambda one: one.cost)
    length = int(part["rounds"].max())
    asked = curves[curves["label"] == spent[0].label]
    return Advice(
        table=table,
        dataset=dataset,
        rows=length,
        seeds=int(part["seed"].nunique()),
        costs=costs_in_words(classes, stated, float(first["query_cost"]), _experts(first)),
        spent=tuple(spent),
        early=_early(asked["t"].to_numpy(), asked["questions"].to_numpy(), length),
    )


def _experts(run: Any) -> list[str]:
    """The experts that have names, each with its price."""
    experts = run.get("experts")
    return [f"{one['name']} at {one['price']:g}" for one in json.loads(experts)] if isinstance(experts, str) else []


def _early(t: NDArray[Any], questions: NDArray[Any], length: int) -> tuple[int, float, float]:
    """Rows at the beginning, questions in them, and questions in a hundred of the later ones."""
    rows = min(EARLY, max(1, length // 2))
    first = float(np.interp(rows, t, questions))
    return rows, first, 100 * (float(questions[-1]) - first) / max(1, length - rows)


def _spent(label: str, rows: Any, classes: Sequence[str], costs: NDArray[np.float64]) -> Spent:
    n = len(classes)
    counts = np.zeros((n + 1, n))
    for text in rows["counts"]:
        for action, outcome, times in json.loads(text):
            counts[min(action, n), outcome] += times / len(rows)
    wrong = counts[:n] * (1 - np.eye(n))
    worth = wrong * costs
    kinds = sorted(np.argwhere(wrong > 0).tolist(), key=lambda pair: (-worth[*pair], -wrong[*pair]))
    dearest = sorted(range(n), key=lambda true: (-worth[:, true].sum(), -wrong[:, true].sum()))
    return Spent(
        label=label,
        costs=rows.sort_values("seed")["cost"].to_numpy(dtype=np.float64),
        questions=float(rows["queries"].mean()),
        paid=float(rows["paid"].mean()),
        seconds=float(rows["cpu_seconds"].mean()),
        mistakes=tuple(Mistake(classes[i], classes[j], float(wrong[i, j]), float(worth[i, j])) for i, j in kinds),
        classes=tuple(
            ClassLine(
                name=classes[true],
                rows=float(counts[:, true].sum()),
                asked=float(counts[n, true]),
                mistaken=float(wrong[:, true].sum()),
                cost=float(worth[:, true].sum()),
            )
            for true in dearest[:WORST]
        ),
    )


def in_text(advice: Advice) -> Iterator[str]:
    """The advice for a terminal: the words, and the table."""
    yield f"{advice.dataset}: {advice.headline}"
    yield advice.verdict
    heads = ("strategy", "total cost", "questions", "their price", "mistakes", "their cost", "seconds")
    rows = [heads, *(tuple(table_row(one)) for one in advice.spent)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
    for row, kinds in zip(rows, ["the dearest mistakes", *(one.kinds for one in advice.spent)], strict=True):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield ("  " + "  ".join([*cells, kinds])).rstrip()


def table_row(one: Spent) -> list[str]:
    """What a table shows of a strategy."""
    numbers = (one.cost, one.questions, one.paid, one.wrong, one.for_mistakes)
    return [one.name, *map(amount, numbers), f"{one.seconds:.1f}"]


def amount(value: float) -> str:
    """A number as people say it: digits after the point only where it is small.

    >>> amount(1351.92), amount(12.0), amount(3.14), amount(0.0)
    ('1,352', '12', '3.1', '0')
    """
    return f"{value:,.0f}" if abs(value) >= 10 or abs(value - round(value)) < 0.05 else f"{value:.1f}"
