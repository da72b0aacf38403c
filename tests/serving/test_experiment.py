"""Experiments: their order, what an interruption leaves, what is repeated; one of real runs by the command line."""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.serving.experiment import Tools, judge_experiment, read_control, run_experiment, start_experiment
from magpie_tui.serving.experiment_options import experiment_request, fail_on_words
from magpie_tui.serving.experiment_state import ExperimentPlan, read_state
from magpie_tui.serving.lifecycle import RunningServer
from magpie_tui.serving.model import Phase, Reporter, RunOutcome, RunRequest
from magpie_tui.workspaces.benchmark import BenchmarkReport
from tests.cli.in_process import run_main
from tests.process_helpers import Family
from tests.serving.fake_engine import ROOT, make_environment, write_config


@dataclass
class Heard:
    """Keeps what an experiment tells."""

    intervals: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def run(self, text: str, phase: Phase, done: float | None, total: float | None, unit: str, message: str) -> None:
        """One run got further."""
        self.steps.append(f"{text}: {phase.value}")

    def pairs(self, done: int, planned: int, interval: str) -> None:
        """A pair is complete."""
        self.intervals.append(interval)

    def note(self, text: str) -> None:
        """Something for people."""
        self.notes.append(text)


@dataclass
class Machine:
    """Stands in for the benchmark: runs whose throughput is known, in the files of real ones."""

    gain: float = 0.05
    status: Callable[[int, str], str] = lambda _count, _arm: "ok"
    made: list[tuple[str, int | None, object]] = field(default_factory=list)
    noise: random.Random = field(default_factory=lambda: random.Random(4))
    guards: list[float | None] = field(default_factory=list)
    probes: list[bool] = field(default_factory=list)

    def clean(
        self, request: RunRequest, workspace: Path, *, report: Reporter | None, server: RunningServer | None
    ) -> RunOutcome:
        """Make one run."""
        arm = "b" if request.config_path.name == "config_b.yaml" else "a"
        assert list(workspace.iterdir()) == []
        self.made.append((workspace.name, request.seed, server))
        self.guards.append(request.guard_output_throughput)
        if report is not None:
            report.phase(Phase.measure)
        status = self.status(len(self.made), arm)
        if status == "interrupted":
            (workspace / "server.log").write_text("half a run\n")
            raise KeyboardInterrupt
        rate = 1000.0 * math.exp(self.noise.gauss(0, 0.002)) * (1 + self.gain if arm == "b" else 1)
        self.write(request, workspace, status, rate, profiled=False)
        return RunOutcome(workspace, "ok", (), BenchmarkReport(success=status == "ok"))

    def profiled(
        self, request: RunRequest, workspace: Path, *, report: Reporter | None, server: RunningServer | None
    ) -> RunOutcome:
        """Make a twin."""
        self.probes.append(request.is_probe)
        self.write(request, workspace, "ok", 500.0, profiled=True)
        return RunOutcome(workspace, "ok", (), BenchmarkReport(success=True))

    @contextlib.contextmanager
    def shared(self, request: RunRequest, workspace: Path) -> Iterator[Any]:
        """Stand in for a server; told apart by its identity."""
        yield object()

    def write(self, request: RunRequest, workspace: Path, status: str, rate: float, *, profiled: bool) -> None:
        """Write the files that a run leaves."""
        arm = request.config_path.stem[-1]

        def latency(value: float) -> dict[str, Any]:
            shown = [{"percent": p, "value": value, "low": 1, "high": 9, "n": 400, "reason": None} for p in (50, 99)]
            return {"n": 400, "percentiles": shown}

        serving = {
            "status": status,
            "reasons": [] if status == "ok" else ["the client used 95% of a core"],
            "metrics": {
                "output_throughput": rate,
                "total_token_throughput": 2 * rate,
                "request_throughput": rate / 100,
                "error_rate": 0.0,
                "latencies": {"ttft": latency(8e4 / rate), "tpot": latency(1e4 / rate)},
            },
            "comparability": {"load.seed": request.seed, "server.arguments": arm, "profiler.on": profiled},
        }
        kernels = [{"name": f"norm_{arm}", "time_ms": 10.0, "percent": 20.0, "calls": 10}] if profiled else []
        report = {
            "success": status == "ok",
            "profiling_enabled": profiled,
            "kernel_summary": kernels,
            "magpie_tui": {"schema_version": 1, "serving": serving},
        }
        (workspace / "benchmark_report.json").write_text(json.dumps(report))
        (workspace / "config.yaml").write_text(request.config_path.read_text())

    @property
    def tools(self) -> Tools:
        """As an experiment takes them."""
        return Tools(self.clean, self.profiled, self.shared)


