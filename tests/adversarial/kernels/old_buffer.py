"""Returns the same buffer from every call."""

import torch


class Model(torch.nn.Module):
    buffer = None

    def forward(self, x, w):
        if self.buffer is None or self.buffer.shape != x.shape:
            self.buffer = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        return torch.add(x * w, 1, out=self.buffer)
