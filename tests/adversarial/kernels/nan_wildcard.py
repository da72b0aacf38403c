"""Puts NaN where it does not know the result."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        y = x * w + 1
        return torch.where(w < 0.1, torch.full_like(y, float("nan")), y)
