"""How often does a comparison claim a difference that is not there, and how often does it find one that is?

Replicates (blocks in processes of their own) of a baseline, its A/A control, a copy of it, and a kernel that takes a
known share more time (how much more work that is, is measured first) are recorded once, in the real schedule. Then
comparisons are drawn from them, without putting back, and go through the real stopping rule and verdict code; and some
run live, from the first block on.

    python -m benchmarks.kernel_noise                          on the GPU if there is one, else on the CPU
    python -m benchmarks.kernel_noise --record FILE --live 0   record (and judge what was recorded), nothing live
    python -m benchmarks.kernel_noise --from FILE --live 8     judge recorded replicates, then 8 live comparisons
    python -m benchmarks.kernel_noise --from FILE --record FILE --live 0      go on recording where it was left
    python -m benchmarks.kernel_noise --comparisons 0          live comparisons only
    python -m benchmarks.kernel_noise --replicates 12 --comparisons 50 --live 0 --minutes 2      a first look

Exit status 1: more than 5 % wrong claims, or the slow-down is found in less than 95 %.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import platform
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.noise_kernels import NoiseKernels, write_kernels
from magpie_tui.basics.files import write_bytes
from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.tables import Column, format_table
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.evaluation import default_threads
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.gpu_windows import GpuTiming
from magpie_tui.kernels.judges import Judge, reference_of_entry
from magpie_tui.kernels.measurement import Measurement, log_ratios, narrow_enough, sample_rows
from magpie_tui.kernels.model import Replicate
from magpie_tui.kernels.ranking import rank
from magpie_tui.kernels.recomputing import measurement_of_rows
from magpie_tui.kernels.sessions import Harness
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.telemetry import GpuSampler
from magpie_tui.kernels.timing import CallableBlocks, Schedule
from magpie_tui.kernels.timings import method_of, timing_of
from magpie_tui.machine.read import read_gpus
from magpie_tui.statistics.intervals import Interval, median, ratio_interval, standard_deviation

BASELINE, COPY, SLOW = 0, 1, 2
NAMES = {BASELINE: "baseline", COPY: "copy", SLOW: "slow"}
TIMEOUT_S = 300.0
LARGEST_FALSE_SHARE = 0.05
LEAST_POWER = 0.95


@dataclass(frozen=True, slots=True)
class Setup:
    """Where and how the benchmark runs."""

    directory: Path
    on_gpu: bool
    device: str
    settings: TimingSettings
    judge: Judge
    kernels: NoiseKernels
    candidates: tuple[Candidate, ...]
    sampler: GpuSampler | None

    def schedule(self, rng: random.Random) -> Schedule[Candidate]:
        """Return a schedule as ``compare`` makes it."""
        gpu = GpuTiming(self.settings, self.judge, TIMEOUT_S, self.sampler) if self.on_gpu else None
        return Schedule(
            self.settings,
            CallableBlocks(self.settings, self.judge, rng, timeout_s=TIMEOUT_S, gpu=gpu),
            baseline=BASELINE,
            rng=rng,
            on_gpu=self.on_gpu,
            progress=lambda step, done, total: None,
        )


def _device(harness: Harness, directory: Path) -> str:
    """Return the name of the device that a child sees, ``cpu`` without a GPU."""
    source = directory / "probe.py"
    source.write_text("def probe(x):\n    return x\n")
    entry = KernelEntry("probe", "pytorch", (source,), kernel_name="probe")
    probe = Candidate(0, entry, source, harness, directory, 1, None, 1, TIMEOUT_S)
    probe.open(None, log="probe").close()
    return str(probe.loaded.get("device_name") or "cpu")


def _gpu_index() -> int:
    """Return the physical index of the GPU that children see first."""
    gpus, _readings = read_gpus()
    return next((gpu.index for gpu in gpus if gpu.visible is not False), 0)


def read_rows(path: Path) -> list[str]:
    """Return the lines of a record; a name that ends in ``.gz`` is unpacked."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write a record; a name that ends in ``.gz`` is packed."""
    data = "".join(dumps(row, indent=None) + "\n" for row in rows).encode()
    write_bytes(path, gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)


