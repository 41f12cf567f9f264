"""An agent's model as ONNX: what `predict_proba` and `predict` compute, for a runtime that knows nothing of us.

It is written where it computes the same numbers, up to the rounding of single precision, and refused otherwise.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from torch import Tensor

from sparingly.encoders import RowSchema
from sparingly.encoders.fields import BooleanField, CategoryField, NumberField, RowField
from sparingly.learning.state_files import replace_whole
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError
from sparingly.live.model.onnx_graph import (
    OnnxGraph,
    add_class_names,
    add_kernel_members,
    add_mlp_members,
    add_module,
    add_quantile_scaling,
    add_tree_members,
)
from sparingly.strategies.families.classifier_strategy import ClassifierStrategy
from sparingly.strategies.sparing.models.ensemble import MLPEnsemble, ModuleEnsemble
from sparingly.strategies.sparing.sparing import Sparing
from sparingly.strategies.strategy import Strategy

FEATURES = "features"
"""The only input, where an observation is numbers; rows with words or missing values have an input for each field."""


def write_onnx(path: str | os.PathLike[str], settings: AgentSettings, strategy: Strategy) -> None:
    """Write the model to a file, which appears whole or not at all; its outputs are `label` and `probabilities`."""
    graph = OnnxGraph()
    held = _add_strategy(graph, strategy, _add_inputs(graph, settings))
    _add_outputs(graph, settings, held)
    properties = {"classes": json.dumps(list(settings.classes)), "observation": settings.schema.described}
    if settings.names is not None:
        properties["fields"] = json.dumps(list(settings.names))
    replace_whole(path, graph.model(properties).SerializeToString())


def _add_inputs(graph: OnnxGraph, settings: AgentSettings) -> str:
    """The encoded observations, `[block, *shape]`."""
    schema, shape = settings.schema, settings.shape
    assert shape is not None
    if schema.is_raw:
        assert schema.table is not None
        return _add_fields(graph, schema.table)
    features = graph.input(FEATURES, np.float32, [None, *shape])
    if schema.table is None:
        return features
    neutral = [field.neutral for field in schema.table.fields.values() if isinstance(field, NumberField)]
    return graph.add(
        "Where", graph.add("IsNaN", features), graph.constant(np.array(neutral, dtype=np.float32)), features
    )


def _add_fields(graph: OnnxGraph, table: RowSchema) -> str:
    for name, field in table.fields.items():
        if not isinstance(field, NumberField | BooleanField | CategoryField):
            raise AgentError(
                f"field {name!r} is read as {field.described}, which ONNX cannot do exactly: export without .onnx"
            )
    return graph.add("Concat", *(_add_field(graph, name, field) for name, field in table.fields.items()), axis=1)


def _add_field(graph: OnnxGraph, name: str, field: RowField) -> str:
    """A field's columns: a number or nan, 1, 0 or nan, or a word that may be empty."""
    if isinstance(field, CategoryField):
        word = graph.input(name, str, [None, 1])
        known = {word: place for place, word in enumerate(field.values)} | {"": field.room + 1}
        options: dict[str, Any] = {"keys_strings": list(known), "values_int64s": list(known.values())}
        place = graph.add("LabelEncoder", word, domain="ai.onnx.ml", default_int64=field.room, **options)
        bounds = np.array([0, 1], dtype=np.float32)
        flat = graph.reshape(place, -1)
        columns = graph.add("OneHot", flat, graph.constant(np.array(field.room + 2)), graph.constant(bounds))
        return columns if field.marks_gaps else _first(graph, columns, field.room + 1)
    value = graph.input(name, np.float32, [None, 1])
    is_absent = graph.add("IsNaN", value)
    neutral = field.neutral if isinstance(field, NumberField) else 0.0
    known_or_neutral = graph.add("Where", is_absent, graph.constant(np.array([[neutral]], dtype=np.float32)), value)
    if not field.marks_gaps:
        return known_or_neutral
    return graph.add("Concat", known_or_neutral, graph.cast(is_absent, np.float32), axis=1)


def _first(graph: OnnxGraph, columns: str, count: int) -> str:
    start, end, axis = (graph.constant(np.array([one])) for one in (0, count, 1))
    return graph.add("Slice", columns, start, end, axis)


def _add_strategy(graph: OnnxGraph, strategy: Strategy, x: str) -> str:
    """What the strategy holds likely, `[block, class]`, in double precision."""
    if isinstance(strategy, Sparing):
        return graph.cast(_add_beliefs(graph, strategy, x), np.float64)
    if isinstance(strategy, ClassifierStrategy):
        logits = add_module(graph, strategy.classifier, x)
        return graph.add("Softmax", graph.cast(logits, np.float64), axis=1)
    raise AgentError(f"strategy {strategy.name} cannot be exported to ONNX: sparing and uncertainty sampling can")


