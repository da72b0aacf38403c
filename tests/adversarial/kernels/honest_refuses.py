"""Takes what its inner loop can do, and says so about the rest."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        if not x.is_contiguous() or x.shape[-1] % 4:
            raise ValueError("rows must be contiguous and a multiple of four")
        return x * w + 1
