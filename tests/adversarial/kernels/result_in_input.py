"""Writes the result over its input and returns that."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return x.mul_(w).add_(1)
