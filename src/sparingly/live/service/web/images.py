"""Images are believed only for what they contain: read to the end, of a few known kinds and of bounded size."""

from __future__ import annotations

import base64
import binascii
import io
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.live.agent.errors import AgentError
from sparingly.live.agent.ticket_records import Payload

MEDIA = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp"}
MOST_PIXELS = 40_000_000


def checked_image(data: bytes) -> Payload:
    """An image as a payload, whatever its sender calls it."""
    _, kind = _read(data)
    return Payload("image", data, MEDIA[kind])


def decoded(text: str) -> bytes:
    """Bytes from base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AgentError("the image is not base64") from None


def image_features(data: bytes, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The pixels of an image, between 0 and 1, brought to the shape (channels, height, width) of an agent."""
    from PIL import Image

    if len(shape) != 3 or shape[0] not in (1, 3):
        raise AgentError(f"the agent's observations have shape {shape}, not that of an image: send the features too")
    image, _ = _read(data)
    pixels: Any = image.convert("L" if shape[0] == 1 else "RGB").resize((shape[2], shape[1]), Image.Resampling.BOX)
    values = np.asarray(pixels, dtype=np.float32) / np.float32(255)
    return np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1), dtype=np.float32)


def _read(data: bytes) -> tuple[Any, str]:
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=list(MEDIA))
            if math.prod(image.size) > MOST_PIXELS:
                raise AgentError(f"the image has {image.size[0]} x {image.size[1]} pixels: {MOST_PIXELS} are the most")
            kind = str(image.format)
            image.verify()
            image = Image.open(io.BytesIO(data), formats=list(MEDIA))
            image.load()
    except AgentError:
        raise
    except UnidentifiedImageError:
        raise AgentError(f"the image is none of {', '.join(MEDIA)}") from None
    except Exception as error:
        raise AgentError(f"the image is broken: {' '.join(str(error).split()) or type(error).__name__}") from None
    return image, kind
