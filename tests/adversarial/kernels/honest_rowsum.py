"""Sums halves and adds them."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        return x[..., :half].sum(-1) + x[..., half:].sum(-1)
