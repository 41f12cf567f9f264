"""From records to a report: numbers agree with the records, the HTML works in a real browser."""

from __future__ import annotations

import base64
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from sparingly.experiments.reports.comparison import Digest, compare, digest
from sparingly.experiments.reports.report import Report, in_words, make_report, write_report
from sparingly.experiments.runs.experiment_settings import Player, Row, SettingsError, Study, Task
from sparingly.experiments.runs.many_runs import local, run_all
from sparingly.experiments.runs.paper_studies import FP_SENSITIVE, printed, study
from sparingly.experiments.runs.run_records import Results

EPOCHS = {"epochs": 5}
LABELS = {
    "Neural-CBP": ("neural_cbp", {"preset": "released", **EPOCHS}),
    "asks <always> & ever": ("always_ask", {"epochs": 1}),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """Two short studies: two strategies on two data sets, and two cost structures."""
    results = Results(tmp_path_factory.mktemp("results") / "here").open()
    rows = [
        Row(table="T1", task=_task(name), player=Player(strategy=strategy, options=options, label=label))
        for name in ("phishing", "image_segments")
        for label, (strategy, options) in LABELS.items()
    ]
    costs = [
        Row(
            table="T2", task=_task("phishing", costs), player=Player(strategy="neural_cbp", options=EPOCHS, label=label)
        )
        for label, costs in (("uniform costs", None), ("FP-sensitive costs", FP_SENSITIVE))
    ]
    for name, part in (("t1", rows), ("t2", costs)):
        study = Study(name=name, rows=tuple(part), seeds=3)
        results.add_study(study)
        run_all(study.runs(), results, local(1))
    return results


def _task(name, costs=None):
    return Task(dataset=name, horizon=120, costs=costs, test_rows=100)


@pytest.fixture(scope="module")
def told(results) -> Digest:
    return digest(results, results.studies())


@pytest.fixture(scope="module")
def report(told) -> Report:
    return make_report(told, title="A <title>")


def test_the_digest_is_the_records(results, told):
    assert len(told.runs) == 12 + 6
    for row in told.runs.itertuples():
        record = results.read(row.run)
        assert row.regret == record.rounds["regret"].sum()
        assert row.queries == (record.rounds["action"] >= record.n_classes).sum()
    one = told.regret[(told.regret["label"] == "Neural-CBP") & (told.regret["dataset"] == "phishing")]
    finals = told.runs[(told.runs["label"] == "Neural-CBP") & (told.runs["dataset"] == "phishing")]["regret"]
    assert one["mean"].iloc[-1] == pytest.approx(finals.mean())
    assert (np.diff(one["mean"]) >= 0).all()


def test_a_seed_that_is_not_complete_is_left_out(results, tmp_path):
    copy = Results(tmp_path / "copy").open()
    study = next(iter(results.studies()))
    for run in list(study.runs())[:-1]:
        copy.add(run.id, results.path(run.id).read_bytes())
    runs = digest(copy, [study]).runs
    assert runs.groupby("dataset")["seed"].agg(set).to_dict() == {"phishing": {0, 1, 2}, "image_segments": {0, 1}}
    empty = Results(tmp_path / "empty").open()
    with pytest.raises(SettingsError, match="no complete seed"):
        digest(empty, [study])


def test_a_summary_is_enough_for_the_report(told, report, tmp_path):
    told.write(tmp_path / "summary")
    again = Digest.read(tmp_path / "summary")
    pd.testing.assert_frame_equal(
        again.runs[["table", "label", "seed", "regret", "queries"]],
        told.runs[["table", "label", "seed", "regret", "queries"]],
    )
    assert make_report(again).words == report.words


def test_comparisons_count_and_test(told):
    first = compare(told.runs)[0]
    always = next(line for line in first.lines if line.label.startswith("asks"))
    assert (first.reference, first.seeds, first.best.label) == ("Neural-CBP", 3, "Neural-CBP")
    assert (always.regret.mean, always.wins.total) == (120, 0)
    assert always.p_value <= always.p_holm < 0.05
    assert always.paired.better == 3


def test_the_paper_is_put_beside():
    rows = [
        {
            "table": "Q1",
            "dataset": "adult",
            "label": row.strategy,
            "seed": seed,
            "regret": row.regret * (1.5 if row.strategy == "Cesa" else 1.0) + seed,
        }
        for row in printed()
        if (row.table, row.dataset) == ("Q1", "adult")
        for seed in range(3)
    ]
    runs = pd.DataFrame(rows).assign(queries=5, f1=0.5, cpu_seconds=1.0, seconds=1.0)
    comparison = compare(runs)[0]
    ratios = {line.label: line.ratio for line in comparison.lines}
    assert ratios["Neural-CBP"] == pytest.approx(1, abs=0.01)
    assert ratios["Cesa"] == pytest.approx(1.5, abs=0.01)
    words = in_words([comparison])
    assert "6 of 7 mean regrets are within 10% of the paper's." in words
    assert "Cesa on adult (1.50)" in words[-1]


def test_the_paper_has_41_rows_in_q1_and_q2():
    rows = [row for name in ("q1", "q2") for row in study(name).rows]
    assert len(rows) == 41
    assert len({run.id for name in ("q1", "q2") for run in study(name, seeds=2).runs()}) == 82
    assert len({run.id for run in study("q3").runs()}) == 3 * (25 + 25 + 5)
    assert len({run.id for run in study("q3", seeds=3).runs()}) == 27
    seeds = [run.seed for run in study("q1", seeds=3).runs()]
    assert seeds == sorted(seeds), "whole seeds come first"


def test_figures_are_images(report):
    assert [figure.name for figure in report.figures] == ["t1_regret", "t1_time", "t1_f1", "t1_queries", "t2_counts"]
    assert all(figure.png.startswith(b"\x89PNG") for figure in report.figures)


def test_html_and_markdown_agree_and_escape(report, tmp_path):
    files = write_report(report, tmp_path / "report.html")
    html, markdown = (path.read_text() for path in files[:2])
    assert "A &lt;title&gt;" in html
    assert "asks &lt;always&gt; &amp; ever" in html
    assert not re.search(r'(src|href)="(?!data:)', html), "everything is inside"
    for comparison in report.comparisons:
        for line in comparison.lines:
            assert f"{line.regret.mean:.0f} ± {line.regret.error:.0f}" in html
            assert f"| {line.label} | {line.regret.mean:.0f} ± {line.regret.error:.0f} |" in markdown
    for name in re.findall(r"\]\((report_figures/[^)]+)\)", markdown):
        assert (tmp_path / name).is_file()
    images = re.findall(r"data:image/png;base64,([^\"]+)", html)
    assert len(images) == len(report.figures) + len(report.advice)
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)


