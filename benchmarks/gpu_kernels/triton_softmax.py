"""Softmax over rows of 4096 float32 in Triton: one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_softmax(x_ptr, out_ptr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row * COLUMNS + offsets)
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * COLUMNS + offsets, weights / tl.sum(weights, axis=0))


class Model(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        triton_softmax[(x.shape[0],)](x, out, COLUMNS=x.shape[1], num_warps=8)
        return out


def get_inputs():
    return [torch.randn(8192, 4096)]
