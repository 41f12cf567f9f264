"""Data sets: the right sizes, the right scaling, and one clear line for bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparingly.encoders import text_encoder
from sparingly.experiments import datasets, openml
from sparingly.experiments.csv_files import DataError
from sparingly.experiments.dataset_sources import find, named_dataset
from sparingly.experiments.datasets import from_arrays, load
from sparingly.experiments.table_encoding import encode_table


def with_data(*arguments):
    return pytest.param(*arguments, marks=pytest.mark.data)


@pytest.mark.parametrize(
    ("name", "rows", "columns", "classes"),
    [
        with_data("adult", 48842, 105, 2),
        with_data("magic_telescope", 19020, 10, 2),
        with_data("covertype", 581012, 98, 7),
        with_data("shuttle", 58000, 9, 7),
        with_data("mnist", 60000, 784, 10),
        with_data("mnist_binary", 60000, 784, 2),
        with_data("fashion_mnist", 60000, 784, 10),
        with_data("cifar10", 20000, 3072, 10),
        ("digits", 1797, 64, 10),
        ("river_shuttle", 49097, 9, 2),
        ("image_segments", 2310, 18, 7),
        ("phishing", 1250, 9, 2),
    ],
)
def test_sizes(name, rows, columns, classes):
    dataset = load(name)
    assert (len(dataset), dataset.shape, dataset.n_classes) == (rows, (columns,), classes)
    some = dataset.rows(slice(0, 100))
    assert some.dtype == np.float32
    assert np.isfinite(some).all()
    assert dataset.y.dtype == np.int64
    assert set(np.unique(dataset.y)) == set(range(classes))


@pytest.mark.parametrize("name", [with_data("adult"), with_data("covertype"), "digits"])
def test_paper_rows_have_length_one(name):
    rows = load(name).rows(slice(0, 500))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


@pytest.mark.data
def test_images_are_scaled_by_fixed_numbers_and_keep_their_test_set():
    mnist = load("mnist", flat=False)
    assert mnist.shape == (1, 28, 28)
    raw = load("mnist", "encoded", flat=False).rows(slice(0, 10))
    np.testing.assert_allclose(mnist.rows(slice(0, 10)), (raw / 255 - 0.1307) / 0.3081, rtol=1e-4, atol=1e-5)
    assert mnist.raw_test.shape == (10_000, 1, 28, 28)
    binary = load("mnist_binary")
    np.testing.assert_array_equal(binary.y, mnist.y % 2)
    fashion = load("fashion_mnist").rows(slice(0, 10))
    assert fashion.min() == -1
    assert fashion.max() == 1
    assert load("cifar10", flat=False).shape == (3, 32, 32)


@pytest.mark.data
@pytest.mark.parametrize(("encoder", "width"), [(None, 384), ("hashing", 512)])
def test_texts_are_encoded_one_row_each_by_the_usual_encoder_or_the_one_that_is_named(
    encoder, width, tmp_path, monkeypatch
):
    """A few of each data set's texts: all of them would take a minute."""

    def few(name):
        whole = named_dataset(name)
        return replace(whole, raw=whole.raw[:20], y=whole.y[:20], texts=whole.texts[:20])

    monkeypatch.setattr(datasets, "named_dataset", few)
    monkeypatch.setenv("SPARINGLY_CACHE", str(tmp_path))
    for name in ("isear", "clinc150_in_scope"):
        dataset = load(name, encoder=encoder)
        assert dataset.shape == (width,)
        rows = dataset.rows(slice(None))
        assert rows.shape == (20, width)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows, text_encoder(encoder)(dataset.texts), atol=1e-6)


@pytest.mark.data
def test_texts_come_with_what_language_models_said_of_them():
    banking, isear = named_dataset("banking77"), named_dataset("isear")
    assert banking.texts[0] == "I am still waiting on my card?"
    assert (len(banking), banking.n_classes, banking.classes[banking.y[0]]) == (13083, 77, "card_arrival")
    assert (len(isear), isear.n_classes, isear.y.dtype) == (7666, 7, np.int64)
    assert set(np.unique(isear.y)) == set(range(7))
    right = {name: int((said == isear.y).sum()) for name, said in isear.answers.items()}
    assert right == {"gpt35": 5393, "llama2_70b": 5231}
    assert int((isear.answers["llama2_70b"] == -1).sum()) == 241
    assert int((banking.answers["deepseek_v41_flash"] == banking.y).sum()) == 9719


@pytest.mark.data
def test_clinc_is_there_with_and_without_what_is_out_of_scope():
    whole, inside = named_dataset("clinc150"), named_dataset("clinc150_in_scope")
    assert (len(whole), whole.n_classes) == (23700, 151)
    assert (len(inside), inside.n_classes) == (22500, 150)
    assert "oos" not in inside.classes
    assert len(inside.texts) == 22500


