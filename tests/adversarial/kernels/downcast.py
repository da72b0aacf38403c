"""Computes in half precision."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return (x.half() * w.half() + 1).to(x.dtype)
