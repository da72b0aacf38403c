"""An answer made ready for the screen: its listings, in the thread that received it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from magpie_tui.traces.analysis import KernelReport
from magpie_tui.traces.collective_analysis import CollectiveReport
from magpie_tui.traces.operators.roofline_report import RooflineReport, SortBy, roofline_json
from magpie_tui.traces.stage_analysis import TimeReport
from magpie_tui.tui.screens.trace_query import ROWS_SHOWN, Answer, ComparedTraces
from magpie_tui.tui.screens.trace_tables import Listing, listing_of
from magpie_tui.tui.widgets.plot import Series, thin_out

if TYPE_CHECKING:
    from magpie_tui.traces.quality import Quality
    from magpie_tui.traces.ranking import NameStatistics, RankedKernel
    from magpie_tui.traces.roofline.rows import RooflineRow
    from magpie_tui.traces.stage_names import Stage
    from magpie_tui.traces.stages import StepFacts
    from magpie_tui.tui.widgets.table_filter import Scalar

PLOT_COLUMNS = 1_000
Report = KernelReport | TimeReport | CollectiveReport | RooflineReport


@dataclass(frozen=True, slots=True)
class Prepared:
    """A report with everything that is listed of it.

    Attributes:
        listings: By the words of ``--view``; the ranking has ``kernels`` and ``exact``.
        left_out: Rows that the app does not hold.
        series: Time of each step, for the plot.
        rooflines: Rows behind the listings of a roofline.
    """

    report: Report
    listings: Mapping[str, Listing]
    left_out: int = 0
    series: tuple[Series, ...] = ()
    rooflines: Mapping[str, tuple[RooflineRow, ...]] = field(default_factory=dict)


def prepare(answer: Answer) -> Prepared:
    """Draw up the listings of a report."""
    report = answer.report
    if isinstance(report, KernelReport):
        return Prepared(report, _kernel_listings(report))
    if isinstance(report, RooflineReport):
        from magpie_tui.tui.screens.trace_roofline import FIRST_LISTING, roofline_listings

        listed, rows = roofline_listings(report)
        listed.get(FIRST_LISTING)  # worked out here, in the thread that received the answer
        return Prepared(report, listed, rooflines=rows)
    assert not isinstance(report, ComparedTraces)
    if isinstance(report, CollectiveReport):
        from magpie_tui.traces.collective_listings import list_rows, rank_rows, total_rows

        listings = {
            "totals": listing_of(total_rows(report)),
            "ranks": listing_of(rank_rows(report)),
            "list": listing_of(list_rows(report), keys=[item.collective_id for item in report.matching.matched]),
        }
        return Prepared(report, listings, answer.left_out)
    from magpie_tui.traces import time_listings

    return Prepared(
        report,
        {
            "steps": listing_of(time_listings.step_rows(report)),
            "stages": listing_of(time_listings.stage_rows(report)),
            "windows": listing_of(time_listings.window_rows(report)),
            "timeline": listing_of(time_listings.timeline_rows(report)),
            "gaps": listing_of(time_listings.gap_rows(report)),
            "causes": listing_of(time_listings.cause_rows(report)),
        },
        answer.left_out,
        step_series(report),
    )


def step_series(report: TimeReport) -> tuple[Series, ...]:
    """Device time over the steps, one series a stage (and rank)."""
    points: dict[str, list[tuple[float, float]]] = {}
    several = len(report.ranks) > 1
    for rank in report.ranks:
        for fact in rank.stages.steps if rank.stages is not None else ():
            if report.chosen and fact.stage not in report.chosen:
                continue
            value = time_of(fact)
            if value is not None:
                name = f"rank {rank.file.rank} {fact.stage.value}" if several else fact.stage.value
                points.setdefault(name, []).append((float(fact.index), value))
    return tuple(_thinned(name, pairs) for name, pairs in points.items())


def _thinned(name: str, pairs: list[tuple[float, float]]) -> Series:
    """Leave no more points than the widest terminal can show."""
    kept = thin_out(pairs, PLOT_COLUMNS, pairs[0][0], pairs[-1][0]) if len(pairs) > PLOT_COLUMNS else pairs
    return Series(name, [x for x, _y in kept], [y for _x, y in kept])


def time_of(fact: StepFacts) -> float | None:
    """What the plot shows of a step: its span on the device, else on the host."""
    return fact.device_span_us if fact.device_span_us is not None else fact.wall_us


def _kernel_listings(report: KernelReport) -> dict[str, Listing]:
    from magpie_tui.traces.listings import exact_kernels, exact_rows, kernel_rows

    several = len(report.gap.ranks) > 1
    kernels, exact = report.ranking.kernels, exact_kernels(report)
    everything = replace(report, selection=replace(report.selection, top_k=max(1, len(exact), len(kernels))))
    return {
        "kernels": listing_of(
            kernel_rows(everything),
            [_kernel_values(kernel, several=several) for kernel in kernels],
            [kernel.name for kernel in kernels],
        ),
        "exact": listing_of(
            exact_rows(everything),
            [_exact_values(item, report.ranking.busy_us, report.ranking.window_us) for item in exact],
            [item.name for item in exact],
        ),
    }


def _kernel_values(kernel: RankedKernel, *, several: bool) -> tuple[Scalar, ...]:
    return (
        kernel.name,
        kernel.calls,
        kernel.self_us,
        kernel.share_of_busy_pct,
        kernel.share_of_window_pct,
        kernel.mean_us,
        len(kernel.variants),
        *((kernel.spread_pct,) if several else ()),
        "; ".join(kernel.input_shapes) or None,
    )


def _exact_values(item: NameStatistics, busy_us: float, window_us: float | None) -> tuple[Scalar, ...]:
    timed = item.calls - item.untimed
    return (
        item.name,
        item.calls,
        item.self_us,
        item.self_us / busy_us * 100 if busy_us else None,
        item.self_us / window_us * 100 if window_us else None,
        item.clipped_us / timed if timed else None,
        item.shortest_us,
        item.longest_us,
        "; ".join(item.shapes) or None,
    )


def json_of(prepared: Prepared, pane: str, stage: Stage | None = None) -> object:
    """Return what the command of a pane prints with ``--json``.

    Args:
        stage: The one stage that is shown of a roofline, which holds all.

    Raises:
        UserInputError: The app does not hold all rows.
    """
    from magpie_tui.basics.errors import UserInputError

    report = prepared.report
    if prepared.left_out:
        raise UserInputError(
            f"{prepared.left_out:,} rows more than a screen holds ({ROWS_SHOWN:,})",
            hint="Y copies the command; with --json it prints all of them",
        )
    if isinstance(report, RooflineReport):
        return roofline_json(report, () if stage is None else (stage,), SortBy.win)
    if isinstance(report, KernelReport):
        from magpie_tui.traces.report import kernels_json

        return kernels_json(report)
    if isinstance(report, CollectiveReport):
        from magpie_tui.traces.collective_analysis import collectives_json

        return collectives_json(report)
    from magpie_tui.traces.stage_analysis import gaps_json, stages_json

    return gaps_json(report) if pane == "gaps" else stages_json(report)


def qualities_of(report: Report) -> list[Quality]:
    """Return the balances of the files that a report rests on."""
    if isinstance(report, KernelReport):
        return list(report.qualities)
    if isinstance(report, RooflineReport):
        return [] if report.rank.quality is None else [report.rank.quality]
    ranks = report.reports if isinstance(report, CollectiveReport) else [rank.report for rank in report.ranks]
    return [rank.quality for rank in ranks if rank.quality is not None]


def caveat_lines(report: Report) -> list[str]:
    """Return every caveat of a report with the numbers that it touches, each once."""
    found = [caveat for quality in qualities_of(report) for caveat in quality.caveats]
    if isinstance(report, CollectiveReport):
        found += report.caveats
    return list(dict.fromkeys(f"{caveat.text} [touches {', '.join(caveat.touches)}]" for caveat in found))


def more_than_shown(prepared: Prepared, pane: str, view: str) -> str:
    """Say what the table does not hold, or the empty string."""
    report = prepared.report
    if pane == "gaps" and view == "gaps" and isinstance(report, TimeReport):
        gaps = sum(rank.gaps.gaps for rank in report.ranks if rank.gaps is not None)
        shown = len(prepared.listings["gaps"].rows)
        return f"the largest {shown} of {gaps:,}" if gaps > shown else f"{gaps:,} gaps"
    if prepared.left_out and view in ("steps", "list"):
        return f"{prepared.left_out:,} more are left out, the command prints them"
    return ""
