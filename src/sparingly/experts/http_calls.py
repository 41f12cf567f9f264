"""Calls over HTTP that end in time, read no more than they should, and are made again only where that is safe."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

try:
    import httpx
    from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter
except ImportError:
    raise ImportError("experts behind HTTP need httpx and tenacity: pip install 'sparingly[service]'") from None

from sparingly.experts.machine_expert import REFUSED, TIMED_OUT, TOO_LONG, UNAVAILABLE

NOT_SERVED = (429, 500, 502, 503, 504)
"""Statuses of replies after which the same call may be served, and for which nobody charges."""
MOST_BYTES = 1_000_000
LONGEST_PAUSE = 30.0


class CallError(Exception):
    """A call that brought nothing: how it went, whether it may be made again, and whether it may have been paid."""

    def __init__(
        self, state: str, detail: str, *, again: bool = False, paid: bool = False, pause: float | None = None
    ) -> None:
        super().__init__(detail)
        self.state, self.detail, self.again, self.paid, self.pause = state, detail, again, paid, pause


class HTTPCaller:
    """Posts JSON to one address.

    Parameters
    ----------
    url
        The address.
    key
        A secret for the header `Authorization`; no error message has it.
    headers
        Further headers.
    timeout
        Seconds that one attempt may take in all.
    attempts
        How often a call is tried. A call that may have been served is tried again only if it is `repeatable`.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        attempts: int = 4,
        repeatable: bool = False,
        first_pause: float = 0.5,
    ) -> None:
        self.url = checked_url(url)
        if isinstance(timeout, bool) or not 0 < timeout < 1e6:
            raise ValueError(f"timeout is {timeout!r}: it must be a positive number of seconds")
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ValueError(f"attempts is {attempts!r}: it must be a whole number from 1 on")
        self._key, self._timeout, self._repeatable = key, timeout, repeatable
        sent = {**({"authorization": f"Bearer {key}"} if key else {}), **(headers or {})}
        # A proxy named by the environment stands between us and the world, not between us and ourselves.
        self._http = httpx.Client(headers=sent, timeout=timeout, trust_env=not _is_this_machine(self.url))
        self._retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, CallError) and error.again),
            wait=_Pause(first_pause),
            stop=stop_after_attempt(attempts),
            reraise=True,
        )

    def post(self, body: Mapping[str, Any], idempotency_key: str) -> Any:
        """The JSON that comes back, or a `CallError`."""
        headers = {"idempotency-key": idempotency_key} if idempotency_key else {}
        return self._retrying.copy()(self._attempt, body, headers)

    def close(self) -> None:
        self._http.close()

    def _attempt(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        deadline = time.monotonic() + self._timeout
        try:
            with self._http.stream("POST", self.url, json=body, headers=headers) as response:
                content = self._read(response, deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise CallError(UNAVAILABLE, self._words(error), again=True) from None
        except httpx.TimeoutException:
            raise self._timed_out() from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise CallError(UNAVAILABLE, self._words(error), again=self._repeatable, paid=True) from None
        if not response.is_success:
            raise self._failure(response, content)
        try:
            return httpx.Response(200, content=content).json()
        except (ValueError, RecursionError):
            words = self._hidden(f"it answered with something else than JSON: {_start(content)}")
            raise CallError(REFUSED, words, paid=True) from None

    def _read(self, response: httpx.Response, deadline: float) -> bytes:
        """The body, as long as it comes in time and is not too long."""
        content = b""
        for part in response.iter_bytes():  # as they come: parts of one size would be waited for
            content += part
            if len(content) > MOST_BYTES:
                words = self._hidden(f"more than {MOST_BYTES:,} bytes: {_start(content)}")
                raise CallError(TOO_LONG, words, paid=True)
            if time.monotonic() > deadline:
                raise self._timed_out()
        return content

    def _timed_out(self) -> CallError:
        return CallError(TIMED_OUT, f"no answer within {self._timeout:g} s", again=self._repeatable, paid=True)

    def _failure(self, response: httpx.Response, content: bytes) -> CallError:
        status = response.status_code
        words = self._hidden(f"status {status}: {_start(content)}")
        if status in NOT_SERVED:
            return CallError(UNAVAILABLE, words, again=True, pause=_seconds(response.headers.get("retry-after")))
        if status in (401, 403):
            words = f"the key is missing or wrong ({words})"
        return CallError(REFUSED, words)

    def _words(self, error: Exception) -> str:
        return self._hidden(f"{self.url} cannot be reached: {error or type(error).__name__}")

    def _hidden(self, words: str) -> str:
        return words.replace(self._key, "...") if self._key else words


class _Pause(wait_exponential_jitter):
    """Longer after each attempt, and as long as the service asks for."""

    def __init__(self, first: float) -> None:
        super().__init__(multiplier=first, max=LONGEST_PAUSE, jitter=first)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome is not None else None
        asked_for = error.pause if isinstance(error, CallError) and error.pause is not None else 0.0
        return min(LONGEST_PAUSE, max(asked_for, super().__call__(retry_state)))


def checked_url(url: str) -> str:
    """An address that can be posted to.

    >>> checked_url("localhost:8080")
    Traceback (most recent call last):
    ...
    ValueError: the address 'localhost:8080' must begin with http:// or https://, and name a host
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        works = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port if parts is not None else None
    except ValueError:
        works = False
    if not works:
        raise ValueError(f"the address {url!r} must begin with http:// or https://, and name a host")
    return url


def read_key(name: str, variable: str | None, file: str | os.PathLike[str] | None) -> str | None:
    """An expert's key, from an environment variable or the only line of a file."""
    if variable is not None and file is not None:
        raise ValueError(f"the key of {name} is in a variable and in a file: choose one")
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ValueError(f"the key of {name} is missing: the variable {variable} is not set")
    elif file is not None:
        try:
            key = Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise ValueError(f"the key of {name} cannot be read from {os.fspath(file)}: {why}") from None
        if not key:
            raise ValueError(f"the key of {name} is missing: {os.fspath(file)} is empty")
    else:
        return None
    if not key.isascii() or not key.isprintable() or len(key.split()) != 1:
        raise ValueError(f"the key of {name} is not one word of printable ASCII characters")
    return key


def _start(content: bytes) -> str:
    return content[:300].decode(errors="replace")


def _seconds(header: str | None) -> float | None:
    """How long a service asks to wait; a date is not understood."""
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
