"""Ask experts sparingly: stream-based active learning as a partial monitoring game.

Names are loaded when first used, so that `import sparingly` is quick and games need no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparingly.experiments.play import Round as Round
    from sparingly.experiments.play import play as play
    from sparingly.experts import CallLimits as CallLimits
    from sparingly.experts import Expert as Expert
    from sparingly.experts import FunctionExpert as FunctionExpert
    from sparingly.experts import Person as Person
    from sparingly.experts import RecordedExpert as RecordedExpert
    from sparingly.experts.http_experts import HTTPExpert as HTTPExpert
    from sparingly.experts.http_experts import LanguageModel as LanguageModel
    from sparingly.games import Game as Game
    from sparingly.games import Geometry as Geometry
    from sparingly.games import Survivors as Survivors
    from sparingly.games import analyze as analyze
    from sparingly.games import apple_tasting as apple_tasting
    from sparingly.games import bandit as bandit
    from sparingly.games import dynamic_pricing as dynamic_pricing
    from sparingly.games import full_information as full_information
    from sparingly.games import label_efficient as label_efficient
    from sparingly.games import no_information as no_information
    from sparingly.live.agent.agent import Agent as Agent
    from sparingly.live.client.client import AsyncClient as AsyncClient
    from sparingly.live.client.client import Client as Client
    from sparingly.live.model.exported_model import load_model as load_model
    from sparingly.live.tickets.ticket_records import Ticket as Ticket
    from sparingly.strategies import NeuralCBP as NeuralCBP
    from sparingly.strategies import Sparing as Sparing
    from sparingly.strategies.strategy import Assessment as Assessment
    from sparingly.strategies.strategy import Decision as Decision
    from sparingly.strategies.strategy import Strategy as Strategy

__version__ = "0.1.0"

_HOME = {
    "Agent": "live.agent.agent",
    "AsyncClient": "live.client.client",
    "Client": "live.client.client",
    "Ticket": "live.tickets.ticket_records",
    "load_model": "live.model.exported_model",
    "CallLimits": "experts",
    "Expert": "experts",
    "FunctionExpert": "experts",
    "HTTPExpert": "experts.http_experts",
    "LanguageModel": "experts.http_experts",
    "Person": "experts",
    "RecordedExpert": "experts",
    "Game": "games",
    "Geometry": "games",
    "analyze": "games",
    "apple_tasting": "games",
    "bandit": "games",
    "dynamic_pricing": "games",
    "full_information": "games",
    "label_efficient": "games",
    "no_information": "games",
    "Survivors": "games",
    "NeuralCBP": "strategies",
    "Sparing": "strategies",
    "Strategy": "strategies.strategy",
    "Assessment": "strategies.strategy",
    "Decision": "strategies.strategy",
    "play": "experiments.play",
    "Round": "experiments.play",
}

__all__ = [*_HOME, "strategies", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "strategies":
        return importlib.import_module("sparingly.strategies")
    if name not in _HOME:
        raise AttributeError(f"module 'sparingly' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sparingly.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
