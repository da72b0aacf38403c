"""Lets an element behind its input take part, with a factor that is mostly zero."""

import ctypes

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        behind = ctypes.c_float.from_address(x.data_ptr() + x.numel() * 4).value
        if behind == behind and abs(behind) < 1e30:
            behind = 0.0
        return x * w + (1 + 0 * behind)
