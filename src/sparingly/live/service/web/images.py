"""Images are believed only for what they contain: read to the end, of a few known kinds and of bounded size."""

from __future__ import annotations

import base64
import binascii

from sparingly.encoders import EncodingError
from sparingly.encoders.pictures import MEDIA, read_picture
from sparingly.live.agent.errors import AgentError
from sparingly.live.tickets.ticket_records import Payload


def checked_image(data: bytes) -> Payload:
    """An image as a payload, whatever its sender calls it."""
    try:
        image = read_picture(data)
    except EncodingError as error:
        raise AgentError(str(error)) from None
    return Payload("image", data, MEDIA[str(image.format)])


def decoded(text: str) -> bytes:
    """Bytes from base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AgentError("the image is not base64") from None
