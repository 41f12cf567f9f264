"""A row's product does not depend on its place."""

import pytest
import torch

from sparingly.learning.determinism import row_independent_product
from sparingly.learning.eenet import EENet


@pytest.mark.parametrize("columns", [5, 9, 11, 12, 60])
def test_a_product_is_the_same_at_any_place(columns):
    generator = torch.Generator().manual_seed(0)
    X, W = torch.randn(56, 400, generator=generator), torch.randn(400, columns, generator=generator)
    turned = torch.randperm(56, generator=generator)
    assert torch.equal(row_independent_product(X, W)[turned], row_independent_product(X[turned], W))


@pytest.mark.parametrize("n_features", [9, 10, 54])
@pytest.mark.parametrize("n_outputs", [2, 5, 7, 10])
def test_what_networks_say_of_a_row_does_not_depend_on_its_place(n_features, n_outputs):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(61, n_features, generator=generator)
    network = EENet((n_features,), n_outputs, width=50, seed=0)

    def said(rows):
        outputs, compact = network.exploit(rows)
        return torch.cat([outputs, compact, network.explore(compact), network.estimate(rows)], 1)

    with torch.no_grad():
        whole, turned = said(X), torch.randperm(61, generator=generator)
        assert torch.equal(said(X[turned]), whole[turned])
        for first, last in ((0, 1), (5, 8), (20, 37), (60, 61)):
            assert torch.equal(said(X[first:last]), whole[first:last])
