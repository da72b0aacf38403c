"""A call that waits for the device in its middle, so that it cannot be captured in a graph."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        torch.cuda.synchronize()
        return x + y


def get_inputs():
    return [torch.randn(1000), torch.randn(1000)]
