"""Sending one message: signed, to the address that was checked, with an end in time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

import httpx

import sparingly
from sparingly.live.agent.errors import AgentError
from sparingly.live.client.webhook_signatures import signed
from sparingly.live.service.webhooks.webhook_targets import ForbiddenTargetError, TargetRule

SECONDS = 10.0
"""The longest that a receiver may take to answer."""
_LATER = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How sending went: it arrived, or why not; `is_refused` if this message was refused, and not all of them."""

    arrived: bool
    error: str = ""
    is_refused: bool = False


class WebhookSender:
    """Posts messages; redirects are not followed, and of a reply only its status is read.

    Parameters
    ----------
    rule
        Where messages may be sent to.
    timeout
        Seconds for one message.
    """

    def __init__(self, rule: TargetRule, timeout: float = SECONDS) -> None:
        self._rule, self._timeout = rule, timeout

    @cached_property
    def _http(self) -> httpx.Client:
        """Made with the first message: it reads all certificates of this machine."""
        return httpx.Client(timeout=self._timeout, trust_env=False, follow_redirects=False)

    def send(self, url: str, secret: str, message_id: str, body: str) -> Delivery:
        """Send one message; no error of it has the secret."""
        try:
            target = self._rule.resolve(url)
        except ForbiddenTargetError as error:
            return Delivery(False, str(error), is_refused=True)
        except AgentError as error:
            return Delivery(False, str(error))
        content = body.encode()
        parts = urlsplit(url)
        host = f"[{target.address}]" if ":" in target.address else target.address
        at = parts._replace(netloc=f"{host}:{target.port}").geturl()
        headers = {
            "host": parts.netloc,
            "content-type": "application/json",
            "user-agent": f"sparingly/{sparingly.__version__}",
            **signed(secret, message_id, content, time.time()),
        }
        try:
            with self._http.stream(
                "POST", at, content=content, headers=headers, extensions={"sni_hostname": target.host}
            ) as response:
                status = response.status_code
        except httpx.HTTPError as error:
            return Delivery(False, f"{type(error).__name__}: {error}"[:300])
        if 200 <= status < 300:
            return Delivery(True)
        return Delivery(False, f"it answered {status}", is_refused=300 <= status < 500 and status not in _LATER)

    def close(self) -> None:
        if "_http" in vars(self):
            self._http.close()
