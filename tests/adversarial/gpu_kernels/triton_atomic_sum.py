"""Adds parts in whatever order the blocks finish."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def sum_kernel(x_pointer, out_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_pointer + offsets, mask=offsets < count, other=0.0)
    tl.atomic_add(out_pointer, tl.sum(x, axis=0))


class Model(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        blocks = triton.cdiv(x.numel(), BLOCK)
        out = torch.zeros(1, dtype=x.dtype, device=x.device)
        if blocks:
            sum_kernel[(blocks,)](x, out, x.numel(), BLOCK=BLOCK)
        return out
