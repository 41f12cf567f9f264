"""Rows that are kept: tensors and plain numbers, in copies of their own."""

import copy

import torch

from sparingly.learning.label_memory import Memory


def test_numbers_are_kept_as_tensors_are():
    tensors, numbers = Memory(), Memory()
    for k in range(40):
        tensors.append(y=torch.tensor(k), cost=torch.tensor(k / 3))
        numbers.append(y=k, cost=k / 3)
    for name in ("y", "cost"):
        assert torch.equal(tensors[name], numbers[name])
        assert tensors[name].dtype == numbers[name].dtype


def test_a_copy_grows_without_the_original():
    memory = Memory()
    memory.append(y=1)
    other = copy.deepcopy(memory)
    other.append(y=2)
    memory.append(y=3)
    assert (other["y"].tolist(), memory["y"].tolist()) == ([1, 2], [1, 3])
    other.load_state_dict(memory.state_dict())
    other.append(y=4)
    assert (other["y"].tolist(), memory["y"].tolist()) == ([1, 3, 4], [1, 3])
