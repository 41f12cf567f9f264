"""A model as ONNX gives the same classes and probabilities in onnxruntime, or is refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest

import sparingly as sp
from sparingly.commands.main import main
from sparingly.live.agent.errors import AgentError
from tests.live.conftest import QUICK, Make, stream
from tests.live.model.test_exported_model import labels, table

CLOSE, TYPICAL = 1e-4, 1e-5
"""How far probabilities of single precision may differ by the order of their sums; kernels add large numbers."""


def exported(agent: sp.Agent, folder: Path) -> tuple[sp.ExportedModel, onnxruntime.InferenceSession]:
    agent.export_model(folder / "pets.model")
    agent.export_model(folder / "pets.onnx")
    session = onnxruntime.InferenceSession(folder / "pets.onnx", providers=["CPUExecutionProvider"])
    return sp.load_model(folder / "pets.model"), session


def assert_same(model: sp.ExportedModel, session: Any, rows: Any, inputs: dict[str, Any]) -> None:
    found, held = session.run(["label", "probabilities"], inputs)
    ours = model.predict_proba(rows)
    assert np.abs(held - ours).max() < CLOSE
    assert np.median(np.abs(held - ours)) < TYPICAL
    assert ours.std(0).max() > 0.01, "probabilities that are all alike would prove nothing"
    assert list(found) == model.predict(rows)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == list(model.classes)


def beliefs(agent: sp.Agent) -> dict[str, Any]:
    state: dict[str, Any] = agent._runtime.decider.strategy.knowledge.beliefs.state_dict()
    return state


def test_networks_kernels_and_trees_come_out_the_same(make: Make, path: Path) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 20)) * 10, rng.normal(size=(200, 20)) * 12
    kinds = ["dog" if x[0] // 6 % 2 == 0 else "cat" for x in X]
    agent = make(n_features=20, strategy=None, costs=[[0, 3], [1, 0]], query_cost=0.3)
    agent.teach(X, kinds)
    state = beliefs(agent)
    assert state["calibration"][2] > 0, "kernels must have a share"
    assert state["tree_calibration"][1] > 0, "trees must have a share"
    assert_same(*exported(agent, path.parent), new, {"features": new.astype(np.float32)})


def test_directions_and_classes_that_no_label_named_come_out_the_same(make: Make, path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kinds = [int(abs(x[0]) * 4 + (x[1] > 0) * 4 + 1) if k else 0 for k, x in enumerate(X[:90])]
    agent = make(classes=list(range(12)), n_features=6, strategy=None)
    agent.teach(X[:90], kinds)
    assert beliefs(agent)["unheard"][11] > 0
    assert_same(*exported(agent, path.parent), X[90:], {"features": X[90:].astype(np.float32)})


def test_what_classes_are_called_comes_out_the_same(make: Make, path: Path) -> None:
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(14, 9)), rng.integers(13, size=200)
    X = centres[y] + rng.normal(size=(200, 9))
    X, names = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, centres))
    agent = make(
        classes=list(range(14)), n_features=9, strategy="sparing", options={"class_vectors": names.round(4).tolist()}
    )
    agent.teach(X[:60], y[:60].tolist())
    state = beliefs(agent)
    assert state["names"]["share"] > 0.1
    assert state["sharpness"] != 1
    assert_same(*exported(agent, path.parent), X[60:], {"features": X[60:].astype(np.float32)})


def test_rows_with_words_gaps_and_truths_have_an_input_for_each_field(make: Make, path: Path) -> None:
    known, new = table(200), table(60, seed=1)
    for frame in (known, new):
        frame["member"] = np.random.default_rng(2).random(len(frame)) < 0.5
    agent = make(n_features=None, strategy=None, costs=[{"announced": "cat", "true": "dog", "cost": 5}], query_cost=0.4)
    agent.teach(known, labels(known))
    new.loc[3, "job"] = "a word that is new"
    inputs = {
        "age": new["age"].to_numpy(np.float32)[:, None],
        "job": new["job"].fillna("").to_numpy(object)[:, None],
        "member": new["member"].to_numpy(np.float32)[:, None],
    }
    assert_same(*exported(agent, path.parent), new, inputs)


def test_numbers_with_names_take_a_gap_for_the_neutral_value(make: Make, path: Path) -> None:
    X = stream(80)
    agent = make(n_features=None, classes=[0, 1], strategy=None)
    agent.teach(pd.DataFrame(X, columns=["a", "b", "c"]), [int(x[0] > 0) for x in X])
    new = stream(20, 1).astype(np.float32)
    model, session = exported(agent, path.parent)
    assert_same(model, session, pd.DataFrame(new, columns=["a", "b", "c"]), {"features": new})
    new[0, 1] = np.nan
    held = session.run(["probabilities"], {"features": new[:1]})[0]
    told = {"a": float(new[0, 0]), "b": None, "c": float(new[0, 2])}
    assert np.abs(held - model.predict_proba([told])).max() < CLOSE
    assert json.loads(session.get_modelmeta().custom_metadata_map["fields"]) == ["a", "b", "c"]


@pytest.mark.parametrize("options", [{"network": "lenet", "members": 2}, {}])
def test_pictures_come_out_the_same(make: Make, path: Path, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 1, 16, 16)).astype(np.float32)
    X[::2, :, :8] += 0.4
    agent = make(n_features=(1, 16, 16), strategy="sparing", options=options)
    agent.teach(X, ["dog", "cat"] * 20)
    assert_same(*exported(agent, path.parent), X, {"features": X})


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_strategy_of_one_network_comes_out_the_same(make: Make, path: Path, n_classes: int) -> None:
    agent = make(classes=["cat", "dog", "cow"][:n_classes], strategy="entropy", options=QUICK)
    X, new = stream(60), stream(20, 1)
    agent.teach(X, [["cat", "dog", "cow"][int(x[0] > 0) + int(n_classes == 3 and x[1] > 0)] for x in X])
    assert_same(*exported(agent, path.parent), new, {"features": new.astype(np.float32)})


def test_what_cannot_be_exact_is_refused_in_one_line(make: Make, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = path.with_name("m.onnx")
    agent = make(strategy="cbp_side")
    agent.teach(stream(30), ["cat", "dog"] * 15)
    with pytest.raises(AgentError, match="strategy cbp_side cannot be exported to ONNX"):
        agent.export_model(target)
    with pytest.raises(AgentError, match="format is 'pmml': it must be 'sparingly' or 'onnx'"):
        agent.export_model(target, format="pmml")
    agent.close()
    texts = make(path=path.with_name("texts.db"), n_features=None, strategy=None, encoder="hashing")
    texts.teach(["win a prize", "see you at noon"] * 15, ["dog", "cat"] * 15)
    with pytest.raises(AgentError, match="field 'text' is read as text, which ONNX cannot do exactly"):
        texts.export_model(target)
    texts.close()
    young = make(path=path.with_name("young.db"), strategy=None)
    young.teach(stream(5), ["cat"] * 5)
    with pytest.raises(AgentError, match="no model to export yet: 5 labels are too few"):
        young.export_model(path.with_name("m"), format="onnx")
    assert not list(path.parent.glob("m*"))
    for name in [name for name in sys.modules if name.startswith("sparingly.live.model.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(AgentError, match=r"needs onnx: pip install 'sparingly\[onnx\]'"):
        young.export_model(target)


def test_the_command_writes_it_and_load_model_says_who_reads_it(
    make: Make, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = make(strategy=None)
    agent.teach(stream(40), ["dog" if x[0] > 0 else "cat" for x in stream(40)])
    agent.close()
    with pytest.raises(SystemExit):
        main(["agent", "export-model", str(path), str(path.with_name("pets.onnx"))])
    assert "a model with 2 classes" in capsys.readouterr().out
    with pytest.raises(AgentError, match="onnxruntime reads an ONNX model"):
        sp.load_model(path.with_name("pets.onnx"))
