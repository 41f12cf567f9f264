"""Our runs beside the paper's: samples that are alike agree, others do not, and without the file the report says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from benchmarks import ineural, rivals_table

from sparingly.experiments.reports.paper_runs import beside_the_paper, draw_all_beside, paper_runs
from sparingly.experiments.runs.experiment_settings import SettingsError


@pytest.fixture
def runs() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        ("Q1", "adult", label, seed, 1000 + 50 * rng.normal(), int(rng.integers(2, 300)))
        for label in ("Neural-CBP", "Neuronal (official)")
        for seed in range(30)
    ]
    rows += [("Q1_app", "adult", "Neuronal (official)", s, 1500 + 50 * rng.normal(), 100) for s in range(30)]
    return pd.DataFrame(rows, columns=["table", "dataset", "label", "seed", "regret", "queries"])


def file_of(tmp_path, runs: pd.DataFrame, shift: float = 0.0):
    theirs = runs.rename(columns={"label": "strategy", "queries": "questions"})
    slower = theirs["table"].str.endswith("_app")
    theirs["strategy"] += np.where(slower, ", rate 0.0001", "")
    theirs["table"] = theirs["table"].str.removesuffix("_app")
    theirs.loc[theirs["strategy"] == "Neural-CBP", "regret"] += shift
    theirs.to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path / "runs.csv"


def test_the_same_runs_agree_and_the_appendix_has_rows_of_its_own(tmp_path, runs):
    rows = beside_the_paper(runs, paper_runs(file_of(tmp_path, runs)))
    assert [(row.table, row.label) for row in rows] == [
        ("Q1", "Neural-CBP"),
        ("Q1", "Neuronal (official)"),
        ("Q1_app", "Neuronal (official)"),
    ]
    assert all(row.agrees for row in rows)
    assert all(row.apart[0] == 0 for row in rows)
    share = (runs[runs["label"] == "Neural-CBP"]["queries"] <= 20).mean()
    assert rows[0].stopped == (pytest.approx(share), pytest.approx(share))


def test_a_row_that_is_elsewhere_does_not_agree(tmp_path, runs):
    rows = beside_the_paper(runs, paper_runs(file_of(tmp_path, runs, shift=60.0)))
    assert [row.agrees for row in rows] == [False, True, True]
    assert rows[0].p_values[0] < 0.01 < rows[0].p_values[2]
    assert rows[0].apart[0] < -3
    told = rivals_table.agreement(runs.assign(earlier=runs["table"] == "Q1_app"), rows)[2:]
    assert told == [
        "| Q1 to Q3 | now | 2 | 1 | 30 to 30 |",
        "| Q1 to Q3 | earlier | 1 | 1 | 30 to 30 |",
        "| Q1 to Q3 | all, of 70 | 3 | 2 | 30 to 30 |",
    ]


def test_chance_alone_makes_few_rows_differ(tmp_path, runs, monkeypatch):
    monkeypatch.setattr(rivals_table, "SHUFFLES", 20)
    apart = paper_runs(file_of(tmp_path, runs, shift=60.0))
    cells = rivals_table.by_chance(runs, apart, beside_the_paper(runs, apart))[2].split(" | ")
    assert cells[:2] == ["| 3", "1"]
    assert float(cells[2]) < 0.5
    assert int(cells[3].rstrip("% |")) < 50


def test_only_runs_that_asked_nothing_are_played_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ineural, "RUNS", tmp_path / "runs.csv")
    lines = ["covertype,3,400,0,released,9,9,9,0,2", "covertype,3,400,1,released,9,9,9,7,2"]
    ineural.RUNS.write_text("\n".join([",".join(ineural.COLUMNS), *lines, ""]))
    assert ineural.silent(10_000) == {("covertype", 3, 10_000, 0, "released")}


def test_boxes_are_drawn_for_each_table(tmp_path, runs):
    figures = list(draw_all_beside(runs, paper_runs(file_of(tmp_path, runs))))
    assert [name for name, _, _ in figures] == [
        "q1_beside_regret",
        "q1_beside_queries",
        "q1_app_beside_regret",
        "q1_app_beside_queries",
    ]
    assert all(png.startswith(b"\x89PNG") for _, _, png in figures)


def test_a_file_that_is_not_there_or_says_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARINGLY_DATA", str(tmp_path / "data"))
    assert paper_runs() is None
    with pytest.raises(SettingsError, match=r"gone.csv holds no runs"):
        paper_runs(tmp_path / "gone.csv")
    (tmp_path / "odd.csv").write_text("table,dataset\nQ1,adult\n")
    with pytest.raises(SettingsError, match="no column 'strategy'"):
        paper_runs(tmp_path / "odd.csv")
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "runs.csv").write_text("table,dataset,strategy,regret,questions\nQ1,adult,Cesa,1,2\n")
    assert len(paper_runs()) == 1
