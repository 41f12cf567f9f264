"""A small HTTP server that answers like a language model, or misbehaves as it is told to."""

from __future__ import annotations

import json
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Respond = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """One request; the endpoint says what is done with it."""

    server: Endpoint

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length))
        with self.server.counting:
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
        with suppress(BrokenPipeError, ConnectionResetError):
            self.server.respond(self, body)

    def send(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def say(self, text: Any, **more: Any) -> None:
        """Answer as a language model does."""
        self.send(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], **more}).encode())

    def log_message(self, *_: Any) -> None:
        pass


class Endpoint(ThreadingHTTPServer):
    """Counts what it is asked; when it is closed, everything that was sent to it has been counted.

    Who gave up waiting has sent its call all the same, and on a busy machine that may be before it is taken in.
    """

    daemon_threads = False  # or nobody would wait for them
    request_queue_size = 128
    timeout = 0.0

    def __init__(self, respond: Respond) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.respond = respond
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.counting = threading.Lock()
        self.deserted = threading.Event()

    def server_close(self) -> None:
        """To be called when nobody asks any more: what is still in the queue is taken in, and what began is ended."""
        self.deserted.set()
        while select.select([self], [], [], 0)[0]:
            self.handle_request()
        super().server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def endpoint(respond: Respond) -> Iterator[Endpoint]:
    server = Endpoint(respond)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def saying(text: Any, **more: Any) -> Respond:
    return lambda handler, body: handler.say(text, **more)


def too_late(handler: Handler, body: dict[str, Any]) -> None:
    """Answers when nobody waits any more."""
    handler.server.deserted.wait(60)
    handler.say("joy")