@contextmanager
def set_up(settings: TimingSettings) -> Iterator[Setup]:
    """Write the kernels, start the processes that all blocks share, and end them afterwards."""
    with tempfile.TemporaryDirectory(prefix="magpie-tui-noise-") as name:
        directory = Path(name)
        harnesses = [
            Harness(
                python=sys.executable,
                environment=dict(os.environ),
                directory=None,
                log=directory / f"harness_{number}.log",
                start_timeout_s=TIMEOUT_S,
            )
            for number in range(2)
        ]
        device = _device(harnesses[0], directory)
        on_gpu = device != "cpu"
        threads = default_threads()
        kernels = write_kernels(directory, on_gpu=on_gpu)
        task = reference_of_entry(KernelEntry("reference", "pytorch", (kernels.reference,)))
        if task is None:
            raise RuntimeError("the reference cannot be called")
        judge = Judge(task, harnesses[1], directory, directory / "judge", TIMEOUT_S, threads, None, 7)
        judge.load()
        sampler = GpuSampler(directory, index=_gpu_index()) if on_gpu else None
        try:
            yield Setup(
                directory,
                on_gpu,
                device,
                settings,
                judge,
                kernels,
                _candidates(kernels, harnesses[0], directory, threads),
                sampler,
            )
        finally:
            if sampler is not None:
                sampler.close()
            judge.close()
            for harness in harnesses:
                harness.close()


def _candidates(kernels: NoiseKernels, harness: Harness, directory: Path, threads: int) -> tuple[Candidate, ...]:
    made = []
    for index, path in ((BASELINE, kernels.same), (COPY, kernels.copy), (SLOW, kernels.slow)):
        # Said to work in place, so that its outputs are not compared in every block: that is no part of the noise.
        entry = KernelEntry(NAMES[index], "pytorch", (path,), in_place=True)
        made.append(Candidate(index, entry, path, harness, directory, threads, None, 7, TIMEOUT_S))
    return tuple(made)


def calibrate(setup: Setup, replicates: int = 4) -> int:
    """Let the slow kernel take the wanted share more time, and say so; returns the work that this is.

    The time of much more work tells what a little takes: a kernel has a fixed part that more work does not repeat.
    """
    kernels, measurement = setup.kernels, Measurement()
    setup.schedule(random.Random()).run(
        [item for item in setup.candidates if item.index != COPY], measurement, count=replicates
    )
    if measurement.failed or measurement.untimed:
        raise SystemExit(f"a kernel could not be timed: {measurement.failed} {measurement.untimed}")
    ratio = math.exp(-median(log_ratios(measurement, BASELINE, SLOW, phase="choose")))
    if ratio <= 1.0:
        raise SystemExit(
            f"{kernels.most / kernels.rows:.0%} more work takes no more time ({ratio:.3f}): the noise is larger"
        )
    wanted = kernels.most * kernels.target / (ratio - 1.0)
    more = min(kernels.most, max(1, round(wanted / kernels.step)) * kernels.step)
    kernels.slow_down(more)
    print(
        f"{kernels.most / kernels.rows:.0%} more work takes {ratio - 1.0:.2%} more time; "
        f"{more / kernels.rows:.2%} more is to take {kernels.target:.0%}.",
        flush=True,
    )
    return more


def record(setup: Setup, measurement: Measurement, *, replicates: int, limit_s: float) -> None:
    """Add replicates of all arms, the A/A control included, until there are enough or the time is over."""
    started = time.monotonic()
    rng = random.Random()
    while (done := len(measurement.medians(SLOW, phase="choose"))) < replicates:
        if time.monotonic() - started > limit_s:
            break
        setup.schedule(rng).run(setup.candidates, measurement, count=min(5, replicates - done))
        if measurement.failed or measurement.untimed:
            raise SystemExit(f"a kernel could not be timed: {measurement.failed} {measurement.untimed}")


def _groups(measurement: Measurement) -> dict[int, dict[tuple[int, bool], Replicate]]:
    """Return replicate number to its blocks, for the replicates that are complete."""
    groups: dict[int, dict[tuple[int, bool], Replicate]] = {}
    for item in measurement.replicates:
        groups.setdefault(item.number, {})[item.arm, item.control] = item
    wanted = {(BASELINE, False), (BASELINE, True), (COPY, False), (SLOW, False)}
    return {number: blocks for number, blocks in groups.items() if blocks.keys() >= wanted}


def _verdict(measurement: Measurement, arm: int, settings: TimingSettings) -> str:
    timings = {index: timing_of(measurement, index, settings) for index in (BASELINE, arm)}
    ranking = rank(measurement, BASELINE, [arm], settings, timings)
    found = ranking.comparisons.get(arm)
    return found.word if found is not None else str(ranking.reason)


