"""Words and character n-grams, hashed, weighted and projected: an encoding of texts that has nothing to learn."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.encoding_errors import MissingEncoderError

VERSION = "1"
"""Changes whenever the same text would get another vector."""
WIDTH = 512
_BUCKETS = 2**18
_COPIES = 8
"""Places of the vector that each bucket adds to, with a sign each: a sparse random projection."""


def hashed(texts: list[str]) -> NDArray[np.float32]:
    """Unit vectors `[texts, 512]`: log counts of words, pairs of words and 3 to 5 characters, projected.

    >>> vectors = hashed(["my card was stolen", "somebody stole my card", "when do you open?"])
    >>> bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2)
    True
    """
    words, characters = (_projected(vectorizer.transform(texts)) for vectorizer in _vectorizers())
    return _unit(_unit(words) + _unit(characters)).astype(np.float32)


def _projected(counts: Any) -> NDArray[np.float64]:
    """Each bucket adds its log count to a few places, with a sign each; by integer arithmetic, the same for good."""
    mixed = _mix(counts.indices.astype(np.uint64)[:, None] * np.uint64(_COPIES) + np.arange(_COPIES, dtype=np.uint64))
    place = (mixed % np.uint64(WIDTH)).astype(np.int64)
    place += (np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)) * WIDTH)[:, None]
    signed = np.where(mixed >> np.uint64(63), 1.0, -1.0) * np.log1p(counts.data)[:, None]
    sums = np.bincount(place.ravel(), weights=signed.ravel(), minlength=counts.shape[0] * WIDTH)
    return np.asarray(sums, dtype=np.float64).reshape(counts.shape[0], WIDTH)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.sqrt((rows**2).sum(1, keepdims=True))
    return rows / np.where(length > 0, length, 1)


@lru_cache(maxsize=1)
def _vectorizers() -> tuple[Any, Any]:
    try:
        from sklearn.feature_extraction.text import HashingVectorizer
    except ImportError:
        raise MissingEncoderError("encoder hashing needs scikit-learn: pip install 'sparingly[text]'") from None
    plain = {"n_features": _BUCKETS, "norm": None, "alternate_sign": False}
    words = HashingVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", **plain)
    return words, HashingVectorizer(analyzer="char_wb", ngram_range=(3, 5), **plain)


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the number."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
