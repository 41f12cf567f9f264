"""INeural: one network values x in the block of each class, and a small lead of the best class asks."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from sparingly.games import Game
from sparingly.strategies.families.classifier_strategy import told
from sparingly.strategies.families.lead_strategy import GapStrategy
from sparingly.strategies.families.network_options import one_of
from sparingly.strategies.published.selective_sampling.block_eenet import BlockEENet
from sparingly.strategies.strategy import Shape


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
    settings
        `width`, `epochs`, `batch`, `learning_rate`, `schedule`, `stop`, `device`.

    >>> from sparingly import label_efficient
    >>> strategy = INeural(label_efficient(2), 3)
    >>> x, game = [1.0, 0.0, 0.5], strategy.game
    >>> rounds = [strategy.decide(strategy.assess([x]), 0) for _ in range(4)]
    >>> [decision.action for decision in rounds]
    [0, 1, 2, 2]
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

    presets = {  # noqa: RUF012
        "published": {"gamma": 6.0, "discount": True, "residual": "both", "gradient": "whole"},
        "released": {"gamma": 6.0, "discount": False, "residual": "f1", "gradient": "whole"},
    }

    def __init__(
        self, game: Game, n_features: Shape, *, preset: str = "released", seed: int = 0, **options: Any
    ) -> None:
        super().__init__(game, n_features, preset=preset, seed=seed, **options)
        one_of(("f1", "both"), residual=self.options["residual"])
        one_of(("whole", "own"), gradient=self.options["gradient"])
        settings = self.settings
        if (settings.network, settings.depth) != ("mlp", 2):
            raise ValueError(f"network is {settings.network!r} of depth {settings.depth}: ineural has MLPs of depth 2")
        self.network: BlockEENet = BlockEENet(
            game.n_outcomes,
            self.n_features,
            settings.width,
            training=settings.training(),
            own=self.options["gradient"] == "own",
            seed=seed,
            device=settings.device,
        )

    def _estimates(self, X: Tensor) -> dict[str, Tensor]:
        return dict(zip(("f1", "f2", "active"), self.network.estimates(X), strict=True))

    def _weight(self) -> float:
        return 1 / (self.clock + 1) if self.options["discount"] else 1.0

    def _threshold(self) -> float:
        return 0.1 * float(self.options["gamma"])

    def _take(self, x: Tensor, action: int, symbol: int) -> None:
        then = self._estimated(x)
        target = told(self.game, action, symbol)
        u = then["f1"] + self._weight() * then["f2"]
        for k in range(len(target)):
            if k == int(u.argmax()) or target[k] > 0:
                known = then["f1"][k] + (then["f2"][k] if self.options["residual"] == "both" else 0)
                self.network.remember(x, k, float(target[k]), float(target[k] - known), then["active"][k])
