"""The demo plays real streams and shows that asking well is cheaper than asking always, never or at random."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparingly.experiments.demo import demo


def test_asking_well_pays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.png"
    for results in demo(picture, horizon=600):
        cost = {result.label: float(result.cost[-1]) for result in results}
        assert cost["Sparing"] < min(cost[other] for other in cost if other != "Sparing")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "total cost" in capsys.readouterr().out
