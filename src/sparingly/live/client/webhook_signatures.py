"""Signatures of webhooks, as Standard Webhooks (1.0) defines them: how the service signs, and how a receiver checks.

>>> secret = "whsec_" + "c2VjcmV0" * 4
>>> headers = signed(secret, "msg_1", b'{"event": "answered"}', now=1000.0)
>>> verify(secret, headers, b'{"event": "answered"}', now=1010.0)
>>> verify(secret, headers, b'{"event": "forged"}', now=1010.0)
Traceback (most recent call last):
...
sparingly.live.client.webhook_signatures.SignatureError: the signature does not fit the body
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping

PREFIX = "whsec_"
TOLERANCE = 300.0
"""Seconds that a message's time may differ from the receiver's: an older one may be a copy sent by someone else."""


class SignatureError(ValueError):
    """A message that the holder of the secret did not sign, or that is too old."""


def new_secret() -> str:
    """A secret to sign with: 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed(secret: str, message_id: str, body: bytes, now: float) -> dict[str, str]:
    """The headers of a message: its id, when it was sent, and the signature of both and of the body."""
    stamp = str(int(now))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{_signature(secret, message_id, stamp, body)}",
    }


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, *, now: float | None = None, tolerance: float = TOLERANCE
) -> None:
    """Raise a `SignatureError` unless the message was signed with this secret, and lately.

    `headers` are those of the request, `body` its bytes as they came. A message may come more than once, always with
    the same `webhook-id`: a receiver keeps the ids that it has seen.
    """
    received = {name.lower(): value for name, value in headers.items()}
    message_id, stamp, given = (received.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not (message_id and given and stamp.isascii() and stamp.isdigit()):
        raise SignatureError("the message has no webhook-id, webhook-timestamp and webhook-signature")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise SignatureError(f"the message was signed at {stamp}, more than {tolerance:g} seconds from now")
    expected = _signature(secret, message_id, stamp, body)
    versions = (one.partition(",") for one in given.split())
    if not any(v == "v1" and hmac.compare_digest(sent.encode(), expected.encode()) for v, _, sent in versions):
        raise SignatureError("the signature does not fit the body")


def _signature(secret: str, message_id: str, stamp: str, body: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(f"a webhook's secret begins with {PREFIX}, and the rest is base64") from None
    content = f"{message_id}.{stamp}.".encode() + body
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
