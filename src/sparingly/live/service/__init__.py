"""The service: agents over HTTP for programs that observe, people who answer, and whoever looks after them."""

from sparingly.live.service.app import create_app

__all__ = ["create_app"]
