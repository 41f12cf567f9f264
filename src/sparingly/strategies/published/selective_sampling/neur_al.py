"""NeurAL: upper confidence bounds from the gradients of one network, frozen or trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning import schedules
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.label_memory import Memory
from sparingly.strategies.families.classifier_strategy import full_expert, told
from sparingly.strategies.families.network_options import one_of, settled
from sparingly.strategies.published.selective_sampling.tangent_features import Tangent
from sparingly.strategies.strategy import Assessment, Shape, Strategy, Why


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
        The constant factor; delta and S in the text's factor.
    settings
        `width`, `epochs`, `batch`, `learning_rate`, `schedule`, `stop`.

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
    plays = "label-efficient games"
    stops_asking = True
    beats_random = False

    def __init__(self, game: Game, n_features: Shape, *, form: str = "trained", seed: int = 0, **options: Any) -> None:
        super().__init__(game, n_features, seed=seed)
        one_of(("frozen", "trained"), form=form)
        self.expert, self.form = full_expert(game, self.name), form
        preset = options.pop("preset", "released")
        factors = {"gamma": 0.5 if form == "frozen" else 0.1, "delta": 0.1, "norm": 1.0}
        self.options, self.settings = settled({"published": factors, "released": factors}, preset, options)
        self.options["preset"] = preset
        self.schedule = schedules.update_schedule(self.settings.schedule)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = BlockNet(game.n_outcomes, self.n_features, self.settings.width)
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
        row, target = _unit(x[None])[0], told(self.game, action, symbol)
        announced = int(self._assess(x[None])["bound"][0].argmax())
        for k in [announced, *(k for k in range(len(target)) if target[k] > 0 and k != announced)]:
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
            self.settings.training().fit(self.network, x, target, self.rng, divisor=len(x))

    def _due_in(self) -> int:
        return max(self.schedule.next(self.clock), self.settings.first_update(self.game)) - self.clock

    def _scores(self, X: Tensor) -> Tensor:
        return self.tangent(_unit(X))["output" if self.form == "trained" else "linear"]

    def _identity(self) -> dict[str, Any]:
        return {"options": dict(self.options), "form": self.form, "width": self.settings.width}

    def _state(self) -> dict[str, Any]:
        parts = {"network": self.network.state_dict(), "tangent": self.tangent.state_dict()}
        return {**parts, "memory": self.memory.state_dict(), "learned": self.learned}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for name in ("network", "tangent", "memory"):
            getattr(self, name).load_state_dict(state[name])
        self.learned = int(state["learned"])


def _unit(X: Tensor) -> Tensor:
    return torch.nn.functional.normalize(X.flatten(1))
