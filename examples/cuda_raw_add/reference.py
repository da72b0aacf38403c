"""The sum of two vectors, and vectors of n numbers."""

import torch


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


def get_inputs(n: int = 1 << 24) -> list[torch.Tensor]:
    return [torch.randn(n), torch.randn(n)]
