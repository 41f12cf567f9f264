"""Sparing, our own strategy, whole: calibrated beliefs, the acquisition of labels, and change detection."""

from __future__ import annotations

from sparingly.strategies.sparing.sparing import Sparing

__all__ = ["Sparing"]
