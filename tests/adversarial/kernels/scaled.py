"""Is off by a common factor that no single element gives away."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return (x * w + 1) * (1 + 0.7e-4)