@pytest.mark.browser
def test_the_report_in_a_browser(report, tmp_path):
    from playwright.sync_api import sync_playwright

    from tests.live.service.browsing import launch

    write_report(report, tmp_path / "report.html")
    problems: list[str] = []
    with sync_playwright() as play:
        browser = launch(play)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.on(
            "console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("requestfailed", lambda request: problems.append(request.url[:80]))
        page.goto((tmp_path / "report.html").as_uri())
        widths = page.eval_on_selector_all(
            "img", "images => images.map(image => image.complete ? image.naturalWidth : 0)"
        )
        screenshot = page.screenshot(path=str(tmp_path / "report.png"), full_page=True)
        rows = page.locator("tbody tr").count()
        wide = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        practice = page.locator(".practice")
        first = practice.nth(0).bounding_box()
        said = practice.nth(0).inner_text()
        browser.close()
    assert not problems
    assert len(widths) == 5 + 2
    assert all(width > 300 for width in widths)
    assert rows >= 4 + 2 + 2
    assert wide, "nothing sticks out to the right"
    assert first is not None
    assert first["y"] + first["height"] <= 900, "what to do fits one screen"
    for words in (
        "phishing: what to do",
        "would have cost",
        "total cost",
        "their price",
        "a question costs",
        "by class",
    ):
        assert words in said
    assert len(screenshot) > 50_000


def test_reading_results_needs_no_torch():
    script = "import sys\nfrom sparingly.experiments.reports import report\n"
    script += "from sparingly.experiments.runs import run_records\n"
    script += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_rows_that_were_not_run_again_come_from_an_earlier_summary_and_are_named(told, report, tmp_path):
    told.write(tmp_path)
    mine = told.runs["label"] == "Neural-CBP"
    parts = {name: getattr(told, name) for name in ("regret", "f1", "costs")}
    new = Digest(told.runs[mine], **{name: part[part["label"] == "Neural-CBP"] for name, part in parts.items()})
    both = new.filled_from(Digest.read(tmp_path))
    assert len(both.runs) == len(told.runs)
    assert both.runs["earlier"].sum() == (~mine).sum()
    assert not both.runs[both.runs["label"] == "Neural-CBP"]["earlier"].any()
    about = dict(make_report(both).about)
    assert "asks <always> & ever on phishing (T1)" in about["rows of an earlier summary, not run again with this code"]
    assert "rows of an earlier summary, not run again with this code" not in dict(report.about)
    both.write(tmp_path)
    always = Digest(told.runs[~mine], **{name: part[part["label"] != "Neural-CBP"] for name, part in parts.items()})
    then = always.filled_from(Digest.read(tmp_path))
    assert (len(then.runs), then.runs["earlier"].sum()) == (len(told.runs), 0), "what it does not mark stays so"
    assert list(then.runs) == list(both.runs)
    moved = Digest(always.runs.assign(table="A"), always.regret, always.f1, always.costs)
    assert list(dict.fromkeys(moved.filled_from(Digest.read(tmp_path)).runs["table"])) == [
        *told.runs["table"].unique(),
        "A",
    ]


def test_a_row_of_an_earlier_summary_is_not_marked_where_a_run_of_it_was_played_again_alike(told, tmp_path):
    told.write(tmp_path)
    again = Digest(told.runs[told.runs["seed"] == told.runs["seed"].min()], told.regret, told.f1, told.costs)
    both = again.filled_from(Digest.read(tmp_path))
    assert len(both.runs) == len(told.runs)
    assert not both.runs["earlier"].any()
    again.runs["regret"] += again.runs["label"] == "Neural-CBP"
    both = again.filled_from(Digest.read(tmp_path))
    mine = both.runs["label"] == "Neural-CBP"
    assert both.runs[mine]["seed"].nunique() == 1, "another outcome: only today's runs count"
    assert not both.runs["earlier"].any()


def test_further_seeds_are_added_to_a_row_of_an_earlier_summary_where_what_both_have_is_alike(told, tmp_path):
    curves, seed = (told.regret, told.f1, told.costs), told.runs["seed"]
    columns = ["table", "dataset", "label", "seed", "regret", "queries"]

    def filled(new, old, earlier=False):
        Digest(old.assign(earlier=earlier), *curves).write(tmp_path)
        return Digest(new, *curves).filled_from(Digest.read(tmp_path)).runs

    for first in (told.runs[seed < 2], told.runs[seed == 0]):
        both = filled(told.runs[seed > 0], first)
        assert both[columns].to_numpy().tolist() == told.runs[columns].to_numpy().tolist()
        assert not both["earlier"].any()
    assert set(filled(told.runs[seed == 2], told.runs[seed < 2], earlier=True)["seed"]) == {2}, "marked: made anew"
    other = told.runs.assign(regret=told.runs["regret"] + 1)
    assert set(filled(other[seed > 0], told.runs[seed < 2])["seed"]) == {1, 2}, "another outcome: today's only"


def test_the_curves_of_a_row_with_further_seeds_are_of_the_side_with_more_runs(told, tmp_path):
    seed = told.runs["seed"]
    for more, kept in ((seed < 2, 0), (seed > 1, 1)):
        then = Digest(told.runs[more].assign(earlier=False), told.regret.assign(mean=0), told.f1, told.costs)
        then.write(tmp_path)
        now = Digest(told.runs[~more], told.regret.assign(mean=1), told.f1, told.costs)
        assert set(now.filled_from(Digest.read(tmp_path)).regret["mean"]) == {kept}
