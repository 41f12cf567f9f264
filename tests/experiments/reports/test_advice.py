"""What to do: the words and the table say what the records say."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sparingly.experiments.reports.advice import Advice, advise, in_text
from sparingly.experiments.reports.comparison import digest
from sparingly.experiments.runs.experiment_settings import Player, Task, study_of
from sparingly.experiments.runs.many_runs import local, run_all
from sparingly.experiments.runs.run_records import Results

COSTS = ((0.0, 10.0), (1.0, 0.0))
PLAYERS = {
    "never_ask start=0": Player(strategy="never_ask", options={"start": 0}),
    "never_ask": Player(strategy="never_ask"),
    "always_ask epochs=1": Player(strategy="always_ask", options={"epochs": 1}),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> tuple[Advice, Results]:
    folder = tmp_path_factory.mktemp("advice")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.normal(size=200), "label": rng.choice(["benign", "malignant"], 200)})
    rows.to_csv(folder / "mine.csv", index=False)
    task = Task(dataset=str(folder / "mine.csv"), target="label", preprocessing="auto", costs=COSTS, query_cost=0.2)
    study = study_of([task], list(PLAYERS.values()), name="mine", seeds=2)
    results = Results(folder / "results").open()
    results.add_study(study)
    tally = run_all(study.runs(), results, local(1))
    assert not tally.failed
    told = digest(results, [study])
    (advice,) = advise(told.runs, told.costs)
    return advice, results


def test_the_numbers_are_those_of_the_records(played):
    advice, results = played
    runs, _ = results.frames()
    for one in advice.spent:
        mine = runs[(runs["strategy"] == PLAYERS[one.label].strategy) & (runs["options"] == _options(one.label))]
        assert one.cost == pytest.approx(mine["cost"].mean())
        assert one.questions == mine["queries"].mean()
        assert one.paid == pytest.approx(0.2 * one.questions)
        assert one.wrong == pytest.approx(mine["errors"].mean())
        assert one.for_mistakes == pytest.approx(sum(mistake.cost for mistake in one.mistakes))
        assert sum(line.rows for line in one.classes) == pytest.approx(170)
        assert sum(line.asked for line in one.classes) == pytest.approx(one.questions)
        assert sum(line.cost for line in one.classes) == pytest.approx(one.for_mistakes)


def _options(label: str) -> str:
    return json.dumps(PLAYERS[label].options, sort_keys=True)


def test_a_true_never_asks_no_question_and_is_beside_the_others(played):
    advice, _ = played
    spent = {one.label: one for one in advice.spent}
    never = spent["never_ask start=0"]
    assert never.questions == 0
    assert [(mistake.announced, mistake.true) for mistake in never.mistakes] == [("malignant", "benign")]
    assert advice.best.name == "always asking (epochs=1)"
    assert "never asking" in advice.headline
    assert spent["never_ask"].name == "20 labels, then the commonest"


def test_the_words_say_what_to_do(played):
    advice, _ = played
    best = advice.best
    assert advice.headline.startswith(
        "On this stream of 170 rows, with these costs, always asking (epochs=1) would have cost 34: "
        "34 for 170 questions; never"
    )
    assert advice.verdict.startswith("Ask about every row (cheaper than ")
    assert advice.costs.startswith("announcing benign when it is malignant costs 10, announcing malignant when it is")
    lines = list(in_text(advice))
    assert lines[2].split()[:3] == ["strategy", "total", "cost"]
    assert lines[3].split()[:3] == ["always", "asking", "(epochs=1)"]
    last = lines[2].index("the dearest mistakes")
    assert len({len(line[:last].rstrip()) for line in lines[2:]}) == 1, "numbers stand below each other"
    assert all(not line[last:].startswith(" ") for line in lines[2:])
    assert best.kinds == ""


def test_questions_at_the_beginning_and_later_are_told():
    n, t = 1000, np.arange(1, 1001)
    asked = np.minimum(t, 100) + np.maximum(0, t - 500) * 0.03
    common = {"table": "mine", "dataset": "a", "costs": "uniform", "query_cost": 1.0, "rounds": n, "cpu_seconds": 1.0}
    common |= {"classes": '["no", "yes"]'}
    rows = [
        common | {"label": label, "seed": seed, "cost": cost, "queries": queries, "paid": queries, "counts": counts}
        for seed in (0, 1)
        for label, cost, queries, counts in (
            ("sparing", 130 + seed, 115, "[[2, 0, 60], [2, 1, 55], [0, 1, 15], [0, 0, 500], [1, 1, 370]]"),
            ("always_ask", 1000, 1000, "[[2, 0, 560], [2, 1, 440]]"),
        )
    ]
    curves = pd.DataFrame({"table": "mine", "dataset": "a", "label": "sparing", "t": t, "questions": asked})
    (advice,) = advise(pd.DataFrame(rows), curves.assign(cost=asked, paid=asked))
    assert advice.headline == (
        "On this stream of 1,000 rows, with these costs, Sparing would have cost 130: 115 for 115 questions, "
        "16 for mistakes (15 × yes called no); always asking 1,000."
    )
    assert advice.verdict == (
        "Use Sparing (cheaper than always asking in 2 of 2 orders): expect about 100 questions in the first 500 rows, "
        "then about 3 in 100."
    )
    assert not advise(pd.DataFrame(rows).assign(table="Q1"), curves), "the paper's tables are for researchers"


def test_a_strategy_that_played_alone_has_its_table_too(played):
    told = digest(played[1], list(played[1].studies()))
    (advice,) = advise(told.runs[told.runs["label"] == "always_ask epochs=1"], told.costs)
    lines = list(in_text(advice))
    assert lines[1].startswith("always asking (epochs=1) played alone: expect about")
    assert "the dearest mistakes" in lines[2]
    assert len(lines) == 4
