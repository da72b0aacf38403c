"""Stages, timelines and gaps of the traces of all ranks, one rank in memory at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import UserInputError
from magpie_tui.traces.each import Reading, each_trace
from magpie_tui.traces.gaps import LARGEST, find_gaps
from magpie_tui.traces.kernel_report import RankReport, failure_text
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.quality import Caveat, assess
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.stages import StageReport, assign_work, report_stages
from magpie_tui.traces.steady import SteadyOptions, steady_notes, steady_regions, steady_windows
from magpie_tui.traces.steps import upstream_steps
from magpie_tui.traces.time_report import RankFacts, Steady, SteadyWindow, TimeOptions, TimeReport
from magpie_tui.traces.timeline import timelines, upstream_timeline
from magpie_tui.traces.work import trace_work

if TYPE_CHECKING:
    from magpie_tui.traces.discover import TraceSet
    from magpie_tui.traces.labels import StepLabel


def work_out(traces: TraceSet, reading: Reading, asked: TimeOptions) -> TimeReport:
    """Read each trace in turn; errors are those of :func:`.stage_analysis.analyze_time`."""
    steady = asked.steady or SteadyOptions()
    largest = LARGEST if asked.largest is None else asked.largest
    ranks = []
    for file, columns in each_trace(traces, reading):
        if isinstance(columns, UserInputError):
            ranks.append(RankFacts(RankReport(file, None, None, failure_text(file, columns))))
            continue
        work = trace_work(columns)
        links = link_device_work(columns, columns.device_rows())
        assignment = assign_work(columns, None, work, links)
        report = report_stages(columns, assignment)
        quality = assess(columns, work, links)
        quality = replace(quality, caveats=(*quality.caveats, *report.caveats, *_timeline_caveats(work.device)))
        found = None
        if asked.gaps and len(work.rows):
            found = find_gaps(
                columns, work, links, assignment, stages=asked.stages, shortest_us=asked.shortest_us, largest=largest
            )
        ranks.append(
            RankFacts(
                RankReport(file, quality, None, None, columns.metadata),
                report,
                None if asked.gaps else _steady(report, upstream_steps(columns).labels, steady),
                upstream_timeline(columns),
                timelines(columns, work, assignment),
                found,
            )
        )
        del columns, work, links, assignment
    worlds = [rank.report.quality.world_size for rank in ranks if rank.report.quality is not None]
    return TimeReport(traces, tuple(ranks), max((world for world in worlds if world), default=None), asked.stages)


def _timeline_caveats(device: str) -> list[Caveat]:
    if device != "cpu":
        return []
    return [
        Caveat(
            "work_on_cpu",
            "the engine ran on the CPU: its leaf ops are the work, and idle is the time between them",
            ("timeline", "gaps"),
        )
    ]


def _steady(report: StageReport, labels: Sequence[StepLabel], options: SteadyOptions) -> Steady | None:
    steps = [label.upstream for label in labels]
    if not steps:
        return None
    regions = steady_regions(steps, options)
    coverage = {fact.label: fact.split_coverage_pct for fact in report.steps}
    same = len(report.steps) == len(steps)

    def covered(index: int) -> float | None:
        return report.steps[index].split_coverage_pct if same else coverage.get(labels[index].text)

    windows = [
        SteadyWindow(
            window.label,
            window.first,
            window.last,
            sum(step.kind is Stage.prefill for step in steps[window.first : window.last]),
            sum(step.kind is Stage.prefilldecode for step in steps[window.first : window.last]),
            sum(step.kind is Stage.decode for step in steps[window.first : window.last]),
            tuple(covered(index) for index in range(window.first, window.last)),
        )
        for window in steady_windows(steps, regions, options)
    ]
    notes = steady_notes(steps, regions, searched=options.iterations is None)
    return Steady(options.num_steps, regions, tuple(windows), tuple(notes))
