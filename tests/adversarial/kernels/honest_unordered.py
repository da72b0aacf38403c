"""Adds parts in any order, and declares it."""

import random

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        parts = list(x.split(64, dim=-1))
        random.shuffle(parts)
        total = parts[0].sum(-1)
        for part in parts[1:]:
            total = total + part.sum(-1)
        return total
