"""A service to test on, in this process: over a socket in a thread, with an agent that asks about everything."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image

from sparingly.live.service.app import create_app
from sparingly.live.service.auth.tokens import PRODUCER, ROLES
from sparingly.live.service.server import Server, address, configured, listen
from sparingly.live.service.service import Service
from sparingly.live.service.service_limits import ServiceLimits

AT = "/api/agents/default"
X = {"features": [1.0, 2.0, 3.0]}


class Served:
    """A service, its app and one token of each role."""

    def __init__(self, place: str, limits: ServiceLimits | None = None, **options: Any) -> None:
        self.service = Service(place, limits, **options)
        if "default" not in self.service.agents.names():
            self.create_default()
        self.tokens = {role: self.service.tokens.create(role, role)[1] for role in ROLES}
        self.app = create_app(self.service)

    def create_default(self) -> None:
        self.service.agents.create(
            "default", classes=["cat", "dog"], n_features=3, strategy="always_ask", training="inline"
        )

    @property
    def agent(self) -> Any:
        return self.service.agents.get("default")

    def agent_of(self, name: str) -> Any:
        return self.service.agents.get(name)

    def headers(self, role: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[role]}"}

    @contextmanager
    def on_a_socket(self, **options: Any) -> Iterator[str]:
        """The service's address, while it runs."""
        listener = listen("127.0.0.1", 0)
        server = Server(configured(self.app, self.service.limits, grace=2, **options), self.service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield address(listener)
        finally:
            self.service.events.stop()
            server.should_exit = True
            thread.join(20)
            listener.close()


def picture(kind: str = "PNG", colour: str = "teal", size: tuple[int, int] = (24, 16)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB" if max(size) < 1000 else "1", size, colour if max(size) < 1000 else 0).save(out, kind)
    return out.getvalue()


def observed(ask, **more):
    """The ticket of a new observation."""
    return ask(PRODUCER, "POST", f"{AT}/observations", {**X, **more}).json()["id"]
