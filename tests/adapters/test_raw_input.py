"""The scikit-learn adapter takes texts and tables with words as they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sparingly.adapters.sklearn import SparingClassifier


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
