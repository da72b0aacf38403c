"""Softmax through PyTorch's own fused operator: one pass instead of four. Faster, and right."""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=-1)
