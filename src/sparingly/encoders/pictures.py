"""Pictures as arrays of one size: a PIL image, the bytes of a file, or its path.

The rule: turned as its camera says, transparent parts on white, in colour (or grey, for a shape of one channel),
brought to the height and width of the shape by averaging (box filter), and every value divided by 255.
"""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.encoding_errors import EncodingError, briefly

Shape3 = tuple[int, int, int]
SIDE = 32
"""Of pictures whose size nobody states."""
LEAST, MOST_PIXELS = 2, 40_000_000
"""Pictures are at least so high and wide, and have at most so many pixels."""
MEDIA = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp"}
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_STARTS = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"BM", b"RIFF")


def is_picture(value: Any) -> bool:
    """Whether a value is a picture: a PIL image, bytes that begin as one, a path, or a string that names a file.

    >>> is_picture(b"\\x89PNG...."), is_picture(b"a text"), is_picture(Path("cat.png")), is_picture("cat.png")
    (True, False, True, False)
    """
    if isinstance(value, bytes | bytearray):
        return bytes(value[:4]).startswith(_STARTS)
    if isinstance(value, Path):
        return True
    if isinstance(value, str):
        return names_picture(value) and Path(value).is_file()
    return hasattr(value, "convert") and hasattr(value, "getbands")


def names_picture(value: Any) -> bool:
    """Whether a string could be the path of a picture."""
    return isinstance(value, str) and len(value) < 1000 and value.strip().lower().endswith(SUFFIXES)


def read_picture(given: Any, root: Path | None = None) -> Any:
    """A picture as a PIL image, read to its end; a path that is not absolute is one within `root`.

    >>> from PIL import Image
    >>> read_picture(Image.new("RGB", (1, 1)))
    Traceback (most recent call last):
    ...
    sparingly.encoders.encoding_errors.EncodingError: the image has 1 x 1 pixels: 2 x 2 are the least
    """
    if isinstance(given, str | Path):
        path = Path(given) if root is None else root / given
        try:
            return read_picture(path.read_bytes())
        except OSError as error:
            raise EncodingError(f"the image {path} cannot be read: {error.strerror or error}") from None
        except EncodingError as error:
            raise EncodingError(f"{path}: {error}") from None
    if isinstance(given, bytes | bytearray):
        return _decoded(bytes(given))
    if hasattr(given, "convert") and hasattr(given, "getbands"):
        _check_size(given.size)
        return given
    raise EncodingError(f"a picture is {briefly(given)}: give a PIL image, a path or the bytes of a file")


def picture_bytes(given: Any) -> bytes:
    """What a person is shown: the file as it is, or a PNG of a PIL image."""
    if isinstance(given, bytes | bytearray):
        return bytes(given)
    if isinstance(given, str | Path):
        return Path(given).read_bytes()
    out = io.BytesIO()
    given.save(out, "PNG")
    return out.getvalue()


def shape_of(picture: Any, side: int = SIDE) -> Shape3:
    """The shape that pictures like this one get if nobody states one: one channel if it is grey."""
    return (1 if picture.mode in ("1", "L", "I", "I;16", "F") else 3, side, side)


def pixels(picture: Any, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A picture as `[channel, height, width]`, between 0 and 1, by the rule.

    >>> from PIL import Image
    >>> pixels(Image.new("L", (40, 20), 51), (1, 2, 2)).tolist()
    [[[0.20000000298023224, 0.20000000298023224], [0.20000000298023224, 0.20000000298023224]]]
    """
    from PIL import Image, ImageOps

    if len(shape) != 3 or shape[0] not in (1, 3):
        raise EncodingError(f"an observation has shape {shape}, not that of an image such as (3, {SIDE}, {SIDE})")
    upright = ImageOps.exif_transpose(picture)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright)
    if upright.mode in ("I", "I;16", "F"):
        upright = Image.fromarray((np.asarray(upright, dtype=np.float64) / 257).clip(0, 255).astype(np.uint8))
    fitted: Any = upright.convert("L" if shape[0] == 1 else "RGB")
    fitted = fitted.resize((shape[2], shape[1]), Image.Resampling.BOX)
    values = np.asarray(fitted, dtype=np.float32) / np.float32(255)
    return np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1), dtype=np.float32)


def _decoded(data: bytes) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=list(MEDIA))
            _check_size(image.size)
            image.verify()
            image = Image.open(io.BytesIO(data), formats=list(MEDIA))
            image.load()
    except EncodingError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise EncodingError(f"the image has more than {MOST_PIXELS} pixels") from None
    except UnidentifiedImageError:
        raise EncodingError(f"the image is none of {', '.join(MEDIA)}") from None
    except ImportError:
        raise
    except Exception as error:
        raise EncodingError(f"the image is broken: {' '.join(str(error).split()) or type(error).__name__}") from None
    return image


def _check_size(size: tuple[int, int]) -> None:
    if min(size) < LEAST:
        raise EncodingError(f"the image has {size[0]} x {size[1]} pixels: {LEAST} x {LEAST} are the least")
    if math.prod(size) > MOST_PIXELS:
        raise EncodingError(f"the image has {size[0]} x {size[1]} pixels: {MOST_PIXELS} are the most")
