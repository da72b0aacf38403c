"""Leaves its input changed."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        y = x * w + 1
        x.mul_(2)
        return y
