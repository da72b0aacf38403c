"""``magpie-tui gpu-info``: upstream's lines first, one JSON form with a schema, never an error for a missing GPU."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.in_process import run_main
from tests.conftest import PROJECT_ROOT
from tests.machine.tools import fake_amd_smi, fake_nvidia_smi, fake_tool, printing

SCHEMA = json.loads((PROJECT_ROOT / "docs/schemas/gpu_info.schema.json").read_text(encoding="utf-8"))


def run(*arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    names = [name for name in os.environ if name.endswith("_VISIBLE_DEVICES")]
    none = dict.fromkeys((*names, "ROCM_PATH", "CUDA_HOME", "CUDA_PATH", "HIP_PATH"))
    return run_main(*arguments, env={**none, "PATH": str(path), **environment}, cwd=path)


def checked(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    value: dict[str, Any] = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(value, SCHEMA)
    return value


needs_no_gpu = pytest.mark.skipif(Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists(), reason="a GPU is here")


@needs_no_gpu
@pytest.mark.parametrize("arguments", [("gpu-info",), ("--gpu-info",), ("--gpu-info", "analyze")])
def test_no_gpu_is_a_normal_answer(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = run(*arguments, path=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("GPU Information:\n  Vendor: UNKNOWN\n  Architecture: None\n  (No GPU detected)\n")
    assert "\x1b" not in result.stdout


def test_nvidia_lines_are_upstreams(tmp_path: Path) -> None:
    xml, query, apps = (
        printing(f"h200/{name}") for name in ("nvidia_smi_qx.xml", "nvidia_query.csv", "nvidia_apps.csv")
    )
    fake_nvidia_smi(tmp_path, xml=xml, query=query, apps=apps)
    result = run("gpu-info", path=tmp_path, CUDA_VISIBLE_DEVICES="1")
    assert result.returncode == 0
    expected = "GPU Information:\n  Vendor: NVIDIA\n  Architecture: sm_90\n  Compiler: nvcc\n  Profiler: ncu\n"
    assert result.stdout.startswith(expected)
    lines = result.stdout.splitlines()
    first, second = (line for line in lines if "NVIDIA H200" in line)
    assert first.split()[:2] == ["0", "."] and first.endswith("no") and second.endswith("yes")
    assert "  CUDA_VISIBLE_DEVICES=1" in lines


def test_amd_json_follows_the_schema(tmp_path: Path) -> None:
    fake_amd_smi(tmp_path)
    fake_tool(tmp_path, "hipcc", "echo 'HIP version: 6.4.43483'")
    value = checked(run("gpu-info", "--json", "--port", "8000", "8001", path=tmp_path, HF_TOKEN="hf_very_secret_value"))
    assert (value["vendor"], value["architecture"], value["runtime_version"]) == ("AMD", "gfx942", "6.4.2")
    assert [gpu["letter"] for gpu in value["gpus"]] == ["x", "."]
    assert value["gpus"][0]["processes"][0]["pid"] == 4242
    assert [port["number"] for port in value["ports"]] == [8000, 8001]
    hipcc = next(tool for tool in value["tools"] if tool["name"] == "hipcc")
    assert hipcc["version"] == "6.4.43483"


@needs_no_gpu
def test_no_gpu_json_follows_the_schema_and_shows_no_secret(tmp_path: Path) -> None:
    result = run("--json", "gpu-info", path=tmp_path, HF_TOKEN="hf_very_secret_value", DB_PASSWORD="hush")
    value = checked(result)
    assert value["gpus"] == [] and value["reasons"]["gpus"]
    assert "hf_very_secret_value" not in result.stdout and "hush" not in result.stdout


@needs_no_gpu
def test_a_hanging_nvidia_smi_is_reported_and_does_not_hang_us(tmp_path: Path) -> None:
    fake_tool(tmp_path, "nvidia-smi", "exec /bin/sleep 300")
    result = run("gpu-info", "--timeout", "0.5", path=tmp_path)
    assert result.returncode == 0
    assert "(No GPU detected)" in result.stdout and "no answer within 0.5 s" in result.stdout


def test_escape_sequences_from_a_tool_do_not_reach_the_terminal(tmp_path: Path) -> None:
    fake_tool(tmp_path, "rocminfo", r"printf '\033]0;owned\007Agent'; exit 1")
    result = run("gpu-info", path=tmp_path)
    assert result.returncode == 0 and "\x1b" not in result.stdout


def test_a_number_that_is_no_port_is_the_users_error(tmp_path: Path) -> None:
    result = run("gpu-info", "--port", "70000", path=tmp_path)
    assert result.returncode == 2 and "between 1 and 65535" in result.stderr and result.stdout == ""


def test_the_schema_refuses_a_value_of_the_wrong_kind(tmp_path: Path) -> None:
    fake_amd_smi(tmp_path)
    value = checked(run("gpu-info", "--json", path=tmp_path))
    value["gpus"][0]["power_w"] = "612 W"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, SCHEMA)
