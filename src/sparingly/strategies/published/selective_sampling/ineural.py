"""INeural: one network values x in the block of each class, and a small lead of the best class asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparingly.games import Game
from sparingly.learning.block_networks import BlockNet
from sparingly.learning.determinism import pad_block, row_independent_product
from sparingly.learning.label_memory import Memory
from sparingly.learning.networks import Network
from sparingly.learning.schedules import UpdateSchedule
from sparingly.learning.training import Training
from sparingly.strategies.families.classifier_strategy import outcome_distribution
from sparingly.strategies.families.gap_strategy import GapStrategy
from sparingly.strategies.families.network_options import (
    BEGINNINGS,
    LEARNS,
    NetworkOptions,
    check_choice,
    preset_options,
)
from sparingly.strategies.strategy import Shape

PRESETS: dict[str, dict[str, Any]] = {
    "published": {"discount": True, "residual": "both"},
    "released": {"discount": False, "residual": "f1"},
}
"""The publication and its authors' code; the code behind the tables of the NeuralCBP paper."""


class BlockEENet:
    """f1 and f2 on block-one-hot inputs, the labels they learn from, and how they are trained.

    f1 values x in the block of each class, f2 corrects f1. f2's input is the gradient of f1 with respect to its own
    input beside that input, normalised. The input is zero outside the block of the class; the gradient is not, since a
    weight moves the output whether its input is zero or not. It has K times the length of x, and only what is kept of a
    label holds it; `own` leaves out all but the block of the class.

    Between two updates the products of the two first layers stand still, so a block of observations needs no gradient
    of the inputs' size: f2's hidden layer and the gradient's length come from `[width, width]` matrices.
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        width: int,
        *,
        training: Training,
        own: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.f1 = BlockNet(n_classes, n_features, width).to(device)
            dense = 0 if own else n_classes * n_features
            self.f2 = BlockNet(n_classes, (2 if own else 1) * n_features, width, dense).to(device)
        self.n_features, self.device, self.training, self.own = n_features, device, training, own
        self.memory = Memory(device)
        self._products: dict[str, Tensor] | None = None

    def estimates(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """f1 and f2 of x in the block of each class, `[rows, class]`, and which of f1's hidden units are active there.

        A row, `[class, width]` in the third, does not depend on the rows beside it.
        """
        rows = pad_block(X.to(self.device).flatten(1))
        first = self._first_layers()
        hidden = torch.matmul(rows, first["exploit"]) + self.f1.bias
        outputs = _head(self.f1, hidden)
        active = hidden > 0
        back = active * self.f1.head.weight[0]
        length = ((back @ first["gram"]) * back).sum(2) + rows.square().sum(1)
        unscaled = back @ first["cross"] + torch.matmul(rows, first["explore"])
        second = _head(self.f2, unscaled / length.sqrt().clamp_min(1e-12)[..., None] + self.f2.bias)
        return outputs.T[: len(X)], second.T[: len(X)], active.transpose(0, 1)[: len(X)]

    def exploit(self, X: Tensor) -> Tensor:
        """f1 alone, `[rows, class]`."""
        rows = pad_block(X.to(self.device).flatten(1))
        return _head(self.f1, torch.matmul(rows, self._first_layers()["exploit"]) + self.f1.bias).T[: len(X)]

    def _first_layers(self) -> dict[str, Tensor]:
        """f1's weights, f2's weights for x, f1's times themselves and times f2's for the gradient."""
        if self._products is None:
            weight = torch.stack(list(self.f1.blocks))
            for_x = torch.stack(list(self.f2.blocks)).transpose(1, 2)
            if self.own:
                for_gradient, for_x = torch.split(for_x, self.n_features, 1)
                gram, cross = torch.bmm(weight, weight.transpose(1, 2)), torch.bmm(weight, for_gradient)
            else:
                wide = torch.cat(list(self.f1.blocks), 1)
                gram, cross = wide @ wide.T, wide @ self.f2.dense.T
            self._products = {"exploit": weight.transpose(1, 2), "explore": for_x, "gram": gram, "cross": cross}
        return self._products

    def remember(self, x: Tensor, k: int, target: float, residual: float, active: Tensor) -> None:
        """Keep that f1 of x in block k should be `target` and f2 `residual`; `active`: of f1's hidden units there."""
        flat = x.to(self.device).flatten()
        blocks = [self.f1.blocks[k]] if self.own else self.f1.blocks
        back = active * self.f1.head.weight[0]
        gradient = torch.cat([back @ block for block in blocks])
        length = (gradient @ gradient + flat @ flat).sqrt().clamp_min(1e-12)
        block = flat.new_tensor([k])
        self.memory.append(
            x=torch.cat([flat, block]),
            both=torch.cat([gradient / length, flat / length, block]),
            target=flat.new_tensor([target]),
            residual=flat.new_tensor([residual]),
        )

    def train(self, rng: np.random.Generator) -> None:
        """One update of both networks from everything kept; the divisor of the early stop is the number of rows."""
        if len(self.memory):
            rows = len(self.memory)
            self.training.fit(self.f1, self.memory["x"], self.memory["target"], rng, divisor=rows)
            self.training.fit(self.f2, self.memory["both"], self.memory["residual"], rng, divisor=rows)
        self._products = None

    def state_dict(self) -> dict[str, Any]:
        return {"f1": self.f1.state_dict(), "f2": self.f2.state_dict(), "memory": self.memory.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.f1.load_state_dict(state["f1"])
        self.f2.load_state_dict(state["f2"])
        self.memory.load_state_dict(state["memory"])
        self._products = None


def _head(network: BlockNet, hidden: Tensor) -> Tensor:
    """The output `[class, rows]` for a hidden layer `[class, rows, width]` before it is rectified."""
    product = row_independent_product(hidden.relu().flatten(0, 1), network.head.weight.T)
    return (product + network.head.bias).view(hidden.shape[:2])


class INeural(GapStrategy):
    """Values class k by u_k = f1 + f2 of x in the k-th of K blocks of zeros, and asks when the two best are too close.

    From the publication and its authors' code: the block inputs, f2 on the normalised gradient of f1 with respect to
    its input beside that input, u_k = f1 + f2 / t, a constant threshold 0.1 gamma, training on the predicted and the
    true class only. Our reading: the theory's threshold 2 gamma beta_t, with beta_t about t^(-1/2), is left out, since
    the authors do not use it; there is no budget; schedule and width are those of NeuralCBP. Images are taken flat.

    Parameters
    ----------
    preset
        "published" or "released" (the code behind the tables of the NeuralCBP paper); a keyword that is given wins.
    gamma
        It asks when the two best values are within 0.1 gamma: 6 is the authors' choice, and 3 explores less.
    discount
        Whether f2 is divided by the round.
    residual
        What f2 learns: the target less "f1", or less "both" networks' outputs as they were when it asked.
    gradient
        What f2 sees of f1's gradient: the "whole" of it, K times as long as x, or only the part in x's "own" block,
        which is faster and asks less.
    learns
        What an answer teaches: the "announced_and_true" classes, or the "announced" class only.
    start, schedule
        Which action comes first, "each" announcement or the question ("question_first"), and when it learns: by
        default the released code's for "released", and each announcement first and the paper's schedule otherwise.
    network, depth
        "mlp" and 2: it has no other networks.
    width, epochs, batch, learning_rate, stop, wait, device
        Of the networks and their updates, as every neural strategy has them (see `NetworkOptions`).

    >>> from sparingly import label_efficient
    >>> strategy = INeural(label_efficient(2), 3)
    >>> x, game = [1.0, 0.0, 0.5], strategy.game
    >>> rounds = [strategy.decide(strategy.assess([x]), 0) for _ in range(4)]
    >>> [decision.action for decision in rounds]
    [2, 0, 1, 2]
    >>> strategy.learn(x, 2, game.feedback[2][1 - rounds[3].prediction])
    >>> len(strategy.network.memory)
    2

    References
    ----------
    Ban, Zhang, Tong, Banerjee, He (2022). Improved algorithms for neural active learning. NeurIPS.
    """

    name = "ineural"
    summary = "asks when two networks on class-wise inputs value the two best classes alike"
    reference = "Ban, Zhang, Tong, Banerjee, He 2022"

    def __init__(
        self,
        game: Game,
        n_features: Shape,
        *,
        preset: str = "released",
        gamma: float = 6.0,
        discount: bool | None = None,
        residual: str | None = None,
        gradient: str = "whole",
        learns: str = "announced_and_true",
        start: str | None = None,
        network: Network = "mlp",
        width: int = 100,
        depth: int = 2,
        epochs: int = 40,
        batch: int = 64,
        learning_rate: float = 1e-3,
        schedule: str | UpdateSchedule | None = None,
        stop: float | None = 1e-3,
        wait: int = 2,
        device: str = "cpu",
        seed: int = 0,
    ) -> None:
        if (network, depth) != ("mlp", 2):
            raise ValueError(f"network is {network!r} of depth {depth}: ineural has MLPs of depth 2")
        chosen = preset_options(PRESETS, preset, discount=discount, residual=residual)
        beginning = preset_options(BEGINNINGS, preset, start=start, schedule=schedule)
        networks = NetworkOptions(
            width=width,
            epochs=epochs,
            batch=batch,
            learning_rate=learning_rate,
            schedule=beginning["schedule"],
            stop=stop,
            wait=wait,
            device=device,
        )
        options = {"gamma": gamma, "gradient": gradient, **chosen}
        super().__init__(game, n_features, options=options, networks=networks, start=beginning["start"], seed=seed)
        check_choice(("f1", "both"), residual=self.options["residual"])
        check_choice(("whole", "own"), gradient=self.options["gradient"])
        check_choice(LEARNS, learns=learns)
        self.learns = learns
        self.network: BlockEENet = BlockEENet(
            game.n_outcomes,
            self.n_features,
            width,
            training=networks.training(),
            own=self.options["gradient"] == "own",
            seed=seed,
            device=device,
        )

    def _estimates(self, X: Tensor) -> dict[str, Tensor]:
        return dict(zip(("f1", "f2", "active"), self.network.estimates(X), strict=True))

    def _scores(self, X: Tensor) -> Tensor:
        return self.network.exploit(X)

    def _weight(self) -> float:
        return 1 / (self.clock + 1) if self.options["discount"] else 1.0

    def _threshold(self) -> float:
        return 0.1 * float(self.options["gamma"])

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        then = self._estimated(x)
        target = outcome_distribution(self.game, action, symbol)
        u = then["f1"] + self._weight() * then["f2"]
        for k in range(len(target)):
            if k == int(u.argmax()) or (target[k] > 0 and self.learns == "announced_and_true"):
                known = then["f1"][k] + (then["f2"][k] if self.options["residual"] == "both" else 0)
                self.network.remember(x, k, float(target[k]), float(target[k] - known), then["active"][k])
