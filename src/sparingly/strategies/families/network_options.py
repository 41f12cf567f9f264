"""The options that every neural strategy has for its networks and their updates, with the same defaults for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from sparingly.games import Game
from sparingly.learning import schedules, training
from sparingly.learning.eenet import EENet
from sparingly.learning.networks import Network, build


@dataclass(frozen=True)
class NetworkOptions:
    """Networks and updates as NeuralCBP has them.

    Attributes
    ----------
    network, width, depth
        "mlp", "lenet", any module, or a function of (shape, outputs); the sizes of the MLPs.
    epochs, batch, learning_rate, schedule
        Of the updates.
    stop
        Stop an update early once an epoch's objective is this low; None never stops.
    wait
        Where each action is played once at first: how many rounds after that the first update may come. Not at once, so
        that a strategy does not make up its mind on one label; the released code waits 2.
    device
        Where the networks live.

    >>> NetworkOptions(width=50).training().epochs
    40
    """

    network: Network = "mlp"
    width: int = 100
    depth: int = 2
    epochs: int = 40
    batch: int = 64
    learning_rate: float = 1e-3
    schedule: str | schedules.UpdateSchedule = "paper"
    stop: float | None = 1e-3
    wait: int = 2
    device: str = "cpu"

    def first_update(self, game: Game) -> int:
        """After how many rounds the first update may come where each action is played once at first."""
        return game.n_outcomes + 1 + self.wait

    def training(self, objective: str = "mean_squared") -> training.Training:
        return training.Training(self.epochs, self.batch, self.learning_rate, self.stop, objective)

    def classifier(self, shape: tuple[int, ...], n_outputs: int, seed: int) -> nn.Module:
        """One network."""
        network = build(self.network, shape, n_outputs, seed=seed, width=self.width, depth=self.depth)
        return network.to(self.device)

    def eenet(
        self,
        shape: tuple[int, ...],
        n_outputs: int,
        seed: int,
        *,
        objective: str = "mean_squared",
        kind: str = "released",
        block_size: int | None = None,
        residuals: str = "kept",
    ) -> EENet:
        """f1 and f2, as NeuralCBP's released form has them if no options say otherwise."""
        return EENet(
            shape,
            n_outputs,
            network=self.network,
            width=self.width,
            depth=self.depth,
            seed=seed,
            device=self.device,
            kind=kind,
            block_size=block_size,
            residuals=residuals,
            training=self.training(objective),
        )


STARTS = ("each", "question_first", "none")
"""How a strategy may begin: every announcement once and then a question, the question first, or by its rule."""


BEGINNINGS: dict[str, dict[str, Any]] = {
    "published": {"start": "each", "schedule": "paper"},
    "authors": {"start": "each", "schedule": "paper"},
    "released": {"start": "question_first", "schedule": "released"},
}
"""How each preset begins, and when it learns."""


LEARNS = ("announced_and_true", "announced")
"""The classes that an answer teaches to a network with an input of its own for each class."""


def first_actions(start: str, announcements: Sequence[int], questions: Sequence[int]) -> tuple[int, ...]:
    """The actions that are played at the start, one a round.

    >>> first_actions("each", range(3), [3]), first_actions("question_first", range(3), [3])
    ((0, 1, 2, 3), (3, 0, 1, 2))
    """
    check_choice(STARTS, start=start)
    if start == "none":
        return ()
    return (*announcements, *questions) if start == "each" else (*questions, *announcements)


def preset_options(presets: Mapping[str, Mapping[str, Any]], preset: str, **given: Any) -> dict[str, Any]:
    """A preset's options, replaced by those that are given and not None.

    One vocabulary for all strategies: "released" is the code behind the tables of the NeuralCBP paper, "paper" the text
    of that paper, and "published" a strategy's own publication where it is another ("authors", for Neuronal, the code
    that came with it).

    >>> preset_options({"released": {"gamma": 6.0, "discount": False}}, "released", gamma=3.0, discount=None)
    {'gamma': 3.0, 'discount': False}
    >>> preset_options({"released": {}, "published": {}}, "original")
    Traceback (most recent call last):
        ...
    ValueError: preset 'original' is not known: give 'released' or 'published'
    """
    if preset not in presets:
        raise ValueError(f"preset {preset!r} is not known: give {' or '.join(map(repr, presets))}")
    return {**presets[preset], **{name: value for name, value in given.items() if value is not None}}


def check_choice(choices: tuple[str, ...], **given: str) -> None:
    """Refuse an option that is none of its choices.

    >>> check_choice(("f1", "both"), residual="f2")
    Traceback (most recent call last):
        ...
    ValueError: residual is 'f2': give 'f1' or 'both'
    """
    for name, value in given.items():
        if value not in choices:
            raise ValueError(f"{name} is {value!r}: give {' or '.join(map(repr, choices))}")
