"""Searching checkouts: what is found, with which confidence, and what an index does when files change."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.sources import index as source_index
from magpie_tui.sources.columns import COLUMNS, source_columns
from magpie_tui.sources.find import SourceFinder
from magpie_tui.sources.index import SourceIndex
from magpie_tui.sources.model import Repository, SourceReport
from magpie_tui.sources.repositories import gather, identify, installed_packages
from magpie_tui.sources.scan import scan

NORMS = """
namespace aiter {
// __global__ void commented_out(int)
template <typename T>
__global__ __launch_bounds__(256, (T::waves > 2 ? 4 : 2)) void add_rmsnorm_kernel(T* out, const T* in) {}
}  // namespace aiter
namespace other {
__global__ void add_rmsnorm_kernel(float*);
}
"""
PAGED = "template <int N>\n__global__ void paged_attention_ll4mi_kernel(int* x) {}\n"
UNIFIED = """
import triton

@triton.autotune(configs=[])
@triton.jit(do_not_specialize=["n"])
def kernel_unified_attention_2d(x, n):
    pass


@triton.jit
def _matmul_ogs(x):
    pass
"""
UNIFIED_TEST = """
from aiter import unified_attention, add_rmsnorm

def ref_attention(q):
    return q

def test_unified_attention():
    unified_attention()