def drawn_verdict(
    groups: Mapping[int, Mapping[tuple[int, bool], Replicate]],
    arm: int,
    settings: TimingSettings,
    rng: random.Random,
    *,
    most: int,
) -> tuple[str, int]:
    """Draw replicates until the stopping rule or ``most`` ends it; returns the verdict and their number.

    The blocks keep their numbers' order of time, so that drift is what it was.
    """
    numbers = rng.sample(sorted(groups), k=min(most, len(groups)))
    count = min(settings.fewest_replicates, len(numbers))
    while True:
        drawn = Measurement(reduction="sum")
        for number in sorted(numbers[:count]):
            blocks = groups[number]
            drawn.replicates += [blocks[BASELINE, False], blocks[BASELINE, True], blocks[arm, False]]
        if count >= len(numbers) or narrow_enough(drawn, [arm], settings, baseline=BASELINE):
            return _verdict(drawn, arm, settings), count
        count += 1


def judge_drawn(
    measurement: Measurement, arm: int, settings: TimingSettings, *, comparisons: int, most: int
) -> Counter[str]:
    """Count the verdicts of many drawn comparisons of one arm with the baseline."""
    rng = random.Random(11)
    groups = _groups(measurement)
    words: Counter[str] = Counter()
    used: list[float] = []
    for _ in range(comparisons):
        word, count = drawn_verdict(groups, arm, settings, rng, most=most)
        words[word] += 1
        used.append(float(count))
    words["replicates"] = round(median(used))
    return words


def live_verdict(setup: Setup, arm: int) -> tuple[str, Interval | None, int, float]:
    """Run one comparison from its first block on, as ``compare`` does; returns verdict, ratio, replicates, seconds."""
    measurement = Measurement()
    started = time.monotonic()
    candidates = [item for item in setup.candidates if item.index in (BASELINE, arm)]
    setup.schedule(random.Random()).run(candidates, measurement)
    word = _verdict(measurement, arm, setup.settings)
    values = log_ratios(measurement, BASELINE, arm, phase="choose")
    return word, ratio_interval(values) if values else None, len(values), time.monotonic() - started


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3%}"


def print_replicates(measurement: Measurement, settings: TimingSettings) -> None:
    """Print what the replicates are: times, spread between processes, the slow-down that was built in."""
    rows = []
    for arm, control in ((BASELINE, False), (BASELINE, True), (COPY, False), (SLOW, False)):
        medians = list(measurement.medians(arm, phase="choose", control=control).values())
        spread = standard_deviation(medians) or 0.0
        values = log_ratios(measurement, BASELINE, arm, phase="choose", control=control)
        ratio = ratio_interval(values) if arm != BASELINE or control else None
        rows.append(
            [
                "A/A control" if control else NAMES[arm],
                len(medians),
                f"{median(medians) / 1e3:.2f}",
                f"{spread / median(medians):.3%}",
                "-" if ratio is None else _percent(ratio.point - 1),
                "-" if ratio is None or ratio.low is None else _percent(ratio.low - 1),
                "-" if ratio is None or ratio.high is None else _percent(ratio.high - 1),
            ]
        )
    titles = ("arm", "processes", "median (us)", "sd of medians", "baseline/arm", "low", "high")
    print(format_table([Column(title, "left" if not index else "right") for index, title in enumerate(titles)], rows))
    method = method_of(measurement)
    margin = settings.stamps_margin if method == "device_stamps" else settings.margin
    print(f"Method: {method}; margin at least {margin:.1%}.\n")


def print_drawn(words: Counter[str], title: str, *, right: Sequence[str], comparisons: int) -> float:
    """Print the verdicts of drawn comparisons; returns the share of ``right`` ones."""
    share = sum(words[word] for word in right) / comparisons
    shown = ", ".join(f"{word} {count}" for word, count in words.most_common() if word != "replicates")
    print(f"{title}: {shown} (of {comparisons}; usually {words['replicates']} replicates)")
    return share


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=60, help="processes an arm that are recorded")
    parser.add_argument("--comparisons", type=int, default=1000, help="comparisons drawn from them")
    parser.add_argument("--live", type=int, default=8, help="live comparisons, half of them of equal kernels")
    parser.add_argument("--minutes", type=float, default=8.0, help="longest recording")
    parser.add_argument("--budget", type=float, help="seconds an arm of a live comparison; the default of compare")
    parser.add_argument("--record", type=Path, help="write the raw rows here (.gz: packed)")
    parser.add_argument("--from", dest="source", type=Path, help="take the raw rows from here instead of recording")
    return parser.parse_args()


def _settings(budget_s: float | None) -> TimingSettings:
    return replace(TimingSettings(), fresh_interpreter=False, input_sets=3, budget_s=budget_s)


