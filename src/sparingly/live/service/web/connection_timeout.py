"""Closes connections that do not finish what they began to send, such as half a header (slowloris)."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def timed_protocol(seconds: float) -> type[HttpToolsProtocol]:
    """uvicorn's protocol, with a bound on how long a client may take to send a request's headers.

    The same bound holds for what comes after a response that was sent early, such as the body of a refused request.
    While a request is served it does not count: its body is bounded by the middleware.
    """

    class TimedProtocol(HttpToolsProtocol):
        """One connection."""

        _timer: asyncio.TimerHandle | None = None
        _is_receiving = True

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._is_receiving = False
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_message_begin(self) -> None:
            self._is_receiving = True
            super().on_message_begin()

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
                    self._timer = self.loop.call_later(seconds, self.transport.close)
            elif self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return TimedProtocol
