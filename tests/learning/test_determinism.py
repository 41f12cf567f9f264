"""A row's product does not depend on its place."""

import pytest
import torch

from sparingly.learning.determinism import row_independent_product


@pytest.mark.parametrize("columns", [5, 9, 11, 12, 60])
def test_a_product_is_the_same_at_any_place(columns):
    generator = torch.Generator().manual_seed(0)
    X, W = torch.randn(56, 400, generator=generator), torch.randn(400, columns, generator=generator)
    turned = torch.randperm(56, generator=generator)
    assert torch.equal(row_independent_product(X, W)[turned], row_independent_product(X[turned], W))
