"""The panes samples and intervals: distributions, their course over time and processes, and how ratios narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from magpie_tui.basics.text import plural, printable
from magpie_tui.kernels.narrowing import Step, steps_at
from magpie_tui.tui.screens.candidates_table import DEFAULT_MARGIN, percent, time_unit
from magpie_tui.tui.screens.candidates_text import Line, PaneInputs, fact, heading, reason_lines
from magpie_tui.tui.widgets.interval_bar import ASCII, UTF8, axis_for
from magpie_tui.tui.widgets.plot import ASCII_LEVELS, BLOCK_LEVELS, Series, line_plot, ridge
from magpie_tui.workspaces.samples import KernelSamples

MOST_STEPS = 10
"""Lines of one shape in the pane intervals."""
PLOT_ROWS = 10


def _shown(inputs: PaneInputs, shape: str) -> list[tuple[str, KernelSamples]]:
    """Return the candidate and the baseline with their windows at a point, those that have any."""
    arms = [inputs.row]
    if inputs.baseline is not None and inputs.baseline is not inputs.row:
        arms.append(inputs.baseline)
    found = []
    for kernel in arms:
        samples = inputs.samples.kernels.get(kernel.name)
        at = None if samples is None else samples.at(shape)
        if at is not None and at.used_us:
            found.append((kernel.name, at))
    return found


def samples_lines(inputs: PaneInputs) -> list[Line]:
    """Histograms of candidate and baseline on one axis at every shape, then both over time and by process."""
    if inputs.samples.reason is not None:
        return [*reason_lines(inputs), *fact("samples", f"-  {inputs.samples.reason}", inputs.width)]
    shapes = [shape for shape in inputs.samples.shapes if _shown(inputs, shape)]
    if not shapes:
        reason = inputs.row.reasons.get("time", "no window of this kernel was timed")
        return [*reason_lines(inputs), *fact("samples", f"-  {reason}", inputs.width)]
    lines: list[Line] = []
    for shape in shapes:
        lines += [*([""] if lines else []), *_ridges(_shown(inputs, shape), shape, inputs)]
    shown, first = _shown(inputs, shapes[0]), shapes[0]
    return [*lines, "", *_by_process(shown, first, inputs), "", *_over_time(shown, first, inputs)]


def _at(shape: str) -> str:
    return f" at {printable(shape)}" if shape else ""


def _ridges(shown: Sequence[tuple[str, KernelSamples]], shape: str, inputs: PaneInputs) -> Iterator[Line]:
    times = sorted(time for _name, samples in shown for time in samples.used_us)
    low, high = times[int(len(times) * 0.005)], times[-1 - int(len(times) * 0.005)]
    if high <= low:
        low, high = low * 0.99, high * 1.01
    unit = time_unit([times[len(times) // 2]])
    label = min(16, max(len(printable(name)) for name, _samples in shown))
    cells = max(20, inputs.width - label - 32)
    levels = ASCII_LEVELS if inputs.ascii_only else BLOCK_LEVELS
    title = f"{unit.name} a call{_at(shape)}, {plural(len(times), 'window')}"
    yield heading(f"{title}; warm-up and control not shown"[: max(20, inputs.width)])
    for name, samples in shown:
        used = sorted(samples.used_us)
        middle = used[len(used) // 2]
        blocks = len({block for block, control in zip(samples.blocks, samples.control, strict=True) if not control})
        tail = f"median {middle * unit.factor:,.{unit.digits}f}  {plural(blocks, 'block')}"
        yield Content(f"{printable(name)[:label]:<{label}} |{ridge(used, cells, low, high, levels=levels)}| {tail}")
    begin, end = f"{low * unit.factor:,.{unit.digits}f}", f"{high * unit.factor:,.{unit.digits}f}"
    yield Content.assemble((" " * (label + 2) + begin + end.rjust(max(0, cells - len(begin))), "$quiet"))
    outside = sum(not low <= time <= high for time in times)
    if outside:
        yield Content.assemble((f"{plural(outside, 'window')} beyond the ends", "$quiet"))


def _by_process(shown: Sequence[tuple[str, KernelSamples]], shape: str, inputs: PaneInputs) -> Iterator[Line]:
    """Draw the median of each process."""
    medians = [(name, samples.block_medians_us()) for name, samples in shown]
    times = sorted(time for _name, values in medians for time in values.values())
    if not times:
        return
    unit = time_unit([times[len(times) // 2]])
    series = [
        Series(
            name, [float(block) for block in sorted(values)], [values[block] * unit.factor for block in sorted(values)]
        )
        for name, values in medians
    ]
    yield heading(f"median of each process in {unit.name}{_at(shape)}, by replicate")
    yield from line_plot(series, max(30, inputs.width), PLOT_ROWS, joined=False, number="{:,.1f}".format)


def _over_time(shown: Sequence[tuple[str, KernelSamples]], shape: str, inputs: PaneInputs) -> Iterator[Line]:
    times = sorted(time for _name, samples in shown for time in samples.used_us)
    unit = time_unit([times[len(times) // 2]])
    series = []
    for name, samples in shown:
        pairs = [
            (start, time * unit.factor)
            for start, time, control in zip(samples.started_s, samples.per_call_us, samples.control, strict=True)
            if not control
        ]
        series.append(Series(name, [start for start, _time in pairs], [time for _start, time in pairs]))
    yield heading(f"{unit.name} a call{_at(shape)} over seconds of the session")
    yield from line_plot(series, max(30, inputs.width), PLOT_ROWS, joined=False, number="{:,.1f}".format)


def intervals_lines(inputs: PaneInputs) -> list[Line]:
    """How the interval narrowed with every replicate, against the margin, at every shape."""
    row, base = inputs.row, inputs.baseline
    lines = reason_lines(inputs)
    if base is None or base is row:
        said = "this is the baseline" if base is row and base is not None else "an analysis compares nothing"
        return [*lines, *fact("intervals", f"-  {said}", inputs.width)]
    if inputs.samples.reason is not None:
        return [*lines, *fact("intervals", f"-  {inputs.samples.reason}", inputs.width)]
    groups = [(shape, steps_at(inputs.samples, base.name, row.name, shape)) for shape in inputs.samples.shapes]
    known = [(shape, steps) for shape, steps in groups if steps]
    if not known:
        text = "fewer than two replicates of it and of the baseline"
        return [*lines, *fact("intervals", f"-  {text}", inputs.width)]
    for shape, steps in known:
        lines += [*([""] if lines else []), *_narrowing(shape, steps, inputs)]
    note = "before the correction for several candidates; measuring stops by width, never by where it lies"
    return [*lines, *fact("note", note, inputs.width)]


def _picked(steps: Sequence[Step]) -> list[Step]:
    """Return at most ``MOST_STEPS`` steps, the first and the last among them."""
    if len(steps) <= MOST_STEPS:
        return list(steps)
    places = {round(index * (len(steps) - 1) / (MOST_STEPS - 1)) for index in range(MOST_STEPS)}
    return [steps[place] for place in sorted(places)]


def _narrowing(shape: str, steps: Sequence[Step], inputs: PaneInputs) -> Iterator[Line]:
    margin = (inputs.found.margin if inputs.found.margin is not None else DEFAULT_MARGIN) * 100.0
    picked = _picked(steps)
    bounds = [
        (low, high)
        for step in picked
        if (low := percent(step.interval.low)) is not None and (high := percent(step.interval.high)) is not None
    ]
    # The first intervals are wide beyond all bounds: the axis belongs to the later ones.
    later = bounds[len(bounds) // 3 :]
    cells = max(15, min(60, inputs.width - 34))
    axis = axis_for(
        [(max(low, -100.0), min(high, 400.0)) for low, high in later], cells=cells, margin=min(margin, 100.0)
    )
    glyphs = ASCII if inputs.ascii_only else UTF8
    yield heading(f"gain in % against the margin {margin:.3g} %{_at(shape)}"[: max(20, inputs.width)])
    yield Content.assemble(("blocks  " + axis.header(), "$quiet"))
    for step in picked:
        low, point, high = (percent(value) for value in (step.interval.low, step.interval.point, step.interval.high))
        text = "" if low is None or high is None else f"{low:+.1f} .. {high:+.1f} %"
        yield Content(f"{step.replicates:>6}  {axis.bar(low, point, high, glyphs=glyphs)}  {text}"[: inputs.width])
