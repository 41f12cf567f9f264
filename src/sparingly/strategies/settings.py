"""What every neural strategy can be told about its networks and their updates, with the same defaults for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparingly.learning import training
from sparingly.learning.eenet import EENet
from sparingly.learning.networks import Network


@dataclass(frozen=True)
class Settings:
    """Networks and updates as NeuralCBP has them.

    Attributes
    ----------
    network, width, depth
        "mlp", "lenet", any module, or a function of (shape, outputs); the sizes of the MLPs.
    epochs, batch, learning_rate, schedule
        Of the updates.
    stop
        Stop an update early once an epoch's objective is this low; None never stops.
    device
        Where the networks live.

    >>> Settings(width=50).training().epochs
    40
    """

    network: Network = "mlp"
    width: int = 100
    depth: int = 2
    epochs: int = 40
    batch: int = 64
    learning_rate: float = 1e-3
    schedule: str | training.Schedule = "paper"
    stop: float | None = 1e-3
    device: str = "cpu"

    def training(self, objective: str = "mean_squared") -> training.Training:
        return training.Training(self.epochs, self.batch, self.learning_rate, self.stop, objective)

    def eenet(self, shape: tuple[int, ...], n_outputs: int, seed: int) -> EENet:
        """f1 and f2 as NeuralCBP's released form has them."""
        return EENet(
            shape,
            n_outputs,
            network=self.network,
            width=self.width,
            depth=self.depth,
            training=self.training(),
            seed=seed,
            device=self.device,
        )


def settled(presets: Mapping[str, Mapping[str, Any]], preset: str, **given: Any) -> dict[str, Any]:
    """A preset's options, each replaced by what is given unless that is None.

    >>> settled({"released": {"gamma": 6.0, "discount": False}}, "released", gamma=3.0, discount=None)
    {'gamma': 3.0, 'discount': False}
    >>> settled({"released": {}, "published": {}}, "original")
    Traceback (most recent call last):
        ...
    ValueError: preset 'original' is not known: give 'released' or 'published'
    """
    if preset not in presets:
        raise ValueError(f"preset {preset!r} is not known: give {' or '.join(map(repr, presets))}")
    return dict(presets[preset]) | {name: value for name, value in given.items() if value is not None}
