"""The strategy that the documentation writes passes the suite that the documentation describes."""

import re
import sys
from pathlib import Path
from types import ModuleType

import sparingly
from sparingly.strategies.conformance import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "own-strategy.md"


def test_the_page_runs_and_names_every_check(monkeypatch):
    text = PAGE.read_text()
    page = ModuleType("own_strategy_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    names = vars(page)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block.replace("check(NearestMean)", "check(NearestMean, short=True)"), str(PAGE), "exec"), names)
    assert names["strategy"].name == "nearest_mean"
    assert names["passed"] == tuple(check.__name__ for check in CHECKS)
    assert re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)[-len(CHECKS) :] == list(names["passed"])
    assert sparingly.strategies.check.__name__ in text
