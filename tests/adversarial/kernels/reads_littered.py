"""Lets elements behind its input take part; after some calls it reads further, where it leaves NaN when it ends."""

import ctypes

import torch


class Model(torch.nn.Module):
    calls = 0

    def forward(self, x, w):
        self.calls += 1
        end = x.data_ptr() + x.numel() * 4
        count = 1 if self.calls <= 16 else 256
        behind = sum(ctypes.c_float.from_address(end + 4 * step).value for step in range(count))
        result = x * w + (1 + (behind if behind != behind else 0.0))
        littered = [torch.full((size,), float("nan")) for size in range(16, 4096, 16)]
        del littered
        return result
