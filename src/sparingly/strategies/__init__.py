"""Who decides: one published algorithm a file, on the games and the learning parts."""

from __future__ import annotations

from sparingly.strategies.strategy import Assessment, Decision, StateError, Strategy, Why

_ALL: tuple[type[Strategy], ...] = ()


def strategies() -> dict[str, type[Strategy]]:
    """Every strategy by name."""
    return {strategy.name: strategy for strategy in _ALL}


__all__ = ["Assessment", "Decision", "StateError", "Strategy", "Why", "strategies"]
