"""Registers, spills and occupancy from what cuobjdump, llvm-readelf and Triton write.

The outputs are made here in the documented forms; registers of a CUDA kernel were also read on an H200 by
``benchmarks/raw_kernels_gpu.py``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from magpie_tui.kernels.binary_facts import (
    KernelFacts,
    amd_notes,
    cuda_resources,
    occupancy,
    read_binary,
    read_triton_cache,
    triton_metadata,
)

CUOBJDUMP = """
Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux

Resource usage:
 Common:
  GLOBAL:0
 Function _Z10vector_addPKfS0_Pfi:
  REG:16 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:556 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function spilling:
  REG:255 STACK:96 SHARED:0 LOCAL:8 CONSTANT[0]:556 TEXTURE:0 SURFACE:0 SAMPLER:0
"""
NOTES = """
File: pa.hsaco
Displaying notes found in: .note
  Owner                Data size \tDescription
  AMDGPU               0x000003f4\tNT_AMDGPU_METADATA (AMDGPU Metadata)
    AMDGPU Metadata:
        ---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .address_space:  global
        .offset:         0
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 16384
    .kernarg_segment_size: 24
    .max_flat_workgroup_size: 256
    .name:           paged_attention
    .private_segment_fixed_size: 48
    .sgpr_count:     36
    .sgpr_spill_count: 0
    .symbol:         paged_attention.kd
    .vgpr_count:     128
    .vgpr_spill_count: 12
    .wavefront_size: 64
amdhsa.target:   amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-
amdhsa.version:
  - 1
  - 2
...
"""
TRITON = {
    "name": "rms_norm",
    "num_warps": 8,
    "shared": 2048,
    "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
    "n_regs": 40,
    "n_spills": 0,
}


def test_cuobjdump() -> None:
    first, second = cuda_resources(CUOBJDUMP)
    assert (first.name, first.arch, first.registers, first.shared_bytes, first.local_bytes) == (
        "_Z10vector_addPKfS0_Pfi",
        "sm_90",
        16,
        1024,
        0,
    )
    assert (second.registers, second.local_bytes) == (255, 104)
    assert cuda_resources("cuobjdump fatal: not a file") == []


def test_notes_of_a_code_object() -> None:
    (facts,) = amd_notes(NOTES)
    assert (facts.name, facts.arch, facts.registers, facts.spills, facts.scalars) == (
        "paged_attention",
        "gfx942",
        128,
        12,
        36,
    )
    assert (facts.local_bytes, facts.shared_bytes, facts.threads, facts.wave) == (48, 16384, 256, 64)
    assert amd_notes("File: x\n") == [] and amd_notes("---\n: : :\n...") == []


def test_occupancy_by_registers() -> None:
    def waves(arch: str, registers: int) -> int | None:
        found = occupancy(KernelFacts("k", arch=arch, registers=registers))
        return None if found is None else found.waves

    # 512 registers a lane and SIMD in granules of 8, at most 8 waves.
    assert [waves("gfx942", count) for count in (64, 88, 96, 104, 128, 512)] == [8, 5, 5, 4, 4, 1]
    # 16 Ki registers a scheduler, 256 at a time for a warp of 32, at most 16 warps.
    assert [waves("sm_90", count) for count in (16, 32, 40, 64, 255)] == [16, 16, 12, 8, 2]
    assert waves("sm_89", 16) == 12
    assert waves("gfx1100", 64) is None and waves("x86-64", 1) is None


def test_triton_writes_json(tmp_path: Path) -> None:
    facts = triton_metadata(json.dumps(TRITON))
    assert facts is not None
    assert (facts.name, facts.arch, facts.registers, facts.threads, facts.shared_bytes) == (
        "rms_norm",
        "sm_90",
        40,
        256,
        2048,
    )
    assert triton_metadata("{") is None and triton_metadata("[]") is None
    (tmp_path / "abc").mkdir()
    (tmp_path / "abc" / "rms_norm.json").write_text(json.dumps(TRITON))
    (tmp_path / "abc" / "__grp__rms_norm.json").write_text("{}")
    assert [item.name for item in read_triton_cache(tmp_path)] == ["rms_norm"]
    assert read_triton_cache(tmp_path, frozenset({"other"})) == []


@pytest.mark.skipif(shutil.which("g++") is None or shutil.which("readelf") is None, reason="needs g++ and readelf")
def test_a_library_of_the_processor(tmp_path: Path) -> None:
    source, binary = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text('extern "C" int two() { return 2; }\n')
    subprocess.run(["g++", "-shared", "-fPIC", "-o", binary, source], check=True)
    (facts,), reason = read_binary(binary)
    assert reason is None and facts.arch in ("x86-64", "aarch64") and "bytes of code" in facts.source
    assert facts.registers is None
    assert read_binary(tmp_path / "none.so") == ([], "none.so is not there")
