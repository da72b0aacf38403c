"""The kernels of the noise benchmark: a baseline, a copy of it, and one that takes a known share more time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_CPU = """
import torch

ROWS, MOST, MORE, COLUMNS = {rows}, {most}, {more}, 2048


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x[:ROWS + MORE], dim=-1)[:ROWS]


def get_inputs():
    return [torch.randn(ROWS + MOST, COLUMNS)]
"""

_GPU = """
import torch
import triton
import triton.language as tl

COUNT, MOST, MORE = {rows}, {most}, {more}
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
            SPARE = torch.empty(MOST, device=x.device)
        out = torch.empty(COUNT, device=x.device)
        total = COUNT + MORE
        noise_add[(triton.cdiv(total, 1024),)](x, y, out, SPARE, COUNT, total, BLOCK=1024)
        return out


def get_inputs():
    return [torch.randn(COUNT + MOST), torch.randn(COUNT + MOST)]
"""

_GPU_REFERENCE = """
import torch

COUNT, MOST = {rows}, {most}


class Model(torch.nn.Module):
    def forward(self, x, y):
        return x[:COUNT] + y[:COUNT]


def get_inputs():
    return [torch.randn(COUNT + MOST), torch.randn(COUNT + MOST)]
"""


@dataclass(frozen=True, slots=True)
class NoiseKernels:
    """Files of the kernels, and how they can be slowed.

    Attributes:
        rows: Work of the baseline: rows on a CPU, elements on a GPU.
        most: Most work that the slow kernel can do on top; without calibration it does all of it.
        step: More work comes in whole steps: an odd number of elements would be compiled, and run, in another way.
        target: Share of more time that the slow kernel is to take.
    """

    reference: Path
    same: Path
    copy: Path
    slow: Path
    rows: int
    most: int
    step: int
    target: float
    template: str

    def slow_down(self, more: int) -> None:
        """Let the slow kernel do ``more`` work on top."""
        self.slow.write_text(self.template.format(rows=self.rows, most=self.most, more=more))


def write_kernels(directory: Path, *, on_gpu: bool) -> NoiseKernels:
    """Write the kernels: 2 million numbers on a CPU, 123 MB moved on a GPU; to be slowed by 5 % and by 1 %."""
    rows, most, step, target = (10_240_000, 1_024_000, 1024, 0.01) if on_gpu else (1000, 250, 1, 0.05)
    template = _GPU if on_gpu else _CPU
    reference, same, copy, slow = (directory / f"{name}.py" for name in ("reference", "same", "copy", "slow"))
    made = NoiseKernels(reference, same, copy, slow, rows, most, step, target, template)
    for path in (made.same, made.copy):
        path.write_text(template.format(rows=rows, most=most, more=0))
    made.slow_down(most)
    made.reference.write_text((_GPU_REFERENCE if on_gpu else _CPU).format(rows=rows, most=most, more=0))
    return made
