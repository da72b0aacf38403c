"""What the panes below the table of candidates show: pure text, made in a thread."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.content import Content

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_percent, format_seconds
from magpie_tui.tui.screens.candidates_table import percent, time_unit
from magpie_tui.tui.screens.workspace_report_lines import diff_contents
from magpie_tui.tui.widgets.plot import ASCII_LEVELS, BLOCK_LEVELS, Series, line_plot, ridge
from magpie_tui.workspaces.candidates import Candidate, Candidates, GateCheck
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.samples import KernelSamples, Samples
from magpie_tui.workspaces.source_difference import compare_sources, sources_of
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

Line = str | Content
CHECK_STYLES = {"fail": "$error", "pass": "$success", "not_run": "$quiet"}
CHECK_TEXTS = {"fail": "FAIL", "pass": "pass", "not_run": "not run"}


@dataclass(frozen=True, slots=True)
class PaneInputs:
    """What a pane is made from.

    Attributes:
        detail: The workspace.
        found: All candidates.
        row: The candidate under the cursor.
        samples: What ``samples.jsonl`` holds.
        width: Cells of the pane.
        ascii_only: Draw with ASCII.
    """

    detail: WorkspaceDetail
    found: Candidates
    row: Candidate
    samples: Samples
    width: int
    ascii_only: bool = False

    @property
    def baseline(self) -> Candidate | None:
        """The baseline."""
        return self.found.named(self.found.baseline)


def pane_lines(name: str, inputs: PaneInputs) -> list[Line]:
    """Return the lines of one pane."""
    makers = {
        "shapes": shapes_lines,
        "gate": gate_lines,
        "samples": samples_lines,
        "diff": diff_lines,
        "build": build_lines,
    }
    return makers[name](inputs)


def _fact(name: str, text: str, width: int, style: str = "") -> list[Line]:
    first, *rest = textwrap.wrap(printable(text), max(20, width - 11)) or [""]
    head = Content.assemble((f"{name:<9} ", "$quiet"), (first, style) if style else first)
    return [head, *(" " * 10 + more for more in rest)]


def _heading(text: str) -> Content:
    return Content.assemble((text, "bold"))


def reason_lines(inputs: PaneInputs) -> list[Line]:
    """Say in front of every pane what is wrong with the candidate, if anything is."""
    row = inputs.row
    lines: list[Line] = []
    for error in row.errors:
        lines += _fact(row.state, error, inputs.width, "$error")
    if not row.errors and row.reasons.get("state"):
        lines += _fact(row.state, row.reasons["state"], inputs.width)
    if row.reasons.get("verdict"):
        lines += _fact("verdict", f"{row.says}: {row.reasons['verdict']}", inputs.width)
    return lines


def shapes_lines(inputs: PaneInputs) -> list[Line]:
    """Ratios per shape, or that there is one shape, with time, ratio and interval."""
    row, base = inputs.row, inputs.baseline
    lines = reason_lines(inputs)
    if row.shapes:
        times = [time for item in row.shapes for time in (item.baseline_us, item.time_us) if time is not None]
        unit = time_unit(times)

        def number(value: float | None) -> str | None:
            return None if value is None else f"{value * unit.factor:,.{unit.digits}f}"

        rows = [
            (
                item.shape,
                None if item.share is None else format_percent(item.share, digits=0),
                number(item.baseline_us),
                number(item.time_us),
                None if item.ratio is None else f"{item.ratio:.3f}",
                _interval(item.ratio_low, item.ratio_high),
            )
            for item in row.shapes
        ]
        columns = (
            Column("shape", shrink=True),
            Column("share", "right"),
            Column(f"base {unit.name}", "right"),
            Column(unit.name, "right"),
            Column("ratio", "right"),
            Column("95 % interval", "right"),
        )
        head, *body = format_table(columns, rows, width=inputs.width).split("\n")
        return [*lines, *([""] if lines else []), _heading(head), *body]
    return [*lines, *_one_shape(inputs, row, base)]


def _interval(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3f} .. {high:.3f}"


def _one_shape(inputs: PaneInputs, row: Candidate, base: Candidate | None) -> Iterator[Line]:
    width = inputs.width
    for name, kernel in (("time", row), ("baseline", base)):
        if kernel is None or (kernel is row and name == "baseline"):
            continue
        if kernel.time_us is None:
            yield from _fact(name, f"-  {kernel.reasons.get('time', 'not measured')}", width)
            continue
        text = format_seconds(kernel.time_us * 1e-6)
        if kernel.time_low_us is not None and kernel.time_high_us is not None:
            text += f"  [{format_seconds(kernel.time_low_us * 1e-6)} .. {format_seconds(kernel.time_high_us * 1e-6)}]"
        extras = kernel.kernel.extras
        blocks = (extras.timing or {}).get("replicates") if extras is not None else None
        if isinstance(blocks, int):
            text += f"  median of {plural(blocks, 'block')}"
        yield from _fact(name, text, width)
    if not row.is_baseline and inputs.found.baseline is not None:
        yield from _fact("ratio", ratio_text(row), width)
    yield from _fact("shapes", "the report has one shape, that of the inputs: no ratios per shape", width)


def ratio_text(row: Candidate) -> str:
    """Return the ratio with its interval in percent and the blocks behind it, or why there is none."""
    if row.ratio is None:
        return f"-  {row.reasons.get('ratio', 'not measured')}"
    text = f"{row.ratio:.3f}"
    low, high = percent(row.ratio_low), percent(row.ratio_high)
    if low is not None and high is not None:
        text += f"  95 % interval {low:+.1f} .. {high:+.1f} %"
    if row.replicates is not None:
        text += f", {plural(row.replicates, 'paired block')}"
    verdict = row.kernel.extras.verdict if row.kernel.extras is not None else None
    confirmed = None if verdict is None else verdict.more.get("confirmed_ratio")
    if isinstance(confirmed, (int, float)):
        text += f"; on fresh blocks {confirmed:.3f}"
    return text


def gate_lines(inputs: PaneInputs) -> list[Line]:
    """The checks of the gate, failed ones first, each with its reason."""
    checks = inputs.row.checks
    lines = reason_lines(inputs)
    if not checks:
        stage = inputs.row.kernel.correctness
        text = f"{stage.word}{f': {stage.note}' if stage.note else ''}; the report lists no checks"
        return [*lines, *_fact("gate", text, inputs.width)]
    counts = {word: sum(check.status == word for check in checks) for word in CHECK_TEXTS}
    proof = as_text(as_mapping(inputs.row.kernel.extras.gate if inputs.row.kernel.extras else None).get("proof"))
    text = f"{counts['pass']} pass   {counts['fail']} fail   {counts['not_run']} not run"
    lines += _fact("gate", text + (f"   proved by {proof}" if proof else ""), inputs.width)
    order = {"fail": 0, "pass": 1, "not_run": 2}
    for check in sorted(checks, key=lambda item: order.get(item.status, 3)):
        lines += _check_lines(check, inputs.width)
    return lines


def _check_lines(check: GateCheck, width: int) -> list[Line]:
    word = CHECK_TEXTS.get(check.status, check.status)
    head = f"{printable(check.id):<9} {printable(word):<8} "
    text = check.title + (f": {check.reason}" if check.reason else "")
    first, *rest = textwrap.wrap(printable(text), max(20, width - len(head) - 1)) or [""]
    style = CHECK_STYLES.get(check.status, "")
    line = Content.assemble(head[:10], (head[10:], style), (first, "$quiet" if check.status == "not_run" else ""))
    return [line, *(" " * len(head) + more for more in rest)]


def samples_lines(inputs: PaneInputs) -> list[Line]:
    """Histograms of candidate and baseline on one axis, then both over time."""
    if inputs.samples.reason is not None:
        return [*reason_lines(inputs), *_fact("samples", f"-  {inputs.samples.reason}", inputs.width)]
    arms = [("", inputs.row)]
    if inputs.baseline is not None and inputs.baseline is not inputs.row:
        arms.append(("", inputs.baseline))
    shown = [
        (kernel.name, samples)
        for _label, kernel in arms
        if (samples := inputs.samples.kernels.get(kernel.name)) is not None and samples.used_us
    ]
    if not shown:
        reason = inputs.row.reasons.get("time", "no window of this kernel was timed")
        return [*reason_lines(inputs), *_fact("samples", f"-  {reason}", inputs.width)]
    return [*_ridges(shown, inputs), "", *_over_time(shown, inputs)]


def _ridges(shown: Sequence[tuple[str, KernelSamples]], inputs: PaneInputs) -> Iterator[Line]:
    times = sorted(time for _name, samples in shown for time in samples.used_us)
    low, high = times[int(len(times) * 0.005)], times[-1 - int(len(times) * 0.005)]
    if high <= low:
        low, high = low * 0.99, high * 1.01
    unit = time_unit([times[len(times) // 2]])
    label = min(16, max(len(printable(name)) for name, _samples in shown))
    cells = max(20, inputs.width - label - 32)
    levels = ASCII_LEVELS if inputs.ascii_only else BLOCK_LEVELS
    yield _heading(f"{unit.name} a call, {plural(len(times), 'window')}; warm-up and control not shown")
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


def _over_time(shown: Sequence[tuple[str, KernelSamples]], inputs: PaneInputs) -> Iterator[Line]:
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
    yield _heading(f"{unit.name} a call over seconds of the session")
    yield from line_plot(series, max(30, inputs.width), 10, joined=False, number="{:,.1f}".format)


def diff_lines(inputs: PaneInputs) -> list[Line]:
    """What the candidate changes in its sources."""
    row, base = inputs.row, inputs.baseline
    config, record = inputs.detail.config, inputs.detail.record
    if base is None:
        names = sources_of(row.name, config, record)
        lines = _fact("diff", "there is no baseline to compare with", inputs.width)
        return lines + [line for name in names for line in _fact("source", str(name), inputs.width)]
    if row is base:
        lines = _fact("diff", "this is the baseline", inputs.width)
        for name in sources_of(row.name, config, record):
            lines += _fact("source", str(name), inputs.width)
        return lines
    hashes: dict[str, str] = {}
    for kernel in (row, base):
        gate = as_mapping(kernel.kernel.extras.gate) if kernel.kernel.extras is not None else {}
        hashes |= {path: digest for path, digest in as_mapping(gate.get("sources")).items() if isinstance(digest, str)}
    found = compare_sources(
        _absolute(sources_of(base.name, config, record)), _absolute(sources_of(row.name, config, record)), hashes
    )
    lines = [line for note in found.notes for line in _fact("note", note, inputs.width)]
    if not found.lines:
        return lines or _fact("diff", "the sources are equal, line by line", inputs.width)
    lines += _fact("diff", f"{found.added} lines added, {found.removed} removed against {base.name}", inputs.width)
    return [*lines, *diff_contents(found.lines)]


def _absolute(paths: Sequence[Path]) -> list[Path]:
    return [path.absolute() for path in paths]


def build_lines(inputs: PaneInputs) -> list[Line]:
    """How it was built, from what, and what a profiler saw."""
    row, width = inputs.row, inputs.width
    kernel = row.kernel
    stage = kernel.compiling
    lines = _fact("build", stage.word + (f": {stage.note}" if stage.note else ""), width)
    entry = _entry(row.name, inputs.detail)
    for name, key in (("compile", "compiling_command"), ("testcase", "testcase_command"), ("profile", "prof_command")):
        for command in _commands(entry.get(key)):
            lines += _fact(name, command, width)
    for name, value in as_mapping(entry.get("env")).items():
        lines += _fact("env", f"{name}={value}", width)
    gate = as_mapping(kernel.extras.gate) if kernel.extras is not None else {}
    for path, digest in as_mapping(gate.get("sources")).items():
        lines += _fact("source", f"{path}  {str(digest)[:12]}", width)
    if kernel.compiling_result is not None:
        for error in kernel.compiling_result.errors:
            lines += _fact("error", error, width, "$error")
    result = kernel.performance_result
    for profiled in () if result is None else result.kernels:
        average = "-" if profiled.avg_ns is None else format_seconds(profiled.avg_ns * 1e-9)
        calls = "-" if profiled.dispatch_count is None else str(profiled.dispatch_count)
        lines += _fact("kernel", f"{profiled.kernel_name}  {calls} x {average}", width)
    for name, metric in () if result is None else result.summary.items():
        value = "-" if metric.value is None else f"{metric.value:,.4g} {metric.unit}"
        lines += _fact("metric", f"{name}  {value}", width)
    return lines


def _entry(name: str, detail: WorkspaceDetail) -> Mapping[str, object]:
    for item in as_list((detail.config or {}).get("kernels")):
        entry = as_mapping(item)
        if name in (entry.get("kernel_id"), entry.get("id")):
            return entry
    return {}


def _commands(value: object) -> list[str]:
    import shlex

    if isinstance(value, str):
        return [value]
    items = as_list(value)
    if items and all(isinstance(item, str) for item in items):
        return [shlex.join(str(item) for item in items)]
    return [text for item in items for text in _commands(item)]
