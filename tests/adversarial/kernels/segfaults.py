"""Reads address 0."""

import ctypes

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return ctypes.string_at(0)
