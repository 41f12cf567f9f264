"""The strategy that the documentation writes passes the suite that the documentation describes."""

import re

from sparingly.strategies.conformance import CHECKS
from tests.snippets import ROOT, play

PAGE = ROOT / "docs" / "own-strategy.md"


def test_the_page_runs_and_names_every_check(tmp_path):
    names = play(PAGE, tmp_path)
    assert names["strategy"].name == "nearest_mean"
    assert names["passed"] == tuple(check.__name__ for check in CHECKS)
    told = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    assert told[-len(CHECKS) :] == list(names["passed"])
