"""LeNets: a training step against the operations it must do, and what a run of the paper's tables costs by counting.

Where a strategy asks in a share of the rounds, the labels at each update of the schedule are that share of the rounds
so far, and each of up to 40 epochs sees all of them. On CIFAR-10 a LeNet's errors never come down to the early stop.
"""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from sparingly.learning.networks import LeNet
from sparingly.learning.schedules import ReleasedSchedule
from sparingly.learning.training import Training

SHAPES = {"MNIST": (1, 28, 28), "CIFAR-10": (3, 32, 32)}
HORIZON, EPOCHS, BATCH, STEPS = 10_000, 40, 64, 12
ASKED = {"gamma 6": 0.913, "gamma 3": 0.667}
"""The share of rounds in which the paper's Neuronal asks on CIFAR-10, at a rate of 0.0001."""


def operations(network: LeNet, shape: tuple[int, ...]) -> float:
    """Of one observation, forward and back: two for each weight and place, three times but for the first layer's."""
    height, width = shape[1:]
    places = [(height - 4) * (width - 4), ((height - 4) // 2 - 4) * ((width - 4) // 2 - 4), 1, 1, 1]
    layers = [network.conv1, network.conv2, network.fc1, network.fc2, network.fc3]
    times = [2, 3, 3, 3, 3]
    return float(sum(2 * k * n * layer.weight.numel() for k, n, layer in zip(times, places, layers, strict=True)))


def step_seconds(network: LeNet, shape: tuple[int, ...]) -> float:
    """Processor time of one step of training."""
    inputs, targets = torch.randn(BATCH * STEPS, *shape), torch.randn(BATCH * STEPS, 10)
    began = time.process_time()
    Training(epochs=1, objective="mean_squared").fit(network, inputs, targets, np.random.default_rng(0))
    return (time.process_time() - began) / STEPS


def product_seconds(size: int = 1024, repeats: int = 6) -> float:
    """Processor time of a matrix product for each operation."""
    one, other = torch.randn(size, size), torch.randn(size, size)
    began = time.process_time()
    for _ in range(repeats):
        one @ other
    return (time.process_time() - began) / repeats / (2 * size**3)


def steps_of_a_run(share: float) -> int:
    """How many steps a run takes that asks in a share of the rounds and makes all epochs.

    >>> steps_of_a_run(0.913)
    61720
    """
    schedule, t, steps = ReleasedSchedule(), 12, 0
    while t <= HORIZON:
        steps += EPOCHS * math.ceil(share * t / BATCH)
        t = schedule.next(t)
    return steps


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, shape in SHAPES.items():
        network = LeNet(shape, 10)
        step_seconds(network, shape)
        took = min(step_seconds(network, shape) for _ in range(5))
        least = min(product_seconds() for _ in range(5))
        needed = BATCH * operations(network, shape)
        print(
            f"{name:<10} a step of a LeNet: {needed / 1e6:.0f} million operations, {1e3 * took:.1f} ms, "
            f"{took / (needed * least):.1f} times a matrix product of as many"
        )
        if name == "CIFAR-10":
            for words, share in ASKED.items():
                steps = steps_of_a_run(share)
                print(
                    f"{name:<10} Neuronal at 0.0001, {words}: {steps:,} steps a run, {steps * took / 60:.0f} min of "
                    f"processor time, {steps * needed * least / 60:.0f} if a step were one matrix product"
                )


if __name__ == "__main__":
    main()
