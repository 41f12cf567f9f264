"""The command line: bad input is one line and exit code 2, good input leaves results and a report."""

from __future__ import annotations

import json
import shlex

import pandas as pd
import pytest

from sparingly.commands.main import main
from sparingly.experiments import dataset_sources
from sparingly.experiments.runs.run_records import Results


@pytest.fixture
def no_figures(monkeypatch):
    """Reports without the figures, which take longest: for tests that look at what is run, and not at the report."""
    monkeypatch.setattr("sparingly.experiments.reports.report.draw_all", lambda digest: [])
    monkeypatch.setattr("sparingly.experiments.reports.report.draw_costs_over_time", lambda *parts: b"")


@pytest.fixture
def tables(tmp_path):
    rows = [{"size": i % 7, "kind": "ab"[i % 2], "label": "no" if i % 3 else "yes"} for i in range(60)]
    pd.DataFrame(rows).to_csv(tmp_path / "good.csv", index=False)
    once = [*rows, {"size": 1, "kind": "a", "label": "perhaps"}]
    pd.DataFrame(once).to_csv(tmp_path / "once.csv", index=False)
    pd.DataFrame(rows).assign(note=[f"n{i}" for i in range(60)]).to_csv(tmp_path / "text.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("run --data digit", "there is no data set 'digit'; did you mean digits?"),
        ("run --strategy neural_cpb", "there is no strategy 'neural_cpb'; did you mean neural_cbp"),
        ("run --strategy neural_cbp,colour=1", "neural_cbp colour=1 cannot play digits:"),
        ("run --noise 3", "noise is 3.0: Input should be less than or equal to 1"),
        ("run --costs zero", "costs 'zero' are not numbers"),
        ("run --costs 0,1;1,0", "digits: costs has shape (2, 2): 10 classes need 10 rows (announced)"),
        ("run --data phishing --cost announced=Tru,true=False:2", "there is no class 'Tru'; did you mean True?"),
        ("run --costs 0,1;1,0 --cost announced=0,true=1:2", "are both given: choose one of them"),
        ("run --on mars", "on is 'mars'"),
        ("run --data good.csv", "good.csv needs a target"),
        ("run --data none.csv --target label", "none.csv is not a file"),
        (
            "run --data good.csv --target colour",
            "column 'colour' is not in the table; its columns are size, kind, label",
        ),
        ("run --data once.csv --target label", "class 'perhaps' of label is seen once"),
        ("run --data text.csv --target label", "column 'note' has 60 distinct values in 60 rows, such as 'n0': leave"),
        ("run --data good.csv --target label --text colour", "column 'colour' is not in the table"),
        ("run --data text.csv --target label --text note --encoder hashin", "there is no text encoder 'hashin'"),
        ("run --settings none.toml", "none.toml cannot be read"),
        ("reproduce q9", "there is no experiment 'q9'"),
        ("reproduce q1 --data mnist", "--data mnist: there are mnist_binary, magic_telescope, adult"),
        ("reproduce q2 --strategy cesa", "--strategy cesa: there are neural_cbp, ineural, neuronal"),
        ("reproduce q1 --minutes 0", "minutes is 0.0: Input should be greater than 0"),
        ("report nowhere", "nowhere holds no results"),
        ("query select", "results holds no results"),
        ("run --strategy good.py:Mine", "the strategy 'good.py:Mine' cannot be loaded"),
    ],
)
def test_bad_input_is_one_line(sparingly, tables, words, line):
    code, _, told = sparingly(*words.split())
    assert code == 2
    assert told.count("\n") == 1, told
    assert line in told
    assert not (tables / "results" / "runs").exists()