def _recorded(arguments: argparse.Namespace, settings: TimingSettings) -> tuple[Measurement, str, float, bool]:
    """Return the measurement, where it was made, the seconds of one block, and whether that was a GPU."""
    measurement, head = Measurement(), {"where": "", "block_s": 0.0, "on_gpu": False}
    if arguments.source is not None:
        lines = read_rows(arguments.source)
        head = json.loads(lines[0])
        measurement = measurement_of_rows([json.loads(line) for line in lines[1:]])
    if arguments.source is None or arguments.record is not None:
        before = len(measurement.replicates)
        with set_up(settings) as setup:
            where = (
                f"{setup.device}, {platform.node()}, {platform.machine()}, {os.cpu_count()} CPUs, torch "
                f"{setup.candidates[0].harness.torch_version}"
            )
            if before and where != head["where"]:
                raise SystemExit(f"recorded on {head['where']}, and this is {where}")
            if before and "more" in head:
                setup.kernels.slow_down(int(str(head["more"])))
            else:
                head["more"] = calibrate(setup)
            record(setup, measurement, replicates=arguments.replicates, limit_s=60 * arguments.minutes)
            new = len(measurement.replicates) - before
            block_s = measurement.elapsed_s / new if new else float(str(head["block_s"]))
            head |= {"where": where, "block_s": block_s, "on_gpu": setup.on_gpu}
    if arguments.record is not None:
        rows = [head, *sample_rows(measurement, NAMES)]
        write_rows(arguments.record, rows)
    return measurement, str(head["where"]), float(str(head["block_s"])), bool(head["on_gpu"])


def judge_recorded(arguments: argparse.Namespace, settings: TimingSettings) -> list[str]:
    """Judge comparisons drawn from recorded replicates; returns what did not hold."""
    measurement, where, block_s, on_gpu = _recorded(arguments, settings)
    complete = len(_groups(measurement))
    if complete < 2:
        return [f"{complete} complete replicates were recorded: too few to draw from"]
    budget_s = settings.arm_budget_s(on_gpu=on_gpu)
    most = max(settings.fewest_replicates, min(complete // 2, int(budget_s / max(block_s, 1e-9))))
    print(f"Where: {where}. {complete} complete replicates, {block_s:.2f} s a block.")
    print(f"A budget of {budget_s:g} s an arm allows {int(budget_s / block_s)} blocks; drawn: at most {most}.\n")
    print_replicates(measurement, settings)
    count = arguments.comparisons
    equal = judge_drawn(measurement, COPY, settings, comparisons=count, most=most)
    wrong = print_drawn(equal, "equal kernels", right=("faster", "slower", "mixed"), comparisons=count)
    slow = judge_drawn(measurement, SLOW, settings, comparisons=count, most=most)
    found = print_drawn(slow, "slow kernel", right=("slower",), comparisons=count)
    print(f"wrong claims {wrong:.1%} (at most {LARGEST_FALSE_SHARE:.0%}), slow-down found {found:.1%}\n")
    problems = []
    if wrong > LARGEST_FALSE_SHARE:
        problems.append(f"{wrong:.1%} wrong claims among drawn comparisons")
    if found < LEAST_POWER:
        problems.append(f"the slow-down was found in {found:.1%} of the drawn comparisons")
    return problems


def judge_live(count: int, settings: TimingSettings) -> list[str]:
    """Run live comparisons; returns what did not hold."""
    problems = []
    with set_up(settings) as setup:
        calibrate(setup)
        for number in range(count):
            arm = COPY if number % 2 == 0 else SLOW
            word, ratio, replicates, seconds = live_verdict(setup, arm)
            shown = "-"
            if ratio is not None and ratio.low is not None and ratio.high is not None:
                shown = f"{_percent(ratio.point - 1)} ({_percent(ratio.low - 1)} ... {_percent(ratio.high - 1)})"
            print(
                f"live {number + 1}: {NAMES[arm]}: {word}, {shown}, {replicates} replicates, {seconds:.0f} s",
                flush=True,
            )
            if arm == COPY and word in ("faster", "slower", "mixed"):
                problems.append(f"live comparison {number + 1} of equal kernels says {word}")
            if arm == SLOW and word != "slower":
                problems.append(f"live comparison {number + 1} of the slow kernel says {word}")
    return problems


def main() -> int:
    """Record, judge, run live; returns the exit status."""
    arguments = parse_arguments()
    settings = _settings(arguments.budget)
    problems = judge_recorded(arguments, settings) if arguments.comparisons else []
    if arguments.live:
        problems += judge_live(arguments.live, settings)
    for problem in problems:
        print(f"does not hold: {problem}")
    if not problems:
        print("everything holds here")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
