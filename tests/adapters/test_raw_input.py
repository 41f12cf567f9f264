"""The scikit-learn adapter takes texts and tables with words as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sparingly.adapters.sklearn import SparingClassifier
from sparingly.encoders import text_encoder


def test_a_list_of_strings(tmp_path):
    texts = [f"{'where is my card' if i % 2 else 'open a new account'} number {i}" for i in range(60)]
    labels = ["card" if i % 2 else "account" for i in range(60)]
    model = clone(SparingClassifier(encoder="hashing", classes=["account", "card"]))
    asked = model.query(texts)
    model.update(texts, asked).partial_fit([texts[i] for i in asked], [labels[i] for i in asked])
    assert model.n_features_in_ == 512
    assert model.predict(["my card, where is it?", "a new account please"]).tolist() == ["card", "account"]
    assert model.predict(np.array(["my card, where is it?"])).tolist() == ["card"]
    with pytest.raises(ValueError, match="the text is empty"):
        model.predict([""])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("", r"X\[2\]: the text is empty"),
        (b"\xff", r"X\[2\]: the text is not UTF-8: byte 0xff at place 0"),
        (None, r"X\[2\]: a text is None: it must be a string"),
        (3, r"X\[2\]: a text is 3: it must be a string"),
        ("a b " * 300_000, r"X\[2\]: the text 'a b a b a b ... a b a b a b ' has 1200000 characters"),
    ],
    ids=["empty", "bytes", "missing", "number", "endless"],
)
def test_what_is_no_text_is_refused_with_its_place(bad, said):
    texts, labels = ["my card", "your money"], ["a", "b"]
    model = SparingClassifier(encoder="hashing", classes=labels)
    with pytest.raises(ValueError, match=said):
        model.fit([*texts, bad], [*labels, "a"])
    assert not hasattr(model, "classes_")
    model.fit(texts, labels)
    with pytest.raises(ValueError, match=said.replace("2", "0", 1)):
        model.predict([bad])


def test_one_text_is_no_list_of_them():
    with pytest.raises(ValueError, match="X is the text 'my card': give a list of texts"):
        SparingClassifier(encoder="hashing").fit("my card", ["a"])


def _told(model):
    """What Sparing inside was told of its classes."""
    return model._strategy.knowledge.beliefs._names


def test_labels_that_are_words_say_what_the_texts_may_be_about():
    texts = ["my card was stolen", "the transfer is late", "a new card please", "where is my money transfer"]
    labels = ["lost_card", "bankTransfer", "lost_card", "bankTransfer"]
    model = SparingClassifier(encoder="hashing").fit(texts, labels)
    spoken = text_encoder("hashing")(["bank Transfer", "lost card"])
    np.testing.assert_array_equal(_told(model).vectors.numpy(), spoken)
    first = SparingClassifier(encoder="hashing", classes=["lost_card", "bankTransfer"]).update(texts, [0])
    np.testing.assert_array_equal(_told(first).vectors.numpy(), spoken)
    assert _told(SparingClassifier(encoder="hashing").fit(texts, [0, 1, 0, 1])) is None
    assert _told(SparingClassifier(encoder="hashing", strategy__class_vectors=None).fit(texts, labels)) is None
    mine = SparingClassifier(encoder=lambda some: [[len(text), text.count(" ")] for text in some])
    assert _told(mine.fit(texts, labels)) is None
    assert _told(SparingClassifier().fit(np.eye(4), labels)) is None
    assert SparingClassifier("neural_cbp", encoder="hashing").fit(texts, labels).n_features_in_ == 512


def test_a_frame_with_words_and_gaps():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 80).astype(float), "job": rng.choice(["clerk", "smith"], 80)})
    y = (frame["job"] == "smith").to_numpy()
    frame.loc[::7, "age"] = np.nan
    model = SparingClassifier().fit(frame, y)
    assert (model.predict(frame) == y).mean() > 0.95
    assert model.predict([{"age": None, "job": "smith"}]).tolist() == [True]
    model.partial_fit(frame.head(1).assign(job="baker"), [True])
    with pytest.raises(ValueError, match="field 'job' is missing"):
        model.predict([{"age": 3}])