def test_missing_data_say_how_to_get_them(sparingly, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARINGLY_DATA", str(tmp_path / "none"))
    dataset_sources.named_dataset.cache_clear()
    code, _, told = sparingly("run", "--data", "adult")
    assert code == 2
    assert told.count("\n") == 1
    assert "sparingly datasets --fetch adult" in told


def test_results_of_another_version_are_refused(sparingly, tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "sparingly.json").write_text(json.dumps({"format": 0, "version": "0.0.1"}))
    code, _, told = sparingly("run", "--data", "phishing", "--strategy", "never_ask")
    assert code == 2
    assert "was made by version 0.0.1 (format 0)" in told
    assert told.count("\n") == 1


def test_a_study_of_ones_own_from_a_file_of_settings(sparingly, tables):
    (tables / "mine.py").write_text(
        "from sparingly.strategies.baselines.never_ask import NeverAsk\n\n\nclass Mine(NeverAsk):\n    name = 'mine'\n"
    )
    (tables / "study.toml").write_text(
        'data = ["good.csv"]\ntarget = "label"\nstrategy = ["never_ask", "mine.py:Mine"]\nseeds = 9\nhorizon = 40\n'
        'preprocessing = "streaming"\ncosts = [[0, 1], [0.5, 0]]\nnoise = 0.1\ndrift = "abrupt"\ndelay = 3\n'
        "workers = 1\n"
    )
    code, planned, told = sparingly("run", "--settings", "study.toml", "--seeds", "2", "--dry-run")
    assert code == 0, told
    assert "4 runs, 0 done, 4 to do (160 rounds): about" in planned
    assert not (tables / "results").exists()
    code, _, told = sparingly("run", "--settings", "study.toml", "--seeds", "2")
    assert code == 0, told
    runs, _ = Results(tables / "results").frames()
    assert len(runs) == 4
    assert set(runs["strategy"]) == {"never_ask", "mine.py:Mine"}
    assert (tables / "results" / "report.html").is_file()
    sql = "select strategy, count(*) as n, sum(rounds.regret) from rounds join runs using (run) group by all"
    code, asked, told = sparingly("query", sql, "--csv")
    assert code == 0, told
    assert "never_ask,80," in asked
    code, _, told = sparingly("query", "select nothing from nowhere")
    assert code == 2
    assert told.startswith("sparingly: the query failed: ")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        "--cost announced=no,true=yes:5",
        "--cost costs.csv",
        "--cost [[0,5],[1,0]]",
        "--costs costs.csv",
        "--costs [[0,5],[1,0]]",
    ],
)
def test_costs_are_told_back_in_words(sparingly, tables, words):
    (tables / "costs.csv").write_text("announced\\true,yes,no\nyes,0,1\nno,5,0\n")
    start = "run --data good.csv --target label --strategy never_ask --seeds 1 --dry-run"
    code, told, _ = sparingly(*start.split(), *words.split())
    assert code == 0
    assert "announcing no when it is yes costs 5, announcing yes when it is no costs 1" in told


def test_datasets_are_listed(sparingly):
    code, told, _ = sparingly("datasets")
    assert code == 0
    assert len(told.splitlines()) == 16


def test_a_failure_is_told_and_leaves_exit_code_1(sparingly, tables):
    (tables / "broken.py").write_text(
        "from sparingly.strategies.baselines.never_ask import NeverAsk\n\n\nclass Broken(NeverAsk):\n"
        "    def _choose(self, assessment, row):\n        raise RuntimeError('no')\n"
    )
    words = "run --data phishing --strategy broken.py:Broken --strategy never_ask --seeds 1 --horizon 30 --workers 1"
    code, _, told = sparingly(*words.split())
    assert code == 1
    assert "RuntimeError: no" in told
    assert "1 runs failed; their tracebacks are in results/failures" in told
    code, _, told = sparingly(*words.split())
    assert code == 1
    assert "--retry does them again" in told


@pytest.mark.usefixtures("no_figures")
def test_a_changed_file_runs_anew_and_says_so(sparingly, tables):
    words = "run --data good.csv --target label --strategy mine.py:Mine --strategy never_ask --seeds 1 --workers 1"
    code = (
        "from sparingly.strategies.baselines.never_ask import NeverAsk\n\n\nclass Mine(NeverAsk):\n    name = 'mine'\n"
    )
    (tables / "mine.py").write_text(code)

    def told(*more: str) -> str:
        left, said, refused = sparingly(*words.split(), *more)
        assert left == 0, refused
        return said

    assert "2 runs, 0 done, 2 to do (102 rounds)" in told()
    assert "2 runs, 2 done, 0 to do" in told()
    assert "2 runs, 0 done, 2 to do" in told("--query-cost", "0.5")
    frame = pd.read_csv(tables / "good.csv")
    frame.assign(size=frame["size"] + 1).to_csv(tables / "good.csv", index=False)
    again = told()
    assert "good.csv has changed since 2 of these runs were done: they are done anew" in again
    assert "2 runs, 0 done, 2 to do" in again
    (tables / "mine.py").write_text(code + "    start = 5\n")
    again = told()
    assert "mine.py has changed since 1 of these runs were done: they are done anew" in again
    assert "2 runs, 1 done, 1 to do" in again
    sql = "select count(*) from (select distinct query_cost, horizon, data_hash, code_hash, costs from runs)"
    _, asked, _ = sparingly("query", sql, "--csv")
    assert asked.split() == ["count_star()", "7"]


def test_a_file_that_changes_while_it_is_played_is_not_mixed(tables):
    from sparingly.experiments.csv_files import DataError
    from sparingly.experiments.runs.experiment_settings import Player, Run, Task
    from sparingly.experiments.runs.single_run import execute

    task = Task(dataset=str(tables / "good.csv"), target="label").noted()
    run = Run(task=task, player=Player(strategy="never_ask"))
    execute(run)
    (tables / "good.csv").write_text((tables / "good.csv").read_text() + "1,a,yes\n")
    from sparingly.experiments.runs import single_run

    single_run._dataset.cache_clear()
    with pytest.raises(DataError, match=r"good.csv has changed since the run was planned"):
        execute(run)
    assert len(execute(run.model_copy(update={"task": task.noted()})).rounds["action"]) == 52


