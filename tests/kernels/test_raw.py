"""Kernels without a main: what compilers say, how they are declared, and the whole way of a C++ function."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.kernel import load_kernel_config
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.raw import diagnostics, is_raw, library_command, spec_of
from magpie_tui.kernels.raw_dtypes import at_dtypes, dtype_sets
from tests.cli.in_process import run_main
from tests.cli.kernel_helpers import follow_schema, skip_without_torch
from tests.conftest import PROJECT_ROOT

EXAMPLE = PROJECT_ROOT / "examples" / "cpp_scale_add"
NVRTC_LOG = """\
k.cu(8): error: identifier "N" is undefined
  extern "C" __global__ void plain(const float* a, float* b, int n) { b[0] = a[0] + N; }
                                                                                    ^

k.cu(5): error: identifier "fooo" is undefined
  \tif (i < n) b[i] = a[i] + fooo;
  \t                         ^

k.cu(6): warning #177-D: variable "unused" was declared but never referenced
      int unused;
          ^

2 errors detected in the compilation of "k.cu".
"""
"""Printed by NVRTC 12.9 for a kernel with two undefined names."""


def test_nvrtc_tells_the_column_by_its_caret() -> None:
    found = diagnostics(NVRTC_LOG)
    assert [(item.line, item.column, item.severity) for item in found] == [
        (8, 83, "error"),
        (5, 27, "error"),
        (6, 9, "warning"),
    ]
    assert str(found[1]) == 'k.cu:5:27: error: identifier "fooo" is undefined'


def test_headers_that_are_missing_and_other_compilers() -> None:
    text = 'k.cu(2): catastrophic error: could not open source file "cuda_fp16.h" (no directories in search list)\n'
    assert (diagnostics(text)[0].line, diagnostics(text)[0].severity) == (2, "error")
    clang = (
        "/tmp/k.hip:3:17: error: use of undeclared identifier 'foo'\n    int i = foo;\n            ^\n1 error generated"
    )
    assert str(diagnostics(clang)[0]) == "/tmp/k.hip:3:17: error: use of undeclared identifier 'foo'"
    gcc = "In file included from a.cpp:1:\na.h:2:10: fatal error: none.h: No such file or directory\n"
    assert [(item.path, item.line, item.severity) for item in diagnostics(gcc)] == [("a.h", 2, "error")]
    assert diagnostics("nothing of the kind\n") == []


def test_arguments_become_what_the_child_needs() -> None:
    (entry,) = load_kernel_config(EXAMPLE / "analyze.yaml").kernels
    assert is_raw(entry)
    spec = spec_of(entry)
    assert [item["role"] for item in spec["arguments"]] == ["in", "in", "out", "scalar", "scalar", "scalar"]
    assert spec["arguments"][3] == {"name": "scale", "role": "scalar", "dtype": "float32", "value": 0.5}
    assert spec["names"] == {}
    assert not is_raw(KernelEntry("x", "pytorch", kernel_name="f"))


def test_plain_numbers_and_constant_dimensions() -> None:
    entry = KernelEntry(
        "x", "cuda", arguments=(3, 0.5, True), kernel_name="f", shapes=({"n": 4, "m": 1}, {"n": 8, "m": 1})
    )
    spec = spec_of(entry)
    assert [item["dtype"] for item in spec["arguments"]] == ["int32", "float32", "bool"]
    assert spec["names"] == {"m": 1}


def test_options_replace_the_usual_ones(tmp_path: Path) -> None:
    source, binary = tmp_path / "a.cpp", tmp_path / "a.so"
    assert library_command(source, (), binary)[3:5] == ("-O2", "-std=c++17")
    given = library_command(source, ("-O3", "-std=c++20"), binary)
    assert "-O2" not in given and "-std=c++17" not in given


TYPED = """
#include <cstdint>
extern "C" void twice(const T* x, T* out, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i]; }
"""
TYPED_REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return 2 * x
def get_inputs(n, dtype): return [torch.randn(n, dtype=dtype)]
"""
TYPED_ENTRY = """
  - id: typed
    type: cpp
    source_files: [typed.cpp]
    kernel_name: twice
    compile_options: ["-DT={dtype}"]
    arguments:
      - {name: x, dtype: dtype, shape: [n]}
      - {name: out, dtype: dtype, shape: [n], role: out}
      - {name: n, dtype: int64, value: n}
    reference: typed_reference.py:Model
    shapes: [{n: 33, dtype: float32}, {n: 17, dtype: float64}]
"""


