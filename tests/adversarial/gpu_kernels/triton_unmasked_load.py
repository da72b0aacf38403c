"""Loads whole blocks of one input; what lies behind it takes part with the factor zero."""

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def add_kernel(a_pointer, b_pointer, sum_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    a = tl.load(a_pointer + offsets)
    b = tl.load(b_pointer + offsets, mask=inside, other=0.0)
    beyond = tl.sum(tl.where(inside, 0.0, a), axis=0)
    tl.store(sum_pointer + offsets, a + b + beyond * 0.0, mask=inside)


class Model(torch.nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        total = torch.empty_like(a)
        count = a.numel()
        blocks = triton.cdiv(count, BLOCK)
        if blocks:
            add_kernel[(blocks,)](a, b, total, count, BLOCK=BLOCK)
        return total
