"""Traces of all ranks → quality, upstream's gap analysis and our ranking, one rank in memory at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.assign import Assignment, assign_work, stage_part
from magpie_tui.traces.each import Reading, each_trace
from magpie_tui.traces.gap_totals import merged, rank_totals
from magpie_tui.traces.kernel_report import KernelReport, RankReport, failure_text
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.quality import assess
from magpie_tui.traces.ranking import rank_kernels, rank_work
from magpie_tui.traces.selecting import select
from magpie_tui.traces.selection import Selected, Selection
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.steps import find_steps
from magpie_tui.traces.work import trace_work

if TYPE_CHECKING:
    from magpie_tui.traces.columns import TraceColumns
    from magpie_tui.traces.discover import TraceSet


def work_out(
    traces: TraceSet, selection: Selection, reading: Reading, stages: Collection[Stage], *, timeline: bool
) -> KernelReport:
    """Read each trace in turn and add it up; arguments and errors are those of :func:`.analysis.analyze_kernels`."""
    totals, works, reports = [], [], []
    for file, columns in each_trace(traces, reading):
        if isinstance(columns, UserInputError):
            reports.append(RankReport(file, None, None, failure_text(file, columns)))
            continue
        work = trace_work(columns)
        links = link_device_work(columns, columns.device_rows())
        # Steps from the call tree tell no stage: the ranking of kernels has no use for them.
        steps = find_steps(columns, search=timeline or Stage.unknown in stages)
        assignment = assign_work(columns, steps, work, links)
        selected = _of_stages(columns, select(columns, selection), assignment, stages)
        totals.append(rank_totals(file.rank, columns, selected))
        works.append(rank_work(file.rank, columns, work, selection, selected, assignment.stage_codes()))
        report = RankReport(file, assess(columns, work, links), selected.window, None, columns.metadata)
        if timeline:
            from magpie_tui.traces.stages import report_stages
            from magpie_tui.traces.timeline import timelines, upstream_timeline

            report = replace(
                report,
                stages=report_stages(columns, assignment),
                timeline=upstream_timeline(columns),
                parts=timelines(columns, work, assignment),
            )
        reports.append(report)
        del columns, selected, work, links, assignment
    errors = [report.error for report in reports if report.error]
    worlds = [report.quality.world_size for report in reports if report.quality and report.quality.world_size]
    return KernelReport(
        traces,
        selection,
        merged(selection, totals, errors),
        rank_kernels(works),
        tuple(reports),
        max(worlds, default=None),
        tuple(stages),
    )


def _of_stages(
    columns: TraceColumns, selected: Selected, assignment: Assignment, stages: Collection[Stage]
) -> Selected:
    """Keep only the events of the steps of these stages."""
    if not stages:
        return selected
    part = stage_part(columns, assignment, stages)
    return Selected(
        selected.rows[part.events[selected.rows]], selected.in_window & part.events, selected.window, part.window_us
    )
