"""How far is the load generator from the truth? Against a server that logs when it really emitted.

    python -m benchmarks.load_accuracy [--runs 5] [--vllm PATH] [--aiperf PATH] [--guidellm PATH] [--tokenizer DIR]

Three loads: one stream, 16 streams (first token after 20 ms, then one every ms on an absolute schedule), and as many
tokens as a client on one core can take (32 events a write). Server and client are pinned to a core each. Given are
medians over the runs. TTFT bias = the client's mean TTFT - the mean time from the arrival of the request's body to
the first emit; TPOT error = the client's mean / the true mean - 1. Beside ours: the same client on other libraries,
and vllm bench serve, aiperf and guidellm with an equal load, where they are installed (on PATH, or at the path given);
one that is not is named. Below the table stands which of their figures is taken, and what their clock includes.

Exit status 1 when ours misses a budget: bias of 1.0 ms at one stream and 2.0 ms at 16, TPOT within 0.5 %, 150,000
tokens/s.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from magpie_tui.serving.load.model import ClosedLoop, LoadPlan, RandomPrompts
from magpie_tui.serving.load.run import run_load

ROOT = Path(__file__).parents[1]
SERVER = ROOT / "tests" / "serving" / "streaming_server.py"
BIAS_LIMIT_MS = {1: 1.0, 16: 2.0}
TPOT_LIMIT = 0.005
TOKENS_PER_S = 150_000


@dataclass(frozen=True)
class Load:
    """One load of the benchmark."""

    name: str
    streams: int
    requests: int
    tokens: int
    server: tuple[str, ...]


LOADS = (
    Load("1 stream", 1, 20, 100, ("--ttft-ms", "20", "--tpot-ms", "1")),
    Load("16 streams", 16, 64, 200, ("--ttft-ms", "20", "--tpot-ms", "1")),
    Load("absorb", 16, 64, 8192, ("--ttft-ms", "0", "--tpot-ms", "0", "--coalesce", "32")),
)


@dataclass(frozen=True)
class Seen:
    """What a client saw in one run: means in ms, rates in tokens/s; None where it does not tell."""

    ttft_ms: float | None
    tpot_ms: float | None
    tokens_per_s: float | None
    cpu_share: float | None
    labels: frozenset[str] | None = None


@dataclass(frozen=True)
class Cores:
    """CPUs of server and client."""

    server: int
    client: int


@contextlib.contextmanager
def server(load: Load, directory: Path, cores: Cores) -> Iterator[int]:
    """Run the server of a load; yields its port."""
    port_file = directory / "port"
    port_file.unlink(missing_ok=True)
    command = ["taskset", "-c", str(cores.server), sys.executable, str(SERVER), "--port-file", str(port_file)]
    command += ["--log", str(directory / "emits.jsonl"), "--uvloop", *load.server]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not port_file.exists():
            if process.poll() is not None:
                raise SystemExit("the server did not start (is uvloop installed?)")
            time.sleep(0.02)
        yield int(port_file.read_text())
    finally:
        process.terminate()
        process.wait()


def truth(directory: Path, labels: frozenset[str] | None) -> tuple[float, float]:
    """Return the true mean TTFT and TPOT in ms of the requests with these labels (None: all)."""
    firsts, steps = [], []
    for line in (directory / "emits.jsonl").read_text().splitlines():
        row = json.loads(line)
        if labels is not None and row["label"] not in labels:
            continue
        emits = row["emits_ns"]
        firsts.append((emits[0] - row["received_ns"]) / 1e6)
        if row["tokens"] > 1:
            steps.append((emits[-1] - emits[0]) / 1e6 / (row["tokens"] - 1))
    return sum(firsts) / len(firsts), sum(steps) / len(steps)


def ours(load: Load, port: int, directory: Path, cores: Cores) -> Seen:
    """Run our load generator, as a benchmark does."""
    plan = LoadPlan(
        f"http://127.0.0.1:{port}",
        "completions",
        "tiny",
        load.requests,
        ClosedLoop(load.streams),
        RandomPrompts(20, 20),
        load.tokens,
        load.tokens,
    )
    result = run_load(plan, directory, cpu_set=frozenset({cores.client}))
    rows = result.completed
    assert len(rows) == load.requests, result.first_error
    firsts = [row.ttft_s for row in rows if row.ttft_s is not None]
    steps = [row.tpot_s for row in rows if row.tpot_s is not None]
    assert result.last_response_s is not None and result.first_send_s is not None
    tokens = sum(row.output_tokens or 0 for row in rows)
    return Seen(
        sum(firsts) / len(firsts) * 1e3,
        sum(steps) / len(steps) * 1e3,
        tokens / (result.last_response_s - result.first_send_s),
        result.client.cpu_share,
        frozenset(f"measuring-{row.index}" for row in rows),
    )


def on_library(library: str) -> Callable[[Load, int, Path, Cores], Seen]:
    """Return the same client on another library."""

    def run(load: Load, port: int, directory: Path, cores: Cores) -> Seen:
        program = Path(__file__).with_name("load_clients.py")
        command = ["taskset", "-c", str(cores.client), sys.executable, str(program), "--library", library]
        for name in ("streams", "requests", "tokens"):
            command += [f"--{name}", str(getattr(load, name))]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*command, "--port", str(port)], check=True, stdout=subprocess.PIPE, env=environment, text=True
        )
        told = json.loads(done.stdout)
        rows = told["timings"]
        begin, end = min(row["scheduled_ns"] for row in rows), max(row["last_ns"] for row in rows)
        return Seen(
            sum(row["first_ns"] - row["scheduled_ns"] for row in rows) / len(rows) / 1e6,
            sum((row["last_ns"] - row["first_ns"]) / (row["tokens"] - 1) for row in rows) / len(rows) / 1e6,
            sum(row["tokens"] for row in rows) / ((end - begin) / 1e9),
            told["cpu_share"],
            frozenset(row["label"] for row in rows),
        )

    return run


def vllm_bench(path: str, tokenizer: str) -> Callable[[Load, int, Path, Cores], Seen]:
    """Return ``vllm bench serve``."""

    def run(load: Load, port: int, directory: Path, cores: Cores) -> Seen:
        command = ["taskset", "-c", str(cores.client), path, "bench", "serve", "--backend", "openai"]
        command += ["--base-url", f"http://127.0.0.1:{port}", "--endpoint", "/v1/completions", "--model", "tiny"]
        command += ["--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", "20"]
        command += ["--random-output-len", str(load.tokens), "--num-prompts", str(load.requests)]
        command += ["--max-concurrency", str(load.streams), "--ignore-eos", "--save-result", "--disable-tqdm"]
        command += ["--result-dir", str(directory), "--result-filename", "vllm.json", "--num-warmups", "0"]
        command += ["--ready-check-timeout-sec", "0"]
        _quiet(command)
        told = json.loads((directory / "vllm.json").read_text())
        return Seen(told["mean_ttft_ms"], told["mean_tpot_ms"], told["output_throughput"], None)

    return run


def aiperf(path: str, tokenizer: str) -> Callable[[Load, int, Path, Cores], Seen]:
    """Return ``aiperf profile``."""

    def run(load: Load, port: int, directory: Path, cores: Cores) -> Seen:
        out = directory / "aiperf"
        command = ["taskset", "-c", str(cores.client), path, "profile", "-m", "tiny"]
        command += ["--url", f"http://127.0.0.1:{port}", "--endpoint-type", "completions", "--streaming"]
        command += ["--tokenizer", tokenizer, "--concurrency", str(load.streams), "--isl", "20"]
        command += ["--request-count", str(load.requests), "--osl", str(load.tokens)]
        command += ["--extra-inputs", "ignore_eos:true", "--output-artifact-dir", str(out), "--ui", "none"]
        command += ["--use-legacy-max-tokens", "--use-server-token-count", "--workers-max", "1"]
        _quiet(command)
        told = json.loads(next(out.rglob("profile_export_aiperf.json")).read_text())
        return Seen(
            told["time_to_first_token"]["avg"],
            told["inter_token_latency"]["avg"],
            told["output_token_throughput"]["avg"],
            None,
        )

    return run


def guidellm(path: str, tokenizer: str) -> Callable[[Load, int, Path, Cores], Seen]:
    """Return ``guidellm run``."""

    def run(load: Load, port: int, directory: Path, cores: Cores) -> Seen:
        out = directory / "guidellm.json"
        target = f"kind=openai_http,target=http://127.0.0.1:{port},model=tiny,request_format=/v1/completions"
        command = ["taskset", "-c", str(cores.client), path, "run", "--backend", target]
        command += ["--profile", f"kind=concurrent,streams={load.streams}"]
        command += ["--constraint", f"kind=max_requests,count={load.requests}", "--disable-progress"]
        command += ["--data", f"kind=synthetic_text,prompt_tokens=20,output_tokens={load.tokens}"]
        command += ["--tokenizer", f"kind=huggingface_auto,model={tokenizer}", "--output", f"kind=json,path={out}"]
        _quiet(command)
        metrics = json.loads(out.read_text())["benchmarks"][0]["metrics"]

        def mean(name: str) -> float:
            return float(metrics[name]["successful"]["mean"])

        # Its time_per_output_token includes the first token; its inter-token latency is the TPOT of everybody else.
        return Seen(
            mean("time_to_first_token_ms"),
            mean("inter_token_latency_ms"),
            mean("output_tokens_per_second"),
            None,
        )

    return run


def _quiet(command: Sequence[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "HF_HUB_OFFLINE"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[3]} failed: {done.stdout[-2000:]}")


@dataclass(frozen=True)
class Program:
    """Another program that sends loads.

    Attributes:
        command: Its name on PATH, and the option that gives its path.
        runner: Makes its runs.
        definitions: Which of its figures stand for ours, and from when its clock runs.
        serial: It is one process, so that one core says something about how many tokens it can take.
    """

    name: str
    command: str
    runner: Callable[[str, str], Callable[[Load, int, Path, Cores], Seen]]
    definitions: str
    serial: bool


PROGRAMS = (
    Program(
        "vllm bench serve",
        "vllm",
        vllm_bench,
        "mean_ttft_ms and mean_tpot_ms, (latency - ttft) / (tokens - 1) as ours; its clock starts when the HTTP "
        "library gets the request and includes opening the connection",
        True,
    ),
    Program(
        "aiperf",
        "aiperf",
        aiperf,
        "time_to_first_token; inter_token_latency = (latency - ttft) / (tokens - 1), our TPOT (its inter_chunk_latency "
        "is our ITL); its clock starts with the request in a worker process",
        False,
    ),
    Program(
        "guidellm",
        "guidellm",
        guidellm,
        "time_to_first_token_ms; inter_token_latency_ms, our TPOT (its time_per_output_token_ms includes the first "
        "token and is not taken); its clock starts with the request in a worker process",
        False,
    ),
)


OTHERS = frozenset(program.name for program in PROGRAMS)


def installed(program: Program, given: str | None) -> str | None:
    """Return the path of a program: the given one, or that on PATH; None where it is not installed."""
    return shutil.which(given or program.command)


@dataclass(frozen=True)
class Outcome:
    """Medians over the runs of one client on one load."""

    client: str
    load: str
    streams: int
    bias_ms: float | None
    tpot_error: float | None
    tokens_per_s: float | None
    cpu_share: float | None
    runs: int


def measure(client: str, run: Callable[[Load, int, Path, Cores], Seen], load: Load, runs: int, cores: Cores) -> Outcome:
    """Run one client on one load ``runs`` times, each against a fresh server."""
    biases, errors, rates, shares = [], [], [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as name, server(load, Path(name), cores) as port:
            seen = run(load, port, Path(name), cores)
            first, step = truth(Path(name), seen.labels)
        if seen.ttft_ms is not None:
            biases.append(seen.ttft_ms - first)
        if seen.tpot_ms is not None and step > 0:
            errors.append(seen.tpot_ms / step - 1)
        if seen.tokens_per_s is not None:
            rates.append(seen.tokens_per_s)
        if seen.cpu_share is not None:
            shares.append(seen.cpu_share)

    def middle(values: list[float]) -> float | None:
        return median(values) if values else None

    return Outcome(client, load.name, load.streams, middle(biases), middle(errors), middle(rates), middle(shares), runs)


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def show(outcome: Outcome) -> None:
    """Print one row."""
    is_absorption = outcome.load == "absorb"
    print(
        f"{outcome.load:<11} {outcome.client:<22} "
        f"{'' if is_absorption else _text(outcome.bias_ms, '+.2f'):>10} "
        f"{'' if is_absorption else _text(outcome.tpot_error, '+.3%'):>10} "
        f"{_text(outcome.tokens_per_s, ',.0f'):>12} {_text(outcome.cpu_share, '.0%'):>6}",
        flush=True,
    )


def misses(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the budgets that ours misses."""
    found = []
    for outcome in outcomes:
        if outcome.client != "magpie-tui":
            continue
        if outcome.load == "absorb":
            if (outcome.tokens_per_s or 0) < TOKENS_PER_S:
                found.append(f"{outcome.tokens_per_s:,.0f} tokens/s, budget {TOKENS_PER_S:,}")
            continue
        limit = BIAS_LIMIT_MS[outcome.streams]
        if outcome.bias_ms is None or abs(outcome.bias_ms) > limit:
            found.append(f"{outcome.load}: TTFT bias {outcome.bias_ms} ms, budget {limit} ms")
        if outcome.tpot_error is None or abs(outcome.tpot_error) > TPOT_LIMIT:
            found.append(f"{outcome.load}: TPOT error {outcome.tpot_error}, budget {TPOT_LIMIT}")
        others = [
            item.bias_ms for item in outcomes if item.load == outcome.load and item.client in OTHERS and item.bias_ms
        ]
        if outcome.streams == 16 and outcome.bias_ms is not None and any(value < outcome.bias_ms for value in others):
            found.append(f"{outcome.load}: another program is closer: {min(others):+.2f} ms")
    return found


