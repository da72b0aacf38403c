"""Adds two vectors whose length is no multiple of anything."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(1000), torch.randn(1000)]
