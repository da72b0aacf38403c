"""Experiments on a real disk, made by the code that makes real ones from runs of known throughput."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from magpie_tui.serving.experiment import run_experiment, start_experiment
from magpie_tui.serving.experiment_state import ExperimentPlan
from magpie_tui.serving.live import LiveSample, LiveWriter
from magpie_tui.serving.model import Phase, ServerFlag
from tests.serving.test_experiment import Heard, Machine
from tests.tui.support import NOW

ENDED = "experiment_20261202_120000"
RUNNING = "experiment_20261202_130000"


def _begin(results: Path, name: str, pairs: int) -> Path:
    directory = results / name
    directory.mkdir(parents=True)
    for config, arguments in (("base", ""), ("opt", "--new")):
        text = f"benchmark:\n  framework: vllm\n  model: m\n  envs: {{EXTRA_VLLM_ARGS: '{arguments}'}}\n"
        (results / f"{config}.yaml").write_text(text)
    start_experiment(directory, ExperimentPlan(pairs=pairs), results / "base.yaml", results / "opt.yaml")
    return directory


def write_live(workspace: Path) -> None:
    """What a benchmark tells while it measures: three phases, some seconds of load, a flag."""
    live = LiveWriter(workspace, clock=lambda: NOW.timestamp() - 20.3)
    for phase in (Phase.start, Phase.warm_up, Phase.measure):
        live.begin(phase)
    live.say("server", {"command": ["vllm", "serve", "m"], "environment": {"A": "b c"}})
    live.say("client", {"requests": 64, "at_s": 0})
    words = ["python", "-m", "load", "--plan", "client plan.json", "DIR"]
    live.say("client_command", {"command": words, "environment": {}})
    for second, rate in enumerate((120.0, 240.0, 245.0, 90.0, 238.0)):
        live._written = float("-inf")  # a second has passed
        live.sample(
            LiveSample(
                at_s=10.0 + second,
                phase="measure",
                phase_s=1.0 + second,
                in_flight=8,
                done=6 * (second + 1),
                failed=0,
                total=64,
                tokens_per_s=rate,
                ttft_ms=84.0,
                server={"running": 8.0, "waiting": 0.0, "kv_cache": 0.41, "preempted": 0.0, "cache_hits": 0.0},
                gpus={"2": {"clock_core_mhz": 1985.0, "power_w": 612.0, "temperature_c": 71.0}},
            )
        )
    text = "bfloat16 was asked for, the server took float16"
    live.flag(ServerFlag("other_dtype", text, 402, "INFO engine dtype=torch.float16", Phase.start))


def write_experiments(results: Path) -> Path:
    """One that has ended with a gain, and one of which two pairs are done and a run goes on."""
    machine = Machine(gain=0.05, noise=random.Random(4))
    run_experiment(_begin(results, ENDED, 8), Heard(), machine.tools)
    # The third pair's second run is interrupted, as by somebody who stops the experiment, and the run goes on.
    stopped = Machine(
        gain=0.03, noise=random.Random(7), status=lambda count, _arm: "interrupted" if count == 6 else "ok"
    )
    directory = _begin(results, RUNNING, 8)
    with contextlib.suppress(KeyboardInterrupt):
        run_experiment(directory, Heard(), stopped.tools)
    state = directory / "experiment.json"
    state.write_text(state.read_text().replace('"state": "stopped"', '"state": "running"'))
    (run,) = (path for path in directory.glob("pair_03_*") if not (path / "benchmark_report.json").exists())
    write_live(run)
    return results
