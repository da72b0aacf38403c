"""The quality balance: every event accounted for, and which numbers each defect touches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from magpie_tui.traces.arrays import distinct, distinct_counts, median
from magpie_tui.traces.balance import NO_DEVICE_ACTIVITY as NO_DEVICE_ACTIVITY
from magpie_tui.traces.balance import Caveat as Caveat
from magpie_tui.traces.balance import LaunchTimes as LaunchTimes
from magpie_tui.traces.balance import Quality as Quality
from magpie_tui.traces.balance import caveats as caveats
from magpie_tui.traces.decimals import MISSING
from magpie_tui.traces.links import Links, is_graph_launch, is_launch, link_device_work
from magpie_tui.traces.work import Work, busy_ns, gpu_expected, span_ns, trace_work

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.columns import TraceColumns


def assess(columns: TraceColumns, work: Work | None = None, links: Links | None = None) -> Quality:
    """Draw up the balance of one trace.

    Args:
        work: Its work, when the caller has it already.
        links: Links of all device work, when the caller has them already.
    """
    work = work or trace_work(columns)
    gpu = work.device == "gpu"
    device_rows = columns.device_rows()
    links = links or link_device_work(columns, device_rows)
    captured = bool(len(work.rows)) or bool(len(work.untimed))
    status, reason = "ok", None
    if not captured and gpu_expected(columns):
        status, reason = "failed_to_capture", NO_DEVICE_ACTIVITY
    elif not captured:
        status, reason = "no_work", "the trace holds neither device work nor host ops"
    elif columns.facts.truncated or columns.facts.malformed_events:
        status, reason = "partial", "the file is cut off or damaged"
    facts = columns.facts
    unlinked = links.launch < 0
    graph_pct = _graph_launched_pct(columns, work, links) if gpu and captured else None
    info = columns.metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    linkable = gpu and captured and links.withheld is None
    quality = Quality(
        status=status,
        reason=reason,
        device=work.device,
        events=len(columns),
        events_by_kind=_by_kind(columns),
        work_events=len(work.rows) + len(work.untimed),
        span_us=_span_us(columns),
        truncated=facts.truncated,
        truncated_at_byte=facts.truncated_at,
        unterminated=facts.unterminated,
        repaired={
            "invalid_utf8": facts.invalid_utf8,
            "first_invalid_utf8_at_byte": facts.first_invalid_utf8_at,
            "not_json": facts.not_json,
        },
        dropped={
            "no_timestamp": _names_with_counts(columns, work.untimed),
            "malformed": facts.malformed_events,
            "first_malformed_at_byte": facts.first_malformed_at,
            "not_objects": facts.not_objects,
            "unreadable_times": facts.unreadable_times,
        },
        untimed_events=len(work.untimed),
        overlaps_next_on_track=int(work.overlapping.sum()),
        clipped_us=(work.raw_ns - work.clipped_ns) / 1000,
        raw_total_us=work.raw_ns / 1000,
        clipped_total_us=work.clipped_ns / 1000,
        busy_us=_busy_us(columns, work),
        negative_durations=work.negative,
        zero_durations=work.zero,
        wrapped_times=len(facts.wrapped_rows),
        duplicated=_duplicated(columns, work),
        out_of_span=_out_of_span(columns, work),
        unlinked=int(unlinked.sum()) if linkable else None,
        unlinked_us=_sum_us(columns, links.rows[unlinked]) if linkable else None,
        link_key=links.key,
        links_withheld=links.withheld,
        ranks_in_file=max(1, len(links.processes)),
        graph_launches=_graph_launches(columns),
        graph_launched_time_pct=graph_pct,
        launches=_launch_times(columns, links),
        time={
            "unit": "us",
            "form": facts.time_form,
            "base_time_ns": columns.metadata.get("baseTimeNanoseconds"),
        },
        rank=_int_or_none(info.get("rank")),
        world_size=_int_or_none(info.get("world_size")),
    )
    return replace(quality, caveats=tuple(caveats(quality)))


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _by_kind(columns: TraceColumns) -> dict[str, int]:
    import numpy as np

    counts = np.bincount(columns.category, minlength=len(columns.categories)).tolist()
    named = {category or "(none)": count for category, count in zip(columns.categories, counts, strict=False)}
    return dict(sorted(named.items(), key=lambda item: -item[1]))


def _span_us(columns: TraceColumns) -> float | None:
    span = span_ns(columns)
    return None if span is None else (span[1] - span[0]) / 1000


def _names_with_counts(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> dict[str, int]:

    codes, counts = distinct_counts(columns.name[rows])
    found = {columns.names[code]: int(count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _sum_us(columns: TraceColumns, rows: npt.NDArray[np.int64]) -> float:
    duration = columns.dur_ns[rows]
    return float(duration[duration > 0].sum()) / 1000


def _busy_us(columns: TraceColumns, work: Work) -> float | None:
    """Union of the clipped work of each device, added up over the devices."""

    if not len(work.rows):
        return None
    devices = columns.device[work.rows]
    return (
        sum(
            busy_ns(work.start_ns[devices == device], work.clipped_end_ns[devices == device])
            for device in distinct(devices).tolist()
        )
        / 1000
    )


def _graph_launched_pct(columns: TraceColumns, work: Work, links: Links) -> float | None:
    """Share of the clipped device time that graph launches started; None when links are withheld."""
    import numpy as np

    total = work.clipped_ns
    if links.withheld is not None or not total:
        return None
    launched = np.zeros(len(columns), np.bool_)
    launched[links.rows[links.graph_launched(columns)]] = True
    picked = launched[work.rows]
    return float((work.clipped_end_ns - work.start_ns)[picked].sum()) / total * 100


def _graph_launches(columns: TraceColumns) -> int:
    import numpy as np

    table = np.array([is_graph_launch(name) for name in columns.names] or [False], np.bool_)
    return int(table[columns.name[columns.rows_of("cuda_runtime", "cuda_driver")]].sum())


def _launch_times(columns: TraceColumns, links: Links) -> list[LaunchTimes]:
    import numpy as np

    calls = columns.rows_of("cuda_runtime", "cuda_driver")
    table = np.array([is_launch(name) for name in columns.names] or [False], np.bool_)
    calls = calls[table[columns.name[calls]]]
    first_start = np.full(len(columns), np.iinfo(np.int64).max)
    linked = links.launch >= 0
    starts = columns.ts_ns[links.rows[linked]]
    good = starts != MISSING
    np.minimum.at(first_start, links.launch[linked][good], starts[good])
    result = []
    for code in distinct(columns.name[calls]).tolist():
        mine = calls[columns.name[calls] == code]
        used = mine[(first_start[mine] != np.iinfo(np.int64).max) & (columns.ts_ns[mine] != MISSING)]
        latency = (first_start[used] - columns.ts_ns[used]) / 1000
        result.append(
            LaunchTimes(
                columns.names[code],
                len(mine),
                len(used),
                median(latency) if len(used) else None,
                float(latency.max()) if len(used) else None,
            )
        )
    return sorted(result, key=lambda item: (-item.calls, item.api))


def _duplicated(columns: TraceColumns, work: Work) -> int:
    """Pieces of work that another one equals in name, track, start, end and correlation."""
    import numpy as np

    if len(work.rows) < 2:
        return 0
    keys = (
        columns.correlation[work.rows],
        work.end_ns,
        columns.name[work.rows],
        work.start_ns,
        columns.track[work.rows],
    )
    order = np.lexsort(keys)
    same = np.ones(len(work.rows) - 1, np.bool_)
    for key in keys:
        same &= key[order][1:] == key[order][:-1]
    return int(same.sum())


def _out_of_span(columns: TraceColumns, work: Work) -> int:
    """Work that lies wholly outside the profiler's own span (the event of category ``Trace``)."""
    spans = columns.rows_of("trace")
    spans = spans[(columns.ts_ns[spans] != MISSING) & (columns.dur_ns[spans] > 0)]
    if not len(spans) or not len(work.rows):
        return 0
    first = int(columns.ts_ns[spans].min())
    last = int((columns.ts_ns[spans] + columns.dur_ns[spans]).max())
    return int(((work.end_ns < first) | (work.start_ns > last)).sum())
