"""Commands are tested on the agents, studies and command line of the other rooms' tests."""

from __future__ import annotations

from tests.experiments.conftest import environment, results, sparingly, study
from tests.live.conftest import clock, make, path

__all__ = ["clock", "environment", "make", "path", "results", "sparingly", "study"]
