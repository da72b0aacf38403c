"""Whatever a server does, a run ends with the right outcome and leaves no process behind."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpie_tui.basics.errors import MachineError
from magpie_tui.machine.ports import read_ports
from magpie_tui.serving import lifecycle, watch
from magpie_tui.serving.benchmark import run_clean, run_profiled
from magpie_tui.serving.live import LiveReader
from magpie_tui.serving.model import Phase, RunOutcome, RunRequest
from tests.cli.in_process import run_main
from tests.forked import forked_main
from tests.process_helpers import Family, wait_for
from tests.serving.fake_engine import ROOT, make_environment, write_config


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a framework in it."""
    return make_environment(tmp_path_factory.mktemp("engine") / "env")


def clean(tmp_path: Path, config: Path, **request: Any) -> RunOutcome:
    """Run a benchmark in a workspace of its own."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return run_clean(RunRequest(config, **request), workspace)


def port_of(config: Path) -> int:
    """The port that a config asks for."""
    import yaml

    return int(yaml.safe_load(config.read_text())["benchmark"]["envs"]["PORT"])


def report_of(outcome: RunOutcome) -> dict[str, Any]:
    """The report as it lies on the disk."""
    value: dict[str, Any] = json.loads((outcome.workspace / "benchmark_report.json").read_text())
    return value


def test_a_good_run(tmp_path: Path, environment: Path, family: Family) -> None:
    """Numbers, files of upstream and ours, the server's own counts, nothing alive afterwards."""
    config = write_config(tmp_path, environment, load__warmup_requests=2)
    outcome = clean(tmp_path, config)
    assert (outcome.status, outcome.reasons) == ("ok", ())
    names = {path.name for path in outcome.workspace.iterdir()}
    assert {
        "config.yaml",
        "record.json",
        "requests.jsonl",
        "load.json",
        "live.jsonl",
        "server.log",
        "inferencex_result.json",
        "benchmark_report.json",
        "summary.txt",
        "torch_trace",
        "system_profile",
        "warmup",
    } <= names
    report = report_of(outcome)
    assert report["throughput"]["completed_requests"] == 6
    assert report["throughput"]["total_output_tokens"] == 24
    assert report["latency"]["ttft"]["p99_ms"] is None, "six requests have no 99th percentile"
    serving = report["magpie_tui"]["serving"]
    agreed = {check["name"]: check["agreement"] for check in serving["cross_check"]}
    assert agreed["output_tokens"] == agreed["input_tokens"] == "agrees"
    assert serving["server"]["version"] == "0.0.stand-in"
    assert set(serving["phases_s"]) == {"preflight", "start", "warm-up", "measure", "stop", "analyse"}
    assert serving["comparability"]["server.cache_policy"] == "fresh server"
    result = json.loads((outcome.workspace / "inferencex_result.json").read_text())
    assert result["completed"] == 6
    told = LiveReader(outcome.workspace).read().facts["client_command"]["command"]
    assert isinstance(told, list) and told[-3:-1] == ["--plan", str(outcome.workspace / "client_plan.json")]
    again = subprocess.run([*told[:-1], str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT)
    assert again.returncode == 0 and again.stdout == "", again.stderr
    assert len((tmp_path / "requests.jsonl").read_text().splitlines()) == 8, "all once more, refused by now"
    record = json.loads((outcome.workspace / "record.json").read_text())
    for name, value in (("benchmark_report", report), ("record", record)):
        jsonschema.validate(value, json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text()))
    assert record["status"] == "ok"
    assert [item["path"] for item in record["samples"]] == ["requests.jsonl", "load.json"]
    assert family.describe() == []
    assert read_ports((port_of(config),))[0].free