def test_a_dtype_may_be_a_name_of_the_shape_grid(tmp_path: Path) -> None:
    path = tmp_path / "typed.yaml"
    path.write_text("kernels:" + TYPED_ENTRY)
    (tmp_path / "typed_reference.py").write_text(TYPED_REFERENCE)
    (tmp_path / "typed.cpp").write_text(TYPED)
    loaded = load_kernel_config(path)
    assert [problem.text for problem in loaded.problems] == []
    (entry,) = loaded.kernels
    assert list(dtype_sets(entry)) == [{"dtype": "float32"}, {"dtype": "float64"}]
    double = at_dtypes(entry, {"dtype": "float64"})
    assert double.compile_options == ("-DT=double",)
    assert [item["dtype"] for item in spec_of(double)["arguments"]] == ["float64", "float64", "int64"]
    half = at_dtypes(replace(entry, type="cuda", kernel_name="twice<{dtype}>"), {"dtype": "bfloat16"})
    assert half.kernel_name == "twice<__nv_bfloat16>"
    path.write_text(("kernels:" + TYPED_ENTRY).replace("dtype: float64}", "dtype: float46}"))
    with pytest.raises(UserInputError, match="dtype is no dtype"):
        load_kernel_config(path)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """A right kernel, one that leaves the last row alone, one that does not compile, and zeros, judged in one run."""
    skip_without_torch()
    place = tmp_path_factory.mktemp("raw")
    good = (EXAMPLE / "scale_add.cpp").read_text()
    (place / "wrong.cpp").write_text(good.replace("row < rows;", "row + 1 < rows;"))
    (place / "broken.cpp").write_text(good.replace("scale * a[col]", "scale * nothing"))
    (place / "zeros.cpp").write_text(good.replace("o[col] = scale * a[col] + y[col];", "o[col] = 0.0f;"))
    assert all((place / f"{name}.cpp").read_text() != good for name in ("wrong", "broken", "zeros"))
    template = (EXAMPLE / "analyze.yaml").read_text().replace("reference.py:", f"{EXAMPLE}/reference.py:")
    body = template[template.index("  id:") :].replace("rows: 64, cols: 4096", "rows: 4, cols: 33")
    entries = ["kernels:"]
    sources = {"good": EXAMPLE / "scale_add.cpp"} | {name: f"{name}.cpp" for name in ("wrong", "broken", "zeros")}
    for name, source in sources.items():
        text = body.replace("id: scale_add", f"id: {name}").replace("[scale_add.cpp]", f"[{source}]")
        entries.append("  - " + text.strip().replace("\n", "\n  "))
    (place / "typed.cpp").write_text(TYPED)
    (place / "typed_reference.py").write_text(TYPED_REFERENCE)
    entries.append(TYPED_ENTRY)
    (place / "raw.yaml").write_text("\n".join(entries) + "\n")
    words = ("analyze", "-k", "raw.yaml", "--quick", "--no-perf", "-o", "out")
    done = run_main(*words, cwd=place, env={"PYTHONPATH": str(PROJECT_ROOT)})
    assert done.returncode == 1, done.stderr
    (report,) = place.glob("out/*/analyze_report.json")
    content = json.loads(report.read_text())
    follow_schema(content, "analyze_report")
    states = content["results"]
    return {state["extra"]["kernel_id"]: state for state in states}


def _own(state: dict[str, object]) -> dict[str, object]:
    found = state["magpie_tui"]
    assert isinstance(found, dict)
    return found