def _options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="clients to run")
    for program in PROGRAMS:
        parser.add_argument(f"--{program.command}", help=f"path of the command {program.command}; default: on PATH")
    parser.add_argument("--tokenizer", default="", help="directory of a tokenizer, for the other programs")
    parser.add_argument(
        "--real-time", action="store_true", help="round-robin real-time scheduling, for a shared machine (root only)"
    )
    parser.add_argument("--json", type=Path, help="write the outcomes here too")
    return parser.parse_args()


def main() -> int:
    """Run everything and print the table."""
    options = _options()
    clients: dict[str, Callable[[Load, int, Path, Cores], Seen]] = {
        "magpie-tui": ours,
        "same on h11": on_library("h11"),
        "same on aiohttp": on_library("aiohttp"),
    }
    paths = {program.name: installed(program, getattr(options, program.command)) for program in PROGRAMS}
    for program in PROGRAMS:
        path = paths[program.name]
        if path is not None and options.tokenizer:
            clients[program.name] = program.runner(path, options.tokenizer)
    parallel = {program.name for program in PROGRAMS if not program.serial}
    if options.real_time:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    cores = Cores(options.server_core, options.client_core)
    print(
        f"load average before: {os.getloadavg()[0]:.2f}{', real-time' if options.real_time else ''}; "
        f"medians of {options.runs} runs"
    )
    print(f"{'load':<11} {'client':<22} {'TTFT bias':>10} {'TPOT error':>10} {'tokens/s':>12} {'CPU':>6}")
    print(f"{'':<11} {'':<22} {'ms':>10}")
    outcomes = []
    for load in LOADS:
        for name, run in clients.items():
            if options.only and name not in options.only:
                continue
            if load.name == "absorb" and name in parallel:
                continue  # several processes by design: one core says nothing about them
            try:
                outcomes.append(measure(name, run, load, options.runs, cores))
            except (RuntimeError, subprocess.CalledProcessError, KeyError, FileNotFoundError, StopIteration) as error:
                print(f"{load.name:<11} {name:<22} could not be run: {error}")
                continue
            show(outcomes[-1])
    print()
    for program in PROGRAMS:
        if paths[program.name] is None:
            print(f"{program.name}: not installed (no {program.command} on PATH; --{program.command} gives its path)")
        elif program.name not in clients:
            print(f"{program.name}: not run: --tokenizer DIR is needed")
        else:
            print(f"{program.name}: {program.definitions}")
    if options.json is not None:
        options.json.write_text(json.dumps([outcome.__dict__ for outcome in outcomes], indent=2))
    found = misses(outcomes)
    for text in found:
        print(f"MISSED  {text}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