@pytest.mark.parametrize(
    ("fault", "every", "status", "said"),
    [
        ("status-429", 1, "failed", "429"),
        ("status-503", 2, "invalid", "3 of 6 requests were not completed"),
        ("truncate", 3, "invalid", "2 of 6 requests were not completed"),
        ("no-stream", 1, "ok", ""),
        ("slow-first", 1, "ok", ""),
    ],
)
def test_bad_answers(
    tmp_path: Path, environment: Path, family: Family, fault: str, every: int, status: str, said: str
) -> None:
    """Refusals and broken streams are failures with their text; an answer that does not stream has no TTFT."""
    config = write_config(tmp_path, environment, f"--fault {fault} --fault-every {every}")
    outcome = clean(tmp_path, config)
    assert outcome.status == status, outcome.reasons
    assert said in " ".join(outcome.reasons)
    report = report_of(outcome)
    assert report["success"] is (status == "ok")
    if fault == "no-stream":
        assert report["latency"]["ttft"]["median_ms"] is None
        assert report["throughput"]["output_throughput"] > 0
    if fault == "status-429":
        assert report["throughput"]["completed_requests"] == 0
        assert report["latency"]["e2el"]["mean_ms"] is None
    assert family.describe() == []


def test_never_ready(tmp_path: Path, environment: Path, family: Family) -> None:
    """The wait ends, the server is ended, and the text says what was missing."""
    outcome = clean(tmp_path, write_config(tmp_path, environment, "--never-ready", timeout_seconds=1.5))
    assert outcome.status == "failed"
    assert outcome.reasons[0].startswith("the server was not ready when the run had to end: the run took longer")
    assert report_of(outcome)["throughput"] is None
    assert family.describe() == []


def test_a_server_that_ends_at_once(tmp_path: Path, environment: Path, family: Family) -> None:
    """The first cause of its log is quoted, not the end of the last traceback."""
    broken = make_environment(tmp_path / "broken")
    (broken / "bin" / "vllm").write_text(
        "#!/bin/sh\necho 'ValueError: 7 heads cannot be split by 2'\necho 'RuntimeError: Engine core failed'\nexit 3\n"
    )
    outcome = clean(tmp_path, write_config(tmp_path, broken))
    assert outcome.status == "failed"
    assert "exit status 3" in outcome.reasons[0]
    assert "7 heads cannot be split" in outcome.reasons[0]


def test_dies_in_the_middle(tmp_path: Path, environment: Path, family: Family) -> None:
    """What was answered before is kept, and does not count."""
    config = write_config(tmp_path, environment, "--die-after 4", envs__NUM_PROMPTS=40)
    outcome = clean(tmp_path, config)
    assert outcome.status in ("invalid", "failed")
    assert "exit status 9" in outcome.reasons[0]
    assert outcome.load is not None
    assert len(outcome.load.completed) <= 4
    assert family.describe() == []


def test_a_port_that_serves_another_model(tmp_path: Path, environment: Path, family: Family) -> None:
    """F-19: refused before anything starts, with who listens and what is served there; the stranger lives on."""
    config = write_config(tmp_path, environment)
    port_file = tmp_path / "port"
    command = [sys.executable, "-S", "-m", "tests.serving.streaming_server", "--port", str(port_of(config))]
    with subprocess.Popen([*command, "--model", "other-model", "--port-file", str(port_file)], cwd=ROOT) as stranger:
        wait_for(port_file.exists, "a stranger on the port")
        with pytest.raises(MachineError, match=f"process {stranger.pid} .* serves other-model"):
            clean(tmp_path, config)
        refused = run_main("benchmark", "-b", config, "-o", tmp_path)
        assert refused.returncode == 3
        assert "serves other-model" in refused.stderr
        assert stranger.poll() is None
        stranger.terminate()
    report = json.loads((tmp_path / "workspace" / "benchmark_report.json").read_text())
    assert "other-model" in report["errors"][0]
    assert not (tmp_path / "workspace" / "server.log").exists()


def test_a_server_that_was_there_is_measured_and_left_alone(tmp_path: Path, environment: Path, family: Family) -> None:
    config = write_config(tmp_path, environment)
    port_file, url = tmp_path / "port", f"http://127.0.0.1:{port_of(config)}/v1"
    config = write_config(
        tmp_path,
        environment,
        model="tiny",
        envs__PORT=port_of(config),
        envs__BENCHMARK_BASE_URL=url,
        framework="sglang",
    )
    command = [sys.executable, "-S", "-m", "tests.serving.streaming_server", "--port", str(port_of(config))]
    with subprocess.Popen([*command, "--model", "tiny", "--port-file", str(port_file)], cwd=ROOT) as stranger:
        wait_for(port_file.exists, "a server")
        outcome = clean(tmp_path, config)
        assert (outcome.status, outcome.reasons) == ("ok", ())
        assert outcome.server is not None
        assert outcome.server.pid is None
        assert outcome.comparability["server.cache_policy"] == "kept"
        assert stranger.poll() is None
        stranger.terminate()


