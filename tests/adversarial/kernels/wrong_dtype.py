"""Returns half precision."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return (x * w + 1).half()
