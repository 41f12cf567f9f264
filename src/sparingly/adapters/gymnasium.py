"""At home in Gymnasium: a partial monitoring game on a stream as an environment.

Importing this module registers the paper's tasks: `gymnasium.make("sparingly/Adult-v0")`. `TASKS` names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.games import Game, label_efficient
from sparingly.games.costs import check_prices, read_costs

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise ImportError("the Gymnasium adapter needs it: pip install 'sparingly[adapters]'") from None

Observation = NDArray[np.float32]
Stream = Iterable[tuple[Any, int]] | Callable[[int], Iterable[tuple[Any, int]]]

FP_SENSITIVE = ((0.0, 1.0), (0.5, 0.0))
"""Announcing 0 when 1 is true costs 1, announcing 1 when 0 is true costs 1/2."""

TASKS: dict[str, dict[str, Any]] = {
    "sparingly/Digits-v0": {"dataset": "digits"},
    "sparingly/MNIST-v0": {"dataset": "mnist"},
    "sparingly/FashionMNIST-v0": {"dataset": "fashion_mnist"},
    "sparingly/CIFAR10-v0": {"dataset": "cifar10"},
    "sparingly/Covertype-v0": {"dataset": "covertype"},
    "sparingly/Shuttle-v0": {"dataset": "shuttle"},
    "sparingly/Adult-v0": {"dataset": "adult"},
    "sparingly/MagicTelescope-v0": {"dataset": "magic_telescope"},
    "sparingly/MNISTBinary-v0": {"dataset": "mnist_binary"},
    "sparingly/AdultFPSensitive-v0": {"dataset": "adult", "costs": FP_SENSITIVE},
    "sparingly/MagicTelescopeFPSensitive-v0": {"dataset": "magic_telescope", "costs": FP_SENSITIVE},
    "sparingly/MNISTBinaryFPSensitive-v0": {"dataset": "mnist_binary", "costs": FP_SENSITIVE},
}
"""The paper's tasks, and scikit-learn's digits, which need no download, by id."""


class PartialMonitoringEnv(gymnasium.Env[Observation, np.int64]):
    """A game on a stream: an observation a step, an action, and minus its cost as the reward.

    In partial monitoring the cost is not shown. An agent that plays by the rules looks at `info["feedback"]`, the
    symbol that its action brought, and at nothing else; the reward is there for whoever keeps the score. The outcome is
    never shown. An episode is one pass over the stream, and is truncated at its end.

    Parameters
    ----------
    game
        Costs and feedback.
    stream
        Pairs of an observation and an outcome, which can be begun again: a list, anything that `iter` begins anew, or a
        function of a seed, which is that of `reset`, or drawn from the environment's generator.

    Examples
    --------
    >>> import sparingly as sp
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> env = PartialMonitoringEnv(sp.label_efficient(2), list(zip(X, (X[:, 0] > 0).astype(int))))
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(2)   # ask
    >>> reward, info
    (-1.0, {'feedback': '1'})
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, game: Game, stream: Stream) -> None:
        if isinstance(stream, Iterator):
            raise ValueError(f"stream is {stream!r}, which ends once: give a list or a function of a seed")
        self.game = game
        self.stream = stream
        first = next(iter(self._begun(0)), None)
        if first is None:
            raise ValueError("the stream has no observations")
        shape = np.shape(first[0])
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = spaces.Discrete(game.n_actions)
        self._rounds: Iterator[tuple[Any, int]] | None = None

    def _begun(self, seed: int) -> Iterable[tuple[Any, int]]:
        return self.stream(seed) if callable(self.stream) else self.stream

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin the stream anew."""
        super().reset(seed=seed)
        self._rounds = iter(self._begun(seed if seed is not None else int(self.np_random.integers(2**31))))
        self._now = next(self._rounds)
        return self._observation(), {}

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Hashable]]:
        """Play an action on the present observation."""
        if self._rounds is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(np.int64(action)):
            raise ValueError(f"action {action!r} is not one of 0 to {self.game.n_actions - 1}")
        outcome = int(self._now[1])
        cost = float(self.game.costs[int(action), outcome])
        coming = next(self._rounds, None)
        if coming is None:
            self._rounds = None
        else:
            self._now = coming
        feedback = self.game.feedback[int(action)][outcome]
        return self._observation(), -cost, False, coming is None, {"feedback": feedback}

    def _observation(self) -> Observation:
        return np.array(self._now[0], dtype=np.float32)


def task(
    dataset: str,
    costs: Any = None,
    query_cost: float = 1.0,
    horizon: int = 10_000,
    preprocessing: str = "paper",
    flat: bool = True,
) -> PartialMonitoringEnv:
    """A label-efficient game on a data set by name, in an order that the seed of `reset` gives.

    >>> env = task("digits", horizon=50)
    >>> env.observation_space.shape, env.action_space.n
    ((64,), np.int64(11))
    """
    from sparingly.experiments.datasets import load
    from sparingly.experiments.streams import stream

    data = load(dataset, preprocessing, flat=flat)  # type: ignore[arg-type]
    game = label_efficient(data.n_classes, costs=read_costs(costs, data.classes), query_cost=query_cost)
    check_prices(game)
    return PartialMonitoringEnv(game, lambda seed: stream(data, seed, horizon))


def register_tasks() -> None:
    """Make the paper's tasks known to `gymnasium.make`; again changes nothing."""
    for name, settings in TASKS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{__name__}:task", kwargs=settings)


register_tasks()
