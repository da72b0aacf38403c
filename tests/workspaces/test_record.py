"""The reproducibility record and the config snapshots."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import yaml

from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.facts import read_host, read_our_python, read_tool
from magpie_tui.workspaces.record import (
    PYTHON_FACTS_PROGRAM,
    PythonFacts,
    RecordInputs,
    complete_record,
    config_sha256,
    read_record,
    start_record,
)
from magpie_tui.workspaces.snapshot import KernelSnapshot, benchmark_snapshot_text, write_kernel_snapshot


def inputs(tmp_path: Path) -> RecordInputs:
    config = tmp_path / "kernels.yaml"
    config.write_text("kernels:\n  - id: a\n    env: {HF_TOKEN: hunter2}\n", encoding="utf-8")
    source = tmp_path / "a.py"
    source.write_bytes(b"x = 1\n")
    return RecordInputs(
        mode="compare",
        effective_config={"kernels": [{"id": "a", "env": {"HF_TOKEN": "hunter2"}}]},
        config_files=[config, tmp_path / "gone.yaml"],
        seeds={"inputs": 7},
        devices=[{"name": "MI300X", "index": 0}],
        drivers={"rocm": "7.0"},
        compilers={"g++": {"version": "13", "flags": ["-O2"]}},
        files=[("source of a", source), ("binary of a", tmp_path / "missing")],
        schedule={"windows": 20},
        peaks={"hbm_tbps": {"value": 5.3, "source": "data sheet"}},
        command_line=["magpie-tui", "compare", "--token", "hunter2"],
        environment={"HF_TOKEN": "hunter2", "PATH": "/bin"},
    )


def test_the_record_is_on_disk_before_and_after(tmp_path: Path) -> None:
    started = start_record(tmp_path, inputs(tmp_path), clock=lambda: 0.0)
    before = read_record(tmp_path / "record.json")
    assert not isinstance(before, Damaged)
    assert (before["status"], before["started_at"], before["ended_at"]) == ("started", "1970-01-01T00:00:00.000Z", None)
    assert "hunter2" not in (tmp_path / "record.json").read_text(encoding="utf-8")
    (tmp_path / "samples.jsonl").write_bytes(b"{}\n")
    complete_record(
        tmp_path,
        started,
        status="ended",
        samples=[Path("samples.jsonl")],
        discarded=[{"sample": 3, "reason": "throttled"}],
        schedule={"windows_done": 19},
        clock=lambda: 1.5,
    )
    after = read_record(tmp_path / "record.json")
    assert not isinstance(after, Damaged)
    assert (after["status"], after["ended_at"]) == ("ended", "1970-01-01T00:00:01.500Z")
    assert after["schedule"] == {"windows": 20, "windows_done": 19}
    assert after["samples"] == [
        {
            "role": "samples",
            "path": "samples.jsonl",
            "sha256": hashlib.sha256(b"{}\n").hexdigest(),
            "size_bytes": 3,
            "reason": None,
        }
    ]
    assert {
        **after,
        **{key: before[key] for key in ("status", "ended_at", "schedule", "samples", "discarded")},
    } == before


def test_hashes_can_be_recomputed(tmp_path: Path) -> None:
    start_record(tmp_path, inputs(tmp_path))
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert config_sha256(record["effective_config"]) == record["effective_config_sha256"]
    given, gone = record["config_files"]
    assert given["sha256"] == hashlib.sha256((tmp_path / "kernels.yaml").read_bytes()).hexdigest()
    assert "HF_TOKEN: <redacted>" in given["text"]
    assert gone["sha256"] is None and gone["reason"]
    source, binary = record["files"]
    assert source["sha256"] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert binary["sha256"] is None and binary["reason"]


def test_facts_about_tool_host_and_interpreter(tmp_path: Path) -> None:
    tool = read_tool()
    assert (tool.commit is None) == (tool.reason is not None)
    host = read_host()
    assert host.hostname and host.kernel and host.memory_bytes
    empty = read_host(tmp_path)
    assert empty.memory_bytes is None
    assert set(empty.reasons) == {"cpu_model", "cpu_governors", "numa_nodes", "numa_balancing", "memory_bytes"}
    start_record(tmp_path, inputs(tmp_path))
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert record["python"]["executable"] == sys.executable
    assert "PyYAML" in record["python"]["packages"]


def test_another_interpreter_tells_its_own_facts() -> None:
    done = subprocess.run([sys.executable, "-c", PYTHON_FACTS_PROGRAM], capture_output=True, text=True, check=True)
    facts = PythonFacts.from_json(json.loads(done.stdout))
    assert facts.executable == sys.executable
    assert "PyYAML" in facts.packages
    assert dict(facts.packages) == dict(read_our_python().packages), "read by hand as by the library"


def test_the_kernel_snapshot_has_upstreams_keys(tmp_path: Path) -> None:
    command = ("g++", "-O2", "a b.cpp")
    kernels = [
        KernelSnapshot("a", "hip", [Path("/k/a.hip")], Path("/k"), {"X": "1"}, command, (command, command)),
        KernelSnapshot("b", "pytorch", ["/k/b.py"], compiling_command=(), get_inputs_func="get_inputs"),
    ]
    path = write_kernel_snapshot(tmp_path, kernels)
    text = path.read_text(encoding="utf-8")
    first, second = yaml.safe_load(text)["kernels"]
    assert list(first) == sorted(first)
    assert set(first) == {
        "kernel_id",
        "kernel_type",
        "source_file_path",
        "working_dir",
        "env",
        "compiling_command",
        "testcase_command",
        "prof_command",
        "get_inputs_func",
        "get_init_inputs_func",
        "input_shapes",
        "dtype",
        "extra",
    }
    assert (first["kernel_type"], second["kernel_type"]) == ("HIP", "PYTORCH")
    assert first["compiling_command"] == list(command)
    assert first["testcase_command"] == [list(command)] * 2
    assert second["compiling_command"] is None and second["working_dir"] is None
    assert "&id" not in text and "{" not in text.replace("{}", "")


def test_the_benchmark_snapshot_is_flat_and_sorted() -> None:
    text = benchmark_snapshot_text(
        {"model": "m", "framework": "vllm", "envs": {"TP": 1}, "ray_config": None, "agentx": {"mode": "fast"}}
    )
    value = yaml.safe_load(text)
    assert list(value) == sorted(value)
    assert value["gpu_arch"] is None and value["agentx"] == {"mode": "fast"}
    assert "ray_config" not in value and "benchmark" not in value
