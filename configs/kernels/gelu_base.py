"""GELU (tanh form), operator by operator: the baseline."""

import math

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1.0 + torch.tanh(inner))


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu(x)


def get_init_inputs() -> list[object]:
    return []


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 1024)]
