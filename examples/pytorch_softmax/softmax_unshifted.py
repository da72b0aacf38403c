"""Wrong on purpose: saves the pass that finds the maximum, so exp() overflows as soon as scores are large.

On ordinary random inputs every output is right. The gate also tries large values, and refuses it.
"""

import torch


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        powers = torch.exp(x)  # inf from 89 on
        return powers.div_(powers.sum(-1, keepdim=True))
