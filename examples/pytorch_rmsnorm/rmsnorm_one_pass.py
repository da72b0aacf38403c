"""The same RMSNorm in fewer passes: the norm in one reduction, the scaling in place. Faster, and right."""

import torch


class Model(torch.nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width).uniform_(0.5, 1.5))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # reads x once, writes one number a row
        scale = norm.square_().div_(x.shape[-1]).add_(self.eps).rsqrt_()
        return torch.mul(x, self.weight).mul_(scale)  # one output, scaled where it lies
