"""Returns the mean of the result everywhere."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return (x * w + 1).mean().expand(x.shape).contiguous()
