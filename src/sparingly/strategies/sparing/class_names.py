"""What classes are called, as a classifier that needs no label."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from sparingly.encoders import TextEncoder, text_encoder
from sparingly.games import Game
from sparingly.learning.determinism import row_independent_product
from sparingly.learning.tensor_cache import TensorCache
from sparingly.strategies.sparing.models.ensemble import temperature

CONTRAST = 11.0
"""What a cosine is multiplied by to be a logit, before it is calibrated."""
MOST_ROWS = 300
"""Names of more classes than this are no labels of the kernel: it would take longer than all the rest."""


def spoken(name: str) -> str:
    """A class's name as a person would say it.

    >>> [spoken(name) for name in ("card_arrival", "lostCard", "air-travel/visa")]
    ['card arrival', 'lost Card', 'air travel visa']
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.sub(r"[_/-]+", " ", apart).strip() or name


def encoded_names(names: Sequence[str], encoder: TextEncoder, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """What classes are called, encoded as observations are that are one text each.

    Where a text may be missing an observation has one number more, which says so: no name is missing.
    """
    vectors = encoder([spoken(name) for name in names])
    return np.pad(vectors, ((0, 0), (0, 1))) if shape == (encoder.width + 1,) else vectors


def class_vectors(game: Game, shape: tuple[int, ...], given: ArrayLike | str | None) -> Tensor | None:
    """What the classes of a game are called, `[class, feature]`: as given, or by the text encoder that is named."""
    if given is None:
        return None
    if isinstance(given, str):
        given = encoded_names(game.outcomes, text_encoder(given), shape)
    vectors, wanted = torch.as_tensor(np.array(given, dtype=np.float32)), (game.n_outcomes, *shape)
    if vectors.shape != wanted or not vectors.isfinite().all():
        raise ValueError(f"class_vectors have the shape {tuple(vectors.shape)}: give finite numbers of shape {wanted}")
    return vectors


class ClassNames:
    """Probabilities by how near an observation is to each class's name, both encoded alike.

    Names are shorter than what is observed, so they lie elsewhere: both are centred, each by its own mean. How much a
    name says is learned: the temperature and the share beside other models are those that make the labels likely, and
    names that say nothing end with a share near 0.

    Parameters
    ----------
    vectors
        `[class, feature]`, of length 1 as observations are.

    Examples
    --------
    >>> names = ClassNames(torch.eye(2))
    >>> rows = torch.tensor([[0.9, -0.1], [-0.2, 0.7]])
    >>> names.calibrate(rows, torch.tensor([0, 1])).argmax(1).tolist()
    [0, 1]
    """

    def __init__(self, vectors: Tensor) -> None:
        self.vectors = vectors
        self.share = 0.0
        self._temperature = 1.0
        self._directions: TensorCache[Tensor] = TensorCache()

    def moved(self, mean: Tensor) -> Tensor | None:
        """The names as observations around another mean, `[class, feature]`; None where they are too many."""
        return None if len(self.vectors) > MOST_ROWS else self.vectors - self.vectors.mean(0) + mean

    def calibrate(self, rows: Tensor, y: Tensor) -> Tensor:
        """Find the temperature by labels, of centred rows; the probabilities of these."""
        self._temperature = 1.0
        self._temperature = temperature(self._logits(rows), y)
        return self(rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """Probabilities `[block, class]` of rows that are centred and padded."""
        return self._logits(rows).softmax(1)

    def _logits(self, rows: Tensor) -> Tensor:
        toward = self._directions.of(self.vectors, lambda _: self.directions.T.contiguous())
        return row_independent_product(nn.functional.normalize(rows, dim=1), toward) * self.contrast

    @property
    def directions(self) -> Tensor:
        """Of the names from their mean, `[class, feature]`."""
        return nn.functional.normalize(self.vectors - self.vectors.mean(0), dim=1)

    @property
    def contrast(self) -> float:
        """What a cosine is multiplied by to be a logit."""
        return CONTRAST / self._temperature

    def add_class(self, vector: Tensor | None) -> None:
        """Take on one more class, the last; one whose name is not known is like none of the others."""
        new = self.vectors.mean(0) if vector is None else vector
        self.vectors = torch.cat([self.vectors, new[None]])

    def state_dict(self) -> dict[str, Any]:
        return {"vectors": self.vectors, "temperature": self._temperature, "share": self.share}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.vectors = state["vectors"]
        self._temperature, self.share = float(state["temperature"]), float(state["share"])
