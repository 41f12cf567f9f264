"""Runs with several experts: their records, and the figures made from these."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from sparingly.commands.main import app
from sparingly.experiments.reports import expert_figures
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.expert_study import study
from sparingly.experiments.runs.run_records import Record, Results
from sparingly.experiments.runs.single_run import execute

EXPERTS = ("gpt:0.01:accuracy=0.8", "junior:0.05:accuracy=0.9,silent=0.1", "human:1:gold")


def played(strategy, **options):
    task = Task(dataset="image_segments", preprocessing="auto", horizon=150, expert=EXPERTS)
    return execute(Run(task=task, player=Player(strategy=strategy, options=options), seed=1))


@pytest.fixture(scope="module")
def records():
    return {"always_expert": played("always_expert"), "sparing": played("sparing", width=24)}


def test_a_record_says_of_each_expert_how_often_it_was_asked_and_how_good_it_is(records):
    gpt, junior, human = records["always_expert"].experts
    assert (gpt["asked"], junior["asked"], human["asked"]) == (150, 0, 0)
    assert gpt["accuracy"] == pytest.approx(0.8, abs=0.1)
    row = records["always_expert"].row("run")
    assert row["paid"] == pytest.approx(1.5)
    assert row["cost"] == pytest.approx(row["paid"] + row["errors"])
    assert json.loads(row["decided"]) == {"own model": 0, "gpt": 150, "junior": 0, "human": 0}
    gpt, _, human = records["sparing"].experts
    assert gpt["interval"][0] < gpt["learned"] < gpt["interval"][1]
    assert "learned" not in human


def test_a_record_with_experts_survives_the_file_and_costs_are_those_of_the_rounds(records):
    record = records["sparing"]
    again = Record.from_bytes(record.to_bytes())
    assert again.experts == record.experts
    assert again.content_hash() == record.content_hash()
    asked = record.rounds["asked_human"]
    wrong = (record.rounds["prediction"] != record.rounds["outcome"]) & ~asked
    assert np.allclose(record.rounds["cost"], record.rounds["paid"] + wrong)
    assert record.queries == sum(record.rounds[f"asked_{name}"].sum() for name in ("gpt", "junior", "human"))


def test_runs_without_experts_keep_their_ids():
    run = Run(
        task=Task(dataset="digits", horizon=500), player=Player(strategy="neuronal", options={"gamma": 3}), seed=4
    )
    named = run.model_copy(update={"task": run.task.model_copy(update={"expert": EXPERTS})})
    assert run.id == "digits-neuronal-gamma=3-seed4-2d2590a3"
    assert named.id != run.id


def test_every_figure_of_experts_is_drawn(records):
    import pandas as pd

    rows = [record.row(name) | {"label": name, "table": "mine"} for name, record in records.items()]
    runs = pd.DataFrame(rows)
    for draw in (expert_figures.draw_cost_split, expert_figures.draw_deciders):
        [axes] = [axes for axes in draw(runs).axes if axes.get_visible()]
        assert [label.get_text() for label in axes.get_yticklabels()] == list(records)
    [axes] = expert_figures.draw_reliability(runs).axes
    assert len(axes.containers) == 2, "gpt and junior, learned by sparing"


def test_the_command_line_plays_experts_and_refuses_those_without_answers(tmp_path):
    out = ["--data", "digits", "--seeds", "1", "--horizon", "30", "--out", str(tmp_path / "r"), "--workers", "1"]
    few = ["--strategy", "majority", *(word for text in EXPERTS for word in ("--expert", text))]
    done = CliRunner().invoke(app, ["run", *out, *few])
    assert done.exit_code == 0, done.output
    assert "experts gpt:0.01:accuracy=0.8, junior" in done.output
    frame, _ = Results(tmp_path / "r").frames()
    assert frame["asked junior"].tolist() == [30]
    refused = CliRunner().invoke(app, ["run", *out, "--strategy", "majority", "--expert", "gpt35:0.01"])
    assert refused.exit_code == 2
    assert (
        "digits has no recorded answers of 'gpt35' (it has none); a synthetic expert has an accuracy" in refused.output
    )
    refused = CliRunner().invoke(app, ["run", *out, "--strategy", "neural_cbp", *few[2:]])
    assert refused.exit_code == 2
    assert "neural_cbp takes every answer for the truth, and that of gpt may be wrong" in refused.output


def test_the_study_of_experts_has_every_stream_and_the_human_alone():
    rows = study(seeds=2, horizon=100).rows
    assert {row.task.dataset for row in rows} == {"isear", "banking77", "mnist", "adult", "shuttle"}
    assert {row.task.expert for row in rows if row.player.label == "sparing, human alone"} == {
        ("human:1:gold",),
        ("human:0.3:gold",),
        ("human:0.1:gold",),
    }
