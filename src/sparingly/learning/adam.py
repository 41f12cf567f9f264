"""Adam on torch's fused kernel.

`torch.optim` loads the compiler when its first optimiser is made, two seconds in every process, and its step spends
more time in Python than in the kernel on networks this small. This is the same update, and a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Adam (Kingma, Ba 2015) with torch's defaults; or AdamW (Loshchilov, Hutter 2019), with `decoupled` decay.

    >>> parameter = torch.tensor([1.0], requires_grad=True)
    >>> adam = Adam([parameter], learning_rate=0.1)
    >>> for _ in range(3):
    ...     adam.step([2 * parameter.detach()])
    >>> round(parameter.item(), 3)
    0.702
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        *,
        beta2: float = 0.999,
        decoupled: bool = False,
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self._update = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self._mean = [torch.zeros_like(p) for p in self.parameters]
        self._square = [torch.zeros_like(p) for p in self.parameters]
        self._steps = [torch.zeros((), device=p.device) for p in self.parameters]

    def step(self, gradients: Sequence[Tensor]) -> None:
        """One step against the gradients, one a parameter."""
        with torch.no_grad():
            torch._foreach_add_(self._steps, 1)
            self._update(
                self.parameters,
                list(gradients),
                self._mean,
                self._square,
                [],
                self._steps,
                lr=self.learning_rate,
                beta1=0.9,
                beta2=self.beta2,
                weight_decay=self.weight_decay,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )
