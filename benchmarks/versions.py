"""What two states of this repository take for the same stream: `python -m benchmarks versions BEFORE [AFTER]`.

BEFORE and AFTER are commits (AFTER is HEAD where it is not given). Each is taken out of the repository into a temporary
folder, and they play the same stream by turns, every turn in a process of its own that counts its own processor time:
so a busy machine is busy for both. The table has the least and the median time of the turns, their ratios, and whether
all decisions are the same. It takes the repository's history, so `make bench` leaves it out.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.neural_cbp import mnist

ROOT = Path(__file__).parents[1]
VERSIONS = ("before", "after")
OPTIONS: dict[str, dict[str, Any]] = {
    "neural_cbp": {"start": "each", "wait": 0, "schedule": "paper", "confident": "above", "contradiction": "pareto"},
    "sparing": {},
}
"""With which newer versions decide as older ones do; a version without such an option knows no other way."""
TURN = """
import inspect, json, sys, time
import numpy as np, torch
import sparingly as sp
file, name, options, rounds = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
data = np.load(file)
X, y = torch.from_numpy(data["X"][:rounds]), data["y"][:rounds]
kind, game = sp.strategies()[name], sp.label_efficient(int(data["y"].max()) + 1)
known = {key: value for key, value in options.items() if key in inspect.signature(kind).parameters}
def play(n):
    strategy = kind(game, X.shape[1], seed=0, **known)
    began = time.process_time()
    actions = [one.action for one in sp.play(strategy, game, zip(X[:n], y[:n], strict=True))]
    return time.process_time() - began, actions
play(200)  # what is only done once in a process
seconds, actions = play(rounds)
print(json.dumps({"seconds": seconds, "actions": actions}))
"""


def take_out(commit: str, folder: Path) -> Path:
    """The source of a commit, in a folder of its own; the path from which it is imported."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def turn(source: Path, data: Path, strategy: str, rounds: int) -> tuple[float, list[int]]:
    """One play in a fresh process: its processor time, and its actions."""
    words = [sys.executable, "-c", TURN, str(data), strategy, json.dumps(OPTIONS[strategy]), str(rounds)]
    environment = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment, cwd=source)
    said = json.loads(done.stdout)
    return said["seconds"], said["actions"]


def compare(sources: Sequence[Path], data: Path, strategy: str, rounds: int, turns: int) -> list[str]:
    """Play by turns, each version first in every other turn, and say what was found."""
    seconds: list[list[float]] = [[], []]
    actions: list[list[int]] = [[], []]
    for number in range(turns):
        for version in (0, 1) if number % 2 == 0 else (1, 0):
            taken, actions[version] = turn(sources[version], data, strategy, rounds)
            seconds[version].append(taken)
    differ = [t for t, (a, b) in enumerate(zip(*actions, strict=True)) if a != b]
    return [
        *(
            f"{strategy:<12}{name:<8}{min(taken):8.2f} s {statistics.median(taken):8.2f} s"
            f"   {said.count(max(said))} questions"
            for name, taken, said in zip(VERSIONS, seconds, actions, strict=True)
        ),
        f"{strategy:<12}{'ratio':<8}{min(seconds[1]) / min(seconds[0]):10.3f}"
        f"{statistics.median(seconds[1]) / statistics.median(seconds[0]):10.3f}"
        f"   {f'{len(differ)} decisions differ, first in round {differ[0]}' if differ else 'all decisions are equal'}",
    ]


def command(words: list[str]) -> int:
    """Compare two commits; what `python -m benchmarks versions` does."""
    asked = argparse.ArgumentParser(prog="python -m benchmarks versions", description=(__doc__ or "").splitlines()[0])
    asked.add_argument("before", help="a commit")
    asked.add_argument("after", nargs="?", default="HEAD", help="a commit; HEAD if it is not given")
    asked.add_argument("--strategy", choices=[*OPTIONS], action="append", help="may be repeated; both if none is given")
    asked.add_argument("--rounds", type=int, default=3000)
    asked.add_argument("--turns", type=int, default=7, help="of each version")
    chosen = asked.parse_args(words)
    X, y, stream = mnist()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "stream.npz")
        np.savez(data, X=X.numpy(), y=y)
        commits = (chosen.before, chosen.after)
        sources = [take_out(commit, Path(folder, name)) for name, commit in zip(VERSIONS, commits, strict=True)]
        print(f"{stream}, {chosen.rounds:,} rounds, {chosen.turns} turns each, processor time")
        print(f"{'':<20}{'least':>10}{'median':>11}", flush=True)
        for strategy in chosen.strategy or OPTIONS:
            print("\n".join(compare(sources, data, strategy, chosen.rounds, chosen.turns)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
