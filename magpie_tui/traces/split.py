"""Which events belong to which step, as upstream's splitter has it, and what it calls the files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.traces.columns import DEVICE_CATEGORIES, TraceColumns
from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.links import link_device_work
from magpie_tui.traces.sets import distinct, is_member
from magpie_tui.traces.stage_names import Stage
from magpie_tui.traces.steady import SteadyOptions, Window, phase_runs, steady_notes, steady_regions, steady_windows
from magpie_tui.traces.steps import Steps, upstream_steps
from magpie_tui.traces.work import busy_ns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from magpie_tui.traces.labels import UpstreamStep

_FLOWS = (ord("s"), ord("t"), ord("f"))
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """What to write.

    Attributes:
        find_steady_state: Three windows of the steady state.
        single_iterations: Every step of the range as a file of its own.
        divide_phases: Every steady step, in runs of equal phase; wins over ``find_steady_state``.
    """

    steady: SteadyOptions
    find_steady_state: bool = False
    single_iterations: bool = False
    divide_phases: bool = False


@dataclass(frozen=True, slots=True)
class StepEvents:
    """Events of each step, by step and row; a row may belong to several steps when steps overlap.

    Attributes:
        host_row, host_step: int64 pairs: events with a duration on the step's thread that lie wholly inside it.
        device_row, device_step: int64 pairs: device events and arrows that belong to those host events.
    """

    host_row: npt.NDArray[np.int64]
    host_step: npt.NDArray[np.int64]
    device_row: npt.NDArray[np.int64]
    device_step: npt.NDArray[np.int64]

    def host_of(self, first: int, last: int) -> slice:
        """Places of the host events of steps ``first`` to ``last - 1``."""
        return _slice(self.host_step, first, last)

    def device_of(self, first: int, last: int) -> slice:
        """Places of the device events and arrows of steps ``first`` to ``last - 1``."""
        return _slice(self.device_step, first, last)


def _slice(step: npt.NDArray[np.int64], first: int, last: int) -> slice:
    import numpy as np

    begin, end = np.searchsorted(step, [first, last]).tolist()
    return slice(begin, end)


@dataclass(frozen=True, slots=True)
class SplitFile:
    """One trace to write; the attributes are those of upstream's ``execution_details``.

    Attributes:
        name: Relative to the output directory.
        host_rows, device_rows: int64, ascending.
    """

    idx: int
    name: str
    host_rows: npt.NDArray[np.int64]
    device_rows: npt.NDArray[np.int64]
    num_gpu_events: int
    gpu_duration_us: float
    gpu_busy_duration_us: float
    gpu_busy_union_us: float
    steps: tuple[UpstreamStep, ...]

    @property
    def event_count(self) -> int:
        """Events with a place in time that are written."""
        return len(self.host_rows) + len(self.device_rows)


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """Everything that a split writes.

    Attributes:
        rest_rows: int64, events without a time stamp; they go into every file.
        notes: Warnings in words.
    """

    steps: Steps
    regions: tuple[tuple[int, int], ...]
    files: tuple[SplitFile, ...]
    rest_rows: npt.NDArray[np.int64]
    notes: tuple[str, ...]


def plan_split(columns: TraceColumns, options: SplitOptions) -> SplitPlan:
    """Choose windows and events; nothing is written."""
    import numpy as np

    options.steady.check()
    steps = upstream_steps(columns)
    counted = [label.upstream for label in steps.labels]
    regions = steady_regions(counted, options.steady)
    events = step_events(columns, steps)
    base = base_name(columns.path)
    on_device = columns.is_category(*DEVICE_CATEGORIES, "gpu_user_annotation")
    files = [
        _file(columns, events, on_device, steps, part, name, index)
        for part, name, index in _wanted(steps, regions, options, base)
    ]
    notes = [caveat.text for caveat in steps.caveats]
    if options.find_steady_state or options.divide_phases:
        notes += steady_notes(counted, regions, searched=options.steady.iterations is None)
    if _sizes_from_inputs(columns, len(steps)):
        notes.append(
            "there are as many distinct sizes of attention or quantisation inputs as steps: upstream takes them for "
            "batch sizes in random order; here those of the labels stand"
        )
    rest = np.flatnonzero(columns.ts_ns == MISSING)
    return SplitPlan(steps, regions, tuple(files), rest, tuple(notes))


def _wanted(
    steps: Steps, regions: Sequence[tuple[int, int]], options: SplitOptions, base: str
) -> list[tuple[Window, str, int]]:
    """Windows to write, their file names and the index they are listed under."""
    counted = [label.upstream for label in steps.labels]
    first, last = options.steady.iterations or (0, len(steps))
    last = min(last, len(steps))
    wanted: list[tuple[Window, str, int]] = []
    if options.single_iterations:
        for index in range(first, last):
            name = f"{base}_annotation_iteration_{index}_{_in_file_name(steps.labels[index].text)}"
            wanted.append((Window("", index, index + 1), f"{_shortened(name)}.json.gz", index))
    if options.divide_phases:
        for run in phase_runs(counted, regions):
            part = counted[run.first : run.last]
            size, concurrency = _averages(part)
            name = f"{run.label}_steps{len(run)}_bs{size}_conc{concurrency}_{_counts(part)}_{base}.json.gz"
            wanted.append((run, f"{run.label.rpartition('_chunk')[0]}/{name}", 0))
    elif options.find_steady_state:
        for window in steady_windows(counted, regions, options.steady):
            name = f"{window.label}_{_counts(counted[window.first : window.last])}_{base}.json.gz"
            wanted.append((window, name, 0))
    if not (options.single_iterations or options.divide_phases or options.find_steady_state) and first < last:
        name = f"{base}_annotation_iteration_0_{_counts(counted[first:last])}.json.gz"
        wanted.append((Window("", first, last), name, 0))
    return wanted


def base_name(path: Path) -> str:
    """File name without ``.pt.trace``, ``.json.gz``, ``.json`` (and ``.zip``)."""
    name = path.name
    for suffix in (".gz", ".zip", ".json"):
        name = name.removesuffix(suffix)
    return name.replace(".pt.trace", "")


def _in_file_name(text: str) -> str:
    cleaned = text.replace(")", "")
    return re.sub(r"[\x00-\x1f/\\(: ]", "_", cleaned)


def _shortened(name: str) -> str:
    """Cut a name that the file system would refuse."""
    return name.encode()[:_LONGEST_NAME].decode("utf-8", "ignore")


def _averages(steps: Sequence[UpstreamStep]) -> tuple[int, int]:
    """Mean batch size and concurrency, cut to integers."""
    return (
        int(sum(step.batch_size for step in steps) / len(steps)),
        int(sum(step.num_requests for step in steps) / len(steps)),
    )


def kind_count(steps: Sequence[UpstreamStep], kind: Stage) -> int:
    """Number of steps of a kind."""
    return sum(step.kind is kind for step in steps)


def _counts(steps: Sequence[UpstreamStep]) -> str:
    size, concurrency = _averages(steps)
    prefill, mixed, decode = (kind_count(steps, kind) for kind in (Stage.prefill, Stage.prefilldecode, Stage.decode))
    return f"prefill_{prefill}_prefilldecode_{mixed}_decode_{decode}_bs{size}_conc{concurrency}"


def _file(
    columns: TraceColumns,
    events: StepEvents,
    on_device: npt.NDArray[np.bool_],
    steps: Steps,
    window: Window,
    name: str,
    index: int,
) -> SplitFile:
    import numpy as np

    host = distinct(events.host_row[events.host_of(window.first, window.last)])
    place = events.device_of(window.first, window.last)
    rows, owner = events.device_row[place], events.device_step[place] - window.first
    device = distinct(rows)
    timed = on_device[rows] & (columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] >= 0)
    rows, owner = rows[timed], owner[timed]
    start_us = microseconds(columns.ts_ns[rows])
    duration_us = microseconds(columns.dur_ns[rows])
    first = np.full(len(window), np.inf)
    last = np.full(len(window), -np.inf)
    np.minimum.at(first, owner, start_us)
    np.maximum.at(last, owner, start_us + duration_us)
    used = np.isfinite(first)
    start_ns = columns.ts_ns[rows]
    return SplitFile(
        index,
        name,
        host,
        device,
        int(on_device[device].sum()),
        float((last[used] - first[used]).sum()),
        float(duration_us.sum()),
        busy_ns(start_ns, start_ns + columns.dur_ns[rows]) / 1000,
        tuple(label.upstream for label in steps.labels[window.first : window.last]),
    )


def step_events(columns: TraceColumns, steps: Steps) -> StepEvents:
    """Find the events of every step by upstream's rules.

    Host events: on the step's thread, wholly inside it. Device events and arrows: those that bear the correlation
    (arrows: the id) of such a host event; in a file that holds several processes, only those of its process.
    """
    import numpy as np

    host_rows, host_steps = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for track in np.unique(steps.track).tolist():
        mine = np.flatnonzero((columns.track == track) & (columns.ts_ns != MISSING) & (columns.dur_ns != MISSING))
        mine = mine[columns.phase[mine] == ord("X")]
        mine = mine[np.argsort(columns.ts_ns[mine], kind="stable")]
        start = columns.ts_ns[mine]
        end = start + columns.dur_ns[mine]
        own = np.flatnonzero(steps.track == track)
        first = np.searchsorted(start, steps.start_ns[own], "left")
        last = np.searchsorted(start, steps.end_ns[own], "right")
        place, step = _expanded(first, last)
        inside = end[place] <= steps.end_ns[own][step]
        host_rows.append(mine[place[inside]])
        host_steps.append(own[step[inside]])
    host_row, host_step = np.concatenate(host_rows), np.concatenate(host_steps)
    device_row, device_step = _device_events(columns, host_row, host_step)
    host, device = np.lexsort((host_row, host_step)), np.lexsort((device_row, device_step))
    return StepEvents(host_row[host], host_step[host], device_row[device], device_step[device])


def _expanded(
    first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """All places of the half-open ranges, and the number of the range each comes from."""
    import numpy as np

    lengths = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(first)), lengths)
    before = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - np.repeat(before - first, lengths), owner


def _device_events(
    columns: TraceColumns, host_row: npt.NDArray[np.int64], host_step: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    import numpy as np

    bearing = columns.correlation[host_row] != MISSING
    keys, steps = columns.correlation[host_row[bearing]], host_step[bearing]
    order = np.lexsort((steps, keys))
    keys, steps = keys[order], steps[order]
    if len(keys):
        new = np.ones(len(keys), np.bool_)
        new[1:] = (keys[1:] != keys[:-1]) | (steps[1:] != steps[:-1])
        keys, steps = keys[new], steps[new]
    flow = np.isin(columns.phase, _FLOWS)
    device = columns.is_category(*DEVICE_CATEGORIES, "gpu_user_annotation")
    rows = np.flatnonzero((flow | device) & (columns.correlation != MISSING))
    wanted = columns.correlation[rows]
    place, owner = _expanded(np.searchsorted(keys, wanted, "left"), np.searchsorted(keys, wanted, "right"))
    device_row, device_step = rows[owner], steps[place]
    links = link_device_work(columns, columns.device_rows())
    if links.key not in (None, "correlation"):
        keep = _of_own_process(columns, device_row, device_step, host_row, host_step, links.rows, links.launch)
        device_row, device_step = device_row[keep], device_step[keep]
    return device_row, device_step


def _of_own_process(
    columns: TraceColumns,
    device_row: npt.NDArray[np.int64],
    device_step: npt.NDArray[np.int64],
    host_row: npt.NDArray[np.int64],
    host_step: npt.NDArray[np.int64],
    linked: npt.NDArray[np.int64],
    launch: npt.NDArray[np.int64],
) -> npt.NDArray[np.bool_]:
    """Drop device work whose launching call is none of the step's events."""
    import numpy as np

    call = np.full(len(columns), -1, np.int64)
    call[linked] = launch
    known = call[device_row] >= 0
    size = np.int64(len(columns))
    own = is_member(device_step * size + call[device_row], host_step * size + host_row)
    return ~known | own


def _sizes_from_inputs(columns: TraceColumns, count: int) -> bool:
    """True where upstream would overwrite the batch sizes of the labels."""
    import numpy as np

    names = ("vllm::unified_attention_with_output", "sgl_kernel::sgl_per_token_group_quant_8bit")
    codes = [code for code, name in enumerate(columns.names) if name in names]
    if not codes or not count:
        return False
    rows = columns.ops.dims[np.isin(columns.name[columns.ops.row], codes)]
    sizes = set()
    for code in np.unique(rows).tolist():
        value = columns.ops.value(code)
        if isinstance(value, list) and value and isinstance(value[0], list) and value[0]:
            sizes.add(value[0][0])
    return len(sizes) == count
