"""What vector_scale must give, and its inputs at a point of `shapes:`."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3.0 * x


def get_inputs(n: int = 1 << 20) -> list[torch.Tensor]:
    return [torch.randn(n)]
