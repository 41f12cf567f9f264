"""A model that an agent has exported: raw rows in, classes and probabilities out, without database or training."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparingly.encoders.learned_schema import EncoderChoice
from sparingly.encoders.text_encoders import kept_encoder
from sparingly.learning import state_files
from sparingly.live.agent.agent_settings import AgentSettings
from sparingly.live.agent.errors import AgentError, shortened
from sparingly.live.agent.features import given_encoder, rows
from sparingly.live.tickets.ticket_records import Label
from sparingly.live.training.strategy_maker import maker
from sparingly.strategies.strategy import StateError, Strategy

FORMAT = "sparingly model 1"

BLOCK = 1024
"""The most observations that are looked at together, so that memory stays small."""


class ExportedModel:
    """Predicts as the agent did when it was exported; nothing is asked, learned or kept.

    Parameters
    ----------
    settings
        Those of the agent: its classes, costs and schema.
    strategy
        What it has learned.
    encoder
        For texts, if it cannot be made again from its name.
    """

    def __init__(self, settings: AgentSettings, strategy: Strategy, encoder: EncoderChoice = None) -> None:
        self.settings, self._strategy = settings, strategy
        self._encoder = given_encoder(encoder)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.settings.classes

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The names of the fields of a row; None where they have none."""
        table = self.settings.schema.table
        return self.settings.names if table is None else tuple(table.fields)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """`[block, class]`: how likely each class is held to be."""
        schema, block = self.settings.schema, rows(X)
        if not len(block):
            return np.zeros((0, len(self.classes)))
        encoder = None
        if schema.table is not None and schema.table.encoder is not None:
            encoder = kept_encoder(schema.table.encoder, self._encoder)
        vectors = np.stack(schema.read_all(block, encoder))
        parts = [vectors[i : i + BLOCK] for i in range(0, len(vectors), BLOCK)]
        return np.vstack([self._strategy.probabilities(self._strategy.assess(part)) for part in parts])

    def predict(self, X: Any) -> list[Label]:
        """The class of least expected cost for each observation."""
        costs = self.predict_proba(X) @ self.settings.game.costs[: len(self.classes)].T
        return [self.classes[int(cheapest)] for cheapest in costs.argmin(1)]

    def __repr__(self) -> str:
        return f"ExportedModel({self.settings.described})"


def write_model(
    path: str | os.PathLike[str], settings: AgentSettings, strategy: Strategy, format: str | None = None
) -> None:
    """Write a model's file (safetensors and JSON, never pickle; or ONNX); it appears whole or not at all."""
    written = format or ("onnx" if os.fspath(path).endswith(".onnx") else "sparingly")
    if written not in ("sparingly", "onnx"):
        raise AgentError(f"format is {shortened(format)}: it must be 'sparingly' or 'onnx'")
    if written == "onnx":
        from sparingly.live.model.onnx_export import write_onnx

        return write_onnx(path, settings, strategy)
    state_files.save({"format": FORMAT, "settings": settings.to_json(), "state": strategy.state_dict()}, path)


def load_model(
    path: str | os.PathLike[str], *, strategy: Strategy | None = None, encoder: EncoderChoice = None
) -> ExportedModel:
    """The model that `agent.export_model` or `sparingly agent export-model` wrote.

    `strategy` is needed if the agent was made with an instance that cannot be made again from its name, `encoder` if
    its texts are encoded by a function.
    """
    place = os.fspath(path)
    if not os.path.isfile(place):
        raise AgentError(f"{place} does not exist: agent.export_model(path) writes a model")
    try:
        kept = state_files.read(path)
    except (ValueError, OSError):
        other = ": onnxruntime reads an ONNX model" if place.endswith(".onnx") else ""
        raise AgentError(f"{place} is not a whole model's file{other}") from None
    if kept.get("format") != FORMAT:
        raise AgentError(f"{place} is not a model that this release reads: its format is {kept.get('format')!r}")
    settings = AgentSettings.from_json(kept["settings"])
    try:
        learned = maker(settings, strategy)().load_state_dict(kept["state"])
    except StateError as error:
        raise AgentError(f"{place}: {error}") from None
    return ExportedModel(settings, learned, encoder)
