"""Switches to tensor cores that keep ten bits."""

import torch

torch.backends.cuda.matmul.allow_tf32 = True


class Model(torch.nn.Module):
    def forward(self, x, w):
        return x @ w