@pytest.mark.data
def test_covertype_as_on_openml_and_as_measured():
    frame = pd.read_parquet(find("covertype.parquet")).iloc[:200]
    measured = load("covertype", "encoded").rows(slice(0, 200))
    np.testing.assert_array_equal(measured, frame.drop(columns="target").to_numpy(dtype=np.float32))
    low, high = np.array(openml.COVERTYPE_RANGES).T
    whole = pd.read_parquet(find("covertype.parquet")).iloc[:, :10]
    np.testing.assert_array_equal(whole.min(), low)
    np.testing.assert_array_equal(whole.max(), high)


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "magic_telescope", "shuttle", "covertype"])
def test_what_openml_would_send_is_recognised_and_anything_else_refused(name, tmp_path):
    frame = pd.read_parquet(find(f"{name}.parquet"))
    target, features = frame["target"].astype(str), frame.drop(columns="target")
    if name == "covertype":
        low, high = np.array(openml.COVERTYPE_RANGES, dtype=float).T
        features = features.astype(float)
        features.iloc[:, :10] = ((features.iloc[:, :10] - low) / (high - low)).round(6)
    shuffled = np.random.default_rng(0).permutation(len(frame))
    path = openml.keep(name, features.iloc[shuffled], target.iloc[shuffled], tmp_path)
    assert openml.recorded_hash(path)
    features.iloc[0, 0] += 1
    few = slice(1000 if name == "covertype" else None)  # of half a million rows, those will do
    with pytest.raises(DataError, match="not kept"):
        openml.keep(name, features[few], target[few], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_damaged_file_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "shuttle.parquet").write_bytes(b"damaged")
    monkeypatch.setenv("SPARINGLY_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"has sha256 .* it is damaged"):
        find("shuttle.parquet")


def test_no_data_folder_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARINGLY_DATA", str(tmp_path / "none"))
    with pytest.raises(DataError, match=r"not a folder.*sparingly datasets --fetch adult"):
        find("adult.parquet")
    monkeypatch.delenv("SPARINGLY_DATA")
    monkeypatch.setenv("SPARINGLY_CACHE", str(tmp_path))
    with pytest.raises(DataError, match=r"not set.*sparingly datasets --fetch adult"):
        find("adult.parquet")


def frame_of(**columns):
    return pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": ["p", "q", "p", "q"]} | columns)


@pytest.mark.parametrize(
    ("frame", "target", "message"),
    [
        (frame_of(), "label", "column 'label' is not in the table; its columns are a, y"),
        (frame_of(y=["p", "q", "p", "p"]), "y", "class 'q' of y is seen once, and every class needs two rows: leave"),
        (frame_of(y=["p", "q", "p", "r"]), "y", "classes 'q', 'r' of y are seen once"),
        (frame_of(y=["p", None, "p", "p"]), "y", "y is missing in row 1"),
        (frame_of(y=["p"] * 4), "y", "y is 'p' in every row"),
        (frame_of(a=[1.0, np.inf, 0.0, 0.0]), "y", "column 'a' is infinite in row 1"),
        (frame_of().drop(columns="a"), "y", "no column is left"),
    ],
)
def test_bad_tables(frame, target, message):
    with pytest.raises(DataError, match=message.replace("(", r"\(")):
        encode_table(frame, target)


def test_of_many_classes_seen_once_some_are_named():
    kinds = ["p"] * 20 + [f"k{k}" for k in range(7)]
    with pytest.raises(DataError, match="classes 'k0', 'k1', 'k2', 'k3', 'k4' and 2 more of y are seen once"):
        encode_table(pd.DataFrame({"a": np.arange(27.0), "y": kinds}), "y")


def test_a_column_of_text_is_named():
    frame = pd.DataFrame({"note": [f"note number {i}" for i in range(40)], "y": [0, 1] * 20})
    with pytest.raises(DataError, match=r"column 'note' is text \(40 distinct values in 40 rows"):
        encode_table(frame, "y")
    with pytest.raises(DataError, match="no column is left"):
        encode_table(frame, "y", drop=("note",))


def test_files_of_mixed_types(tmp_path: Path):
    frame = pd.DataFrame(
        {
            "size": [1, 2, None, 4],
            "new": [True, False, True, False],
            "kind": ["a", None, "b", "a"],
            "label": [3, 5, 3, 5],
        }
    )
    frame.to_csv(tmp_path / "mine.csv", index=False)
    frame.to_parquet(tmp_path / "mine.parquet")
    for name in ("mine.csv", "mine.parquet"):
        dataset = load(tmp_path / name, "encoded", target="label")
        assert (dataset.name, dataset.classes) == ("mine", ("3", "5"))
        row = dict(zip(dataset.schema.columns, dataset.X[2].tolist(), strict=True))
        assert (row["size"], row["size is missing"], row["new"], row["kind=b"]) == (2, 1, 1, 1)
    assert load(tmp_path / "mine.csv", target="label").X[2, 0] < 0, "a missing number is -1 in the paper's experiments"
    with pytest.raises(DataError, match="needs a target"):
        load(tmp_path / "mine.csv")
    with pytest.raises(DataError, match="is not a file"):
        load(tmp_path / "other.csv", target="label")


def test_arrays_must_go_together():
    with pytest.raises(DataError, match="they must go together"):
        from_arrays(np.zeros((3, 2)), [0, 1, 0, 1])
