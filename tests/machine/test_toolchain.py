"""Where tools are, and what versions they say they have."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from magpie_tui.machine.toolchain import TOOLS, find_package, find_tool, locate, parse_version, rocm_version
from tests.machine.tools import fake_tool, fixture

DEBIAN_GCC = "g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
REDHAT_GCC = "g++ (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)\n"
HIPCC = (
    "HIP version: 6.4.43483-a187df25c\nAMD clang version 19.0.0git (https://github.com/RadeonOpenCompute roc-6.4.2)\n"
)
NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 13.0, V13.0.88\n"


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("g++", DEBIAN_GCC, "12.2.0"),
        ("g++", REDHAT_GCC, "11.4.1"),
        ("clang++", "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", "14.0.6"),
        ("amdclang++", HIPCC, "19.0.0git"),
        ("hipcc", HIPCC, "6.4.43483-a187df25c"),
        ("nvcc", NVCC, "13.0.88"),
        ("ncu", "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 36398880)\n", "2025.3.1.0"),
        ("nsys", "NVIDIA Nsight Systems version 2025.3.2.474-253236389321v0\n", "2025.3.2.474"),
        ("rocprof-compute", "rocprofiler-compute version: 3.1.0 (release)\n", "3.1.0"),
        ("rocprofv3", "         version: 1.0.0\n    git_revision: abc\n", "1.0.0"),
        ("docker", "Docker version 28.2.2, build e6534b4\n", "28.2.2"),
        ("ray", "ray, version 2.49.1\n", "2.49.1"),
        ("metrix", "metrix 0.3.1", "0.3.1"),
        ("nvcc", "command not understood", None),
        ("g++", "", None),
    ],
)
def test_versions(name: str, text: str, version: str | None) -> None:
    assert parse_version(name, text) == version


def test_recorded_versions_of_nvidia_tools() -> None:
    text = fixture("h200/nvidia_tools.txt")
    assert parse_version("nvcc", text) == "13.0.88"
    assert parse_version("ncu", text) == parse_version("compute-sanitizer", text) == "2025.3.1.0"


def test_a_tool_beside_the_path_is_found_and_said_to_be(tmp_path: Path) -> None:
    root = tmp_path / "root"
    fake_tool(root / "opt/rocm/bin", "hipcc", "echo 'HIP version: 6.4.1'")
    environment = {"PATH": str(tmp_path)}
    tool = find_tool("hipcc", environment, root=root)
    assert tool.found and not tool.on_path and tool.version == "6.4.1" and tool.reason is None
    fake_tool(tmp_path, "hipcc", "echo 'HIP version: 7.0'")
    assert find_tool("hipcc", environment, root=root).version == "7.0"
    other = {"PATH": str(tmp_path / "empty"), "ROCM_PATH": str(tmp_path / "elsewhere")}
    fake_tool(tmp_path / "elsewhere/llvm/bin", "amdclang++", "echo 'AMD clang version 20.0'")
    assert find_tool("amdclang++", other, root=root).version == "20.0"


def test_a_tool_that_does_not_tell_its_version_is_still_there(tmp_path: Path) -> None:
    fake_tool(tmp_path, "ncu", "exec /bin/sleep 60")
    fake_tool(tmp_path, "nvcc", "echo hello")
    fake_tool(tmp_path, "ray", "exit 5")
    environment = {"PATH": str(tmp_path)}
    hanging = find_tool("ncu", environment, timeout_s=0.4, root=tmp_path)
    assert hanging.found and hanging.version is None and hanging.reason == "no answer within 0.4 s"
    assert find_tool("nvcc", environment, root=tmp_path).reason == "its answer to --version holds no version"
    assert find_tool("ray", environment, root=tmp_path).reason == "exit status 5"


def test_a_missing_tool_and_any_other_program(tmp_path: Path) -> None:
    missing = find_tool("hipcc", {"PATH": ""}, root=tmp_path)
    assert not missing.found and "not on PATH" in (missing.reason or "")
    fake_tool(tmp_path, "some-tool", "echo some-tool 1.2.3")
    assert find_tool("some-tool", {"PATH": str(tmp_path)}, root=tmp_path).version == "1.2.3"
    assert locate("some-tool", {"PATH": str(tmp_path)}).path == tmp_path / "some-tool"
    assert set(TOOLS) >= {"hipcc", "nvcc", "g++", "ncu", "rocprof-compute", "docker"}


def test_python_is_the_running_interpreter() -> None:
    tool = find_tool("python")
    assert tool.path == Path(sys.executable) and tool.version is not None
    assert tool.version.startswith(f"{sys.version_info.major}.{sys.version_info.minor}.")


def test_packages_are_found_without_importing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = find_package("explosive")
    assert package.importable and package.version is None and "explosive" in (package.reason or "")
    assert "explosive" not in sys.modules
    assert find_package("pytest").version is not None
    absent = find_package("no_such_module_here")
    assert not absent.importable and "no_such_module_here" in (absent.reason or "")


def test_rocm_version_file(tmp_path: Path) -> None:
    assert rocm_version({}, tmp_path) is None
    (tmp_path / ".info").mkdir()
    (tmp_path / ".info/version").write_text("7.0.0-38\n", encoding="utf-8")
    assert rocm_version({"ROCM_PATH": str(tmp_path)}) == "7.0.0-38"
