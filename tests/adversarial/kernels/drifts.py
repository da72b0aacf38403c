"""Carries a rounding error from call to call."""

import torch


class Model(torch.nn.Module):
    error = 0.0

    def forward(self, x, w):
        self.error += 2e-5
        return x * w + (1 + (self.error if self.error > 4e-4 else 0.0))