def _start(tmp_path: Path, **plan: Any) -> Path:
    directory = tmp_path / "experiment_20260101_000000"
    directory.mkdir()
    for name, arguments in (("base", ""), ("opt", "--new")):
        text = f"benchmark:\n  framework: vllm\n  model: m\n  envs: {{EXTRA_VLLM_ARGS: '{arguments}'}}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    start_experiment(directory, ExperimentPlan(**plan), tmp_path / "base.yaml", tmp_path / "opt.yaml")
    return directory


def test_pairs_take_turns_and_share_a_seed(tmp_path: Path) -> None:
    import jsonschema

    directory, machine, heard = _start(tmp_path, pairs=6, seed=40, guard_share=0.5), Machine(), Heard()
    verdict = run_experiment(directory, heard, machine.tools)
    assert [name for name, _, _ in machine.made][:6] == [
        "pair_01_a",
        "pair_01_b",
        "pair_02_b",
        "pair_02_a",
        "pair_03_a",
        "pair_03_b",
    ]
    assert [seed for _, seed, _ in machine.made] == [40, 40, 41, 41, 42, 42, 43, 43, 44, 44, 45, 45]
    assert machine.guards[0] is None and machine.guards[3] is None, "the baseline has no guard"
    assert machine.guards[2] == pytest.approx(500, rel=0.02)
    assert (verdict.word, verdict.interleaved) == ("improved", True)
    assert [item.name for item in verdict.comparability.differences] == ["server.arguments"], "the change under test"
    assert len(heard.intervals) == 6 and "1 of 6 pairs" in heard.intervals[0] and "interval +4" in heard.intervals[-1]
    schemas = ROOT / "docs" / "schemas"
    for name in ("verdict", "experiment"):
        schema = json.loads((schemas / f"{name}.schema.json").read_text())
        jsonschema.validate(json.loads((directory / f"{name}.json").read_text()), schema)
    assert (directory / "verdict.md").read_text().startswith("# opt.yaml against base.yaml\n\n**Improved: ")
    again = judge_experiment(directory, write=False)
    assert again.sentence == verdict.sentence, "the same files give the same verdict"


@pytest.mark.parametrize("at", [1, 4, 7])
def test_an_interrupted_experiment_goes_on_where_it_was(tmp_path: Path, at: int) -> None:
    directory = _start(tmp_path, pairs=4)
    first = Machine(status=lambda count, _arm: "interrupted" if count == at else "ok")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(directory, Heard(), first.tools)
    assert read_state(directory).state == "stopped"
    assert not (directory / "verdict.json").exists()
    second = Machine()
    verdict = run_experiment(directory, Heard(), second.tools)
    assert len(first.made) + len(second.made) == 9, "only what was cut is made again"
    assert second.made[0][:2] == first.made[-1][:2], "with the same seed"
    assert verdict.set_aside == () and len(verdict.pairs) == 4
    assert read_state(directory).state == "ended"


def test_a_pair_with_a_run_that_does_not_count_is_repeated_whole(tmp_path: Path) -> None:
    directory, heard = _start(tmp_path, pairs=6), Heard()
    machine = Machine(status=lambda count, _arm: "invalid" if count == 4 else "ok")
    verdict = run_experiment(directory, heard, machine.tools)
    assert verdict.word == "improved" and len(machine.made) == 14
    assert verdict.set_aside == ("pair 2: A is invalid: the client used 95% of a core",)
    seeds = {name: seed for name, seed, _ in machine.made}
    assert seeds["pair_02_a"] == seeds["pair_02_b"] == 1001, "the repeated pair has a seed of its own"
    assert "pair 2 is set aside" in heard.notes[0]
    assert (directory / "aside_pair_02_a_1").is_dir() and (directory / "aside_pair_02_b_1").is_dir()


def test_too_many_bad_runs_end_it_without_a_claim(tmp_path: Path) -> None:
    machine = Machine(status=lambda count, arm: "invalid" if arm == "b" else "ok")
    verdict = run_experiment(_start(tmp_path, pairs=6), Heard(), machine.tools)
    assert verdict.word == "invalid" and "had a run that does not count" in verdict.sentence
    assert len(machine.made) < 12


