"""Shifted by the maximum, as it must be."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        powers = torch.exp(x - x.amax(-1, keepdim=True))
        return powers / powers.sum(-1, keepdim=True)
