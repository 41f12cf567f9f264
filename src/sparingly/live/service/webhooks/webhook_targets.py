"""Where webhooks may lead: to public addresses, and to those within the networks that the operator allows."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sparingly.live.agent.errors import AgentError, shortened

LONGEST_URL = 2000


class ForbiddenTargetError(AgentError):
    """An address to which no webhook may be sent."""


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """An address that was looked up and may be sent to: connecting to `address` meets no other than was checked."""

    url: str
    host: str
    address: str
    port: int


class TargetRule:
    """Lets webhooks lead to public addresses only, so that nobody reaches what stands behind the service by them.

    Parameters
    ----------
    networks
        Networks that are allowed besides, such as 127.0.0.0/8 or 10.0.0.0/8.

    Examples
    --------
    >>> TargetRule().resolve("http://127.0.0.1:8080/hook")
    Traceback (most recent call last):
    ...
    sparingly.live.service.webhooks.webhook_targets.ForbiddenTargetError: 127.0.0.1 is 127.0.0.1, which is not public: \
the service must be started with --webhook-network 127.0.0.1
    >>> TargetRule(["127.0.0.0/8"]).resolve("http://127.0.0.1:8080/hook").port
    8080
    """

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = [_network(one) for one in networks]

    def resolve(self, url: str) -> WebhookTarget:
        """Look the host up; every address that it has must be allowed."""
        host, port = checked_target(url)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise AgentError(
                f"the host {shortened(host)} cannot be found: {getattr(error, 'strerror', error)}"
            ) from None
        addresses = [str(one[4][0]) for one in found]
        for address in addresses:
            if not self._allows(address):
                raise ForbiddenTargetError(
                    f"{host} is {address}, which is not public: the service must be started with "
                    f"--webhook-network {address}"
                )
        return WebhookTarget(url, host, addresses[0], port)

    def _allows(self, address: str) -> bool:
        one = ipaddress.ip_address(address.partition("%")[0])
        one = getattr(one, "ipv4_mapped", None) or one
        allowed = any(one in network for network in self._networks if network.version == one.version)
        return allowed or (one.is_global and not one.is_multicast)


def checked_target(url: str) -> tuple[str, int]:
    """The host and port of an address that has the form of one.

    >>> checked_target("https://example.com/hook")
    ('example.com', 443)
    """
    if len(url) > LONGEST_URL or any(ord(letter) < 33 or ord(letter) > 126 for letter in url):
        raise AgentError(f"the webhook's address {shortened(url)} is no URL: http(s)://host/path, in plain ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AgentError(f"the webhook's address {shortened(url)} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AgentError(f"the webhook's address {shortened(url)} is no URL: it must begin with https:// or http://")
    if parts.username or parts.password:
        raise AgentError("the webhook's address has a password in it: messages are signed, so none is needed")
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise AgentError(f"--webhook-network {text!r} is neither an address nor a network: {error}") from None
