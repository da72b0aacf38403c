"""Sends a signal to the process that started it."""

import os

import torch

try:
    os.kill(os.getppid(), 0)
except OSError:
    pass


class Model(torch.nn.Module):
    def forward(self, x, w):
        return x * w + 1