"""


@pytest.fixture
def aiter(tmp_path: Path) -> Path:
    root = tmp_path / "src" / "my-aiter"
    for path, text in {
        "csrc/kernels/rmsnorm_kernels.cu": NORMS,
        "csrc/pa/pa.cuh": PAGED,
        "csrc/pa/pa_ragged.cuh": PAGED,
        "aiter/ops/unified_attention.py": UNIFIED,
        "op_tests/test_unified_attention.py": UNIFIED_TEST,
        "op_tests/test_rmsnorm_add.py": "def run_torch(x):\n    return x\n\nadd_rmsnorm = 1\n",
        "op_tests/bench_everything.py": "add_rmsnorm = unified_attention = 1\n",
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


def find(root: Path, name: str, tmp_path: Path) -> SourceReport:
    with SourceFinder([identify(root)], inductor_cache=tmp_path / "none", index_directory=tmp_path / "index") as finder:
        finder.update()
        return finder.find(name)


def test_a_namespace_decides(aiter: Path, tmp_path: Path) -> None:
    report = find(aiter, "void aiter::add_rmsnorm_kernel<float>(float*, float const*)", tmp_path)
    assert report.source is not None
    assert report.source.file == aiter / "csrc/kernels/rmsnorm_kernels.cu"
    assert report.source.line == 5
    assert report.source.confidence == "high"
    assert report.source.variable == "$AITER_DIR"
    assert report.test is not None
    assert report.test.file == aiter / "op_tests/test_rmsnorm_add.py"
    assert report.test.baseline == "run_torch"
    assert report.test.command[1:3] == ("-m", "pytest")
    assert Path(report.test.command[3]).is_absolute()


def test_a_copy_in_another_project_is_never_certain(aiter: Path, tmp_path: Path) -> None:
    (aiter / "csrc" / "copied.cu").write_text(
        "namespace vllm {\ntemplate <typename T> __global__ void rotary_embedding_copy_kernel(T* q) {}\n}\n"
    )
    copied = find(aiter, "void vllm::rotary_embedding_copy_kernel<float>(float*)", tmp_path)
    assert copied.source is not None
    assert copied.source.confidence == "medium"
    assert any("it may be a copy" in reason for reason in copied.source.reasons)
    bare = find(aiter, "void rotary_embedding_copy_kernel<float>(float*)", tmp_path)
    assert bare.source is not None
    assert bare.source.confidence == "low"
    assert any("has no namespace" in reason for reason in bare.source.reasons)


def test_equal_places_are_never_certain(aiter: Path, tmp_path: Path) -> None:
    report = find(aiter, "void paged_attention_ll4mi_kernel<3>(int*)", tmp_path)
    assert report.source is not None
    assert report.source.confidence == "low"
    assert [loser.reason for loser in report.source.losers] == ["equally likely"]


def test_triton_by_whole_name_and_by_its_beginning(aiter: Path, tmp_path: Path) -> None:
    whole = find(aiter, "kernel_unified_attention_2d.kd", tmp_path)
    assert whole.source is not None
    assert (whole.source.path, whole.source.line) == ("aiter/ops/unified_attention.py", 6)
    assert whole.source.confidence == "high"
    assert whole.test is not None
    assert (whole.test.path, whole.test.baseline) == ("op_tests/test_unified_attention.py", "ref_attention")
    part = find(aiter, "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1", tmp_path)
    assert part.source is not None
    assert part.source.line == 11
    assert part.source.confidence != "high"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Memcpy DtoD (Device -> Device)", "copy"),
        ("nvjet_sm90_tst_64x8_64x16_1x4_h_bz_TNT", "closed"),
        ("execute_context_1(5)_generation_0(0)", "annotated"),
        ("never_heard_of_it_kernel", "no definition"),
    ],
)
def test_no_source_says_why(aiter: Path, tmp_path: Path, name: str, words: str) -> None:
    report = find(aiter, name, tmp_path)
    assert report.source is None
    assert words in (report.reason or "")


def test_known_places_of_libraries(tmp_path: Path) -> None:
    torch = tmp_path / "pytorch"
    (torch / "aten/src/ATen/native/cuda").mkdir(parents=True)
    name = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, std::array<char*, 1ul> >(int)"
    )
    report = find(torch, name, tmp_path)
    assert report.source is not None
    assert (report.source.confidence, report.source.file) == ("low", None)
    (torch / "aten/src/ATen/native/cuda/FillKernel.cu").write_text(
        "namespace at::native {\ntemplate<typename scalar_t>\nstruct FillFunctor {\n};\n}\n"
    )
    report = find(torch, name, tmp_path)
    assert report.source is not None
    assert (report.source.line, report.source.confidence) == (3, "high")


def test_generated_code_of_inductor(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "ab"
    cache.mkdir(parents=True)
    (cache / "cabc.py").write_text("import triton\n@triton.jit\ndef triton_poi_fused_add_mul_0(x):\n    pass\n")
    with SourceFinder([], inductor_cache=cache.parent, index_directory=tmp_path / "index") as finder:
        finder.update()
        report = finder.find("triton_poi_fused_add_mul_0")
        missing = finder.find("triton_poi_fused_sub_9")
    assert report.source is not None
    assert report.source.file == cache / "cabc.py"
    assert missing.source is not None
    assert missing.source.confidence == "low"


def test_only_changed_files_are_read_again(aiter: Path, tmp_path: Path) -> None:
    with SourceIndex(identify(aiter), directory=tmp_path / "index") as index:
        first = index.update()
        assert (first.files, first.read) == (7, 7)
        assert index.update().read == 0
        file = aiter / "csrc/pa/pa.cuh"
        file.write_text(PAGED.replace("ll4mi", "renamed"))
        (aiter / "csrc/pa/pa_ragged.cuh").unlink()
        third = index.update()
        assert (third.read, third.removed) == (1, 1)
        assert index.definitions("paged_attention_ll4mi_kernel", kinds=("global",)) == []
        assert len(index.definitions("paged_attention_renamed_kernel", kinds=("global",))) == 1


def test_a_damaged_index_is_made_anew(aiter: Path, tmp_path: Path) -> None:
    with SourceIndex(identify(aiter), directory=tmp_path / "index") as index:
        index.update()
        path = index.path
    for damage in (b"not a database at all, but long enough to be looked at", b""):
        path.write_bytes(damage)
        with SourceIndex(identify(aiter), directory=tmp_path / "index") as index:
            assert index.update().read == 7
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with SourceIndex(identify(aiter), directory=tmp_path / "index") as index:
        assert index.update().read == 7


def test_an_index_that_another_process_holds_is_an_error_of_the_machine(
    aiter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_index, "_LOCK_SECONDS", 0.05)
    with SourceIndex(identify(aiter), directory=tmp_path / "held") as one:
        holder = sqlite3.connect(one.path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(MachineError, match="database is locked"):
            one.update()
        holder.close()
        assert one.update().files > 0


def test_odd_files_do_not_stop_the_index(aiter: Path, tmp_path: Path) -> None:
    (aiter / "csrc" / "loop").symlink_to(aiter)
    Path(os.fsdecode(os.fsencode(aiter / "csrc") + b"/bad\xff.cu")).write_bytes(b"__global__ void f(int) {}")
    (aiter / "csrc" / "binary.cu").write_bytes(b"\x00\xff__global__ void after_binary(int) {}\n__global__")
    with SourceIndex(identify(aiter), directory=tmp_path / "index") as index:
        assert index.update().files == 8
        assert len(index.definitions("after_binary", kinds=("global",))) == 1


def test_many_files_are_read_by_several_processes(tmp_path: Path) -> None:
    root = tmp_path / "many"
    root.mkdir()
    for number in range(1_600):
        (root / f"k{number}.cu").write_text(f"__global__ void kernel_{number}(int) {{}}\n")
    with SourceIndex(Repository("many", root), directory=tmp_path / "index") as index:
        assert index.update().read == 1_600
        assert [one.path for one in index.definitions("kernel_1234", kinds=("global",))] == ["k1234.cu"]


def test_columns_in_upstreams_words(aiter: Path, tmp_path: Path) -> None:
    name = "void aiter::add_rmsnorm_kernel<float>(float*, float const*)"
    with SourceFinder([identify(aiter)], inductor_cache=tmp_path / "none", index_directory=tmp_path / "i") as finder:
        finder.update()
        columns = source_columns(finder, [name, "Memset (Device)"])
    cells = dict(zip(COLUMNS, columns.of(name), strict=True))
    assert cells["kind"] == "aiter"
    assert cells["category"] == "layernorm"
    assert cells["source_file"] == "$AITER_DIR/csrc/kernels/rmsnorm_kernels.cu"
    assert cells["test_cmd"] == "cd $AITER_DIR && pytest op_tests/test_rmsnorm_add.py -v"
    assert cells["baseline_ref_kind"] == "eager_fn"
    assert columns.of("not looked up") == ("",) * len(COLUMNS)
    lines = columns.comment.splitlines()
    assert lines[0] == "# Repository Path Mappings:"
    assert lines[-1].startswith("# Warning: columns 7-19 from find_kernel_sources")


def test_repositories_are_known_by_their_layout(aiter: Path, tmp_path: Path) -> None:
    assert identify(aiter).key == "aiter"
    assert identify(tmp_path).key == tmp_path.name
    with pytest.raises(UserInputError, match="not a directory"):
        identify(tmp_path / "missing")
    with pytest.raises(MachineError, match="interpreter"):
        installed_packages(str(tmp_path / "python"))
    assert gather([aiter], packages=False) == (identify(aiter),)


def test_other_jits_are_no_triton_kernels() -> None:
    text = b"import triton\n@torch.jit.script\ndef scripted(x): ...\n\n@triton.jit\n# a comment\ndef real(x): ...\n"
    assert [found.symbol for found in scan("a.py", text).found] == ["real"]
