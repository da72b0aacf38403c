"""The kernels of the noise benchmark: a baseline, a copy of it, and one that does a known share of more work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CPU = """
import torch

ROWS, MORE, COLUMNS = {rows}, {more}, 2048


class Model(torch.nn.Module):
    def forward(self, x):
        out = torch.softmax(x[:ROWS], dim=-1)
        if {works_more}:
            torch.softmax(x[ROWS:ROWS + MORE], dim=-1)
        return out


def get_inputs():
    return [torch.randn(ROWS + MORE, COLUMNS)]
"""

_GPU = """
import torch
import triton
import triton.language as tl

COUNT, MORE = {rows}, {more}
SPARE = None


@triton.jit
def noise_add(x_ptr, y_ptr, out_ptr, spare_ptr, count, total, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < total
    values = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, values, mask=mask & (offsets < count))
    tl.store(spare_ptr + offsets - count, values, mask=mask & (offsets >= count))


class Model(torch.nn.Module):
    def forward(self, x, y):
        global SPARE
        if SPARE is None:
            SPARE = torch.empty(MORE, device=x.device)
        out = torch.empty(COUNT, device=x.device)
        total = COUNT + (MORE if {works_more} else 0)
        noise_add[(triton.cdiv(total, 1024),)](x, y, out, SPARE, COUNT, total, BLOCK=1024)
        return out


def get_inputs():
    return [torch.randn(COUNT + MORE), torch.randn(COUNT + MORE)]
"""

_GPU_REFERENCE = """
import torch

COUNT, MORE = {rows}, {more}


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x[:COUNT] + y[:COUNT]


def get_inputs():
    return [torch.randn(COUNT + MORE), torch.randn(COUNT + MORE)]
"""


@dataclass(frozen=True, slots=True)
class NoiseKernels:
    """Files of the kernels, and the share of more work that the slow one does."""

    reference: Path
    same: Path
    copy: Path
    slow: Path
    more: float


def write_kernels(directory: Path, *, on_gpu: bool) -> NoiseKernels:
    """Write the kernels: 5 % more rows on a CPU, 1 % more elements (120 MB moved) on a GPU."""
    rows, more = (10_000_000, 100_000) if on_gpu else (1000, 50)
    template = _GPU if on_gpu else _CPU
    paths = {}
    for name, works_more in (("same", False), ("copy", False), ("slow", True)):
        paths[name] = directory / f"{name}.py"
        paths[name].write_text(template.format(rows=rows, more=more, works_more=works_more))
    reference = directory / "reference.py"
    text = _GPU_REFERENCE if on_gpu else _CPU
    reference.write_text(text.format(rows=rows, more=more, works_more=False))
    return NoiseKernels(reference, paths["same"], paths["copy"], paths["slow"], more / rows)