def test_a_dry_run_lists_the_file(sparingly, tables):
    words = "run --data good.csv --target label --order file --dry-run"
    _, said, _ = sparingly(*words.split())
    assert said.splitlines()[:6] == [
        "good.csv: 60 rows",
        "good.csv: 2 columns: size (number), kind (category (2 of 6 known))",
        "good.csv: 2 classes: no (40), yes (20)",
        "good.csv: a wrong announcement costs 1; a question costs 1",
        "good.csv: 51 rows are played in their order, the others are held out",
        "good.csv: nobody is told that there are 51 rows (--horizon-known tells it)",
    ]
    assert "(1,275 rounds)" in said
    for more in ("--horizon-known", "--strategy neural_cbp", "--strategy sparing,horizon=100"):
        assert "is told" not in sparingly(*words.split(), *more.split())[1]


def test_texts_are_told_and_the_rows_that_have_none(sparingly, tables):
    told = pd.read_csv(tables / "text.csv").assign(about=[f"card number {i} is lost" for i in range(60)])
    told.loc[[3, 5], "note"] = ""
    told.to_csv(tables / "notes.csv", index=False)
    words = "run --data notes.csv --target label --text note --encoder hashing --dry-run"
    code, out, said = sparingly(*words.split())
    assert code == 0
    assert "column 'note' is read as text, encoder hashing; in 2 of 60 rows there is none\n" in out + said
    assert "column 'about' is read as text, encoder hashing\n" in out + said


def test_reproduce_lists_its_choices_and_fetch_suggests(capsys):
    with pytest.raises(SystemExit) as left:
        main(["reproduce"])
    assert not left.value.code
    assert "q1      mnist_binary, magic_telescope, adult: 7 strategies" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["datasets", "--fetch", "adlut"])
    assert "did you mean adult?" in capsys.readouterr().err


def test_some_rows_of_the_paper_are_run_and_what_time_did_not_allow_is_said(sparingly, tmp_path):
    words = "reproduce q1_app --data magic_telescope --strategy neuronal --seeds 2 --horizon 40 --workers 1"
    _, said, _ = sparingly(*words.split(), "--dry-run")
    assert said.startswith("4 runs, 0 done, 4 to do (160 rounds)")
    _, said, _ = sparingly(*words.split(), "--minutes", "0.000001")
    assert "runs were not begun in 1e-06 minutes; the same command goes on with them" in said
    code, _, _ = sparingly(*words.split())
    assert not code
    kept = [one.run for one in Results(tmp_path / "results").kept()]
    assert {(run.player.strategy, run.player.options["learning_rate"]) for run in kept} == {("neuronal", 1e-4)}
    assert [run.seed for run in kept] == [0, 1, 0, 1]


def test_a_table_is_evaluated_as_it_comes_and_what_to_do_is_said(sparingly, tmp_path):
    """The first hour with a table of one's own, as it would be typed from an empty folder."""

    def typed(line: str, code: int = 0) -> str:
        left, said, refused = sparingly(*shlex.split(line))
        assert left == code, refused
        return said + refused

    rows = [
        f"{i};{20 + i * 7 % 50},5;{('clerk', 'smith', '')[i % 3]};n{i};{('yes', 'yes ', 'no', 'no', '')[i % 5]}"
        for i in range(120)
    ]
    table = "\n".join(["id;größe;job;note;bought", *rows, ""])
    (tmp_path / "orders.csv").write_text(table, encoding="cp1252")
    (tmp_path / "known.csv").write_text("\n".join(table.splitlines()[:40]), encoding="cp1252")
    (tmp_path / "empty.csv").write_text("id;größe;bought\n")
    assert typed("run --data empty.csv --target bought", 2).count("\n") == 1
    refused = typed("run --data orders.csv --target bought", 2)
    assert "column 'note' has 96 distinct values" in refused
    assert "--drop note" in refused
    start = "run --data orders.csv --target bought --drop id,note --strategy sparing --strategy always_ask,epochs=0"
    start += " --strategy never_ask,start=0 --cost announced=no,true=yes:10 --query-cost 0.2 --seeds 1 --workers 1"
    plan = typed(f"{start} --dry-run")
    for words in (
        "read as cp1252",
        "separated by ';'",
        "decimal comma in größe",
        "'yes ', 24 times, is taken for 'yes', 24 times",
        "24 rows of 120 have no bought and are left out",
        "2 columns: größe (number), job (category",
        "2 classes: no (48), yes (48)",
        "announcing no when it is yes costs 10, announcing yes when it is no costs 1; a question costs 0.2",
        "82 rows are played in random order",
        "3 runs, 0 done, 3 to do (246 rounds)",
    ):
        assert words in plan
    start += " --order file --horizon-known --known known.csv"
    said = typed(start)
    for words in ("would have cost", "never asking", "total cost", "their price", "results/report.html"):
        assert words in said
    assert "what to do" in (tmp_path / "results" / "report.html").read_text()
    assert "3 runs, 3 done, 0 to do" in typed(start)
    (tmp_path / "orders.csv").write_text(table.replace("20,5", "21,5"), encoding="cp1252")
    assert "orders.csv has changed since 3 of these runs were done: they are done anew" in typed(start)
    sql = "select count(distinct data_hash) as files, max(query_cost) as price, max(costs) as costs from runs"
    assert typed(f'query "{sql}" --csv').splitlines()[1].startswith("2,0.2,")
