"""The pane counters: what the binary says for nothing, and what a profiler saw, beside the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.basics.units import format_seconds
from magpie_tui.tui.screens.candidates_text import Line, PaneInputs, fact, heading
from magpie_tui.workspaces.candidates import BinaryFacts, Candidate
from magpie_tui.workspaces.kernel_state import Metric, PerformanceResult
from magpie_tui.workspaces.values import as_mapping, as_text


def counters_lines(inputs: PaneInputs) -> list[Line]:
    """Registers, spills and occupancy; device kernels and metrics of a profiler, the baseline's beside them."""
    row, base = inputs.row, inputs.baseline
    other = None if base is row else base
    lines: list[Line] = [*_binary_lines(row, other, inputs)]
    result = profiled(row)
    said = as_text(_profile(row).get("reason"))
    name = as_text(_profile(row).get("profiler"))
    if result is None:
        reason = said or "no profiler ran"
        return [*lines, *fact("profiler", f"-  {reason}", inputs.width)]
    lines += fact("profiler", f"{name or 'a profiler'}{'' if result.success else ': failed'}", inputs.width)
    if result.workload_dir:
        lines += fact("output", result.workload_dir, inputs.width)
    for error in result.errors:
        lines += fact("error", error, inputs.width, "$error")
    if result.kernels:
        lines += ["", *_kernels(result, inputs)]
    metrics = dict(result.summary)
    if metrics:
        seen = profiled(other) if other is not None else None
        lines += ["", *_metrics(metrics, {} if seen is None else seen.summary, inputs, compared=seen is not None)]
    lines += fact("note", "counters explain; they never enter the times or the ranking", inputs.width)
    return lines


def _profile(row: Candidate) -> Mapping[str, object]:
    extras = row.kernel.extras
    return as_mapping(extras.more.get("profile")) if extras is not None else {}


def profiled(row: Candidate) -> PerformanceResult | None:
    """Return what a profiler reported of a kernel; other programs' reports hold nothing else."""
    own = _profile(row)
    if row.kernel.extras is not None:
        return PerformanceResult.from_json(own) if own.get("success") is not None else None
    return row.kernel.performance_result


def _binary_lines(row: Candidate, base: Candidate | None, inputs: PaneInputs) -> Iterator[Line]:
    facts = row.binary
    if facts is None:
        yield from fact("binary", f"-  {row.reasons.get('binary', 'nothing tells its registers')}", inputs.width)
        return
    other = None if base is None else base.binary

    def cells(title: str, value: int | None, before: int | None) -> tuple[object, ...]:
        return (title, value, *(() if other is None else (before,)))

    def occupancy(item: BinaryFacts) -> str | None:
        return None if item.occupancy is None else f"{item.occupancy} of {item.most_occupancy}"

    rows = [
        cells("registers a thread", facts.registers, None if other is None else other.registers),
        cells("spilled or local", facts.spills, None if other is None else other.spills),
        cells("shared bytes a block", facts.shared_bytes, None if other is None else other.shared_bytes),
        ("waves that fit", occupancy(facts), *(() if other is None else (occupancy(other),))),
    ]
    columns = [Column("binary"), Column(row.name, "right", shrink=True)]
    if other is not None and base is not None:
        columns.append(Column(base.name, "right", shrink=True))
    head, *body = format_table(columns, rows, width=inputs.width).split("\n")
    yield heading(head)
    yield from body
    yield from fact("read", f"{facts.name} {facts.arch or ''} by {facts.source}", inputs.width)
    yield ""


def _kernels(result: PerformanceResult, inputs: PaneInputs) -> Iterator[Line]:
    def duration(value: float | None) -> str | None:
        return None if value is None else format_seconds(value * 1e-9)

    rows = [
        (kernel.kernel_name, kernel.dispatch_count, duration(kernel.avg_ns), duration(kernel.total_ns))
        for kernel in result.kernels
    ]
    columns = [
        Column("device kernel", shrink=True),
        Column("n", "right"),
        Column("mean", "right"),
        Column("total", "right"),
    ]
    head, *body = format_table(columns, rows, width=inputs.width).split("\n")
    yield heading(head)
    yield from body


def _number(metric: Metric | None) -> str | None:
    return None if metric is None or metric.value is None else f"{metric.value:,.4g}"


def _metrics(
    metrics: Mapping[str, Metric], before: Mapping[str, Metric], inputs: PaneInputs, *, compared: bool
) -> Iterator[Line]:
    rows = [
        (name, _number(metric), *((_number(before.get(name)),) if compared else ()), metric.unit or None)
        for name, metric in metrics.items()
    ]
    columns = [Column("metric", shrink=True), Column("value", "right")]
    columns += [Column("base", "right")] if compared else []
    columns.append(Column("unit"))
    head, *body = format_table(columns, rows, width=inputs.width).split("\n")
    yield heading(head)
    yield from body