def _add_beliefs(graph: OnnxGraph, strategy: Sparing, x: str) -> str:
    """The mean of the members: networks, kernels and trees, each calibrated and mixed by their shares."""
    beliefs, ensemble = strategy.knowledge.beliefs, strategy.knowledge.beliefs.ensemble
    if strategy.knowledge.worth is None:
        raise AgentError(f"there is no model to export yet: {len(strategy.knowledge.bought)} labels are too few")
    state = beliefs.state_dict()
    temperature, contrast, share, _ = state["calibration"]
    if isinstance(ensemble, MLPEnsemble):
        rows = add_quantile_scaling(graph, state["scaling"], graph.add("Flatten", x))
        logits = add_mlp_members(graph, ensemble.views(ensemble.parameters), rows)
    elif isinstance(ensemble, ModuleEnsemble):
        shifted = graph.add("Sub", x, graph.constant(np.float32(state["scaling"]["shift"])))
        scaled = graph.add("Div", shifted, graph.constant(np.float32(state["scaling"]["scale"])))
        rows, apart = graph.add("Flatten", scaled), graph.constant(np.array([0]))
        members = [graph.add("Unsqueeze", add_module(graph, one, scaled), apart) for one in ensemble.modules]
        logits = graph.add("Concat", *members, axis=0)
    else:
        raise AgentError(f"the model {type(ensemble).__name__} inside sparing cannot be exported to ONNX: only our own")
    held = _softmax(graph, logits, 1 / temperature)
    if share:
        scores = add_kernel_members(graph, state["kernel"], beliefs.members, rows)
        held = _mix(graph, held, _softmax(graph, scores, contrast), share)
    tree_temperature, tree_share = state["tree_calibration"]
    if tree_share:
        trees = graph.add("Log", add_tree_members(graph, state["trees"], beliefs.members, graph.add("Flatten", x)))
        held = _mix(graph, held, _softmax(graph, trees, 1 / tree_temperature), tree_share)
    named = add_class_names(graph, state["names"], rows) if "names" in state and beliefs.directions else None
    if state["unheard"] is not None:
        kept = graph.add("Mul", held, graph.constant(1 - state["unheard"].sum()))
        held = graph.add("Add", kept, _unheard(graph, state["unheard"], named))
    if named is not None:
        held = _mix(graph, held, named, state["names"]["share"])
    if state["sharpness"] != 1:
        likely = graph.add("Max", held, graph.constant(np.float32(1e-12)))
        held = _softmax(graph, graph.add("Log", likely), state["sharpness"])
    return graph.add("ReduceMean", held, axes=[0], keepdims=0)


def _unheard(graph: OnnxGraph, unheard: Tensor, named: str | None) -> str:
    """Probabilities of classes without a label, by their names if these are known."""
    if named is None:
        return graph.constant(unheard)
    among = graph.add("Mul", named, graph.constant((unheard > 0).float()))
    shares = graph.add("Div", among, graph.add("ReduceSum", among, graph.constant(np.array([1]))))
    return graph.add("Mul", shares, graph.constant(unheard.sum()))


def _softmax(graph: OnnxGraph, logits: str, factor: float) -> str:
    return graph.add("Softmax", graph.add("Mul", logits, graph.constant(np.float32(factor))), axis=2)


def _mix(graph: OnnxGraph, held: str, others: str, share: float) -> str:
    further = graph.add("Mul", graph.add("Sub", others, held), graph.constant(np.float32(share)))
    return graph.add("Add", held, further)


def _add_outputs(graph: OnnxGraph, settings: AgentSettings, held: str) -> None:
    classes = settings.classes
    shares = graph.add("Div", held, graph.add("ReduceSum", held, graph.constant(np.array([1]))))
    costs = graph.add("MatMul", shares, graph.constant(settings.game.costs[: len(classes)].T.astype(np.float64)))
    cheapest = graph.add("ArgMin", costs, axis=1, keepdims=0)
    numbered = all(isinstance(one, int) for one in classes)
    words: dict[str, Any] = {
        "values_int64s" if numbered else "values_strings": list(map(int if numbered else str, classes))
    }
    label = graph.add("LabelEncoder", cheapest, domain="ai.onnx.ml", keys_int64s=list(range(len(classes))), **words)
    graph.output("label", label, np.int64 if numbered else str, [None])
    graph.output("probabilities", graph.cast(shares, np.float32), np.float32, [None, len(classes)])
