"""How far the operator tables agree with those that TraceLens printed for the same traces.

A line for each trace that has reference tables: the share of device time whose row (op, shapes, types) agrees in count
and time, and, of the time that the reference models, the share that also agrees in operations, bytes, TFLOP/s, TB/s and
percent of the roofline, all within 0.5 %.

    python benchmarks/conformance.py DATA              DATA/traces holds the traces
    python benchmarks/conformance.py DATA --rows       lists every row that differs
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.traces.load import load_columns
from magpie_tui.traces.operators.upstream_arch import UpstreamArch
from magpie_tui.traces.operators.upstream_report import ReportOptions, upstream_report

TOLERANCE = 0.005
SMALLEST_US = 0.01
TABLE = "unified_perf_summary"
KEY = ("name", "thread_name", "Input Dims", "Input type", "Input Strides", "Concrete Inputs")
FIGURES = ("GFLOPS", "Data Moved (MB)", "TFLOPS/s_mean", "TB/s_mean", "Pct Roofline_mean")
TIME = "Kernel Time (µs)_sum"
_PLACEHOLDER = re.compile(r"<\w+>")


@dataclass(frozen=True)
class Case:
    """A trace with reference tables.

    Attributes:
        trace: The trace.
        reference: Directory with the tables.
        arch: File with the peaks; None without.
        capture: Folder of the capture run; None without.
        inference: The report is that of inference.
    """

    trace: Path
    reference: Path
    arch: Path | None
    capture: Path | None
    inference: bool

    @property
    def name(self) -> str:
        """Folder, trace (where there are several) and tables."""
        return f"{self.trace.parent.name}/{self.reference.name}"


def cases(traces: Path) -> Iterator[Case]:
    """Read the commands beside each trace.

    Args:
        traces: Directory with one folder a trace.
    """
    for commands in sorted(traces.glob("*/commands.txt")):
        for line in commands.read_text().splitlines():
            words = shlex.split(line)
            if not words or not words[0].startswith("TraceLens_generate_perf_report_pytorch"):
                continue
            options = {word: words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}
            for number in ("0", "1") if _PLACEHOLDER.search(line) else ("",):
                given = {key: _PLACEHOLDER.sub(number, value) for key, value in options.items()}
                folder = commands.parent
                reference = folder / given["--output_csvs_dir"]
                if not (reference / f"{TABLE}.csv").is_file():
                    continue
                arch, capture = given.get("--gpu_arch_json_path"), given.get("--capture_folder")
                yield Case(
                    folder / given["--profile_json_path"],
                    reference,
                    folder / arch if arch else None,
                    folder / capture if capture else None,
                    words[0].endswith("_inference"),
                )


@dataclass(frozen=True)
class Agreement:
    """Of one trace. Times in µs.

    Attributes:
        time_us: All rows of the reference.
        agreed_us: Rows that agree in count and time.
        modelled_us: Rows that the reference models.
        figures_us: Modelled rows that agree in all figures too.
        differences: Row, column, ours and theirs.
    """

    time_us: float
    agreed_us: float
    modelled_us: float
    figures_us: float
    differences: tuple[tuple[str, str, str, str], ...]

    @property
    def rows_pct(self) -> float:
        """Share of the time whose rows agree in count and time."""
        return self.agreed_us / self.time_us * 100 if self.time_us else 100.0

    @property
    def figures_pct(self) -> float:
        """Share of the modelled time whose figures agree."""
        return self.figures_us / self.modelled_us * 100 if self.modelled_us else 100.0


def read_arch(path: Path) -> UpstreamArch:
    """Read peaks in TraceLens' form."""
    value = json.loads(path.read_text())
    return UpstreamArch(value["name"], value["mem_bw_gbps"], value["max_achievable_tflops"])


def our_rows(case: Case) -> list[dict[str, str]]:
    """Our table for the trace, as it would be read back from its file."""
    options = ReportOptions(
        inference=case.inference,
        arch=read_arch(case.arch) if case.arch is not None else None,
        capture_folder=case.capture,
        kernel_summary=False,
        collectives=False,
    )
    table = upstream_report(load_columns(case.trace, use_cache=False), options).named(TABLE)
    return list(csv.DictReader(io.StringIO(table.to_csv()))) if table is not None else []


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a reference table."""
    csv.field_size_limit(1 << 30)
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def agreement(ours: Sequence[dict[str, str]], theirs: Sequence[dict[str, str]]) -> Agreement:
    """Compare the rows of two tables."""
    found = {tuple(row[key] for key in KEY): row for row in ours}
    time = agreed = modelled = figures = 0.0
    differences: list[tuple[str, str, str, str]] = []
    for row in theirs:
        spent = float(row[TIME])
        time += spent
        has_model = row["has_perf_model"] == "True"
        modelled += spent if has_model else 0.0
        mine = found.get(tuple(row[key] for key in KEY))
        if mine is None:
            differences.append((row["name"], "row", "absent", "present"))
            continue
        wrong = [
            (row["name"], column, mine.get(column) or "", row.get(column) or "")
            for column in ("operation_count", TIME, "op category", *(FIGURES if has_model else ()))
            if not same(mine.get(column), row.get(column))
        ]
        differences += wrong
        columns = {column for _name, column, _mine, _theirs in wrong}
        agreed += spent if not columns & {"operation_count", TIME} else 0.0
        figures += spent if has_model and not columns else 0.0
    return Agreement(time, agreed, modelled, figures, tuple(differences))


def same(ours: str | None, theirs: str | None) -> bool:
    """True for equal texts, and for numbers within the tolerance."""
    if (ours or "") == (theirs or ""):
        return True
    try:
        mine, other = float(ours or ""), float(theirs or "")
    except ValueError:
        return False
    return abs(mine - other) <= max(TOLERANCE * abs(other), SMALLEST_US if other == 0 else 0.0)


def main() -> None:
    """Parse the arguments and print the table; the status is 1 where less than 99.5 % agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="directory that holds traces/")
    parser.add_argument("--rows", action="store_true", help="list the rows that differ")
    options = parser.parse_args()
    print(f"{'trace':<46} {'time us':>12} {'rows %':>8} {'modelled %':>11} {'figures %':>10}")
    worst = 100.0
    for case in cases(options.data / "traces"):
        result = agreement(our_rows(case), read_rows(case.reference / f"{TABLE}.csv"))
        share = result.modelled_us / result.time_us * 100 if result.time_us else 0.0
        print(
            f"{case.name:<46} {result.time_us:>12.1f} {result.rows_pct:>8.2f} {share:>11.2f} "
            f"{result.figures_pct:>10.2f}",
            flush=True,
        )
        worst = min(worst, result.rows_pct, result.figures_pct)
        if options.rows:
            for name, column, ours, theirs in result.differences:
                print(f"    {name}: {column}: {ours} instead of {theirs}")
    sys.exit(0 if worst >= 99.5 else 1)


if __name__ == "__main__":
    main()
