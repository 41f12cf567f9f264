"""Records: what goes in comes out, the content is the same each time, files appear whole."""

from __future__ import annotations

import numpy as np
import pytest

from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.paper_studies import TABLES, TABLES_OF_NUMBERS, study
from sparingly.experiments.runs.run_records import Record, write_whole
from sparingly.experiments.runs.single_run import LABEL_COUNTS, execute


@pytest.fixture(scope="module")
def record() -> Record:
    return execute(Run(task=Task(dataset="phishing", horizon=200), player=Player(strategy="neural_cbp"), seed=1))


def test_there_and_back(record):
    again = Record.from_bytes(record.to_bytes())
    assert again.run == record.run
    assert (again.f1, again.counts, again.versions, again.time) == (
        record.f1,
        record.counts,
        record.versions,
        record.time,
    )
    for name, values in record.rounds.items():
        np.testing.assert_array_equal(again.rounds[name], values)


def test_the_same_settings_give_the_same_content(record):
    again = execute(record.run)
    assert again.content_hash() == record.content_hash()
    other = execute(record.run.model_copy(update={"seed": 2}))
    assert other.content_hash() != record.content_hash()


def test_the_columns_agree_with_each_other(record):
    actions, outcomes = record.rounds["action"], record.rounds["outcome"]
    np.testing.assert_array_equal(record.rounds["cost"], np.where(actions == 2, 1.0, actions != outcomes))
    np.testing.assert_array_equal(record.rounds["regret"], record.rounds["cost"])
    assert record.queries == (actions == 2).sum() == sum(record.counts[2])
    assert np.array(record.counts).sum() == 200
    reached = [labels for labels, _, _ in record.f1[:-1]]
    assert reached == [count for count in LABEL_COUNTS if count <= record.queries]
    for labels, t, f1 in record.f1[:-1]:
        assert (actions[:t] == 2).sum() == labels
        assert 0 <= f1 <= 1
    assert np.isfinite(record.rounds["width"]).any()
    assert np.isfinite(record.rounds["gap"]).any()
    assert all(isinstance(why, str) and why for why in record.rounds["why"])
    assert {"assess", "decide", "learn", "train", "test", "load", "total", "cpu"} <= set(record.time)


def test_noise_reaches_the_strategy_and_not_the_costs():
    task = Task(dataset="phishing", horizon=300, noise=1.0)
    noisy = execute(Run(task=task, player=Player(strategy="never_ask"), seed=0))
    wrong = noisy.rounds["action"] != noisy.rounds["outcome"]
    assert (noisy.rounds["answer"] != noisy.rounds["outcome"]).mean() > 0.3
    announced = noisy.rounds["action"] < 2
    np.testing.assert_array_equal(noisy.rounds["cost"][announced], wrong[announced])


def test_delayed_answers_arrive_later():
    for delay in (0, 30):
        task = Task(dataset="phishing", horizon=80, delay=delay)
        asking = execute(Run(task=task, player=Player(strategy="always_ask", options={"epochs": 1}), seed=1))
        assert [t for _, t, _ in asking.f1[:2]] == [10 + delay, 25 + delay]


@pytest.mark.parametrize(("strategy", "suits"), [("sparing", "encoded"), ("neural_cbp", "streaming")])
def test_auto_gives_each_strategy_the_features_that_suit_it(strategy, suits):
    def played(preprocessing):
        task = Task(dataset="image_segments", horizon=100, preprocessing=preprocessing, test_rows=100)
        return execute(Run(task=task, player=Player(strategy=strategy), seed=0))

    auto, same = played("auto"), played(suits)
    assert auto.f1 == same.f1
    np.testing.assert_array_equal(auto.rounds["action"], same.rounds["action"])
    assert auto.f1 != played("encoded" if suits == "streaming" else "streaming").f1


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"first")
    with pytest.raises(TypeError):
        write_whole(path, "text")  # type: ignore[arg-type]
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_the_reason_of_every_round_is_kept_with_its_numbers():
    run = Run(task=Task(dataset="phishing", horizon=150), player=Player(strategy="sparing"), seed=0)
    rounds = Record.from_bytes(execute(run).to_bytes()).rounds
    last = len(rounds["why"]) - 1
    numbers = {name.removeprefix("why_"): rounds[name][last] for name in rounds if name.startswith("why_")}
    assert {"worth", "net"} <= set(numbers)
    announced = rounds["action"] < 2
    said = [rounds["why"][t].format(**{name: rounds[f"why_{name}"][t] for name in numbers}) for t in (0, last)]
    assert all("nan" not in sentence for sentence in said)
    assert np.isfinite(
        rounds["why_worth"][announced & np.char.startswith(rounds["why"].astype(str), "the label")]
    ).all()


def test_f1_is_measured_on_some_or_on_all_held_out_rows():
    def final(rows: int | None) -> float:
        task = Task(dataset="digits", horizon=300, test_rows=rows)
        return execute(Run(task=task, player=Player(strategy="never_ask", options={"start": 100}), seed=0)).f1[-1][2]

    assert final(None) == final(269) != final(50)


def test_the_papers_runs_draw_class_numbers_of_tables_and_take_all_rows_for_f1():
    for name in TABLES:
        for row in study(name).rows:
            assert row.task.class_order == ("drawn" if row.task.dataset in TABLES_OF_NUMBERS else "sorted")
            assert row.task.test_rows is None


def test_a_run_of_before_keeps_its_id():
    run = Run(
        task=Task(dataset="digits", horizon=500), player=Player(strategy="neuronal", options={"gamma": 3}), seed=4
    )
    assert run.id == "digits-neuronal-gamma=3-seed4-2d2590a3"
    assert run.model_copy(update={"task": run.task.model_copy(update={"class_order": "drawn"})}).id != run.id
