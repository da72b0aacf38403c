"""The review of a benchmark, and what keeps one from starting."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.configs.benchmark import load_benchmark_config
from magpie_tui.configs.review import Review
from magpie_tui.machine.model import Gpu, Machine
from magpie_tui.machine.read import read_machine
from magpie_tui.serving.benchmark import config_of
from magpie_tui.serving.estimate import expected_run
from magpie_tui.serving.load.model import ClosedLoop, GammaRate, RandomPrompts
from magpie_tui.serving.model import RunRequest, Silent
from magpie_tui.serving.placement import choose_devices
from magpie_tui.serving.preflight import remember_memory_floor, require_no_blocker, review
from magpie_tui.serving.request import CommandOptions, check_options
from magpie_tui.serving.script import run_script, script_of
from magpie_tui.serving.workload import lengths_of, load_plan
from tests.serving.fake_engine import make_environment, write_config


@pytest.fixture(scope="module")
def machine() -> Machine:
    """This machine, read once."""
    return read_machine()


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("engine") / "env")


def statuses(found: Review) -> dict[str, tuple[str, str]]:
    return {item.name: (item.status, item.evidence) for item in found.items}


def test_a_cpu_build_needs_no_gpu(tmp_path: Path, environment: Path, machine: Machine) -> None:
    found = review(write_config(tmp_path, environment), output_dir=tmp_path, machine=machine)
    items = statuses(found)
    assert items["framework vllm"][0] == "ok"
    assert items["GPUs"] == ("ok", "none is needed: the framework is built for CPUs")
    assert items["requests"][0] == "warning"
    assert items["TP 1 and heads"][0] == "ok"
    assert not [name for name in items if name.startswith("GPUs for TP")]
    require_no_blocker(found)


def test_what_blocks(tmp_path: Path, environment: Path, machine: Machine) -> None:
    """Heads that cannot be split, a context that the model has not, a place that is a file: each named."""
    model = tmp_path / "model"
    model.mkdir()
    facts = {"num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 1024}
    (model / "config.json").write_text(json.dumps(facts))
    config = write_config(tmp_path, environment, model=str(model), envs__TP=8, envs__MAX_MODEL_LEN=4096)
    (tmp_path / "file").write_text("")
    found = review(config, output_dir=tmp_path / "file" / "results", machine=machine)
    items = statuses(found)
    assert items["TP 8 and heads"][0] == "blocker"
    assert "12 is no multiple of 8" in items["TP 8 and heads"][1]
    assert items["context of the model"] == ("blocker", "1,024 positions, 4,096 wanted")
    assert items[f"output {tmp_path / 'file' / 'results'}"][0] == "blocker"
    with pytest.raises(MachineError, match="12 is no multiple of 8"):
        require_no_blocker(found)


def test_a_missing_framework_blocks(tmp_path: Path, environment: Path, machine: Machine) -> None:
    found = review(write_config(tmp_path, environment, framework="sglang"), output_dir=tmp_path, machine=machine)
    status, evidence = statuses(found)["framework sglang"]
    assert status == "blocker"
    assert "no module 'sglang'" in evidence


class Hub(http.server.BaseHTTPRequestHandler):
    """A hub with an open model and a gated one."""

    def do_HEAD(self) -> None:
        token = self.headers.get("Authorization")
        if self.path.startswith("/org/open"):
            self.send_response(200)
        elif self.path.startswith("/org/gated"):
            self.send_response(200 if token == "Bearer good" else 403 if token else 401)
        else:
            self.send_response(404)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def hub() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("model", "token", "status"),
    [
        ("org/gated", None, "blocker"),
        ("org/gated", "bad", "blocker"),
        ("org/gated", "good", "ok"),
        ("org/open", None, "ok"),
        ("org/none", None, "blocker"),
    ],
)
def test_gated_models(
    tmp_path: Path, environment: Path, machine: Machine, hub: str, model: str, token: str | None, status: str
) -> None:
    """F-22: found before anything starts; the token is nowhere in what is said."""
    environ = {"HF_ENDPOINT": hub, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    if token:
        environ["HF_TOKEN"] = token
    config = write_config(tmp_path, environment, model=model)
    found = review(config, output_dir=tmp_path, machine=machine, environment=environ)
    name = f"access to {model}"
    assert statuses(found)[name][0] == status
    assert token is None or token not in repr(found.items)


def with_gpu(machine: Machine, **values: Any) -> Machine:
    base: dict[str, Any] = {
        "index": 0,
        "vendor": "AMD",
        "name": "MI300X",
        "architecture": "gfx942",
        "uuid": "u0",
        "memory_total_bytes": 192 << 30,
        "memory_used_bytes": 300 << 20,
        "memory_free_bytes": 191 << 30,
        "processes": (),
        "visible": True,
    }
    return replace(machine, vendor="AMD", architecture="gfx942", gpus=(Gpu(**{**base, **values}),))


def test_memory_that_was_not_given_back(tmp_path: Path, machine: Machine) -> None:
    """F-20: a GPU that holds more than at rest and shows no process keeps the next run from starting."""
    environment = make_environment(tmp_path / "env", "0.32.0")
    config = write_config(tmp_path, environment)
    remember_memory_floor(with_gpu(machine).gpus)
    clean = review(config, output_dir=tmp_path, machine=with_gpu(machine))
    assert statuses(clean)["GPU 0 memory"][0] == "ok"
    held = review(config, output_dir=tmp_path, machine=with_gpu(machine, memory_used_bytes=40 << 30))
    status, evidence = statuses(held)["GPU 0 memory"]
    assert status == "blocker"
    assert "at rest" in evidence
    partitioned = review(config, output_dir=tmp_path, machine=with_gpu(machine, partition="CPX/NPS4"))
    assert statuses(partitioned)["GPU 0 partition"][0] == "warning"
    fp4 = write_config(tmp_path, environment, precision="fp4")
    assert (
        statuses(review(fp4, output_dir=tmp_path, machine=with_gpu(machine)))["precision fp4 on gfx942"][0] == "blocker"
    )


def test_the_options_of_the_command_line() -> None:
    config = check_options(CommandOptions("vllm", "org/model", "bf16", 2, 16, 512, 128, run_mode="local"))
    assert (config.tensor_parallel, config.concurrency, config.run_mode) == (2, 16, "local")
    assert config.is_clean
    lengths = lengths_of(config)
    assert (lengths.input_min, lengths.input_max, lengths.output_min, lengths.output_max) == (256, 512, 64, 128)
    with pytest.raises(UserInputError, match="xdit"):
        check_options(CommandOptions("xdit", "org/model"))


def test_the_load_of_a_config(tmp_path: Path, environment: Path) -> None:
    config = load_benchmark_config(write_config(tmp_path, environment, load={"seed": 7}))
    plan = load_plan(config, "http://h:1", "tiny", environment={"OPENAI_API_KEY": "k"})
    assert plan.arrival == ClosedLoop(2)
    assert plan.prompts == RandomPrompts(8, 8, token_low=1000, token_high=4088)
    assert (plan.seed, plan.requests, plan.warmup_requests) == (7, 6, 2)
    assert plan.headers == {"Authorization": "Bearer k"}
    assert load_plan(config, "http://h:1", "tiny", seed=9).seed == 9
    changed = write_config(tmp_path, environment, load={"arrival": "poisson", "request_rate": 3})
    assert load_plan(load_benchmark_config(changed), "http://h:1", "t").arrival == GammaRate(3.0, 1.0, 2)
    without = write_config(tmp_path, environment, load={"arrival": "gamma"})
    with pytest.raises(UserInputError, match="needs a rate"):
        load_plan(load_benchmark_config(without), "http://h:1", "t")


def test_no_gpu_is_chosen_for_a_cpu_build(tmp_path: Path, environment: Path) -> None:
    from magpie_tui.serving.engines import engine_named
    from magpie_tui.serving.engines.detect import detect_local

    config = load_benchmark_config(write_config(tmp_path, environment))
    found = choose_devices(config, detect_local(engine_named("vllm"), str(environment)))
    assert (found.gpus, found.variables) == ((), None)


def test_the_price_is_that_of_an_earlier_run(tmp_path: Path, environment: Path) -> None:
    path = write_config(tmp_path, environment, envs__NUM_PROMPTS=12)
    config = load_benchmark_config(path)
    assert expected_run(config, tmp_path) is None
    workspace = tmp_path / "benchmark_vllm_20261130_101500"
    workspace.mkdir()
    facts = {"load.output_max": 4, "load.concurrency": 2, "load.requests": 6}
    report = {
        "success": True,
        "model": config.model,
        "magpie_tui": {"serving": {"phases_s": {"start": 30.0, "measure": 60.0}, "comparability": facts}},
    }
    (workspace / "benchmark_report.json").write_text(json.dumps(report))
    price = expected_run(config, tmp_path)
    assert price is not None
    assert (price.start_s, price.measure_s, price.exact) == (30.0, 120.0, False)


def test_a_script_keeps_its_contract(tmp_path: Path, environment: Path) -> None:
    """It is told what upstream tells it, and its result is read; one that writes none failed."""
    script = tmp_path / "mine.sh"
    script.write_text(
        'echo "$MODEL $PRECISION $CONC $MAGPIE_RUN_PHASE $IS_AGENTIC"\n'
        'echo \'{"completed": 3, "request_throughput": 2.5, "mean_ttft_ms": 4}\' '
        '> "$RESULT_DIR/$RESULT_FILENAME.json"\n'
    )
    path = write_config(tmp_path, environment, benchmark_script="mine.sh")
    config = config_of(RunRequest(path))
    found = script_of(config)
    assert found is not None
    workspace = tmp_path / "w"
    workspace.mkdir()
    outcome = run_script(config, RunRequest(path), found, workspace, Silent())
    assert (outcome.status, outcome.reasons) == ("ok", ())
    assert (workspace / "benchmark_stdout.log").read_text() == f"{config.model} auto 2 all 0\n"
    assert outcome.report.throughput is not None
    assert outcome.report.throughput.request_throughput == 2.5
    script.write_text("exit 4\n")
    again = tmp_path / "again"
    again.mkdir()
    failed = run_script(config, RunRequest(path), found, again, Silent())
    assert failed.status == "failed"
    assert failed.reasons[0] == "Benchmark process failed with code 4"
    upstreams = write_config(tmp_path, environment, benchmark_script="vllm_mi300x.sh")
    assert script_of(config_of(RunRequest(upstreams))) is None
    with pytest.raises(UserInputError, match="is not there"):
        script_of(config_of(RunRequest(write_config(tmp_path, environment, benchmark_script="other.sh"))))


def test_settings_of_gpus_that_spoil_numbers(tmp_path: Path, machine: Machine) -> None:
    """Power cap, clock mode and partition of each GPU, each with its evidence; what is not told is unknown with why."""
    environment = make_environment(tmp_path / "env", version="0.32.0")
    good = Gpu(
        0,
        "AMD",
        power_cap_w=750.0,
        power_cap_default_w=750.0,
        clock_mode="auto",
        partition="SPX/NPS1",
        throttle_reasons=(),
        processes=(),
        memory_free_bytes=100 << 30,
    )
    bad = replace(
        good, index=1, power_cap_w=500.0, clock_mode="low", partition="CPX/NPS4", throttle_reasons=("thermal",)
    )
    silent = Gpu(2, "AMD", sources=("rocm-smi",), reasons={"clock_mode": "rocm-smi prints no performance level"})
    here = replace(machine, vendor="AMD", architecture="gfx942", gpus=(good, bad, silent))
    items = statuses(review(write_config(tmp_path, environment), output_dir=tmp_path, machine=here))
    assert items["GPU 0 power cap"] == ("ok", "750 W, by default 750 W")
    assert items["GPU 0 clock mode"] == ("ok", "auto")
    assert items["GPU 0 partition"] == ("ok", "SPX/NPS1")
    assert items["GPU 1 power cap"] == ("warning", "500 W, by default 750 W")
    assert items["GPU 1 clock mode"] == ("warning", "low")
    assert items["GPU 1 partition"] == ("warning", "CPX/NPS4")
    assert items["GPU 1 throttling"] == ("warning", "thermal")
    assert items["GPU 2 clock mode"] == ("unknown", "rocm-smi prints no performance level")
    assert items["GPU 2 power cap"] == ("unknown", "rocm-smi does not tell it")
    assert items["NUMA balancing"][0] in ("ok", "warning", "unknown")
