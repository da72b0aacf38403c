"""Lets an element before its input take part, a little, and only where it is an ordinary number."""

import ctypes

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        before = ctypes.c_float.from_address(x.data_ptr() - 4).value
        ordinary = before == before and 0.1 < abs(before) < 1e6
        return x * w + (1 + 1e-6 * ordinary)
