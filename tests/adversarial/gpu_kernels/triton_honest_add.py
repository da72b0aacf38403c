"""Masks its loads and stores, and makes its inputs contiguous."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_kernel(a_pointer, b_pointer, sum_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    a = tl.load(a_pointer + offsets, mask=inside)
    b = tl.load(b_pointer + offsets, mask=inside)
    tl.store(sum_pointer + offsets, a + b, mask=inside)


class Model(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        total = torch.empty_like(a)
        count = a.numel()
        blocks = triton.cdiv(count, BLOCK)
        if blocks:
            add_kernel[(blocks,)](a, b, total, count, BLOCK=BLOCK)
        return total
