"""Closes connections that do not finish what they began to send: half a header (slowloris), or one without end."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEADER_BYTES = 256 * 1024
"""Bytes of a request line and its headers that are waited for."""


class TimedProtocol(HttpToolsProtocol):
    """One connection, with a bound on how long a client may take to send a request's headers, and on their size.

    The time holds for what comes after a response that was sent early, too, such as the body of a refused request.
    While a request is served it does not count: its body is bounded by the middleware.
    """

    header_seconds: ClassVar[float] = 10.0
    _timer: asyncio.TimerHandle | None = None
    _is_receiving = _awaits_header = True
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._is_receiving = False
        self._watch()

    def data_received(self, data: bytes) -> None:
        self._header_bytes += len(data)
        super().data_received(data)
        if self._awaits_header and self._header_bytes > MOST_HEADER_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The headers have more than {MOST_HEADER_BYTES} bytes.")
        self._watch()

    def on_message_begin(self) -> None:
        self._is_receiving = self._awaits_header = True
        self._header_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._awaits_header = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_receiving = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Run the timer exactly while the client owes something and nothing is being served."""
        is_serving = self.cycle is not None and not self.cycle.response_complete
        if self._is_receiving and not is_serving:
            if self._timer is None:
                self._timer = self.loop.call_later(self.header_seconds, self.transport.close)
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None


def timed_protocol(seconds: float) -> type[TimedProtocol]:
    """A `TimedProtocol` with so many seconds for the headers."""
    return type("TimedProtocol", (TimedProtocol,), {"header_seconds": seconds})