@pytest.mark.torch
def test_a_right_function_passes_the_whole_gate(judged: dict[str, dict[str, object]]) -> None:
    own = _own(judged["good"])
    assert own["state"] == "correct", own["reason"]
    gate = own["gate"]
    assert isinstance(gate, dict)
    status = {check["id"]: check["status"] for check in gate["checks"]}
    assert {status[name] for name in ("G2", "G3", "G5", "G7", "G8", "G9", "G12", "G13", "G14", "G15")} == {"pass"}
    build = own["build"]
    assert isinstance(build, dict) and build["function"] == "scale_add" and len(build["sha256"]) == 64
    assert judged["good"]["compiling_state"] == "SUCCESS"
    if shutil.which("objdump"):
        listings = own["assembly"]
        assert isinstance(listings, list) and [item["name"] for item in listings] == ["scale_add"]
        assert listings[0]["file"] == f"logs/good/asm/scale_add.{listings[0]['kind']}.txt"


@pytest.mark.torch
def test_each_dtype_has_a_binary_and_is_judged(judged: dict[str, dict[str, object]]) -> None:
    own = _own(judged["typed"])
    assert own["state"] == "correct", own["reason"]
    build, shapes = own["build"], own["shapes"]
    assert isinstance(build, dict) and isinstance(shapes, list)
    assert (build["dtypes"], build["options"][-1]) == ({"dtype": "float32"}, "-DT=float")
    assert [item["dtypes"] for item in build["others"]] == [{"dtype": "float64"}]
    assert [row["shape"] for row in shapes] == ["n=33 float32", "n=17 float64"]


@pytest.mark.torch
def test_an_unwritten_row_is_found(judged: dict[str, dict[str, object]]) -> None:
    own = _own(judged["wrong"])
    assert own["state"] == "incorrect", own["reason"]


@pytest.mark.torch
def test_zeros_never_pass(judged: dict[str, dict[str, object]]) -> None:
    gate = _own(judged["zeros"])["gate"]
    assert isinstance(gate, dict)
    assert [check["id"] for check in gate["checks"] if check["status"] == "fail"] == ["G9"]


@pytest.mark.torch
def test_a_source_that_does_not_compile_names_the_place(judged: dict[str, dict[str, object]]) -> None:
    state = judged["broken"]
    assert _own(state)["state"] == "invalid" and state["compiling_state"] == "FAILED"
    errors = state["errors"]
    assert isinstance(errors, list)
    assert errors[0].startswith("Build failed: ") and "broken.cpp:" in errors[0]
    assert "error: 'nothing' was not declared" in errors[0].replace("‘", "'").replace("’", "'")


ONCE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from magpie_tui.kernels.harness.carry import write_value
from magpie_tui.kernels.harness.profiled import run_once

write_value("inputs.bin", [torch.ones(2, 3), torch.zeros(3)])
request = json.loads(sys.argv[2])
json.dump({**request, "inputs": "inputs.bin", "warm_up": 1, "calls": 2}, open("once.json", "w"))
run_once("once.json")
try:
    open("secret")
except PermissionError:
    print("refused", file=sys.stderr)
"""


@pytest.mark.torch
def test_a_profiler_would_see_exactly_the_calls_that_count(tmp_path: Path) -> None:
    skip_without_torch()
    source, binary = tmp_path / "k.cpp", tmp_path / "k.so"
    told = 'std::fprintf(stderr, "called %d\\n", (int)rows);'
    text = (
        (EXAMPLE / "scale_add.cpp").read_text().replace("#include <cstdint>", "#include <cstdint>\n#include <cstdio>")
    )
    source.write_text(text.replace("    for (int64_t row", f"    {told}\n    for (int64_t row", 1))
    subprocess.run(library_command(source, (), binary), check=True)
    (entry,) = load_kernel_config(EXAMPLE / "analyze.yaml").kernels
    secret = tmp_path / "secret"
    secret.touch()
    confine = {"hidden": [str(secret)], "protected": [str(secret)], "writable": [], "environment": {}}
    request = json.dumps({"raw": {**spec_of(entry), "binary": str(binary)}, "confine": confine})
    done = subprocess.run(
        [sys.executable, "-c", ONCE, str(PROJECT_ROOT), request],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines().count("called 2") == 3
    assert done.stderr.splitlines()[-1] == "refused"
