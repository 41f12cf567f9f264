"""Every fault in one go, briefly; `python -m benchmarks chaos` does the same at length."""

from __future__ import annotations

import pytest
from benchmarks import chaos


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_no_fault_loses_doubles_or_hangs_anything(kind):
    row = chaos.run(kind, hold=1.0, rounds=1)
    if row is None:
        pytest.skip("the programs of a PostgreSQL server are not installed")
    assert {name: row[name] for name in chaos.ZERO} == dict.fromkeys(chaos.ZERO, 0), row["words"]
    assert row["faults"] == (5 if kind == "sqlite" else 7)
    assert row["acknowledged"] > 50
    assert {200, 422, 503} <= {int(status) for status in row["statuses"]}
