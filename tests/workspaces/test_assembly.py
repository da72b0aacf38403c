"""Instructions of a candidate and its baseline: what counts as one, of which class it is, and what differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.kernels.assembly import of_function
from magpie_tui.workspaces.assembly import (
    Listing,
    class_of,
    classes_of,
    compare,
    counterpart,
    instructions_of,
    listings_of,
)

SASS = """
\tcode for sm_90
\t\tFunction : vector_add
\t.headerflags\t@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                    /* 0x00000a00ff017b82 */
                                                                             /* 0x000fe20000000800 */
        /*0010*/                   S2R R7, SR_CTAID.X ;                      /* 0x0000000000077919 */
        /*0080*/              @P0  EXIT ;                                    /* 0x000000000000094d */
        /*00e0*/                   LDG.E.128 R8, desc[UR4][R2.64] ;          /* 0x0000000402087981 */
        /*00f0*/                   FADD R8, R8, R4 ;                         /* 0x0000000408087221 */
        /*0100*/                   HGMMA.64x64x16.F32 R24, gdesc[UR8], R24 ; /* 0x00200000081879f0 */
        /*0110*/                   STG.E.128 desc[UR4][R12.64], R8 ;         /* 0x000000080c007986 */
        /*0120*/                   BRA 0x120;                                /* 0xfffffffc00fc7947 */
"""
GCN = """
0000000000001900 <rms>:
\ts_load_dwordx4 s[0:3], s[0:1], 0x0                         // 000000001900: C00A0000 00000000
    1908:\ts_waitcnt lgkmcnt(0)
    190c:\tglobal_load_dwordx4 v[0:3], v4, s[0:1]
    1914:\tv_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0
    191c:\tv_add_f32_e32 v0, v1, v0
    1920:\tds_write_b32 v0, v1
    1928:\ts_endpgm
"""
OBJDUMP = """
0000000000001100 <scale_add>:
    1100:\ttest   %rcx,%rcx
    1103:\tjle    12bb <scale_add+0x1bb>
    1109:\tmulps  %xmm0,%xmm1
    110c:\tpush   %rbx

0000000000002000 <scale_add.cold>:
    2000:\tret

0000000000003000 <other>:
    3000:\tnop
"""


def test_machine_code_of_nvidia() -> None:
    found = instructions_of("sass", SASS)
    assert [text.split()[0] for text in found][:3] == ["LDC", "S2R", "@P0"]
    classes = [class_of("sass", text) for text in found]
    assert classes[2:] == ["branch", "global memory", "float", "matrix", "global memory", "branch"]


def test_machine_code_of_amd_and_of_the_processor() -> None:
    classes = [class_of("gcn", text) for text in instructions_of("gcn", GCN)]
    assert classes == ["scalar", "barrier", "global memory", "matrix", "float", "shared memory", "branch"]
    own = of_function(OBJDUMP, "scale_add")
    assert "nop" not in own and "ret" in own
    found = instructions_of("x86-64", own)
    assert found[1] == "jle <place>", "where the code lies is no difference"
    assert [class_of("x86-64", text) for text in found][2:4] == ["packed float", "integer and moves"]


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]", "global memory"),
        ("@%p1 bra $L__BB0_2", "branch"),
        ("fma.rn.f32 %f1, %f2, %f3, %f4", "float"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}", "matrix"),
        ("add.s32 %r1, %r2, %r3", "integer and moves"),
    ],
)
def test_ptx(instruction: str, wanted: str) -> None:
    assert class_of("ptx", instruction) == wanted


def test_listings_are_compared_with_their_counterpart(tmp_path: Path) -> None:
    old = Listing("x86-64", "f", ("a", "b", "c"))
    new = Listing("x86-64", "f", ("a", "x", "c"))
    found = compare(old, new)
    assert (found.added, found.removed, found.note) == (1, 1, None)
    assert compare(old, old).lines == ()
    assert counterpart(new, [Listing("sass", "f"), old]) is old
    assert counterpart(new, [Listing("sass", "f")]) is None
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "f.txt").write_text(OBJDUMP)
    more = {"assembly": [{"kind": "x86-64", "name": "f", "file": "logs/f.txt"}, {"file": "../x"}, {"file": "gone"}, 7]}
    read = listings_of(tmp_path, more)
    assert len(read[0].instructions) == 6
    assert [item.reason for item in read[1:3]] == ["it is outside the workspace", "it is gone"]


@given(st.sampled_from(["sass", "gcn", "ptx", "x86-64", "ttgir", "amdgcn", "?"]), st.text(max_size=300))
def test_any_text_is_read(kind: str, text: str) -> None:
    for instruction in instructions_of(kind, text):
        assert class_of(kind, instruction) in classes_of(kind)
