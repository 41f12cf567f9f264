"""Killed with SIGKILL at random moments, an agent loses nothing and decides what it would have decided anyway."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.live.store import crash


def run(folder: Path, kills: int, options: dict[str, Any], place: str) -> dict[str, Any]:
    command = [*fork_server.python_module(folder, crash.__name__), str(kills), json.dumps(options), place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize(
    ("kills", "options"),
    [
        (50, {"strategy": "neural_cbp", "options": {"epochs": 2, "width": 16, "schedule": "every 4"}}),
        (10, {"strategy": "random", "options": {"p": 0.6}, "max_open": 3}),
        (10, {}),
    ],
)
def test_kill_at_random_moments(tmp_path: Path, kills: int, options: dict[str, Any]) -> None:
    report = run(tmp_path, kills, options, f"{tmp_path}/{{name}}.db")
    assert report["lost"] == []
    assert report["same"], report["first_difference"]
    assert report["taught"][0] == report["taught"][1]
    assert report["steps"] > kills
    assert report["answers"] > 10


@pytest.mark.postgres
def test_kill_at_random_moments_on_postgresql(postgres: str, tmp_path: Path) -> None:
    options = {"strategy": "neural_cbp", "options": {"epochs": 2, "width": 16, "schedule": "every 4"}}
    report = run(tmp_path, 12, options, postgres + "?agent={name}")
    assert report["lost"] == []
    assert report["same"], report["first_difference"]
    assert report["steps"] > 20
    assert report["answers"] > 10
