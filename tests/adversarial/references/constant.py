"""A task whose result hardly depends on its input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(1e6 + 0 * x)


def get_inputs():
    return [torch.randn(8, 16)]
