"""What analyze and compare print: upstream's lines, truthful, and a table of what was measured."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_percent, format_ratio, format_ratio_percent, format_seconds
from magpie_tui.cli.output import Column, format_table, terminal_width, write
from magpie_tui.workspaces.candidates import settled_as
from magpie_tui.workspaces.extras import Extras, Verdict
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport, compare_summary
from magpie_tui.workspaces.values import as_list, as_mapping, as_number

RULE = "=" * 60


def _extras(state: KernelState) -> Extras:
    return state.extras or Extras()


def _state_word(value: object) -> str:
    """Return a stage's state as upstream prints it."""
    return str(getattr(value, "value", value) or "UNKNOWN")


def _microseconds(value: object) -> str | None:
    return format_seconds(value / 1e6) if isinstance(value, (int, float)) else None


def time_text(state: KernelState) -> str | None:
    """Return the median time of a call; None when it was not measured."""
    return _microseconds((_extras(state).timing or {}).get("median_us"))


def interval_text(state: KernelState) -> str | None:
    """Return the interval of the median; None when there is none."""
    bounds = (_extras(state).timing or {}).get("interval_us")
    if not isinstance(bounds, (list, tuple)) or len(bounds) != 2:
        return None
    return _interval(*bounds)


def _interval(low: object, high: object) -> str | None:
    ends = _microseconds(low), _microseconds(high)
    return None if None in ends else f"{ends[0]} … {ends[1]}"


def ratio_text(verdict: Verdict | None) -> str | None:
    """Return a ratio with its interval, such as ``1.84 (1.71 … 1.97)``."""
    if verdict is None or verdict.ratio is None:
        return None
    return format_ratio(verdict.ratio, verdict.ratio_low, verdict.ratio_high)


def _proof(state: KernelState) -> str | None:
    proof = (_extras(state).gate or {}).get("proof")
    return None if proof is None else printable(proof)


def _print_kernel(state: KernelState) -> None:
    extras = _extras(state)
    write()
    write(RULE)
    write(f"Kernel: {printable(state.kernel_id)}")
    write(f"Type: {state.kernel_type}")
    write(f"Compiling: {_state_word(state.compiling_state)}")
    write(f"Correctness: {_state_word(state.correctness_state)}")
    write(f"Performance: {_state_word(state.performance_state)}")
    write(f"Score: {state.score or 0.0:.2f}")
    proof = _proof(state)
    write(f"State: {extras.state}" + (f" (proved by {proof})" if proof else ""))
    _print_gate(state)
    _print_time(state)
    if state.errors:
        write("Errors:")
        for error in state.errors:
            write("  - " + printable(error, keep="\n").replace("\n", "\n    "))
    write(RULE)


def _print_time(state: KernelState) -> None:
    extras = _extras(state)
    timing = extras.timing or {}
    if time_text(state) is not None:
        bounds = interval_text(state)
        interval = f" (95 % interval {bounds})" if bounds else ""
        processes = plural(_count(timing.get("replicates")), "process", "processes")
        counted = sum(as_number(as_mapping(row).get("share")) is not None for row in as_list(extras.more.get("shapes")))
        mean = f", geometric mean over {counted} shapes" if counted > 1 else ""
        write(f"Time: {time_text(state)}{interval}{mean}, {timing.get('quantity')} {timing.get('cache')}, {processes}")
    elif timing.get("reason"):
        write(f"Time: - ({printable(timing['reason'])})")


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _checks(state: KernelState) -> list[Mapping[str, object]]:
    checks = (_extras(state).gate or {}).get("checks")
    known = [item for item in checks if isinstance(item, Mapping)] if isinstance(checks, (list, tuple)) else []
    return [{"status": None, "reason": None, **item} for item in known]


_STATUS = {"pass": "pass", "fail": "FAIL", "not_run": "not run"}


def gate_summary(state: KernelState) -> str | None:
    """Return how many checks passed, failed and did not run; None when the gate did not run."""
    checks = _checks(state)
    if not checks:
        return None
    counts = {word: sum(item.get("status") == word for item in checks) for word in _STATUS}
    quick = "; shortened by --quick" if (_extras(state).gate or {}).get("quick") is True else ""
    return f"{counts['pass']} pass, {counts['fail']} fail, {counts['not_run']} not run{quick}"


