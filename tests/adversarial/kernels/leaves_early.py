"""Ends its process with status 0."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        os._exit(0)
