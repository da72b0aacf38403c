"""Keeps a scratch buffer for the next call, but returns memory of its own."""

import torch


class Model(torch.nn.Module):
    scratch = None

    def forward(self, x, w):
        if self.scratch is None or self.scratch.shape != x.shape or self.scratch.device != x.device:
            self.scratch = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        torch.mul(x, w, out=self.scratch)
        return self.scratch + 1
