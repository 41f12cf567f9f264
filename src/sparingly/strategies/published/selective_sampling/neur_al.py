"""NeurAL: upper confidence bounds from the gradients of one network, frozen or trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.determinism import pad_block
from sparingly.learning.label_memory import Memory
from sparingly.learning.schedules import AfterAnswers, UpdateSchedule, update_schedule
from sparingly.strategies.families.classifier_strategy import full_expert, outcome_distribution
from sparingly.strategies.families.network_options import LEARNS, NetworkOptions, check_choice, preset_options
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why

PARTS = ("blocks", "bias", "head", "last")


class Tangent:
    """Ridge regression on the gradients of a network, its neural tangent features, with a diagonal Gram matrix.

    Z = I + sum of squared gradients, and theta = Z^-1 sum of gradients times targets, both by coordinate;
    gradients are divided by the square root of the network's width. The network is a `BlockNet`, so the gradient at x
    in block k is zero in the weights of all other blocks, and in those of block k an outer product of x and of what
    flows back: no gradient is ever written out.

    >>> net = BlockNet(2, 3, 4)
    >>> tangent = Tangent(net)
    >>> x = torch.ones(1, 3)
    >>> before = tangent(x)
    >>> tangent.add(x, torch.tensor([0]), torch.tensor([1.0]))
    >>> after = tangent(x)
    >>> bool(after["norm"][0, 0] < before["norm"][0, 0]), bool(after["linear"][0, 0] > 0)
    (True, True)
    """

    def __init__(self, network: BlockNet) -> None:
        self.network = network
        zeros = {
            "blocks": torch.zeros(len(network.blocks), *network.blocks[0].shape),
            "bias": torch.zeros_like(network.bias.data),
            "head": torch.zeros_like(network.bias.data),
            "last": torch.zeros(1),
        }
        self.Z = {name: torch.ones_like(part) for name, part in zeros.items()}
        self.b = zeros

    def __call__(self, X: Tensor) -> dict[str, Tensor]:
        """For each class, `[rows, class]`: the network's "output", theta's "linear" one, and the gradient's "norm".

        The norm is that of Z^-1. A row does not depend on the rows beside it.
        """
        rows = pad_block(X.flatten(1))
        hidden, back = self._pieces(rows)
        scale = 1 / math.sqrt(len(self.network.bias))
        output = hidden @ self.network.head.weight[0] + self.network.head.bias
        inverse = {name: 1 / part for name, part in self.Z.items()}
        theta = {name: self.b[name] * inverse[name] for name in PARTS}
        linear = scale * self._product(rows, hidden, back, theta)
        squares = scale**2 * self._product(rows.square(), hidden.square(), back.square(), inverse)
        named = {"output": output, "linear": linear, "norm": squares.sqrt()}
        return {name: value.T[: len(X)] for name, value in named.items()}

    def log_determinant(self) -> float:
        """The logarithm of the determinant of Z."""
        return sum(float(part.log().sum()) for part in self.Z.values())

    def add(self, X: Tensor, classes: Tensor, targets: Tensor) -> None:
        """Learn that x in the block of its class has this target, for each row."""
        rows, scale = X.flatten(1), 1 / math.sqrt(len(self.network.bias))
        hidden, back = self._pieces(rows)
        at = torch.arange(len(rows))
        hidden, back = scale * hidden[classes, at], scale * back[classes, at]
        for k in set(classes.tolist()):
            these = classes == k
            self.Z["blocks"][k] += back[these].square().T @ rows[these].square()
            self.b["blocks"][k] += (back[these] * targets[these, None]).T @ rows[these]
        flat = {"bias": back, "head": hidden, "last": torch.full_like(hidden[:, :1], scale)}
        for name, part in flat.items():
            self.Z[name] += part.square().sum(0)
            self.b[name] += (part * targets[:, None]).sum(0)

    def _pieces(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The hidden layer and what flows back to it, `[class, rows, width]`."""
        weight = torch.stack(list(self.network.blocks)).detach()
        hidden = (torch.matmul(rows, weight.transpose(1, 2)) + self.network.bias.detach()).relu()
        return hidden, (hidden > 0) * self.network.head.weight[0].detach()

    def _product(self, rows: Tensor, hidden: Tensor, back: Tensor, parts: Mapping[str, Tensor]) -> Tensor:
        """The inner product of each gradient with coordinates `parts`, `[class, rows]`."""
        first = torch.matmul(rows, parts["blocks"].transpose(1, 2)) + parts["bias"]
        return (first * back).sum(2) + hidden @ parts["head"] + parts["last"]

    def state_dict(self) -> dict[str, Any]:
        return {"Z": self.Z, "b": self.b}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.Z = {name: state["Z"][name].reshape(self.Z[name].shape) for name in PARTS}
        self.b = {name: state["b"][name].reshape(self.b[name].shape) for name in PARTS}


