"""Always ask: no mistake is ever made, and every observation is paid for."""

from __future__ import annotations

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import NetworkOptions
from sparingly.strategies.strategy import Shape, Why


class AlwaysAsk(ClassifierStrategy):
    """Asks about every observation: the upper bound on what one should pay.

    Parameters
    ----------
    network, width, depth, epochs, batch, learning_rate, schedule, stop, wait, device
        Of the classifier and its updates, as every neural strategy has them (see `NetworkOptions`).
    start, divisor
        See `ClassifierStrategy`.

    >>> from sparingly import label_efficient
    >>> strategy = AlwaysAsk(label_efficient(2), 3)
    >>> str(strategy.decide(strategy.assess([[0.0, 1.0, 2.0]]), 0).why)
    'it asks about everything'
    """

    name = "always_ask"
    summary = "asks about every observation"
    reference = "baseline"
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule = "paper",
        stop: float | None = 1e-3,
        wait: int = 2,
        device: str = "cpu",
        start: str = "none",
        divisor: str = "features",
        seed: int = 0,
    ) -> None:
        networks = NetworkOptions(
            network=network,
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=schedule,
            stop=stop,
            wait=wait,
            device=device,
        )
        super().__init__(game, n_features, networks=networks, start=start, divisor=divisor, seed=seed)

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        return True, Why("it asks about everything")
