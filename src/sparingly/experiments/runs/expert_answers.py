"""The experts of a run: who they are, what they say of a stream, and what becomes of it in a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.experiments.runs.experiment_settings import SettingsError, Task
from sparingly.experiments.streams import Stream
from sparingly.experts import Expert
from sparingly.experts.synthetic import described_expert


class RunExperts:
    """The experts that a task names, with their answers to a stream.

    Parameters
    ----------
    task
        With experts in words, as `described_expert` reads them.
    source
        The stream; recorded answers are those of its data set.
    seed
        Of the synthetic experts.

    Examples
    --------
    >>> from sparingly.experiments.datasets import load
    >>> from sparingly.experiments.streams import stream
    >>> task = Task(dataset="digits", expert=("gpt:0.01:accuracy=0.9", "human:1:gold"))
    >>> experts = RunExperts(task, stream(load("digits"), seed=0), seed=0)
    >>> [expert.name for expert in experts.experts], round(experts.accuracy("gpt"), 1)
    (['gpt', 'human'], 0.9)
    """

    def __init__(self, task: Task, source: Stream, seed: int) -> None:
        if task.noise:
            raise SettingsError(f"noise is {task.noise}, but the task names its experts: give one of them an accuracy")
        self.source, self.experts, self.said = source, [], {}
        recorded = source.dataset.answers
        try:
            for place, text in enumerate(task.expert):
                expert, synthetic = described_expert(text)
                self.experts.append(expert)
                if synthetic is not None:
                    n_classes, draw = source.dataset.n_classes, [seed, place]
                    number = int(np.random.default_rng(draw).integers(2**31))
                    said = synthetic.answers(source.X, source.y, n_classes, seed=number, others=dict(self.said))
                    self.said[expert.name] = said
                elif not expert.gold:
                    self._check_recorded(expert)
                    self.said[expert.name] = recorded[expert.name][source.index]
        except ValueError as error:
            raise SettingsError(str(error)) from error

    experts: list[Expert]
    said: dict[str, NDArray[np.int64]]

    def _check_recorded(self, expert: Expert) -> None:
        known = self.source.dataset.answers
        if expert.name not in known:
            there = f"it has those of {', '.join(known)}" if known else "it has none"
            raise SettingsError(
                f"{self.source.dataset.name} has no recorded answers of {expert.name!r} ({there}); "
                f"a synthetic expert has an accuracy: {expert.name}:{expert.price:g}:accuracy=0.8"
            )

    def items(self) -> Iterator[tuple[Any, int, dict[str, int | None]]]:
        """The stream as `play` takes it."""
        for t, (x, y) in enumerate(zip(self.source.X, self.source.y.tolist(), strict=True)):
            yield x, y, {name: None if said[t] < 0 else int(said[t]) for name, said in self.said.items()}

    def accuracy(self, name: str) -> float:
        """How often an expert would be right, of all that it answers."""
        said = self.said[name]
        return float((said == self.source.y)[said >= 0].mean()) if (said >= 0).any() else float("nan")

    def summary(self, strategy: Any, asked: dict[str, NDArray[np.bool_]]) -> list[dict[str, Any]]:
        """What a record says of each: name, price, gold, how often asked, and its accuracy, true and learned."""
        panel = getattr(strategy, "panel", None)
        learned = {one.expert.name: one for one in panel.reliability} if panel is not None else {}
        rows = []
        for expert in self.experts:
            row = {"name": expert.name, "price": expert.price, "gold": expert.gold}
            row["asked"] = int(asked[expert.name].sum())
            row["accuracy"] = 1.0 if expert.gold else round(self.accuracy(expert.name), 4)
            if expert.name in learned:
                one = learned[expert.name]
                row["learned"], row["interval"] = round(one.accuracy, 4), [round(end, 4) for end in one.interval()]
            rows.append(row)
        return rows
