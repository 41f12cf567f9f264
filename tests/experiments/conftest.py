"""Small studies of real strategies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparingly.commands.main import main
from sparingly.experiments.runs.experiment_settings import Player, Study, Task, study_of
from sparingly.experiments.runs.run_records import Results

SRC = str(Path(__file__).resolve().parents[2] / "src")


@pytest.fixture
def study() -> Study:
    players = [
        Player(strategy="neural_cbp"),
        Player(strategy="always_ask", options={"epochs": 2}),
        Player(strategy="never_ask"),
    ]
    return study_of([Task(dataset="phishing", horizon=150, test_rows=100)], players, name="small", seeds=2)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results").open()


@pytest.fixture
def environment() -> dict[str, str]:
    """For processes: this source tree, one thread."""
    return os.environ | {"PYTHONPATH": SRC, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.fixture
def sparingly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The command line, in a folder of its own: exit code, output, error stream."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(words)
        told = capsys.readouterr()
        return int(left.value.code or 0), told.out, told.err

    return call
