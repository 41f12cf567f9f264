"""Sparing, our own strategy, whole: beliefs, the worth of a label, the purchase, the watch over announcements."""

from __future__ import annotations

from sparingly.strategies.sparing.sparing import Sparing

__all__ = ["Sparing"]
