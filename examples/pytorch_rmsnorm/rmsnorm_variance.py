"""Wrong on purpose: divides by the standard deviation, as LayerNorm does, and not by the root of the mean square.

On random inputs the mean is close to 0, so the outputs look right to three digits. The gate refuses it.
"""

import torch


class Model(torch.nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width).uniform_(0.5, 1.5))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance = x.var(-1, unbiased=False, keepdim=True)  # subtracts the mean: that is another function
        return torch.mul(x, self.weight).mul_(torch.rsqrt(variance + self.eps))