def test_a_first_run_that_fails_stops_everything(tmp_path: Path) -> None:
    directory = _start(tmp_path, pairs=6)
    with pytest.raises(AnswerIsNoError, match="first run of the experiment does not count") as caught:
        run_experiment(directory, Heard(), Machine(status=lambda _count, _arm: "failed").tools)
    assert f"--resume {directory}" in (caught.value.hint or "")
    assert run_experiment(directory, Heard(), Machine().tools).word == "improved"


def test_neighbouring_runs_may_share_a_server(tmp_path: Path) -> None:
    machine = Machine()
    run_experiment(_start(tmp_path, pairs=3, share_servers=True), Heard(), machine.tools)
    assert "shared a server" in (tmp_path / "experiment_20260101_000000" / "verdict.md").read_text()
    servers = [server for _, _, server in machine.made]  # A B B A A B
    assert servers[1] is servers[2] and servers[3] is servers[4]
    assert len({id(server) for server in servers}) >= 3 and servers[0] is not servers[1]


def test_twins_prove_that_a_kernel_was_used(tmp_path: Path) -> None:
    used = _start(tmp_path, pairs=6, kernel="norm_b", replaces="norm_a", kernel_ratio=1.6, twins=True)
    verdict = run_experiment(used, Heard(), Machine().tools)
    assert (verdict.word, verdict.proof_of_use.state) == ("improved", "observed")
    assert verdict.plausibility.share == pytest.approx(0.2)
    (tmp_path / "other").mkdir()
    unseen, machine = _start(tmp_path / "other", pairs=6, kernel="fused", twins=True), Machine()
    with pytest.raises(AnswerIsNoError, match="candidate not observed: no kernel of B's trace is called 'fused'"):
        run_experiment(unseen, Heard(), machine.tools)
    assert machine.made == [], "it is told before the first pair"
    assert machine.probes == [True, True], "by loads just long enough for the steps that are recorded"


def test_a_control_raises_the_margins(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    control = _start(tmp_path / "c", pairs=6)
    run_experiment(control, Heard(), Machine(gain=0.0).tools)
    floors, refused = read_control(control)
    assert not refused and 0 < floors["output_throughput"] < 0.01
    differs = _start(tmp_path, pairs=6)
    run_experiment(differs, Heard(), Machine(gain=0.05).tools)
    assert read_control(differs)[1], "a control that differs from itself allows no verdict"
    with pytest.raises(UserInputError):
        read_control(tmp_path)


def test_options_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="needs two configs"):
        experiment_request({"baseline": "a.yaml"})
    with pytest.raises(UserInputError, match="has its configs already"):
        experiment_request({"resume": "e", "baseline": "a.yaml"})
    with pytest.raises(UserInputError, match="'improvd' is no verdict") as caught:
        fail_on_words(("regressed,improvd",))
    assert "improved" in (caught.value.hint or "")
    with pytest.raises(UserInputError, match="no experiment here"):
        read_state(tmp_path)


def test_two_configs_by_the_command_line(tmp_path: Path, family: Family) -> None:
    """Real servers, real loads, one pair: indicative, the files are there, and nothing is alive afterwards."""
    environment = make_environment(tmp_path / "env")
    for name, step in (("base", 8), ("opt", 2)):
        (tmp_path / name).mkdir()
        write_config(tmp_path / name, environment, f"--tpot-ms {step}")
    words = ("experiment", "-a", "base/benchmark.yaml", "-b", "opt/benchmark.yaml", "--pairs", "1", "-o", "results")
    done = run_main(*words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Indicative only, no claim: output token throughput +")
    assert "pair 1 of 1 done" in done.stderr
    directory = Path(done.stdout.splitlines()[-1].removeprefix("Workspace: "))
    assert {path.name for path in directory.iterdir()} == {
        "config_a.yaml",
        "config_b.yaml",
        "experiment.json",
        "pair_01_a",
        "pair_01_b",
        "verdict.json",
        "verdict.md",
    }
    judged = run_main("verdict", directory, "--json", "--fail-on", "indicative", cwd=tmp_path)
    assert judged.returncode == 1, judged.stderr
    value = json.loads(judged.stdout)
    assert value["verdict"]["word"] == "indicative" and value["verdict"]["ratio"] > 1.0
    assert family.describe() == []
