"""A program that hears webhooks: it keeps what comes, and answers as it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sparingly.live.client.webhook_signatures import verify


class Receiver:
    """What came, each message with its headers; `status` is what it answers, or a function of the body."""

    def __init__(self, port: int = 0) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.status: Any = 200
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = outer.status(json.loads(body)) if callable(outer.status) else outer.status
                outer.heard.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(status)
                self.send_header("location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def bodies(self, secret: str | None = None) -> list[dict[str, Any]]:
        """What came, once each; with a secret every signature is checked."""
        seen = {}
        for headers, body in list(self.heard):
            if secret is not None:
                verify(secret, headers, body)
            seen[headers["webhook-id"]] = json.loads(body)
        return list(seen.values())


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver(port)
    try:
        yield receiver
    finally:
        receiver.close()


def until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
