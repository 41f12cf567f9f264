"""CSV files as they come: how they are written is found out, and what looks wrong is said or refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparingly as sp
from sparingly.encoders import text_encoder
from sparingly.encoders.csv_format import CsvFormat
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.datasets import load
from sparingly.experiments.runs import single_run
from sparingly.experiments.runs.experiment_settings import Player, Run, Task
from sparingly.experiments.runs.single_run import execute
from sparingly.experiments.streams import stream


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = rng.normal(10, 3, n).round(2)
    return pd.DataFrame(
        {"größe": size, "art": rng.choice(["klein; fein", "groß"], n), "y": np.where(size > 10, "yes", "no")}
    )


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(("decimal", "quote"), [(".", '"'), (",", '"'), (".", "'")])
def test_however_it_is_written_it_is_the_same_table(tmp_path, separator, encoding, decimal, quote):
    frame = table()
    frame.to_csv(tmp_path / "one.csv", index=False)
    how = {"sep": separator, "encoding": encoding, "decimal": decimal, "quotechar": quote}
    frame.to_csv(tmp_path / "other.csv", index=False, **how)
    one, other = (load(tmp_path / name, "encoded", target="y") for name in ("one.csv", "other.csv"))
    assert other.schema == one.schema
    assert other.X.tolist() == one.X.tolist()
    assert other.classes == one.classes
    notes = " ".join(other.notes)
    assert not one.notes
    assert ("separated by" in notes) == (separator != ",")
    assert ("read as cp1252" in notes) == (encoding == "cp1252")
    assert ("decimal comma in größe" in notes) == (decimal == ",")


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=4), min_size=1, max_size=6), st.sampled_from(",;|"))
def test_any_text_has_a_format(rows, separator):
    content = "\n".join(separator.join(row) for row in rows).encode(errors="surrogatepass")
    found, text = CsvFormat().read(content)
    assert found.separator
    assert isinstance(text, str)


def test_what_is_stated_wins(tmp_path):
    (tmp_path / "a.csv").write_text("x;z;y\n" + '1,5;"a";p\n2,5;"b";q\n' * 20)
    assert load(tmp_path / "a.csv", "encoded", target="y").schema.fields["x"].kind == "number"
    words = load(tmp_path / "a.csv", "encoded", target="y", csv=CsvFormat(decimal="."))
    assert words.schema.fields["x"].kind == "category"
    with pytest.raises(DataError, match="a line has more cells than the header: check the separator"):
        load(tmp_path / "a.csv", "encoded", target="y", csv=CsvFormat(separator=","))


def test_thousands_are_not_decimals(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + '"1,200",p\n"35",q\n' * 20)
    assert load(tmp_path / "a.csv", "encoded", target="y").X[:2, 0].tolist() == [1200, 35]


def test_rows_without_a_label_are_left_out_and_counted(tmp_path):
    frame = table()
    frame["y"] = (frame["y"] == "yes").astype(float)
    frame.loc[[1, 5], "y"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = load(tmp_path / "a.csv", "encoded", target="y")
    assert len(data) == 58
    assert data.classes == ("0", "1")
    assert data.notes == ("2 rows of 60 have no y and are left out (--unlabelled keep scales by them)",)
    kept = frame.drop(index=[1, 5])
    assert data.X[:, 0].tolist() == kept["größe"].astype(np.float32).tolist()


@pytest.mark.parametrize("strategy", ["sparing", "margin"])
def test_rows_without_a_label_may_be_kept_for_scaling(tmp_path, strategy):
    frame = table(120)
    frame.loc[20:, "y"] = None
    frame.loc[70, "art"] = "only without a label"
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = load(tmp_path / "a.csv", "encoded", target="y", unlabelled="keep")
    assert len(data) == 20
    assert data.unlabelled.shape == (100, data.n_features)
    assert data.unlabelled[:, 0].tolist() == frame["größe"][20:].astype(np.float32).tolist()
    assert data.notes == ("100 rows of 120 have no y and only serve to scale the features",)
    task = {"dataset": str(tmp_path / "a.csv"), "target": "y", "preprocessing": "auto"}
    dropped, kept = (Task(**task, unlabelled=what) for what in ("drop", "keep"))
    runs = [Run(task=one, player=Player(strategy=strategy), seed=0) for one in (dropped, kept)]
    assert runs[0].id == Run(task=Task(**task), player=Player(strategy=strategy), seed=0).id != runs[1].id
    rounds = [len(execute(run).rounds["action"]) for run in runs]
    assert rounds == [17, 17]
    with pytest.raises(DataError, match="preprocessing paper"):
        load(tmp_path / "a.csv", target="y", unlabelled="keep")


def test_a_strategy_that_scales_scales_by_what_it_previews():
    X = np.random.default_rng(0).normal(size=(300, 2)) * [1, 100]
    taught, previewed = (sp.Sparing(sp.label_efficient(2), 2, seed=0) for _ in range(2))
    for one in (taught, previewed):
        one.teach(X[:30], (X[:30, 0] > 0).astype(int))
    previewed.preview(X[30:])
    assert previewed.clock == 0
    assert previewed.n_labels == previewed.n_taught - 30 == 0
    assert len(previewed.knowledge._stream.rows) == 300
    assert len(taught.knowledge._stream.rows) == 30
    with pytest.raises(ValueError, match="shape"):
        previewed.preview(X[:, :1])


def test_what_looks_wrong_is_said(tmp_path):
    frame = table()
    frame.loc[3, "y"] = "yes "
    frame["count"] = range(60)
    frame.loc[4:6, "y"] = "No"
    frame.to_csv(tmp_path / "a.csv", index=False)
    data = load(tmp_path / "a.csv", "encoded", target="y")
    assert data.classes == ("No", "no", "yes")
    assert [note.partition(":")[0] for note in data.notes] == ["warning"] * 3
    said = " ".join(data.notes)
    assert "'yes ', 1 times, is taken for 'yes'" in said
    assert "the classes 'No' and 'no' differ in capitals alone" in said
    assert "count counts the rows: leave it out with --drop count" in said
    (tmp_path / "b.csv").write_text("5.1,3.5,setosa\n" + "4.9,3.0,setosa\n6.1,2.2,rosea\n" * 9)
    assert "the first line looks like data" in load(tmp_path / "b.csv", "encoded", target="setosa").notes[0]


def test_all_bad_columns_are_named_at_once_with_the_cell_and_what_helps(tmp_path):
    frame = table().assign(key=[f"k{i}" for i in range(60)], age=[str(i) for i in range(20, 80)], worth=1.5)
    frame.loc[7, "age"] = "un known"
    frame.loc[9, "worth"] = np.inf
    frame.loc[2, "y"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError) as refused:
        load(tmp_path / "a.csv", "encoded", target="y")
    head, key, age, worth = str(refused.value).split("\n  ")
    assert head == "3 columns cannot be used as they are; --drop key,age,worth leaves them out"
    assert "column 'key' has 59 distinct values in 59 rows, such as 'k0'" in key
    assert "(--text key)" in key
    assert "column 'age' is 'un known' in row 8 and a number in 58 others" in age
    assert "(--missing 'un known')" in age
    assert worth == "column 'worth' is infinite in row 10: leave it out (--drop worth)"
    data = load(tmp_path / "a.csv", "encoded", target="y", drop=("key,worth",), missing=("un known",))
    assert data.schema.fields["age"].kind == "number"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a,b,y\n", "a.csv has a header and no rows"),
        ("", "a.csv: the file is empty"),
        ("a,b,y\n1,2,p\n1,2,3,q\n", "a.csv cannot be read: Expected 3 fields in line 3, saw 4"),
        ("a,b,y\n1,2,p,3\n1,2,q,4\n", "a.csv: a line has more cells than the header"),
        ("a,b,y\n1,2,\n1,2,\n", "y is missing in every row"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, content, line):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError) as refused:
        load(tmp_path / "a.csv", "encoded", target="y")
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_order_of_the_file_is_kept_but_for_what_is_held_out(tmp_path):
    table().to_csv(tmp_path / "a.csv", index=False)
    data = load(tmp_path / "a.csv", "encoded", target="y")
    one, other = (stream(data, seed, shuffled=False) for seed in (0, 1))
    for source in (one, other):
        assert (np.diff(source.index) > 0).all()
        assert not set(source.index) & set(source.held_out)
    assert set(one.index) == set(stream(data, 0).index)
    assert set(one.index) != set(other.index)


@pytest.mark.parametrize(
    ("beside", "missing"),
    [({}, []), ({}, [3]), ({"age": range(40)}, [])],
    ids=["texts alone", "one missing", "texts beside numbers"],
)
def test_sparing_is_given_the_names_of_classes_where_a_row_is_one_text(tmp_path, beside, missing):
    texts = [None if k in missing else f"message number {k} about a card or money" for k in range(40)]
    rows = {"message": texts, **beside}
    pd.DataFrame({**rows, "kind": ["lost_card", "lateMoney"] * 20}).to_csv(tmp_path / "mails.csv", index=False)
    task = Task(dataset=str(tmp_path / "mails.csv"), target="kind", preprocessing="auto", encoder="static")
    run = Run(task=task, player=Player(strategy="sparing"), seed=0)
    source, _ = single_run._source(run)
    names = single_run.make_strategy(run, sp.label_efficient(2), source).knowledge.beliefs._names
    if beside:
        assert names is None
    else:
        expected = text_encoder("static")(["late Money", "lost card"])
        np.testing.assert_allclose(names.vectors.numpy()[:, :256], expected, atol=1e-6)