class NeurAL(Strategy):
    """Announces the class with the highest upper bound U, and asks while U is not above 1/2 by twice its width.

    From the publication: the network's gradients g_k at x in the block of each class; U_k = <theta, g_k> + width_k
    with the network frozen (NTK-F), or f(x_k) + width_k with the network trained (NTK-D); Z += g g' and b += [right]
    g after a question about the announced class; the width's factor sqrt(log det Z + 2 log(1/delta)) + S. From its
    authors' code: a diagonal Z, the constant factor sqrt(gamma), gamma = 0.5 frozen and 0.1 trained, and, if frozen,
    U divided by its sum over the classes. Our reading: Z and theta change at the updates of the schedule, like all
    networks here; observations are scaled to length 1, as the analysis has them; the trained network learns the
    announced and the true class, as in INeural; for more than two classes the rule is the same, about the best class
    against all others.

    Parameters
    ----------
    form
        "frozen" or "trained".
    preset
        "published" (the text's width) or "released" (its authors' code).
    gamma, delta, norm
        The constant factor, by default 0.5 frozen and 0.1 trained; delta and S in the text's factor.
    learns
        What an answer teaches the trained network: the "announced_and_true" classes, or the "announced" class only.
    width, epochs, batch, learning_rate, schedule, stop, wait
        Of the network and its updates, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = NeurAL(label_efficient(2), 3)
    >>> decision = strategy.decide(strategy.assess([[1.0, 0.0, 2.0]]), 0)
    >>> decision.asks, decision.why["width"] > 0
    (True, True)

    References
    ----------
    Wang, Awasthi, Dann, Sekhari, Gentile (2021). Neural active learning with performance guarantees. NeurIPS.
    """

    name = "neur_al"
    summary = "asks while a network's gradients leave the best class's upper bound near one half"
    reference = "Wang, Awasthi, Dann, Sekhari, Gentile 2021"
    playable = "label-efficient games"
    stops_asking = True
    beats_random = False

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        form: str = "trained",
        preset: str = "released",
        gamma: float | None = None,
        delta: float = 0.1,
        norm: float = 1.0,
        learns: str = "announced_and_true",
        width: int = 100,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule = "paper",
        stop: float | None = 1e-3,
        wait: int = 2,
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, seed=seed)
        check_choice(("frozen", "trained"), form=form)
        check_choice(LEARNS, learns=learns)
        self.learns = learns
        self.expert, self.form = full_expert(game, self.name), form
        factors = {"gamma": 0.5 if form == "frozen" else 0.1, "delta": delta, "norm": norm}
        self.options = preset_options({"published": factors, "released": factors}, preset, gamma=gamma)
        self.options["preset"] = preset
        self.networks = NetworkOptions(
            width=width,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=schedule,
            stop=stop,
            wait=wait,
        )
        self.schedule = update_schedule(schedule)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = BlockNet(game.n_outcomes, self.n_features, self.networks.width)
        self.tangent = Tangent(self.network)
        self.memory, self.learned = Memory(), 0

    def factor(self) -> float:
        """By which a gradient's norm becomes a width."""
        if self.options["preset"] == "released":
            return math.sqrt(self.options["gamma"])
        spread = self.tangent.log_determinant() + 2 * math.log(1 / self.options["delta"])
        return float(math.sqrt(spread) + self.options["norm"])

    def _assess(self, X: Tensor) -> Mapping[str, Any]:
        values = self.tangent(_unit(X))
        width = self.factor() * values["norm"]
        bound = (values["output"] if self.form == "trained" else values["linear"]) + width
        if self.form == "frozen":
            bound = bound / bound.sum(1, keepdim=True)
        return {"bound": bound.double().numpy(), "width": width.double().numpy()}

    def _choose(self, assessment: Assessment, row: int) -> tuple[int, int, Why]:
        bound, n = assessment.values["bound"][row], self.game.n_outcomes
        best, cheapest = int(bound.argmax()), int((self.game.costs[:n] @ bound).argmin())
        numbers = {"bound": float(bound[best]), "width": float(assessment.values["width"][row][best])}
        if numbers["bound"] - 0.5 <= 2 * numbers["width"]:
            return (
                self.expert,
                cheapest,
                Why("the best upper bound {bound:.3g} is near 1/2: width {width:.3g}", numbers),
            )
        return cheapest, cheapest, Why("the best upper bound is {bound:.3g}, its width {width:.3g}", numbers)

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        row, target = _unit(x[None])[0], outcome_distribution(self.game, action, symbol)
        announced = int(self._assess(x[None])["bound"][0].argmax())
        true = [k for k in range(len(target)) if target[k] > 0 and k != announced]
        for k in [announced, *(true if self.learns == "announced_and_true" else [])]:
            kind = torch.tensor([float(k), float(k == announced)])
            self.memory.append(x=torch.cat([row, kind[:1]]), target=target[k : k + 1], announced=kind[1])

    def _train(self) -> None:
        if self.learned < len(self.memory):
            new = [self.memory[name][self.learned :] for name in ("x", "target", "announced")]
            x, target, _ = (part[new[2] > 0] for part in new)
            self.tangent.add(x[:, :-1], x[:, -1].long(), target[:, 0])
            self.learned = len(self.memory)
        if self.form == "trained" and len(self.memory):
            x, target = self.memory["x"], self.memory["target"]
            self.networks.training().fit(self.network, x, target, self.rng, divisor=len(x))

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), self.networks.first_update(self.game)) - self.clock

    def _due_after_label(self) -> bool:
        return isinstance(self.schedule, AfterAnswers) and self.clock >= self.networks.first_update(self.game)

    def _scores(self, X: Tensor) -> Tensor:
        return self.tangent(_unit(X))["output" if self.form == "trained" else "linear"]

    def _identity(self) -> dict[str, Any]:
        return {"options": dict(self.options), "form": self.form, "width": self.networks.width}

    def _state(self) -> dict[str, Any]:
        parts = {"network": self.network.state_dict(), "tangent": self.tangent.state_dict()}
        return {**parts, "memory": self.memory.state_dict(), "learned": self.learned}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name in ("network", "tangent", "memory"):
            getattr(self, name).load_state_dict(state[name])
        self.learned = int(state["learned"])


def _unit(X: Tensor) -> Tensor:
    return torch.nn.functional.normalize(X.flatten(1))
