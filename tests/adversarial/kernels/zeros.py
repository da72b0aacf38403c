"""Returns zeros."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.zeros_like(x)
