"""Label Studio: the contract of its ML backends as routes of the live service, and its annotations as answers."""

from sparingly.adapters.label_studio.label_studio_routes import router

__all__ = ["router"]
