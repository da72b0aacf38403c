"""Kernels without a main and shapes from a trace, from the command line: what is refused before anything is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kernel_helpers import EXAMPLES, magpie

TRACE = EXAMPLES / "traces" / "h200_eager_rank-0.pt.trace.json.gz"
CPP = EXAMPLES / "cpp_scale_add" / "analyze.yaml"


def test_a_cuda_kernel_needs_an_nvidia_gpu(tmp_path: Path) -> None:
    done = magpie("gpu-info", "--json", cwd=tmp_path)
    if '"NVIDIA"' in done.stdout:
        pytest.skip("there is an NVIDIA GPU here")
    done = magpie("analyze", "-k", EXAMPLES / "cuda_rmsnorm" / "analyze.yaml", "-o", "out", cwd=tmp_path)
    assert done.status == 3, done
    assert "there is no NVIDIA GPU here (kernel rmsnorm is of the type cuda)" in done.stderr
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--shapes-from", TRACE], "--shapes-from needs --kernel"),
        (["--kernel", "mm"], "--kernel needs --shapes-from"),
        (["--shapes-from", TRACE, "--kernel", "no_such_thing"], "nothing in this trace is named no_such_thing"),
        (["--shapes-from", "nowhere.json", "--kernel", "mm"], "nowhere.json"),
        # Two matrices are no row and a vector.
        (["--shapes-from", TRACE, "--kernel", "aten::mm"], "does not fit"),
    ],
)
def test_shapes_that_cannot_be_had_are_user_errors(tmp_path: Path, arguments: list[object], says: str) -> None:
    done = magpie("analyze", "-k", CPP, "-o", "out", *arguments, cwd=tmp_path)
    assert done.status == 2, done
    assert says in " ".join(done.stderr.split())
    assert not list(tmp_path.glob("out/analyze*"))


def test_comparing_different_shapes_is_refused(tmp_path: Path) -> None:
    text = (EXAMPLES / "cpp_scale_add" / "compare_tiles.yaml").read_text()
    text = text.replace("id: wide,", "id: wide, shapes: {rows: [1], cols: [1]},")
    for name in ("scale_add_tiled.cpp", "tiles_narrow.txt", "tiles_wide.txt", "reference.py"):
        (tmp_path / name).write_text((EXAMPLES / "cpp_scale_add" / name).read_text())
    (tmp_path / "k.yaml").write_text(text)
    done = magpie("compare", "-k", "k.yaml", "-o", "out", cwd=tmp_path)
    assert done.status == 2 and "narrow and wide have different shapes" in done.stderr
