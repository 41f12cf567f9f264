"""RandCBPside: CBPside whose widths are drawn anew for every action in every round."""

from __future__ import annotations

from sparingly.games import Game
from sparingly.strategies.families.confidence_bounds import Floats
from sparingly.strategies.families.random_widths import Draws
from sparingly.strategies.families.side_information_strategy import SideInformationStrategy


class RandCBPside(SideInformationStrategy):
    """CBPside with randomised confidence bounds: the first with a guarantee on hard games with side information.

    Parameters
    ----------
    sigma, points, eps
        Of the draws: the root U is drawn with probability `eps`, one of `points` - 1 smaller values otherwise.
        With `eps=1` it is CBPside, move for move.
    link, penalty, alpha, reach, ties
        Those of `SideInformationStrategy`.

    >>> from sparingly import label_efficient
    >>> RandCBPside(label_efficient(2), n_features=3, link="logistic").draws
    Draws(sigma=5.0, points=10, eps=1e-06)

    References
    ----------
    Heuillet, Ahmad, Durand (2024). Randomized confidence bounds for stochastic partial monitoring. ICML.
    """

    name = "rand_cbp_side"
    summary = "CBPside with widths drawn at random"
    reference = "Heuillet, Ahmad, Durand 2024 (randomized)"

    def __init__(
        self,
        game: Game,
        n_features: int | tuple[int, ...],
        *,
        sigma: float = 5.0,
        points: int = 10,
        eps: float = 1e-6,
        link: str = "linear",
        penalty: float = 0.05,
        alpha: float = 1.01,
        reach: float = 2.0,
        ties: str = "cheapest",
        seed: int = 0,
    ) -> None:
        super().__init__(game, n_features, link=link, penalty=penalty, alpha=alpha, reach=reach, ties=ties, seed=seed)
        self.draws = Draws(sigma, points, eps)

    def _factor(self, root: float) -> Floats | None:
        return self.draws.shares(root, len(self.bounds.informative), self.rng)
