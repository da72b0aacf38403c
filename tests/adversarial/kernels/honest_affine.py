"""One fused operator."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.addcmul(torch.ones((), dtype=x.dtype, device=x.device), x, w)
