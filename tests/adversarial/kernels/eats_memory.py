"""Wants more memory than there is."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.ones(1 << 40, device=x.device)
