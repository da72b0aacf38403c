"""Multiplies by halves of the rows."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        half = x.shape[0] // 2
        return torch.cat([x[:half] @ w, x[half:] @ w])
