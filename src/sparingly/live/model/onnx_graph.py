"""Nodes and constants of an ONNX graph, and the parts of models as such nodes; single precision, as in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from sparingly.learning.networks import MLP, LeNet, OneLogit
from sparingly.live.agent.errors import AgentError
from sparingly.strategies.sparing.class_names import ClassNames

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    raise AgentError("an ONNX model needs onnx: pip install 'sparingly[onnx]'") from None

OPSETS = {"": 17, "ai.onnx.ml": 3}
"""Of 2022, which every runtime of today reads."""
IR_VERSION = 8


class OnnxGraph:
    """A graph while it is written: `add` returns the name of what a node computes, which the next ones take.

    >>> graph = OnnxGraph()
    >>> x = graph.input("x", np.float32, [None, 2])
    >>> graph.output("twice", graph.add("Mul", x, graph.constant(np.float32(2))), np.float32, [None, 2])
    >>> [node.op_type for node in graph.model({}).graph.node]
    ['Mul', 'Identity']
    """

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: Any, shape: Sequence[int | None]) -> str:
        """One more input; None is an axis of any length."""
        self._inputs.append(helper.make_tensor_value_info(name, _element(kind), list(shape)))
        return name

    def output(self, name: str, value: str, kind: Any, shape: Sequence[int | None]) -> None:
        """Give a value a name outside."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _element(kind), list(shape)))

    def constant(self, value: ArrayLike | Tensor) -> str:
        array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
        name = f"constant {len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """One more node with one output."""
        name = f"value {len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def cast(self, value: str, kind: Any) -> str:
        return self.add("Cast", value, to=_element(kind))

    def reshape(self, value: str, *shape: int) -> str:
        return self.add("Reshape", value, self.constant(np.array(shape, dtype=np.int64)))

    def model(self, properties: Mapping[str, str]) -> Any:
        """The whole, checked, with what it tells about itself."""
        graph = helper.make_graph(self._nodes, "sparingly", self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="sparingly")
        helper.set_model_props(made, dict(properties))
        onnx.checker.check_model(made)
        return made


def _element(kind: Any) -> int:
    return TensorProto.STRING if kind is str else int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def add_module(graph: OnnxGraph, module: nn.Module, x: str) -> str:
    """The outputs of one of our own networks."""
    if isinstance(module, OneLogit):
        logit = add_module(graph, module.network, x)
        return graph.add("Concat", graph.add("Sub", logit, logit), logit, axis=1)
    if isinstance(module, MLP):
        return _add_layers(graph, module.linear, graph.add("Flatten", x))
    if isinstance(module, LeNet):
        for convolution in (module.conv1, module.conv2):
            assert convolution.bias is not None
            weights = graph.constant(convolution.weight.contiguous()), graph.constant(convolution.bias)
            pooled = graph.add("MaxPool", graph.add("Conv", x, *weights), kernel_shape=[2, 2], strides=[2, 2])
            x = graph.add("Relu", pooled)
        return _add_layers(graph, [module.fc1, module.fc2, module.fc3], graph.add("Flatten", x))
    raise AgentError(f"a network of class {type(module).__name__} cannot be exported to ONNX: only 'mlp' and 'lenet'")


def _add_layers(graph: OnnxGraph, layers: Sequence[nn.Linear], x: str) -> str:
    for place, layer in enumerate(layers):
        x = graph.add("Relu", x) if place else x
        x = graph.add("Gemm", x, graph.constant(layer.weight), graph.constant(layer.bias), transB=1)
    return x


def add_quantile_scaling(graph: OnnxGraph, state: Mapping[str, Any], x: str) -> str:
    """`QuantileScaling`: in double precision up to the place within an interval."""
    wide = graph.cast(graph.add("Gather", x, graph.constant(state["column"]), axis=1), np.float64)
    risen = graph.add("Mul", graph.add("Sub", wide, graph.constant(state["low"])), graph.constant(state["rate"]))
    below = graph.add("Min", graph.cast(risen, np.float32), graph.constant(state["ceiling"].float()))
    return graph.add(
        "Sub", graph.add("Max", below, graph.constant(state["floor"].float())), graph.constant(state["mean"])
    )


def add_mlp_members(graph: OnnxGraph, views: Sequence[Tensor], x: str) -> str:
    """`MLPEnsemble`: logits `[member, block, class]`."""
    w1, b1, w2, b2 = views
    hidden = graph.add("Relu", graph.add("Gemm", x, graph.constant(w1), graph.constant(b1)))
    apart = graph.add("Transpose", graph.reshape(hidden, -1, len(w2), w2.shape[1]), perm=[1, 0, 2])
    return graph.add("Add", graph.add("MatMul", apart, graph.constant(w2)), graph.constant(b2))


def add_kernel_members(graph: OnnxGraph, state: Mapping[str, Any], members: int, x: str) -> str:
    """`KernelMembers`: scores `[member, block, class]`."""
    components, rows = state["components"], state["rows"]
    weighted = components["directions"] * components["share"] ** float(state["power"])
    turned = graph.add("MatMul", graph.add("Sub", x, graph.constant(components["mean"])), graph.constant(weighted))
    length = graph.add("Max", graph.add("ReduceL2", turned, axes=[1]), graph.constant(np.float32(1e-6)))
    unit = graph.add("Div", turned, length)
    product = graph.add("Gemm", unit, graph.constant(rows), graph.constant(rows.square().sum(1)), alpha=-2.0, transB=1)
    squared = graph.add("Add", product, graph.add("ReduceSumSquare", unit, axes=[1]))
    squared = graph.add("Max", squared, graph.constant(np.float32(0)))
    near = graph.add("Exp", graph.add("Mul", squared, graph.constant(np.float32(-float(state["rate"])))))
    scores = graph.reshape(graph.add("MatMul", near, graph.constant(state["weights"])), -1, members, len(state["mean"]))
    return graph.add("Add", graph.add("Transpose", scores, perm=[1, 0, 2]), graph.constant(state["mean"]))


def add_class_names(graph: OnnxGraph, state: Mapping[str, Any], x: str) -> str:
    """`ClassNames`: probabilities `[block, class]`."""
    names = ClassNames(state["vectors"])
    names.load_state_dict(state)
    length = graph.add("Max", graph.add("ReduceL2", x, axes=[1]), graph.constant(np.float32(1e-12)))
    cosines = graph.add("MatMul", graph.add("Div", x, length), graph.constant(names.directions.T))
    return graph.add("Softmax", graph.add("Mul", cosines, graph.constant(np.float32(names.contrast))), axis=1)


def add_tree_members(graph: OnnxGraph, state: Mapping[str, Any], members: int, x: str) -> str:
    """`TreeMembers`: probabilities `[member, block, class]`."""
    roots, left = state["roots"].numpy(), state["left"].numpy()
    n_classes, trees = len(state["shares"]), len(roots) // members
    tree = np.searchsorted(roots, np.arange(len(left)), side="right") - 1
    own, leaf = np.arange(len(left)) - roots[tree], left == np.arange(len(left))
    child = np.where(leaf, 0, left - roots[tree])
    nodes, classes = np.nonzero(leaf[:, None] & (state["leaf"].numpy() > 0))
    summed = graph.add(
        "TreeEnsembleRegressor",
        x,
        domain="ai.onnx.ml",
        n_targets=members * n_classes,
        aggregate_function="SUM",
        nodes_treeids=tree.tolist(),
        nodes_nodeids=own.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_featureids=state["feature"].tolist(),
        nodes_values=np.where(leaf, 0, state["threshold"].numpy()).tolist(),
        nodes_truenodeids=child.tolist(),
        nodes_falsenodeids=np.where(leaf, 0, child + 1).tolist(),
        target_treeids=tree[nodes].tolist(),
        target_nodeids=own[nodes].tolist(),
        target_ids=(tree[nodes] // trees * n_classes + classes).tolist(),
        target_weights=state["leaf"].numpy()[nodes, classes].tolist(),
    )
    total = graph.add("Add", graph.reshape(summed, -1, members, n_classes), graph.constant(state["shares"]))
    mean = graph.add("Div", total, graph.constant(np.float32(trees + 1)))
    return graph.add("Transpose", mean, perm=[1, 0, 2])
