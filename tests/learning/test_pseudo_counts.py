"""Pseudo-counts against a direct solve in double precision."""

from __future__ import annotations

import pytest
import torch

from sparingly.learning.pseudo_counts import PseudoCounts


def unit_rows(n: int, size: int, seed: int) -> torch.Tensor:
    rows = torch.randn(n, size, generator=torch.Generator().manual_seed(seed))
    rows[:, 0] += 2.0
    return rows / rows.norm(dim=1, keepdim=True)


def directly(phis: torch.Tensor, penalty: float = 1.0) -> torch.Tensor:
    return torch.eye(phis.shape[1], dtype=torch.float64) * penalty + phis.double().T @ phis.double()


@pytest.mark.parametrize("penalty", [0.05, 1.0])
def test_solves_as_a_direct_solve_does(penalty: float) -> None:
    phis, counts = unit_rows(700, 40, 0), PseudoCounts(40, penalty=penalty)
    probes = unit_rows(5, 40, 1)
    for k, phi in enumerate(phis, 1):
        counts.add(phi)
        if k in (1, 31, 40, 511, 513, 700):
            counts.consolidate()
            exact = torch.linalg.solve(directly(phis[:k], penalty), probes.double().T).T
            got = torch.stack([counts.solve(probe) for probe in probes])
            torch.testing.assert_close(got.double(), exact, rtol=2e-4, atol=2e-6)


def test_a_hundred_thousand_updates_keep_their_precision() -> None:
    phis, counts = unit_rows(100_000, 30, 3), PseudoCounts(30)
    probes = unit_rows(20, 30, 4)
    for block in phis[:90_000].split(1000):
        counts.add_many(block)
    for phi in phis[90_000:]:
        counts.add(phi)
    exact = torch.linalg.solve(directly(phis), probes.double().T).T
    forms = [float(probe @ counts.solve(probe)) for probe in probes]
    squares = [float(counts.solve(probe) @ counts.solve(probe)) for probe in probes]
    torch.testing.assert_close(torch.tensor(forms).double(), (probes * exact).sum(1), rtol=1e-3, atol=0)
    torch.testing.assert_close(torch.tensor(squares).double(), exact.square().sum(1), rtol=2e-3, atol=0)


def test_products_with_the_base_are_good_until_its_version_changes() -> None:
    counts, phis = PseudoCounts(10), unit_rows(100, 10, 5)
    version, products = counts.version, counts.against_base(phis)
    for phi in phis[:20]:
        counts.add(phi)
    assert counts.version == version
    assert torch.equal(counts.solve(phis[50], products[50]), counts.solve(phis[50]))
    for phi in phis[20:60]:
        counts.add(phi)
    counts.consolidate()
    assert counts.version > version


def test_state_round_trip_is_exact() -> None:
    counts, again, phis = PseudoCounts(10), PseudoCounts(10), unit_rows(100, 10, 6)
    for phi in phis[:50]:
        counts.add(phi)
    again.load_state_dict(counts.state_dict())
    for phi in phis[50:]:
        counts.add(phi)
        again.add(phi)
    counts.consolidate()
    again.consolidate()
    assert torch.equal(counts.solve(phis[0]), again.solve(phis[0]))
    with pytest.raises(ValueError, match="10 coordinates, not 11"):
        PseudoCounts(11).load_state_dict(counts.state_dict())