def _print_gate(state: KernelState) -> None:
    """Print every check: its status, what it checks, what there is to say."""
    summary = gate_summary(state)
    if summary is None:
        return
    write(f"Gate: {summary}")
    indent = " " * 19
    for (status, reason), group in itertools.groupby(_checks(state), key=lambda item: (item["status"], item["reason"])):
        items = list(group)
        alike = status == "not_run" and len(items) > 2
        for item in items[:1] if alike else items:
            text = printable(item.get("title"))
            name = printable(item.get("id"))
            if alike:
                name, text = f"{name}-{printable(items[-1].get('id'))}", "the same for all of them"
            if reason:
                text += f": {printable(reason)}"
            head = f"  {name:<9}{_STATUS.get(str(status), str(status)):<8}"
            write(textwrap.fill(text, max(60, terminal_width()), initial_indent=head, subsequent_indent=indent))


def _print_gates(states: Sequence[KernelState]) -> None:
    """Print which check each kernel passed, and why checks did not."""
    judged = [(index, state) for index, state in enumerate(states) if _checks(state)]
    if not judged:
        return
    ids: dict[str, str] = {}
    found: dict[tuple[str, int], str] = {}
    reasons: dict[tuple[str, str, str], list[int]] = {}
    for index, state in judged:
        for item in _checks(state):
            identity, status = str(item.get("id")), str(item.get("status"))
            ids.setdefault(identity, str(item.get("title")))
            found[identity, index] = _STATUS.get(status, status)
            if status != "pass":
                reasons.setdefault((identity, _STATUS.get(status, status), str(item.get("reason"))), []).append(index)
    columns = [
        Column("check"),
        Column("what it checks", shrink=True),
        *(Column(f"#{index}") for index, _state in judged),
    ]
    rows = [(name, title, *(found.get((name, index)) for index, _state in judged)) for name, title in ids.items()]
    write()
    for index, state in judged:
        write(f"Gate of #{index} {printable(state.kernel_id)}: {gate_summary(state)}")
    write(format_table(columns, rows, width=terminal_width()))
    alike: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for (name, status, reason), indices in reasons.items():
        alike.setdefault((status, reason, tuple(indices)), []).append(printable(name))
    for (status, reason, kernels), names in alike.items():
        which = "" if len(kernels) == len(judged) else f" ({', '.join(f'#{index}' for index in kernels)})"
        text = f"{', '.join(names)} {status}{which}: {printable(reason)}"
        write(textwrap.fill(text, max(60, terminal_width()), subsequent_indent="  "))


def print_analyze(report: AnalyzeReport, workspace: Path) -> None:
    """Print an analyze report."""
    for state in report.results:
        _print_kernel(state)
    if len(report.results) > 1:
        write()
        columns = [
            Column("kernel", shrink=True),
            Column("state"),
            Column("median", "right"),
            Column("95 % interval", "right"),
        ]
        rows = [
            (state.kernel_id, _extras(state).state, time_text(state), interval_text(state)) for state in report.results
        ]
        write(format_table(columns, rows, width=terminal_width()))
    _print_shapes(report)
    write()
    write(f"Workspace: {workspace}")


def _shape_rows(state: KernelState, *, compared: bool) -> list[tuple[object, ...]]:
    rows = []
    for value in as_list(_extras(state).more.get("shapes")):
        row = as_mapping(value)
        share, ratio = as_number(row.get("share")), as_number(row.get("ratio"))
        low, high = as_number(row.get("ratio_low")), as_number(row.get("ratio_high"))
        moved, computed = as_number(row.get("bytes_per_s")), as_number(row.get("flops_per_s"))
        bounds = "" if low is None or high is None else f" ({low:.3g} … {high:.3g})"
        cells = [
            state.kernel_id,
            row.get("shape"),
            "guard" if row.get("guard") else None if share is None else format_percent(share, digits=0),
            _microseconds(as_number(row.get("median_us"))),
            _interval(row.get("median_low_us"), row.get("median_high_us")),
            None if moved is None else f"{moved / 1e9:,.1f}",
            None if computed is None else f"{computed / 1e9:,.1f}",
        ]
        if compared:
            cells += [None if ratio is None else f"{ratio:.3g}{bounds}", row.get("verdict")]
        rows.append(tuple(cells))
    return rows


def _print_upstream_scores(report: CompareReport) -> None:
    """Print upstream's scores where they were asked for, as what they are."""
    scores = {state.kernel_id: _extras(state).upstream_score for state in report.kernels}
    if any(score is not None for score in scores.values()):
        told = ", ".join(
            f"{printable(name)} {'-' if score is None else f'{score:.3f}'}" for name, score in scores.items()
        )
        write(f"Upstream's weighted score, for reference only (it mixes utilisation with time): {told}")


