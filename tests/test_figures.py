"""Figures that say where they come from are those of their result files."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from benchmarks import result_files

from tests.marked_tables import ROOT, MarkedTable, has_figures, marked_tables, unmarked_tables

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
UNMARKED = {
    "docs/sparing-tried.md": "what programs found that were not kept",
    "docs/experts-tried.md": "the same",
    "docs/experiments.md": "the sizes of data sets",
    "docs/experts-live.md": "a day of a service by the clock, on an idle machine; its command stands beside it",
    "docs/running.md": "the same of calls a second",
    "docs/service.md": "the same of faults and of late training",
}
"""Pages whose tables of figures no command makes, and why; pages in docs/results are made as a whole."""
MARKED = [table for page in PAGES for table in marked_tables(page)]


@pytest.mark.parametrize("table", MARKED, ids=lambda table: table.place)
def test_a_marked_table_has_the_figures_of_its_file(table: MarkedTable) -> None:
    assert len(table.lines) > 2, f"{table.place}: a marker stands before a table"
    assert table.differences() == []
    named = re.match(r"python -m ([\w.]+)", table.command)
    assert table.command.startswith("sparingly ") or (named and importlib.util.find_spec(named[1])), table.command


def test_some_tables_are_marked() -> None:
    assert {"README.md", "comparison.md"} <= {table.place.split(",")[0] for table in MARKED}


@pytest.mark.parametrize("page", [page for page in PAGES if "results" not in page.parts], ids=lambda page: page.name)
def test_a_table_of_figures_says_what_makes_it(page: Path) -> None:
    found = [f"{page.name}, line {number}" for number, table in unmarked_tables(page) if has_figures(table)]
    assert bool(found) == (page.relative_to(ROOT).as_posix() in UNMARKED), found


@pytest.mark.parametrize(
    ("rows", "is_found"),
    [
        (["| adult | 2 |", "| wine | 3.5 s |"], True),
        (["| adult | 1290 ± 3 |", "| wine | 13 083 (5) |"], True),
        (["| adult | 2 |"], False),
        (["| adult | 2 |", "| wine | as many |"], False),
    ],
)
def test_a_table_of_figures_is_known_by_a_column_of_numbers(tmp_path: Path, rows: list[str], is_found: bool) -> None:
    page = tmp_path / "page.md"
    table = "\n".join(["| data | cost |", "|---|---|", *rows])
    page.write_text(f"Text.\n\n{table}\n\n<!-- figures: python -m benchmarks.sparing -> runs.csv -->\n\n{table}\n")
    assert [(number, has_figures(lines)) for number, lines in unmarked_tables(page)] == [(3, is_found)]


def test_a_benchmark_keeps_a_table_that_a_page_can_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(result_files, "RESULTS", tmp_path)
    rows = [{"data": "adult, told", "cost": 2.346}, {"data": "wine", "cost": 12083}]
    result_files.keep("some/part.csv", rows[:1], whole=False)
    assert not (tmp_path / "some").exists()
    capsys.readouterr()
    result_files.keep("some/costs.csv", rows)
    shown = capsys.readouterr().out.partition("\nwritten")[0].replace("2.346", "2.35").replace("12083", "12 083")
    page = tmp_path / "page.md"
    page.write_text(f"<!-- figures: python -m benchmarks games -> {tmp_path}/some/costs.csv -->\n\n{shown}\n")
    (table,) = marked_tables(page)
    assert len(table.lines) == 4
    assert table.differences() == []


@pytest.mark.parametrize(
    ("row", "wrong"),
    [("| Magic | 3381 |", 0), ("| **Magic** | 3381 |", 0), ("| Magic | 3382 |", 1), ("| Adult | 3381 |", 1)],
)
def test_a_changed_figure_is_found(tmp_path: Path, row: str, wrong: int) -> None:
    (tmp_path / "runs.csv").write_text("data,regret,seed\nMagic,3380.96,0\nAdult,2969,0\n")
    (tmp_path / "runs.md").write_text("# Runs\n\n| data | seed | regret |\n|---|---|---|\n| Magic | 0 | 3381 |\n")
    page = tmp_path / "page.md"
    for name in ("runs.csv", "runs.md", "gone.md"):
        file = tmp_path / name
        marker = f"<!-- figures: python -m benchmarks.sparing -> {file} -->"
        page.write_text(f"Text.\n\n{marker}\n\n| data | regret |\n|---|---|\n{row}\n\nMore.\n")
        (table,) = marked_tables(page)
        assert len(table.differences()) == (1 if name == "gone.md" else wrong)
