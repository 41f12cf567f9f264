"""Rows of any kind become vectors of a fixed width; what does not fit is refused with the field and the value."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from sparingly.encoders import EncodingError, RowSchema, learn_columns, learn_schema, stated_schema, text_encoder
from sparingly.encoders.learned_schema import table_columns

ROW = {"age": 39, "job": "clerk", "since": None, "vip": True, "on": datetime.date(2024, 5, 31)}


def test_every_kind_of_field_has_its_columns():
    schema = learn_schema([ROW])
    kinds = {name: field.kind for name, field in schema.fields.items()}
    assert kinds == {"age": "number", "job": "category", "since": "any", "vip": "boolean", "on": "date"}
    row = dict(zip(schema.columns, schema.encode([ROW])[0].tolist(), strict=True))
    assert (row["age"], row["job=clerk"], row["vip"], row["on: days"]) == (39, 1, 1, 8917)
    assert (row["since is missing"], row["age is missing"]) == (1, 0)
    assert len(row) == schema.width


def test_a_gap_is_a_neutral_value_and_a_mark():
    schema = learn_schema([ROW, {**ROW, "age": 41, "vip": False}])
    gaps = dict.fromkeys(ROW)
    row = dict(zip(schema.columns, schema.encode([gaps])[0].tolist(), strict=True))
    assert (row["age"], row["age is missing"]) == (40, 1)
    assert sum(value for name, value in row.items() if name.startswith("job=")) == 0
    assert all(row[f"{name} is missing"] == 1 for name in ROW)
    nans = {"age": float("nan"), "job": "", "since": pd.NA, "vip": np.float64("nan"), "on": pd.NaT}
    np.testing.assert_array_equal(schema.encode([nans]), schema.encode([gaps]))


def test_later_words_get_columns_of_their_own_until_the_room_is_full_and_the_width_stays():
    schema = stated_schema({"job": {"kind": "category", "room": 3}})
    grown = schema.grown([{"job": word} for word in ("a", "b", None, "a", "c", "d")])
    assert grown.width == schema.width == 5
    assert grown.fields["job"].values == ("a", "b", "c")
    encoded = grown.encode([{"job": word} for word in ("a", "b", "c", "d", "e", None)])
    np.testing.assert_array_equal(encoded.argmax(1), [0, 1, 2, 3, 3, 4])
    assert grown.grown([{"job": "z"}]) is grown


def test_a_field_that_was_missing_at_first_takes_whatever_comes():
    schema = learn_schema([{"since": None, "n": 1}])
    schema = schema.grown([{"since": "spring", "n": 1}])
    rows = [{"since": value, "n": 1} for value in (3, "spring", "2000-01-11", True, None)]
    encoded = schema.encode(rows)
    np.testing.assert_array_equal(encoded[:, 0], [3, 0, 10, 1, 0])
    np.testing.assert_array_equal(encoded[:, 1], [0, 1, 0, 0, 0])


def test_plain_numbers_stay_as_they_are():
    rows = [{"a": 1, "b": 2.5}, {"a": True, "b": -3}]
    schema = learn_schema(rows)
    assert schema.is_plain
    np.testing.assert_array_equal(schema.encode(rows), [[1, 2.5], [1, -3]])


def test_the_schema_survives_json():
    schema = learn_schema([{**ROW, "message": "where is my card, please?"}], encoder="hashing")
    again = RowSchema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert repr(again) == repr(schema)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"age": "old"}, "field 'age' is 'old': it must be a number"),
        ({"age": float("inf")}, "field 'age' is inf: a number must be finite"),
        ({"age": 10**400}, "a number must be finite"),
        ({"job": ["x"]}, r"field 'job' is \['x'\]: a category must be a word or a number"),
        ({"vip": "perhaps"}, "field 'vip' is 'perhaps': it must be true or false"),
        ({"on": "2024-13-01"}, "field 'on' is '2024-13-01': it must be a date"),
        ({"extra": 1}, r"field 'extra' is unknown \(1\): a row must have the fields age, job"),
    ],
)
def test_what_does_not_fit_is_refused_with_field_and_value(change, line):
    with pytest.raises(EncodingError, match=line):
        learn_schema([ROW]).encode([{**ROW, **change}])
    with pytest.raises(EncodingError, match="field 'on' is missing"):
        learn_schema([ROW]).encode([{name: value for name, value in ROW.items() if name != "on"}])


def test_a_schema_from_dtypes_a_frame_and_a_file(tmp_path):
    frame = pd.DataFrame({"age": [1, 2], "job": pd.Categorical(["a", "b"]), "on": pd.to_datetime(["2024-01-01"] * 2)})
    told = stated_schema(frame.dtypes)
    assert [field.kind for field in told.fields.values()] == ["number", "category", "date"]
    assert told.fields["job"].values == ("a", "b")
    assert [field.kind for field in stated_schema(frame).fields.values()] == ["number", "category", "date"]
    path = tmp_path / "schema.toml"
    path.write_text('encoder = "hashing"\n[fields]\nage = "number"\njob = ["a", "b"]\nnote = "text"\n')
    from_file = stated_schema(path)
    assert [field.kind for field in from_file.fields.values()] == ["number", "category", "text"]
    assert from_file.encoder["name"] == "hashing"
    path.write_text("age = ")
    with pytest.raises(EncodingError, match="is not TOML"):
        stated_schema(path)
    with pytest.raises(EncodingError, match="cannot be read"):
        stated_schema(tmp_path / "none.toml")


def test_columns_and_rows_give_the_same():
    frame = pd.DataFrame({"age": [1.5, None, 3.0] * 10, "job": ["a", None, "b"] * 10, "n": range(30)})
    schema = learn_columns(table_columns(frame))
    by_rows = schema.encode(frame.to_dict("records"))
    np.testing.assert_array_equal(schema.encode_columns(table_columns(frame)), by_rows)
    assert learn_schema(frame.to_dict("records")) == schema


def test_words_codes_and_texts_are_told_apart():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["card", "lost", "money", "where", "my", "is"], 6)) for _ in range(60)]
    schema = learn_columns(
        {"message": texts, "zip": ["01234", "09876"] * 30, "n": ["1", "2.5"] * 30, "city": ["New York", "Paris"] * 30},
        encoder="hashing",
    )
    assert {name: field.kind for name, field in schema.fields.items()} == {
        "message": "text",
        "zip": "category",
        "n": "number",
        "city": "category",
    }
    assert learn_columns({"city": ["a", "b"] * 20}, text=["city"], encoder="hashing").is_text


def test_groups_of_digits_are_no_text():
    rows = [{"phone": f"+49 {100 + k} {9000 - k}", "said": f"call me on {100 + k} please"} for k in range(60)]
    kinds = {name: field.kind for name, field in learn_schema(rows, encoder="hashing").fields.items()}
    assert kinds == {"phone": "category", "said": "text"}
    assert learn_schema([{"iban": "DE12 3456 7890 1234"}]).fields["iban"].kind == "category"
    assert learn_schema([{"message": "12 34"}], encoder="hashing").fields["message"].kind == "text"


def test_among_several_texts_the_one_that_is_refused_has_its_place():
    schema = learn_schema(["a text"], encoder="hashing")
    with pytest.raises(EncodingError, match=r"^field 'text', value 2 of 3: the text is empty"):
        schema.encode(["one", " ", "three"], text_encoder("hashing"))
    with pytest.raises(EncodingError, match=r"^field 'text': the text is empty"):
        schema.encode([" "], text_encoder("hashing"))
