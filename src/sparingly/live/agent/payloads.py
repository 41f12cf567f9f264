"""What a person looks at to answer: an image, a text, or a table of fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sparingly.live.agent.errors import AgentError, checked_text
from sparingly.live.agent.ticket_records import Payload


def checked_payload(given: Any) -> Payload | None:
    """What the person will look at: bytes are an image, a string is text, a mapping is a table of fields.

    >>> checked_payload({"height": 3}).kind, checked_payload(b"\\x89PNG....").media
    ('fields', 'image/png')
    """
    if given is None or isinstance(given, Payload):
        return given
    if isinstance(given, bytes | bytearray):
        return Payload("image", bytes(given), _media(bytes(given)))
    if isinstance(given, str):
        return Payload("text", checked_text("the payload's text", given), "text/plain")
    if isinstance(given, Mapping):
        try:
            checked_text("the payload's fields", json.dumps(dict(given), ensure_ascii=False))
            return Payload("fields", json.loads(json.dumps(dict(given))), "application/json")
        except AgentError:
            raise
        except (TypeError, ValueError, RecursionError) as error:
            raise AgentError(f"the payload's fields must be plain values: {error}") from None
    raise AgentError(f"a payload is an image's bytes, a text or a table of fields, not {type(given).__name__}")


def read_payload(row: Any) -> Payload:
    """A payload as it was given."""
    content: Any = row.content
    if row.kind != "image":
        content = bytes(row.content).decode()
    return Payload(row.kind, json.loads(content) if row.kind == "fields" else content, row.media)


def payload_row(seq: int, payload: Payload) -> dict[str, Any]:
    """A payload as a row of the table."""
    content = payload.content
    if payload.kind == "fields":
        content = json.dumps(content)
    return {
        "ticket": seq,
        "kind": payload.kind,
        "media": payload.media,
        "content": content.encode() if isinstance(content, str) else content,
    }


def _media(data: bytes) -> str:
    starts = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"BM": "image/bmp"}
    for start, media in starts.items():
        if data.startswith(start):
            return media
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else "application/octet-stream"
