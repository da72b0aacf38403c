"""How long a run will take, from earlier runs of the same model and engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.json_strict import loads_tolerant
from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_clock
from magpie_tui.configs.benchmark import BenchmarkConfig
from magpie_tui.serving.workload import lengths_of, requests_of
from magpie_tui.workspaces.values import as_count, as_mapping, as_number, as_text

_MOST_LOOKED_AT = 40
_LARGEST_REPORT_BYTES = 64 << 20
_DEFAULT_STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Price:
    """Seconds of one run, by part.

    Attributes:
        source: Workspace that the figures come from.
        exact: It had the same load; else its duration was scaled by the tokens.
    """

    start_s: float
    warm_up_s: float
    measure_s: float
    stop_s: float
    source: Path
    exact: bool

    @property
    def total_s(self) -> float:
        """All parts."""
        return self.start_s + self.warm_up_s + self.measure_s + self.stop_s


@dataclass(frozen=True, slots=True)
class ExperimentPrice:
    """What an experiment takes: a price for each arm, and how many runs.

    Attributes:
        probes: Profiled runs beside the pairs.
    """

    a: Price
    b: Price
    pairs: int
    probes: int = 0

    @property
    def pair_s(self) -> float:
        """One pair."""
        return self.a.total_s + self.b.total_s

    @property
    def total_s(self) -> float:
        """All pairs, and the profiled runs at the price of a clean one."""
        return self.pairs * self.pair_s + self.probes * self.pair_s / 2

    @property
    def text(self) -> str:
        """``16 x (start 3:51, warm-up 0:20, measure 7:13, stop 0:20) = 3 h 02 min; one pair, indicative: 23 min``."""

        def middle(of_a: float, of_b: float) -> str:
            return format_clock((of_a + of_b) / 2)

        run = (
            f"start {middle(self.a.start_s, self.b.start_s)}, warm-up {middle(self.a.warm_up_s, self.b.warm_up_s)}, "
            f"measure {middle(self.a.measure_s, self.b.measure_s)}, stop {middle(self.a.stop_s, self.b.stop_s)}"
        )
        probes = f", and {plural(self.probes, 'profiled run')}" if self.probes else ""
        return (
            f"{2 * self.pairs} x ({run}){probes} = {minutes_text(self.total_s)}; "
            f"one pair, indicative: {minutes_text(self.pair_s)}"
        )


def minutes_text(seconds: float) -> str:
    """``23 min``, ``3 h 02 min``; below two minutes seconds."""
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def expected_experiment(
    a: BenchmarkConfig, b: BenchmarkConfig, pairs: int, output_dir: Path, *, probes: int = 0
) -> ExperimentPrice | None:
    """Return the price of an experiment from earlier runs of its models; None where either has none."""
    prices = [expected_run(config, output_dir) for config in (a, b)]
    if prices[0] is None or prices[1] is None:
        return None
    return ExperimentPrice(prices[0], prices[1], pairs, probes)


def expected_run(config: BenchmarkConfig, output_dir: Path) -> Price | None:
    """Return the price of a run from the newest good run of this engine and model below ``output_dir``; else None."""
    pattern = f"benchmark_{config.framework}_*/benchmark_report.json"
    reports = sorted(
        [
            *output_dir.glob(pattern),
            *output_dir.glob(f"*/{pattern}"),
            *output_dir.glob("experiment_*/pair_*/benchmark_report.json"),
        ],
        key=lambda path: path.stat().st_mtime if path.exists() else 0.0,
        reverse=True,
    )
    for path in reports[:_MOST_LOOKED_AT]:
        price = _price_of(config, path)
        if price is not None:
            return price
    return None


def _price_of(config: BenchmarkConfig, path: Path) -> Price | None:
    try:
        if path.stat().st_size > _LARGEST_REPORT_BYTES:
            return None
        report = as_mapping(loads_tolerant(path.read_bytes()))
    except (OSError, ValueError):
        return None
    if report.get("success") is not True or as_text(report.get("model")) != config.model:
        return None
    serving = as_mapping(as_mapping(report.get("magpie_tui")).get("serving"))
    phases, facts = as_mapping(serving.get("phases_s")), as_mapping(serving.get("comparability"))
    start, measure = as_number(phases.get("start")), as_number(phases.get("measure"))
    output_max, concurrency = as_count(facts.get("load.output_max")), as_count(facts.get("load.concurrency"))
    requests = as_count(facts.get("load.requests"))
    if start is None or measure is None or not output_max or not requests or not concurrency:
        return None
    steps_then = requests * output_max / concurrency
    steps_now = requests_of(config) * lengths_of(config).output_max / config.concurrency
    return Price(
        start,
        as_number(phases.get("warm-up")) or 0.0,
        measure * steps_now / steps_then,
        as_number(phases.get("stop")) or _DEFAULT_STOP_S,
        path.parent,
        exact=abs(steps_now - steps_then) < 1e-9 and concurrency == config.concurrency,
    )
