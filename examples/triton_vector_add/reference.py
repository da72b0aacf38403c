"""The sum as PyTorch computes it: the reference, which also makes the inputs."""

import torch

ELEMENTS = 1 << 22  # not so small that only the launch would be timed


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a + b


def get_inputs() -> list[torch.Tensor]:
    """Random vectors; the harness moves them to the GPU."""
    return [torch.randn(ELEMENTS), torch.randn(ELEMENTS)]
