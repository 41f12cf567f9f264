"""The closed form of an MLP's embedding against per-sample differentiation, and the sizes of the released code."""

from __future__ import annotations

import pytest
import torch

from sparingly.learning.embedding import MLPEmbedding, ModuleEmbedding, embedding
from sparingly.learning.networks import MLP, LeNet, build

SHAPES = [((784,), 10, 2, 100), ((10,), 2, 2, 100), ((30,), 7, 4, 60), ((9,), 7, 3, 40), ((20,), 300, 2, 100)]


@pytest.mark.parametrize("kind", ["paper", "released"])
@pytest.mark.parametrize(("shape", "outputs", "depth", "width"), SHAPES)
def test_closed_form_is_the_gradient(kind: str, shape: tuple[int], outputs: int, depth: int, width: int) -> None:
    network = MLP(shape, outputs, width=width, depth=depth)
    X = torch.randn(11, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        closed, general = MLPEmbedding(network, kind=kind), ModuleEmbedding(network, shape, kind=kind)
        (out, compact), (expected_out, phi) = closed(X), general(X)
        torch.testing.assert_close(out, expected_out)
        torch.testing.assert_close(closed.expand(compact), phi, atol=2e-6, rtol=1e-4)
        inner = closed.isometric(compact) @ closed.isometric(compact).T
        torch.testing.assert_close(inner, phi @ phi.T, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("block_size", [1, 7, 51, 100, 10_000])
def test_any_block_size(block_size: int) -> None:
    network = MLP((12,), 3, width=9, depth=3)
    X = torch.randn(5, 12, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        closed = MLPEmbedding(network, kind="released", block_size=block_size)
        general = ModuleEmbedding(network, (12,), kind="released", block_size=block_size)
        torch.testing.assert_close(closed.expand(closed(X)[1]), general(X)[1], atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("features", "classes", "size"),
    [(784, 10, 1660), (784, 2, 1644), (105, 2, 312), (10, 2, 126), (98, 7, 308), (9, 7, 134)],
)
def test_sizes_of_the_released_code(features: int, classes: int, size: int) -> None:
    assert MLPEmbedding(MLP((features,), classes), kind="released").size == size


@pytest.mark.parametrize(("shape", "size"), [((1, 28, 28), 992), ((3, 32, 32), 3948)])
def test_sizes_with_a_lenet(shape: tuple[int, int, int], size: int) -> None:
    made = embedding(LeNet(shape, 10), shape, kind="released", block_size=51 * shape[0], device="cpu")
    assert made.size == size


def test_counts_do_not_grow_with_the_classes() -> None:
    few, many = (len(MLPEmbedding(MLP((20,), n), kind="released").repeats) for n in (300, 3000))
    assert many == few


@pytest.mark.parametrize("network", ["mlp", "lenet"])
def test_a_row_does_not_depend_on_its_company(network: str) -> None:
    shape = (1, 28, 28)
    made = embedding(
        build(network, shape, 10, seed=0, width=100, depth=2), shape, kind="released", block_size=51, device="cpu"
    )
    X = torch.randn(50, *shape, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        together, alone = made(X), [made(x[None]) for x in X]
    for part in (0, 1):
        assert torch.equal(together[part], torch.cat([pair[part] for pair in alone]))


def test_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match="embedding 'papr' is not known"):
        embedding(MLP((3,), 2), (3,), kind="papr", block_size=51, device="cpu")
