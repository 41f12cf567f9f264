"""Ask at random: with the same probability about every observation."""

from __future__ import annotations

from sparingly.games import Game
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy, Floats
from sparingly.strategies.families.network_options import NetworkOptions
from sparingly.strategies.strategy import Shape, Why


class RandomAsks(ClassifierStrategy):
    """Asks with probability p, whatever the observation: what every clever strategy must beat.

    Parameters
    ----------
    p
        The probability.
    network, width, depth, epochs, batch, learning_rate, schedule, stop, wait, device
        Of the classifier and its updates, as every neural strategy has them (see `NetworkOptions`).
    start, divisor
        See `ClassifierStrategy`.

    >>> from sparingly import label_efficient
    >>> strategy = RandomAsks(label_efficient(2), 1, p=0.25, seed=0)
    >>> sum(strategy.decide(strategy.assess([[0.0]]), 0).asks for _ in range(400))
    93
    """

    name = "random"
    summary = "asks with the same probability about every observation"
    reference = "baseline"
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        p: float = 0.1,
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
        if not 0 <= p <= 1:
            raise ValueError(f"p is {p}: a probability is between 0 and 1")
        self.p = p

    def _rule(self, probability: Floats) -> tuple[bool, Why]:
        asks = bool(self.rng.random() < self.p)
        return asks, Why("asked at random" if asks else "not drawn", {"probability": self.p, "audit": asks})
