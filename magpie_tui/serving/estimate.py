"""How long a run will take, from earlier runs of the same model and engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.json_strict import loads_tolerant
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
