"""Writes two elements beyond its result."""

import ctypes

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        result = torch.empty(x.shape, dtype=x.dtype)
        torch.add(x * w, 1, out=result)
        ctypes.memset(result.data_ptr() + result.numel() * result.element_size(), 0, 8)
        return result
