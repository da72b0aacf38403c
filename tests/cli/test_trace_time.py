"""``trace stages``, ``gaps``, ``collectives``, ``diff`` and ``split``: output, files, exit status."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpie_tui.traces.split_files import CSV_COLUMNS
from tests.cli.in_process import run_main as magpie
from tests.conftest import PROJECT_ROOT
from tests.traces.naive import kernel, launch, write_trace

EXAMPLES = PROJECT_ROOT / "examples/traces"
GRAPH = EXAMPLES / "h200_graph_rank-0.pt.trace.json.gz"
EAGER = EXAMPLES / "h200_eager_rank-0.pt.trace.json.gz"
NCCL = EXAMPLES / "h200_nccl"
CPU = EXAMPLES / "cpu_rank-0.pt.trace.json.gz"


def listed(*arguments: object) -> list[dict[str, str]]:
    done = magpie("trace", *arguments, "--format", "csv")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.mark.parametrize(
    ("command", "schema"),
    [
        (["stages", GRAPH], "trace_stages"),
        (["stages", NCCL, "--stage", "mixed"], "trace_stages"),
        (["stages", CPU], "trace_stages"),
        (["gaps", NCCL, "--top-k", 5], "trace_gaps"),
        (["gaps", CPU, "--stage", "decode"], "trace_gaps"),
        (["collectives", NCCL], "trace_collectives"),
        (["diff", EAGER, GRAPH], "trace_diff"),
        (["diff", GRAPH, NCCL, "--stage", "prefill", "decode"], "trace_diff"),
        (["summary", GRAPH], "trace_summary"),
    ],
)
def test_json_fits_its_schema(command: list[object], schema: str) -> None:
    done = magpie("trace", *command, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    jsonschema.validate(
        value, json.loads((PROJECT_ROOT / f"docs/schemas/{schema}.schema.json").read_text(encoding="utf-8"))
    )


def test_stages_are_listed_and_filtered() -> None:
    rows = listed("stages", GRAPH)
    assert [(row["stage"], row["steps"]) for row in rows] == [
        ("prefilldecode", "2"),
        ("decode", "12"),
        ("prefill", "2"),
    ]
    steps = listed("stages", GRAPH, "--view", "steps", "--stage", "decode_only")
    assert len(steps) == 12
    assert {(row["stage"], row["tokens"], row["generation"], row["split %"]) for row in steps} == {
        ("decode", "8", "8", "100.0")
    }
    windows = listed("stages", GRAPH, "--view", "windows", "--num-steps", 8)
    assert [row["window"] for row in windows] == [
        "mixed_steady_state",
        "decode_only_steady_state",
        "prefilldecode_steady_state",
    ]
    timeline = listed("stages", GRAPH, "--view", "timeline")
    assert [row["type"] for row in timeline][:3] == ["computation_time", "exposed_comm_time", "exposed_memcpy_time"]
    assert {row["of"] for row in timeline} >= {"upstream: linked events", "all work", "stage decode"}


def test_gaps_are_listed_with_their_surroundings() -> None:
    rows = listed("gaps", NCCL, "--top-k", 3)
    assert len(rows) == 6
    assert {row["rank"] for row in rows} == {"0", "1"}
    assert rows[0]["cause"] == "host-bound"
    assert rows[0]["host"] == "aten::_cudnn_attention_forward"
    causes = listed("gaps", GRAPH, "--view", "causes")
    assert sum(float(row["idle %"]) for row in causes) == pytest.approx(100, abs=0.1)


def test_collectives_are_listed_and_written(tmp_path: Path) -> None:
    done = magpie("trace", "collectives", NCCL, "--view", "ranks", "--csv", tmp_path, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert [row["rank"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["0", "1"]
    written = sorted(path.name for path in (tmp_path / "tracelens_collective_csvs").iterdir())
    assert written == [
        "nccl_implicit_sync.csv",
        "nccl_long.csv",
        "nccl_summary_implicit_sync.csv",
        "nccl_summary_long.csv",
        "straggler_summary.csv",
    ]
    assert {row["collective"] for row in listed("collectives", NCCL)} == {"allreduce"}
    assert len(listed("collectives", NCCL, "--view", "list")) == 48


def test_two_runs_are_compared() -> None:
    stages = {row["name"]: row for row in listed("diff", EAGER, GRAPH, "--view", "stages")}
    assert stages["decode"]["change"] == "faster"
    kernels = listed("diff", EAGER, GRAPH, "--top-k", 4)
    assert len(kernels) == 4
    assert set(kernels[0]) >= {"A us/step", "B us/step", "B - A us"}


def test_a_split_writes_what_it_lists(tmp_path: Path) -> None:
    flags = ("--find-steady-state", "--store-single-iteration", "--num-steps", 8, "--CONC", 8, "--OSL", 64, "--R", 0.5)
    done = magpie("trace", "split", GRAPH, "-o", tmp_path / "out", *flags, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    schema = (PROJECT_ROOT / "docs/schemas/trace_split.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(value, json.loads(schema))
    with (tmp_path / "out/execution_details.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert len(rows) == 16 + 3
    for row in rows:
        events = json.loads(gzip.decompress(Path(row["output_path"]).read_bytes()))["traceEvents"]
        assert sum("ts" in event for event in events) == int(row["event_count"])
    # What was cut out of a trace is never taken for one of its ranks.
    copied = tmp_path / "out" / GRAPH.name
    copied.write_bytes(GRAPH.read_bytes())
    again = magpie("trace", "stages", tmp_path / "out", "--json")
    assert [rank["path"] for rank in json.loads(again.stdout)["ranks"]] == [str(copied)]


def test_a_workspace_gets_its_split_beside_its_traces(tmp_path: Path) -> None:
    traces = tmp_path / "benchmark_vllm_20261130_101500" / "torch_trace"
    traces.mkdir(parents=True)
    for file in NCCL.iterdir():
        (traces / file.name).write_bytes(file.read_bytes())
    done = magpie("trace", "split", traces.parent, "--divide-phases", "--num-steps", 4)
    assert done.returncode == 0, done.stderr
    assert "rank 0 is split" in done.stderr
    folders = {path.name for path in (traces / "trace_split").iterdir()}
    assert folders == {"execution_details.csv", "execution_details.json", "prefilldecodemix", "decode_only"}


def plain(tmp_path: Path) -> Path:
    events = [launch("cudaLaunchKernel", 1, 1), kernel("k", 10, 5, 1), kernel("other", 30, 5, 2)]
    return write_trace(tmp_path / "plain.json", events)


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        (["stages", "PLAIN"], 1, "no steps in this trace"),
        (["split", "PLAIN", "-o", "OUT"], 1, "no steps in this trace"),
        (["collectives", "PLAIN"], 1, "no collectives in these traces"),
        (["kernels", "PLAIN", "--stage", "decode"], 1, "no kernels in the window"),
        (["gaps", "PLAIN", "--stage", "warmup"], 2, "no stage is called 'warmup'"),
        (["stages", "PLAIN", "--iterations", "4"], 2, "START:END"),
        (["stages", "PLAIN", "--num-steps", "0"], 2, "--num-steps"),
        (["split", GRAPH, "-o", "OUT", "--iterations", "90:99"], 2, "beyond the 16 steps"),
        (["gaps", "missing.json"], 2, "trace not found"),
        (["diff", "PLAIN", "missing.json"], 2, "trace not found"),
    ],
)
def test_exit_status(tmp_path: Path, command: list[object], status: int, message: str) -> None:
    names: dict[object, object] = {"PLAIN": plain(tmp_path), "OUT": tmp_path / "out"}
    done = magpie("trace", *[names.get(item, item) for item in command], cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["stages", "gaps", "collectives"])
def test_a_trace_without_gpu_work_has_failed(tmp_path: Path, command: str) -> None:
    events: list[Any] = [launch("cudaLaunchKernel", 10 * index, index) for index in range(50)]
    path = write_trace(tmp_path / "t.json", events, deviceProperties=[{"id": 0, "name": "x"}])
    done = magpie("trace", command, path)
    assert done.returncode == 1
    assert "no device activity recorded" in done.stderr


def test_one_damaged_rank_does_not_hide_the_other(tmp_path: Path) -> None:
    for file in NCCL.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    broken = tmp_path / "h200_nccl_rank-1.pt.trace.json.gz"
    broken.write_bytes(broken.read_bytes()[:5000])
    done = magpie("trace", "stages", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert [rank["error"] is None for rank in value["ranks"]] == [True, False]
    assert value["magpie_tui"]["quality"]["status"] == "partial"
    assert "Failed to analyze rank 1" in done.stderr
