"""What ``trace kernels`` and ``trace summary`` list: the same columns and rows for commands and screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from magpie_tui.basics.tables import Column

if TYPE_CHECKING:
    from magpie_tui.traces.analysis import KernelReport
    from magpie_tui.traces.balance import Quality
    from magpie_tui.traces.ranked import NameStatistics


def digits(value: float | None, number: int) -> str | None:
    """A number with fixed digits; None stays None."""
    return None if value is None else f"{value:.{number}f}"


def kernel_rows(report: KernelReport) -> tuple[list[Column], list[list[object]]]:
    """Columns and rows of the ranking as they are printed."""
    several = len(report.gap.ranks) > 1
    columns = [
        Column("kernel", shrink=True),
        Column("calls", "right"),
        Column("self us", "right"),
        Column("busy %", "right"),
        Column("window %", "right"),
        Column("mean us", "right"),
        Column("variants", "right"),
        *([Column("spread %", "right")] if several else []),
        Column("input shapes", shrink=True),
    ]
    rows: list[list[object]] = []
    for kernel in report.ranking.kernels[: report.selection.top_k]:
        rows.append(
            [
                kernel.shown_name,
                _calls(kernel.calls, kernel.untimed_calls),
                digits(kernel.self_us, 3),
                digits(kernel.share_of_busy_pct, 2),
                digits(kernel.share_of_window_pct, 2),
                digits(kernel.mean_us, 3),
                len(kernel.variants),
                *([digits(kernel.spread_pct, 1)] if several else []),
                _shapes(kernel.input_shapes),
            ]
        )
    return columns, rows


def exact_kernels(report: KernelReport) -> list[NameStatistics]:
    """Exact names over all ranks, largest self time first."""
    found = [variant for kernel in report.ranking.kernels for variant in kernel.variants]
    return sorted(found, key=lambda variant: (-variant.self_us, variant.name))


def exact_rows(report: KernelReport) -> tuple[list[Column], list[list[object]]]:
    """Columns and rows of the ranking with variants apart."""
    columns = [
        Column("kernel", shrink=True),
        Column("calls", "right"),
        Column("self us", "right"),
        Column("busy %", "right"),
        Column("window %", "right"),
        Column("mean us", "right"),
        Column("shortest us", "right"),
        Column("longest us", "right"),
        Column("input shapes", shrink=True),
    ]
    busy, window = report.ranking.busy_us, report.ranking.window_us
    rows: list[list[object]] = []
    for item in exact_kernels(report)[: report.selection.top_k]:
        timed = item.calls - item.untimed
        rows.append(
            [
                item.name,
                _calls(item.calls, item.untimed),
                digits(item.self_us, 3),
                digits(item.self_us / busy * 100 if busy else None, 2),
                digits(item.self_us / window * 100 if window else None, 2),
                digits(item.clipped_us / timed if timed else None, 3),
                digits(item.shortest_us, 3),
                digits(item.longest_us, 3),
                _shapes(item.shapes),
            ]
        )
    return columns, rows


def _calls(calls: int, untimed: int) -> str:
    return f"{calls} ({untimed} untimed)" if untimed else str(calls)


def _shapes(shapes: Sequence[str]) -> str | None:
    """The first shape and how many more there are."""
    more = f" +{len(shapes) - 1}" if len(shapes) > 1 else ""
    return f"{shapes[0]}{more}" if shapes else None


def time_rows(report: KernelReport) -> list[list[object]]:
    """Stages and timeline of each rank as rows; with ``--stage`` only those of the stages."""
    rows: list[list[object]] = []
    several = len(report.ranks) > 1
    for rank in report.ranks:
        place = f"rank {rank.file.rank}: " if several else ""
        whole = rank.quality is not None and not rank.quality.truncated
        for fact in rank.stages.stages if rank.stages is not None else ():
            if not report.stages or fact.stage in report.stages:
                mean = digits(fact.mean_span_us, 1)
                rows.append([f"{place}steps of stage {fact.stage.value}", fact.steps, f"{mean or '-'} us a step"])
        parts = [] if rank.timeline is None or report.stages else [("", rank.timeline)]
        parts += [
            (f"stage {part.stage.value}: ", part.timeline)
            for part in rank.parts
            if part.stage is not None and part.stage in report.stages
        ]
        rows += [
            [
                f"{place}{name}{kind} ms",
                digits(time, 6),
                f"{digits(share, 2)} %" if whole and share is not None else "",
            ]
            for name, timeline in parts
            for kind, time, share in timeline.rows()
        ]
    return rows


def summary_rows(report: KernelReport) -> list[list[object]]:
    """The balance as rows, sums over all files."""
    from magpie_tui.traces.totals import added_up

    if not report.qualities:
        return [["status", "unreadable", "no trace could be read"]]
    quality = added_up(report.qualities)
    notes = {caveat.code: caveat.text for caveat in quality.caveats}
    found = len({rank.file.rank for rank in report.ranks if rank.quality is not None})
    expected = report.expected_ranks
    rows: list[list[object]] = [
        ["status", quality.status, quality.reason or ""],
        ["ranks found", max(found, quality.ranks_in_file if len(report.ranks) == 1 else 0), _of(expected)],
        ["device", quality.device, _device_names(report)],
        ["events", quality.events, ""],
    ]
    rows += [[f"  {kind}", count, ""] for kind, count in quality.events_by_kind.items()]
    rows += [[name, value, notes.get(code, "")] for name, value, code in _balance(quality)]
    rows += [[f"  untimed: {name}", count, ""] for name, count in _untimed(quality).items()]
    rows += [
        [f"launches by {item.api}", item.calls, _latency(item.linked, item.median_us, item.max_us)]
        for item in quality.launches
    ]
    return rows


def _balance(quality: Quality) -> list[tuple[str, object, str]]:
    """Name, value and the key whose caveat belongs to it."""
    share = quality.graph_launched_time_pct
    return [
        ("span us", digits(quality.span_us, 3), ""),
        ("busy us", digits(quality.busy_us, 3), ""),
        ("device time us, as in the file", digits(quality.raw_total_us, 3), ""),
        ("device time us, clipped", digits(quality.clipped_total_us, 3), ""),
        ("pieces of work", quality.work_events, "no_device_activity"),
        ("untimed", quality.untimed_events, "dropped.no_timestamp"),
        ("overlapping the next on their track", quality.overlaps_next_on_track, "overlaps_next_on_track"),
        ("negative durations", quality.negative_durations, "negative_durations"),
        ("zero durations", quality.zero_durations, ""),
        ("wrapped times", quality.wrapped_times, "wrapped_times"),
        ("duplicated", quality.duplicated, "duplicated"),
        ("out of the profiler's span", quality.out_of_span, "out_of_span"),
        ("unlinked", quality.unlinked, "links_withheld" if quality.links_withheld else "unlinked"),
        ("graph launches", quality.graph_launches, ""),
        ("graph-launched time %", digits(share, 2), "graph_launched_time_pct"),
        ("invalid UTF-8", quality.repaired.get("invalid_utf8"), "repaired.invalid_utf8"),
        ("values that are not JSON", quality.repaired.get("not_json"), "repaired.not_json"),
        ("damaged events dropped", quality.dropped.get("malformed"), "dropped.malformed"),
        ("truncated", "yes" if quality.truncated else "no", "truncated"),
        ("unterminated", "yes" if quality.unterminated else "no", "unterminated"),
        ("time stamps", f"{quality.time.get('unit')} {quality.time.get('form')}", ""),
        ("links resolved within", quality.link_key, ""),
    ]


def _untimed(quality: Quality) -> dict[str, int]:
    names = quality.dropped.get("no_timestamp")
    return dict(names) if isinstance(names, Mapping) else {}


def _of(expected: int | None) -> str:
    return "" if expected is None else f"of {expected} that took part"


def _latency(linked: int, median_us: float | None, max_us: float | None) -> str:
    if median_us is None or max_us is None:
        return "none linked to work"
    return f"{linked} linked; call to start of work: median {median_us:.1f} us, longest {max_us:.1f} us"


def _device_names(report: KernelReport) -> str:
    names: dict[str, None] = {}
    for rank in report.ranks:
        properties = rank.metadata.get("deviceProperties")
        for item in properties if isinstance(properties, list) else ():
            if isinstance(item, dict):
                names[str(item.get("name") or "name not given")] = None
    return ", ".join(names)
