"""GELU (tanh form) as one library operator: the candidate."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


def get_init_inputs() -> list[object]:
    return []


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 1024)]
