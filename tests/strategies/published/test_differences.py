"""Each point on which text and released code differ does what the page says, on networks small enough to reckon with.

When a strategy begins and learns, and which classes a stream has, are tested elsewhere (test_released_preset.py,
test_streams.py); here are the numbers: what the networks see, what they learn, and what is decided from them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sparingly as sp
from sparingly.learning.networks import MLP
from sparingly.learning.training import Adam
from sparingly.strategies import registered

GAME, ASK, FEATURES = sp.label_efficient(3), 3, 4
X = torch.randn(9, FEATURES, generator=torch.Generator().manual_seed(0))
LABELS = (0, 2, 1, 2, 0, 1, 1, 2, 0)
SMALL: dict[str, Any] = {"width": 6, "seed": 0}


def embedded(f1: MLP, x: Tensor, kind: str, block_size: int) -> Tensor:
    """phi, by differentiation: what f1's hidden layer says of x, and how f1's outputs would change."""
    gradients = torch.autograd.grad(f1(x[None]).sum(), list(f1.parameters()))
    hidden = f1.linear[0](x[None])[0].relu()
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    means = nn.functional.pad(flat, (0, -len(flat) % block_size)).view(-1, block_size).mean(1)
    last_weights = gradients[-2].flatten()
    phi = torch.cat([hidden, last_weights] if kind == "paper" else [means, hidden]).detach()
    return phi / phi.norm()


def says(network: nn.Module, outputs: Sequence[float]) -> None:
    """From now on the network says this of every observation."""
    assert isinstance(network, MLP)
    network.linear[-1].weight.data.zero_()
    network.linear[-1].bias.data.copy_(torch.tensor(outputs))


def why(outputs: Sequence[float], errors: Sequence[float], game: sp.Game = GAME, **options: Any) -> tuple[int, sp.Why]:
    """What NeuralCBP does in round 11, and why, if f1 and f2 say so."""
    strategy = sp.NeuralCBP(game, FEATURES, wait=1000, **SMALL, **options)
    says(strategy.network.f1, outputs)
    says(strategy.network.f2, errors)
    strategy.advance(10)
    decision = strategy.decide(strategy.assess(X[:1]), 0)
    return decision.action, decision.why


@pytest.mark.parametrize("kind", ["paper", "released"])
@pytest.mark.parametrize("block_size", [5, 51])
def test_embedding(kind: str, block_size: int) -> None:
    network = sp.NeuralCBP(GAME, FEATURES, embedding=kind, block_size=block_size, **SMALL).network
    expected = torch.stack([embedded(network.f1, x, kind, block_size) for x in X])
    with torch.no_grad():
        phi = network.embedding.expand(network.exploit(X)[1])
        torch.testing.assert_close(phi, expected, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(network.explore(network.exploit(X)[1]), network.f2(expected))


@pytest.mark.parametrize(("kind", "power"), [("inverse", 1), ("squared", 2)])
def test_pseudo_count(kind: str, power: int) -> None:
    strategy = sp.NeuralCBP(GAME, FEATURES, pseudo_count=kind, embedding="paper", penalty=0.5, wait=1000, **SMALL)
    says(strategy.network.f2, [9.0, 9.0, 9.0])  # so uncertain that it always asks
    phis = [embedded(strategy.network.f1, x, "paper", 51).double() for x in X]
    decisions = [strategy.decide(strategy.assess(x[None]), 0) for x in X]
    gram = 0.5 * torch.eye(len(phis[0]), dtype=torch.float64)
    for phi, decision in zip(phis[:-1], decisions[:-1], strict=True):
        gram += torch.outer(phi, phi) if decision.action == ASK else 0
    inverse = torch.linalg.matrix_power(torch.linalg.inv(gram), power)
    assert decisions[-1].why["pseudo_count"] == pytest.approx(1 / float(phis[-1] @ inverse @ phis[-1]), rel=1e-4)


def test_widths() -> None:
    def width(kind: str, errors: Sequence[float]) -> float:
        return float(why([0.3, 0.3, 0.3], errors, widths=kind)[1]["width"])

    assert width("absolute", [-0.4, 0.1, 0.2]) == pytest.approx(0.4)
    assert width("signed", [-0.4, 0.1, 0.2]) == pytest.approx(0.2)
    asked = {kind: why([0.3, 0.2, 0.1], [-0.4, -0.5, -0.6], widths=kind)[0] for kind in ("absolute", "signed")}
    assert asked == {"absolute": ASK, "signed": 0}


@pytest.mark.parametrize(("ties", "announced"), [("lowest", 0), ("cheapest", 2)])
def test_ties(ties: str, announced: int) -> None:
    never_underplayed = {"alpha": 1e-9}
    assert why([0.3, 0.2, 0.5], [0.4, 0.4, 0.4], ties=ties, **never_underplayed)[0] == announced


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_rate_offset(offset: int) -> None:
    t = 11 + offset
    expected = (1.01 * t**2 * math.log(t)) ** (1 / 3)
    assert why([0.3, 0.3, 0.3], [0.4, 0.4, 0.4], rate_offset=offset)[1]["rate"] == pytest.approx(expected)


@pytest.mark.parametrize(("confident", "action"), [("reaches", 0), ("above", ASK)])
def test_confident(confident: str, action: int) -> None:
    assert why([0.5, 0.25, -4.0], [0.25, 0.25, 0.25], confident=confident)[0] == action


@pytest.mark.parametrize(("contradiction", "kept"), [("pareto", (0, 1, 2)), ("all", (0, 1, 2, ASK))])
def test_contradiction(contradiction: str, kept: tuple[int, ...]) -> None:
    far_is_worse = sp.label_efficient(costs=[[0, 1, 2], [1, 0, 1], [2, 1, 0]], query_cost=5.0)
    middle_is_dearest = [2.0, -2.0, 3.0]
    told = why(middle_is_dearest, [0.0, 0.0, 0.0], far_is_worse, contradiction=contradiction)[1]
    assert told["survivors"] == kept


def update(
    network: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    rng: np.random.Generator,
    *,
    objective: str,
    divisor: float,
    stop: float | None = None,
    epochs: int = 8,
    batch: int = 4,
) -> int:
    """One update by automatic differentiation, and after how many epochs it ended."""
    value = {
        "mean_squared": lambda error: error.square().mean(),
        "half_squared": lambda error: error.square().sum() / 2,
    }.get(objective)
    parameters = list(network.parameters())
    adam = Adam(parameters, learning_rate=0.02)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for rows in torch.split(torch.from_numpy(rng.permutation(len(inputs))), batch):
            outputs = network(inputs[rows])
            found = value(outputs - targets[rows]) if value else nn.functional.cross_entropy(outputs, targets[rows])
            adam.step(torch.autograd.grad(found, parameters, materialize_grads=True))
            total += float(found.detach())
        if stop is not None and total / divisor <= stop:
            return epoch
    return epochs


def same(ours: nn.Module, plain: nn.Module) -> None:
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(
    ("objective", "stop"),
    [("mean_squared", None), ("half_squared", None), ("mean_squared", 0.12), ("half_squared", 0.7)],
)
@pytest.mark.parametrize("residuals", ["kept", "fresh"])
def test_objective_stop_and_residuals(objective: str, stop: float | None, residuals: str) -> None:
    """Two updates, so that f1 has changed since the first answers came."""
    learns: dict[str, Any] = {"objective": objective, "stop": stop}
    strategy = sp.NeuralCBP(
        GAME, FEATURES, **learns, residuals=residuals, epochs=8, batch=4, learning_rate=0.02, **SMALL
    )
    network, rng = strategy.network, copy.deepcopy(strategy.rng)
    f1, f2 = copy.deepcopy(network.f1), copy.deepcopy(network.f2)
    targets, kept, epochs = torch.eye(3)[list(LABELS)], [], []
    for first, last in ((0, 5), (5, 9)):
        for x, label in zip(X[first:last], LABELS[first:last], strict=True):
            strategy.learn(x, ASK, GAME.feedback[ASK][label])
        kept += [(embedded(f1, x, "released", 51), f1(x[None])[0].detach()) for x in X[first:last]]
        strategy._train()
        epochs.append(update(f1, X[:last], targets[:last], rng, divisor=FEATURES, **learns))
        if residuals == "fresh":
            kept = [(embedded(f1, x, "released", 51), f1(x[None])[0].detach()) for x in X[:last]]
        phi, outputs = (torch.stack(part) for part in zip(*kept, strict=True))
        epochs.append(update(f2, phi, targets[:last] - outputs, rng, divisor=phi.shape[1], **learns))
    assert (min(epochs) < 8) == (stop is not None)
    same(network.f1, f1)
    same(network.f2, f2)


@pytest.mark.parametrize("name", ["cesa", "margin"])
@pytest.mark.parametrize("batch", [4, 64])
@pytest.mark.parametrize("divisor", ["features", "labels"])
def test_batch_and_divisor(name: str, batch: int, divisor: str) -> None:
    game = sp.label_efficient(2)
    learns: dict[str, Any] = {"epochs": 8, "batch": batch, "stop": 0.15}
    strategy = registered()[name](game, FEATURES, divisor=divisor, learning_rate=0.02, **learns, **SMALL)
    plain, rng = copy.deepcopy(strategy.classifier), copy.deepcopy(strategy.rng)
    labels = [label % 2 for label in LABELS]
    for x, label in zip(X, labels, strict=True):
        strategy.learn(x, 2, game.feedback[2][label])
    strategy._train()
    divided_by = {"features": FEATURES, "labels": len(X)}[divisor]
    update(plain, X, torch.eye(2)[labels], rng, objective="cross_entropy", divisor=divided_by, **learns)
    same(strategy.classifier, plain)


@pytest.mark.parametrize(
    ("name", "stop"), [("neuronal", None), ("neuronal", 0.12), ("ineural", None), ("ineural", 0.05)]
)
def test_early_stop_of_the_gap_strategies(name: str, stop: float | None) -> None:
    strategy = registered()[name](GAME, FEATURES, epochs=8, batch=4, learning_rate=0.02, stop=stop, **SMALL)
    for x, label in zip(X, LABELS, strict=True):
        strategy.learn(x, ASK, GAME.feedback[ASK][label])
    plain, rng, memory = copy.deepcopy(strategy.network.f1), copy.deepcopy(strategy.rng), strategy.network.memory
    divisor = len(memory) if name == "ineural" else FEATURES
    strategy._train()
    learns: dict[str, Any] = {"objective": "mean_squared", "stop": stop}
    epochs = update(plain, memory["x"], memory["target"], rng, divisor=divisor, **learns)
    assert (epochs < 8) == (stop is not None)
    same(strategy.network.f1, plain)


@pytest.mark.parametrize("discount", [False, True])
@pytest.mark.parametrize("name", ["neuronal", "ineural"])
def test_discount(name: str, discount: bool) -> None:
    """f2 counts for a third after two labels (Neuronal), and for an eleventh in round 11 (INeural)."""
    strategy = registered()[name](GAME, FEATURES, discount=discount, wait=1000, **SMALL)
    for x, label in zip(X[:2], LABELS, strict=False):
        strategy.learn(x, ASK, GAME.feedback[ASK][label])
    strategy.advance(10)
    weight = {"neuronal": 1 / 3, "ineural": 1 / 11}[name] if discount else 1.0
    assessment = strategy.assess(X)
    values = assessment.values["f1"][5] + weight * assessment.values["f2"][5]
    second, best = np.sort(values)[-2:]
    assert strategy.decide(assessment, 5).why["gap"] == pytest.approx(best - second)


@pytest.mark.parametrize("residual", ["f1", "both"])
def test_residual_of_ineural(residual: str) -> None:
    strategy = registered()["ineural"](GAME, FEATURES, residual=residual, **SMALL)
    with torch.no_grad():
        f1, f2, _ = (part[0] for part in strategy.network.estimates(X[:1]))
    strategy.learn(X[0], ASK, GAME.feedback[ASK][LABELS[0]])
    known = f1 + f2 if residual == "both" else f1
    memory = strategy.network.memory
    for row, learned in zip(memory["x"], memory["residual"], strict=True):
        k = int(row[-1])
        assert float(learned) == pytest.approx(float(k == LABELS[0]) - float(known[k]), abs=1e-6)