def _print_shapes(report: AnalyzeReport | CompareReport) -> None:
    """Print time, bandwidth, operations a second and ratio at every point of the shape grid, if there is one."""
    compared = isinstance(report, CompareReport)
    rows = [row for state in report.kernels for row in _shape_rows(state, compared=compared)]
    if not rows or all(row[3] is None for row in rows):
        return
    columns = [
        Column("kernel", shrink=True),
        Column("shape", shrink=True),
        Column("share", "right"),
        Column("median", "right"),
        Column("95 % interval", "right"),
        Column("GB/s", "right"),
        Column("GFLOP/s", "right"),
        *((Column("ratio (95 % interval)", "right"), Column("verdict")) if compared else ()),
    ]
    write()
    write(format_table(columns, rows, width=terminal_width()))
    roofs = as_mapping(_report_timing(report).get("ceilings"))
    peak = as_number(roofs.get("bytes_per_s"))
    if peak is not None:
        write(
            f"Ceiling: {peak / 1e9:,.0f} GB/s, {printable(roofs.get('name'))}; bytes are inputs and outputs once each"
        )


def _baseline_of(report: CompareReport) -> int | None:
    value = report.extras.more.get("baseline") if report.extras is not None else None
    return value if isinstance(value, int) else None


def _print_ranking(report: CompareReport) -> None:
    baseline = _baseline_of(report)
    ranks = report.extras.more.get("ranks") if report.extras is not None else None
    known = ranks if isinstance(ranks, Mapping) else {}
    rows = []
    for index, state in enumerate(report.kernels):
        extras = _extras(state)
        verdict = extras.verdict
        word = "baseline" if index == baseline else (verdict.word if verdict is not None else None)
        rows.append(
            (
                index,
                state.kernel_id,
                extras.state,
                time_text(state),
                interval_text(state),
                "1" if index == baseline and time_text(state) is not None else ratio_text(verdict),
                word,
                known.get(str(index)),
            )
        )
    columns = [
        Column("#", "right"),
        Column("kernel", shrink=True),
        Column("state"),
        Column("median", "right"),
        Column("95 % interval", "right"),
        Column("ratio (95 % interval)", "right"),
        Column("verdict"),
        Column("rank", "right"),
    ]
    write(format_table(columns, rows, width=terminal_width()))


def _notes(report: CompareReport) -> list[str]:
    notes = []
    margin = as_number(as_mapping(_report_timing(report).get("margin")).get("value"))
    for state in report.kernels:
        extras = _extras(state)
        name = printable(state.kernel_id)
        if extras.state != "correct" and extras.reason:
            notes.append(f"{name}: {extras.state}: {printable(extras.reason)}")
        elif extras.timing is not None and extras.timing.get("reason"):
            notes.append(f"{name}: {printable(extras.timing['reason'])}")
        notes += _verdict_notes(name, extras.verdict, margin)
    return notes


def _report_timing(report: AnalyzeReport | CompareReport) -> Mapping[str, object]:
    return as_mapping(report.extras.timing) if report.extras is not None else {}


def _verdict_notes(name: str, verdict: Verdict | None, margin: float | None) -> list[str]:
    if verdict is None:
        return []
    notes = []
    confirmed = verdict.more.get("confirmed_ratio")
    low, high = verdict.more.get("confirmed_low"), verdict.more.get("confirmed_high")
    if isinstance(confirmed, float) and isinstance(low, float) and isinstance(high, float):
        notes.append(
            f"{name}: on fresh replicates {format_ratio_percent(confirmed)} "
            f"(95 % interval {format_ratio_percent(low)} … {format_ratio_percent(high)}, "
            f"{plural(_count(verdict.more.get('confirmed_replicates')), 'replicate')})"
        )
    if verdict.reason:
        notes.append(f"{name}: {verdict.word}: {printable(verdict.reason)}")
    needed = verdict.more.get("replicates_needed")
    if isinstance(needed, int):
        settled = settled_as(verdict.ratio, margin)
        notes.append(f"{name}: about {plural(needed, 'replicate')} would settle it{settled} (--budget gives more time)")
    return notes


def print_compare(report: CompareReport, workspace: Path) -> None:
    """Print a comparison."""
    write()
    write(RULE)
    write("COMPARISON RESULTS")
    write(RULE)
    write(printable(report.summary or compare_summary(report), keep="\n"))
    write(RULE)
    write()
    _print_ranking(report)
    _print_shapes(report)
    _print_gates(report.kernels)
    notes = _notes(report)
    if notes:
        write()
        for note in notes:
            write(note)
    timing = report.extras.timing if report.extras is not None else None
    if timing is not None and timing.get("ended_by"):
        first_look = "; --quick: a first look" if timing.get("quick") else ""
        write()
        device = printable(timing.get("device"))
        write(f"Times are {timing.get('quantity')}, {timing.get('cache')} cache, on {device}{first_look}")
    _print_upstream_scores(report)
    write()
    write(f"Workspace: {workspace}")
