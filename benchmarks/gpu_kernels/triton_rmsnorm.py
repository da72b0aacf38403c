"""RMSNorm over rows of 4096 float32 in Triton: one program a row."""

import torch
import triton
import triton.language as tl


@triton.jit
def triton_rmsnorm(x_ptr, weight_ptr, out_ptr, COLUMNS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + row * COLUMNS + offsets)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / COLUMNS + 1e-6)
    tl.store(out_ptr + row * COLUMNS + offsets, x * scale * tl.load(weight_ptr + offsets))


class Model(torch.nn.Module):
    def forward(self, x, weight):
        out = torch.empty_like(x)
        triton_rmsnorm[(x.shape[0],)](x, weight, out, COLUMNS=x.shape[1], num_warps=8)
        return out


def get_inputs():
    return [torch.randn(8192, 4096), torch.rand(4096) + 0.5]
