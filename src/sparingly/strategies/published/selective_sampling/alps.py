"""ALPS: models that were trained beforehand vote on what is worth asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparingly.games import Game
from sparingly.learning.determinism import pad_block
from sparingly.learning.fast_gradients import StackedGradients
from sparingly.learning.label_memory import Memory
from sparingly.learning.networks import Network
from sparingly.learning.training import Training
from sparingly.strategies.families.classifier_strategy import Floats, full_expert, outcome_distribution
from sparingly.strategies.families.network_options import NetworkOptions
from sparingly.strategies.strategy import NEVER, Assessment, Shape, Strategy, Why

VALUES = ("probability", "charged", "cheapest")
SCALES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
"""s of the requesters: a pair (model, s) requests the label where the model's two best classes are within s."""


class Committee:
    """Classifiers that are trained once.

    >>> committee = Committee([nn.Linear(2, 3), nn.Linear(2, 3)])
    >>> committee.probability(torch.zeros(5, 2)).shape
    (5, 2, 3)
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self.models = list(models)
        self.trained = False

    def probability(self, X: Tensor) -> Floats:
        """`[rows, model, class]`; a row does not depend on the rows beside it."""
        rows = pad_block(X)
        with torch.no_grad():
            each = [model(rows)[: len(X)].double().softmax(1).numpy() for model in self.models]
        return np.stack(each, 1)

    def train(self, x: Tensor, target: Tensor, training: Training, rng: np.random.Generator) -> None:
        """Fit each model to a bootstrap of the labels, by cross-entropy: all at once if they are small and alike."""
        n, together = len(x), StackedGradients.of(self.models, x, target)
        drawn = [torch.from_numpy(rng.integers(n, size=n)) for _ in self.models]
        if together is not None:
            orders = [torch.stack([rows[rng.permutation(n)] for _ in range(training.epochs)]) for rows in drawn]
            training.fit_stacked(together, torch.stack(orders))
        else:
            for model, rows in zip(self.models, drawn, strict=True):
                training.fit(model, x[rows], target[rows], rng, divisor=n)
        self.trained = True

    def state_dict(self) -> dict[str, Any]:
        return {"models": [model.state_dict() for model in self.models], "trained": self.trained}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for model, weights in zip(self.models, state["models"], strict=True):
            model.load_state_dict(weights)
        self.trained = bool(state["trained"])


def margins(probability: Floats) -> Floats:
    """How far apart the two likeliest classes are, given probabilities with the classes along the last axis.

    >>> margins(np.array([[0.5, 0.25, 0.25]]))
    array([0.25])
    """
    two = np.sort(probability, -1)[..., -2:]
    return np.asarray(two[..., 1] - two[..., 0])


class ALPS(Strategy):
    """Asks where surviving pairs of a model and a requester would be charged differently, or the best one requests.

    From the publication and a follow-up's code: pairs survive whose weighted loss on the labels is within `slack` of
    the best; it asks with probability p, the largest range over the pairs of what they are charged at (x, y), and
    weights the label 1/p; otherwise it follows the best model that agrees with all announcements so far, if the best
    such model for each other class is worse by more than `lead`: its requester asks, or its class is announced and
    kept as a weak label. Our reading: the models are trained on the first labels it buys, each on a bootstrap; the
    loss is one less the probability of the true class; more than two classes are treated alike; if no model agrees
    with all weak labels, all are taken back; with a late answer the weight is 1.

    Parameters
    ----------
    start, n_models
        How many labels to buy first, and how many models to train on them.
    slack, lead, charge
        D1, D2, and what a pair is charged where it requests: with 0, as in the code read, it asks nearly always.
    network, width, depth, epochs, batch, learning_rate, stop
        Of the models and their training, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = ALPS(label_efficient(2), 3, start=4)
    >>> str(strategy.decide(strategy.assess(torch.zeros(1, 3)), 0).why)
    'it buys the first 4 labels'

    References
    ----------
    DeSalvo, Gentile, Thune (2021). Online active learning with surrogate loss functions. NeurIPS.
    """

    name = "alps"
    summary = "asks where models trained on the first labels disagree about what it would cost"
    reference = "DeSalvo, Gentile, Thune 2021"
    playable = "label-efficient games"
    stops_asking = True
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        start: int = 100,
        n_models: int = 20,
        slack: float = 0.5,
        lead: float = 0.5,
        charge: float = 0.0,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        stop: float | None = 1e-3,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        self.expert, self.start = full_expert(game, self.name), start
        self.options = {"n_models": n_models, "slack": slack, "lead": lead, "charge": charge}
        networks = NetworkOptions(
            network=network,
            width=width,
            depth=depth,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            stop=stop,
        )
        self.training = networks.training("cross_entropy")
        self.models = Committee([networks.classifier(self.shape, game.n_outcomes, seed + k) for k in range(n_models)])
        self.memory = Memory()
        self.pair_loss, self.model_loss = np.zeros((n_models, len(SCALES))), np.zeros(n_models)
        self.agrees = np.ones(n_models, dtype=bool)
        self._last: tuple[Tensor, Floats, Floats, float] | None = None

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        probability = self.models.probability(X)
        cost = probability.mean(1) @ self.game.costs[: self.game.n_outcomes].T
        return dict(zip(VALUES, (probability, self.charged(probability), cost.argmin(1)), strict=True))

    def charged(self, probability: Floats) -> Floats:
        """What each pair is charged, `[rows, model, scale, class]`, given the models' probabilities."""
        requests = margins(probability)[..., None] < SCALES
        return np.where(requests[..., None], self.options["charge"], 1 - probability[:, :, None])

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        probability, charged, cheapest = (assessment.values[name][row] for name in VALUES)
        self._last = (assessment.X[row], probability, charged, 1.0)
        if self.clock < self.start or not self.models.trained:
            return self.expert, int(cheapest), Why("it buys the first {start} labels", {"start": self.start})
        chance = self.chance(charged)
        drawn = self.rng.random() < chance
        self._last = (assessment.X[row], probability, charged, 1 / chance if drawn else 0.0)
        if drawn:
            return self.expert, int(cheapest), Why("drawn to ask, with probability {chance:.3g}", {"chance": chance})
        model = self._followed(probability.argmax(1))
        if model is None or margins(probability)[model] < SCALES[self.pair_loss[model].argmin()]:
            return self.expert, int(cheapest), Why("no model leads" if model is None else "the best model requests it")
        said = int(probability[model].argmax())
        self.agrees &= probability.argmax(1) == said
        return said, said, Why("the best model says so, with probability {p:.3g}", {"p": probability[model, said]})

    def chance(self, charged: Floats) -> float:
        """p, given what each pair is charged, `[model, scale, class]`."""
        mean = self.pair_loss / max(1, self.n_labels + self.n_taught)
        kept = charged[mean <= mean.min() + self.options["slack"]]
        return float(min(1.0, (kept.max(0) - kept.min(0)).max()))

    def _followed(self, says: Any) -> int | None:
        """The best model, unless another class has one that is nearly as good."""
        if not self.agrees.any():
            self.agrees[:] = True
        loss = np.where(self.agrees, self.model_loss / max(1, self.n_labels + self.n_taught), np.inf)
        best = int(loss.argmin())
        others = loss[says != says[best]]
        return best if not len(others) or others.min() - loss[best] > self.options["lead"] else None

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        target = outcome_distribution(self.game, action, symbol)
        if not self.models.trained:
            self.memory.append(x=x, target=target)
            return
        last = self._last if self._last is not None and torch.equal(self._last[0], x) else None
        _, probability, charged, weight = last or (x, *(self._assess(x[None])[name][0] for name in VALUES[:2]), 1.0)
        distribution = target.double().numpy()
        self.model_loss += weight * (1 - probability @ distribution)
        self.pair_loss += weight * (charged @ distribution)

    def _train(self) -> None:
        if self.models.trained or not len(self.memory):
            return
        self.models.train(self.memory["x"], self.memory["target"], self.training, self.rng)

    def _due_in(self) -> int:
        return self.start - self.clock if self.clock < self.start else 1 if not self.models.trained else NEVER

    def _scores(self, X: Tensor) -> Tensor:
        return torch.from_numpy(self._assess(X)["probability"].mean(1))

    def _identity(self) -> dict[str, Any]:
        return {**self.options, "start": self.start}

    def _state(self) -> dict[str, Any]:
        arrays = {name: torch.from_numpy(getattr(self, name)) for name in ("pair_loss", "model_loss", "agrees")}
        return {"models": self.models.state_dict(), "memory": self.memory.state_dict(), **arrays}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.models.load_state_dict(state["models"])
        self.memory.load_state_dict(state["memory"])
        self._last = None
        for name in ("pair_loss", "model_loss", "agrees"):
            setattr(self, name, state[name].numpy().copy())
