"""``trace kernels``, ``trace summary`` and ``benchmark --trace-dir`` : output, files, exit status."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.cli.trace_common import say_files
from magpie_tui.traces.discover import SetAside, TraceSet
from tests.cli.in_process import run_main as magpie
from tests.traces.naive import kernel, launch, op, write_trace


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    directory = tmp_path / "traces"
    directory.mkdir()
    events = [op("aten::mm", 0, 9, 5, [[4, 8], [8, 2]]), launch("cudaLaunchKernel", 1, 1)]
    events += [kernel("gemm_kernel<64>(float*)", 10, 60, 1, **{"External id": 5}), kernel("k" * 60, 100, 40)]
    write_trace(directory / "w-rank-0.pt.trace.json.gz", events)
    write_trace(directory / "w-rank-1.pt.trace.json.gz", [kernel("gemm_kernel<32>(float*)", 5, 100)])
    return directory


def test_kernels_as_json_has_upstreams_object_and_ours(traces: Path) -> None:
    done = magpie("trace", "kernels", traces, "--json", "--top-k", 2)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert [(item["name"], item["calls"], item["self_cuda_total_us"]) for item in value["top_kernels"]] == [
        ("gemm_kernel<32>(float*)", 1, 100),
        ("gemm_kernel<64>(float*)", 1, 60),
    ]
    assert set(value["top_kernels"][0]) == {
        "name",
        "calls",
        "self_cuda_total_us",
        "avg_time_us",
        "pct_total",
        "input_shapes",
    }
    assert value["total_duration_us"] == 200
    assert value["num_ranks"] == 2
    ours = value["magpie_tui"]
    assert [(item["name"], len(item["variants"]), item["self_us"]) for item in ours["kernels"]] == [
        ("gemm_kernel", 2, 160),
        ("k" * 60, 1, 40),
    ]
    assert ours["quality"]["ranks_found"] == 2
    assert str(traces / "w-rank-1.pt.trace.json.gz") in done.stderr


def test_every_format_has_the_same_cells(traces: Path) -> None:
    table = magpie("trace", "kernels", traces).stdout
    rows = list(csv.reader(io.StringIO(magpie("trace", "kernels", traces, "--format", "csv").stdout)))
    markdown = magpie("trace", "kernels", traces, "--format", "md").stdout
    assert rows[1][:3] == ["gemm_kernel", "2", "160.000"]
    for cell in rows[1]:
        assert cell in table
        assert cell in markdown


def test_options_with_several_values(traces: Path) -> None:
    done = magpie("trace", "kernels", traces, "--categories", "cpu_op", "kernel", "--ignore-categories", "x", "--json")
    config = json.loads(done.stdout)["config"]
    assert config["categories"] == ["cpu_op", "kernel"]
    assert config["ignore_categories"] == ["x"]
    everything = json.loads(magpie("trace", "kernels", traces, "--json", "--categories").stdout)
    assert everything["config"]["categories"] == []
    assert sum(item["calls"] for item in everything["top_kernels"]) == 5


def test_written_where_it_is_asked_for(traces: Path, tmp_path: Path) -> None:
    done = magpie("trace", "kernels", traces, "-o", tmp_path / "out", "--json")
    value = json.loads(done.stdout)
    directory = tmp_path / "out" / "gap_analysis"
    assert value["output_dir"] == str(directory)
    assert sorted(path.name for path in directory.iterdir()) == [
        "gap_analysis.csv",
        "gap_analysis.json",
        "gap_analysis_rank0.csv",
        "gap_analysis_rank1.csv",
        "kernels.csv",
    ]


def test_upstreams_command_line(traces: Path, tmp_path: Path) -> None:
    done = magpie("benchmark", "--trace-dir", "traces", "--top-k", 3, "--start-pct", 0, "--end-pct", 100, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:7] == [
        "",
        "Gap Analysis (0.0%-100.0% window, category-filtered)",
        "=" * 60,
        "Ranks analyzed: 2",
        "Categories: kernel, gpu",
        "Ignore: gpu_user_annotation, user_annotation",
        "Total duration: 200.00 us",
    ]
    assert lines[9] == "-" * 95
    assert lines[12].startswith("  " + "k" * 47 + "... ")
    assert lines[-2:] == ["", "Output: results/gap_analysis"]
    assert (tmp_path / "results" / "gap_analysis" / "gap_analysis.csv").read_bytes().count(b"\r\n") == 4


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--start-pct", "80", "--end-pct", "20"], 2, "--start-pct"),
        (["--end-pct", "150"], 2, "--end-pct"),
        (["--min-duration-us", "1e9"], 1, "no kernel"),
    ],
)
@pytest.mark.parametrize("command", [["benchmark", "--trace-dir"], ["trace", "kernels"]])
def test_exit_status(
    traces: Path, tmp_path: Path, command: list[str], options: list[str], status: int, words: str
) -> None:
    done = magpie(*command, traces, *options, cwd=tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_missing_traces(tmp_path: Path) -> None:
    done = magpie("benchmark", "--trace-dir", "none", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("trace directory not found") == 1
    assert magpie("trace", "summary", tmp_path / "none.json").returncode == 2
    empty = tmp_path / "empty.json"
    empty.write_text("")
    done = magpie("trace", "kernels", empty)
    assert done.returncode == 2
    assert "trace is empty" in done.stderr


def test_a_cut_off_trace_names_the_way_out(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "t.json", [kernel("k", index, 1, index) for index in range(100)])
    path.write_bytes(path.read_bytes()[:-200])
    refused = magpie("trace", "kernels", path, "--json")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "cut off" in refused.stderr
    assert "--salvage" in refused.stderr
    salvaged = magpie("trace", "kernels", path, "--json", "--salvage")
    assert salvaged.returncode == 0
    assert json.loads(salvaged.stdout)["magpie_tui"]["quality"]["truncated"] is True
    assert "cut off" in salvaged.stderr


@pytest.mark.parametrize("command", [["trace", "kernels"], ["trace", "summary"], ["benchmark", "--trace-dir"]])
def test_a_trace_without_gpu_work_has_failed(tmp_path: Path, command: list[str]) -> None:
    write_trace(tmp_path / "t.json.gz", [launch("cudaLaunchKernel", index, index) for index in range(50)])
    done = magpie(*command, tmp_path, "-o", tmp_path / "out") if command[1] != "summary" else magpie(*command, tmp_path)
    assert done.returncode == 1
    assert "no device activity recorded" in done.stderr
    assert not (tmp_path / "out").exists()


def test_summary_accounts_for_every_event(traces: Path) -> None:
    done = magpie("trace", "summary", traces, "--json")
    assert done.returncode == 0, done.stderr
    quality: dict[str, Any] = json.loads(done.stdout)["magpie_tui"]["quality"]
    assert quality["events"] == sum(quality["events_by_kind"].values()) == 5
    table = magpie("trace", "summary", traces).stdout
    assert "events" in table
    assert "untimed" in table


def test_a_benchmark_without_a_config_needs_framework_and_model(tmp_path: Path) -> None:
    done = magpie("benchmark", "vllm", cwd=tmp_path)
    assert done.returncode == 2
    assert "--model" in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("--model") == 2, "once in the hint, once in its example"


def test_a_measurement_allows_no_profiler(tmp_path: Path) -> None:
    config = tmp_path / "profiled.yaml"
    config.write_text("benchmark: {framework: vllm, model: a/b, profiler: {torch_profiler: {enabled: true}}}\n")
    done = magpie("benchmark", "-b", config, "--run-kind", "measurement", cwd=tmp_path)
    assert done.returncode == 2
    assert "allows no profiler" in done.stderr
    assert list(tmp_path.iterdir()) == [config]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_an_interrupt_ends_it_and_leaves_no_report(tmp_path: Path) -> None:
    """The command is stopped while it reads; neither files nor processes stay."""
    body = ",".join(json.dumps(kernel("k", index, 1, index)) for index in range(20000))
    (tmp_path / "t-rank-0.pt.trace.json").write_text('{"traceEvents": [' + ",".join([body] * 30) + "]}")
    command = [sys.executable, "-m", "magpie_tui", "trace", "kernels", str(tmp_path), "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text().split():
        time.sleep(0.01)
    readers = [int(pid) for pid in children.read_text().split()]
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert readers
    # A reader that was just being started ends by itself when its input closes.
    while any(is_running(pid) for pid in readers):
        time.sleep(0.01)
    assert not (tmp_path / "out").exists()


def test_many_files_that_are_no_ranks_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    aside = tuple(SetAside(Path(f"w/{index}.json"), "window cut from another trace") for index in range(4))
    say_files(TraceSet(Path("w"), (), (*aside, SetAside(Path("w/c.json"), "graph capture"))), ())
    assert capsys.readouterr().err.splitlines() == [
        "magpie-tui: note: 4 files are not counted as ranks (window cut from another trace; -v names them), "
        "the first: w/0.json",
        "magpie-tui: note: not counted as a rank: w/c.json (graph capture)",
    ]