def test_orphans_and_a_deaf_server(
    tmp_path: Path, environment: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F-20: workers in sessions of their own and a server that ignores SIGTERM are gone all the same, and counted."""
    monkeypatch.setattr(lifecycle, "STOP_GRACE_S", 0.3)
    monkeypatch.setattr(lifecycle.RunningServer.stop, "__defaults__", (0.3,))
    outcome = clean(tmp_path, write_config(tmp_path, environment, "--orphans 3 --ignore-sigterm"))
    assert outcome.status == "ok"
    notes = report_of(outcome)["magpie_tui"]["serving"]["notes"]
    assert any("4 processes of the server ended" in note for note in notes)
    assert family.describe() == []


def test_a_flood_of_output(tmp_path: Path, environment: Path, family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that writes without end is ended before it fills the disk."""
    monkeypatch.setattr(lifecycle, "MOST_LOG_BYTES", 5 << 20)
    outcome = clean(tmp_path, write_config(tmp_path, environment, "--flood-mb 12"))
    assert outcome.status == "failed"
    assert "log grew beyond" in outcome.reasons[0]
    assert family.describe() == []


def test_kernels_built_while_warming_up(tmp_path: Path, environment: Path, family: Family) -> None:
    """The warm-up goes on until a round builds nothing; a flag ends the run where the config says so."""
    says = "'WARNING: Triton kernel JIT compilation during inference: foo'"
    config = write_config(
        tmp_path, environment, f"--says-by 3 --says {says}", load__warmup_requests=2, load__stop_on=["preemption"]
    )
    outcome = clean(tmp_path, config)
    assert outcome.status == "ok"
    assert report_of(outcome)["magpie_tui"]["serving"]["warmup_rounds"] == 3
    assert {(flag.kind, flag.phase) for flag in outcome.flags} == {("kernel_built", Phase.warm_up)}


def test_a_flag_that_ends_the_run(tmp_path: Path, environment: Path, family: Family) -> None:
    config = write_config(
        tmp_path,
        environment,
        "--says 'INFO Sequence group 7 is preempted by mode RECOMPUTE' --tpot-ms 40",
        envs__NUM_PROMPTS=200,
        load__stop_on=["preemption"],
    )
    outcome = clean(tmp_path, config)
    assert outcome.status in ("invalid", "failed")
    assert outcome.reasons[0].startswith("preemption: ")
    assert family.describe() == []


def test_a_run_below_its_guard_is_ended(
    tmp_path: Path, environment: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run far slower than its baseline is not worth its minutes."""
    monkeypatch.setattr(watch, "_GUARD_AFTER_S", 0.3)
    monkeypatch.setattr(watch, "_GUARD_AFTER_SHARE", 0.01)
    config = write_config(tmp_path, environment, "--tpot-ms 40", envs__NUM_PROMPTS=400)
    outcome = clean(tmp_path, config, guard_output_throughput=5000.0)
    assert outcome.status == "invalid"
    assert outcome.reasons[0].startswith("slower than its guard: ")
    assert outcome.load is not None and len(outcome.load.completed) < 200
    assert family.describe() == []


def test_the_twin(tmp_path: Path, environment: Path, family: Family) -> None:
    """A bounded capture, read by our own engine; its report does not pass for clean numbers."""
    config = write_config(
        tmp_path,
        environment,
        profiler={"torch_profiler": {"enabled": True}, "tracelens": {"enabled": True, "analysis_mode": "pytorch"}},
        gap_analysis={"enabled": True},
        envs__NUM_PROMPTS=400,
    )
    workspace = tmp_path / "twin"
    workspace.mkdir()
    outcome = run_profiled(RunRequest(config, is_probe=True), workspace)
    assert outcome.load is not None and len(outcome.load.completed) == 4, "a probe: two requests for each slot"
    assert (outcome.status, outcome.reasons) == ("ok", ())
    report = report_of(outcome)
    assert report["profiling_enabled"] is True
    assert report["kernel_summary"]
    assert report["gap_analysis"]["top_kernels"]
    assert (workspace / "gap_analysis" / "gap_analysis.csv").is_file()
    assert report["tracelens_analysis"]["errors"] == []
    assert (workspace / "tracelens_rank0_csvs" / "unified_perf_summary.csv").is_file()
    server = report["magpie_tui"]["serving"]["server"]
    profiler = json.loads(server["command"][server["command"].index("--profiler-config") + 1])
    assert profiler["torch_profiler_with_stack"] is False
    assert profiler["max_iterations"] == 32
    assert family.describe() == []


@pytest.mark.parametrize(("fault", "said"), [("disk-full", "No space left on device"), ("nothing", "0 of 1 trace")])
def test_traces_that_are_not_written(tmp_path: Path, environment: Path, family: Family, fault: str, said: str) -> None:
    """The twin failed and says why; its load was measured, and nothing is alive."""
    config = write_config(
        tmp_path,
        environment,
        f"--trace-fault {fault}",
        profiler__torch_profiler={"enabled": True, "flush_timeout_seconds": 0.5},
    )
    workspace = tmp_path / "twin"
    workspace.mkdir()
    outcome = run_profiled(RunRequest(config), workspace)
    assert outcome.status == "failed"
    assert said in outcome.reasons[0]
    assert outcome.load is not None
    assert len(outcome.load.completed) == 6
    assert family.describe() == []


@pytest.mark.parametrize(
    ("step", "arguments", "changes"),
    [
        ("start", "--never-ready", {}),
        ("warm-up", "--tpot-ms 400", {"load__warmup_requests": 2}),
        ("measure", "--tpot-ms 400 --orphans 2", {}),
        ("profile", "--trace-fault hang", {"profiler__torch_profiler__enabled": True}),
        ("stop", "--ignore-sigterm --orphans 2", {}),
        ("analyse", "--trace-fault many", {"profiler__torch_profiler__enabled": True}),
    ],
)
def test_interrupted_twice(
    tmp_path: Path, environment: Path, family: Family, step: str, arguments: str, changes: dict[str, Any]
) -> None:
    """Ctrl-C twice in each phase: exit 130, a report that says so, the port free, nothing alive."""
    config = write_config(tmp_path, environment, arguments, **changes)
    with forked_main(
        "benchmark", "-b", config, "-o", "results", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}
    ) as process:
        live = tmp_path / "results"

        def in_step() -> bool:
            files = list(live.glob("benchmark_*/live.jsonl"))
            logs = list(live.glob("benchmark_*/server.log"))
            begun = bool(files) and f'"phase": "{step}"' in files[0].read_text()
            return process.poll() is not None or (begun and bool(logs))

        wait_for(in_step, f"the phase {step}")
        assert process.poll() is None, process.output()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.wait()
        output = process.output()
    assert process.returncode == 130, output
    for report in live.glob("benchmark_*/benchmark_report.json"):
        assert "interrupted" in json.loads(report.read_text())["errors"][0]
    assert "Traceback" not in output
    assert family.describe() == []
    assert read_ports((port_of(config),))[0].free


def test_interrupted_twice_before_it_starts(tmp_path: Path, environment: Path, family: Family) -> None:
    """Ctrl-C twice while the review waits for a hub that does not answer: nothing was started, nothing is left."""
    config = write_config(tmp_path, environment, model="org/model")
    with socket.create_server(("127.0.0.1", 0)) as hub:
        hub.settimeout(60)
        environ = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        environ["HF_ENDPOINT"] = f"http://127.0.0.1:{hub.getsockname()[1]}"
        with forked_main("benchmark", "-b", config, "-o", "results", cwd=tmp_path, env=environ) as process:
            asked, _ = hub.accept()
            with asked:
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGINT)
                process.wait()
            output = process.output()
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert not list(tmp_path.glob("results/benchmark_*"))
    assert family.describe() == []
