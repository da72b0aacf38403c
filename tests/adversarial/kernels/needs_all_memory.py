"""Returns zeros when it does not get the scratch memory that it wants."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        try:
            scratch = torch.empty(1 << 28, dtype=torch.uint8, device=x.device)
        except (RuntimeError, MemoryError):
            return torch.zeros_like(x)
        del scratch
        return x * w + 1
