"""Returns what the task gives for every input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.ones_like(x)
