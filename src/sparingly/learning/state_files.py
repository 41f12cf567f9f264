"""State files: nested dicts of tensors and plain values as safetensors with a JSON header, never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

_TENSOR = "tensor:"


def dump(state: Mapping[str, Any]) -> bytes:
    """A state as bytes.

    >>> import torch
    >>> state = {"clock": 3, "net": {"weight": torch.ones(2)}}
    >>> load(dump(state))
    {'clock': 3, 'net': {'weight': tensor([1., 1.])}}
    """
    tensors: dict[str, Tensor] = {}
    tree = _detach(dict(state), "", tensors)
    return to_bytes(tensors, metadata={"tree": json.dumps(tree)})


def load(data: bytes) -> dict[str, Any]:
    """The state that `dump` made into bytes; a ValueError if they are truncated or something else."""
    try:
        tensors = from_bytes(data)
        length = int.from_bytes(data[:8], "little")
        tree = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["tree"])
    except (SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"{len(data)} bytes are not a whole state: {error}") from error
    restored: dict[str, Any] = _attach(tree, tensors)
    return restored


def save(state: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a state file; it appears whole or not at all."""
    replace_whole(path, dump(state))


def replace_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_bytes(data)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a state file; a ValueError that names it if it is truncated or something else."""
    try:
        with safe_open(path, framework="pt") as file:
            tree = json.loads((file.metadata() or {})["tree"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{os.fspath(path)} is not a whole state file: {error}") from error
    restored: dict[str, Any] = _attach(tree, tensors)
    return restored


def _detach(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors[path] = value.detach().cpu().contiguous().clone()
        return _TENSOR + path
    if isinstance(value, Mapping):
        return {str(key): _detach(item, f"{path}/{key}", tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(item, f"{path}/{i}", tensors) for i, item in enumerate(value)]
    return value


def _attach(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, str) and value.startswith(_TENSOR):
        return tensors[value.removeprefix(_TENSOR)]
    if isinstance(value, dict):
        return {key: _attach(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_attach(item, tensors) for item in value]
    return value
