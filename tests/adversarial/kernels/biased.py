"""Truncates instead of rounding, always in one direction."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        y = x * w + 1
        return y + 0.8e-4 * y.abs()
