"""What is played: games, their structure, and what survives of them."""

from sparingly.games.elimination import Survivors, survivors_by_score
from sparingly.games.game import Game
from sparingly.games.geometry import Geometry, analyze
from sparingly.games.ready_games import (
    apple_tasting,
    bandit,
    dynamic_pricing,
    full_information,
    label_efficient,
    no_information,
)

__all__ = [
    "Game",
    "Geometry",
    "Survivors",
    "analyze",
    "apple_tasting",
    "bandit",
    "dynamic_pricing",
    "full_information",
    "label_efficient",
    "no_information",
    "survivors_by_score",
]
