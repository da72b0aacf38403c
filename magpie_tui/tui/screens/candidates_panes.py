"""What the panes below the table of candidates show: pure text, made in a thread."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from textual.content import Content

from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_seconds
from magpie_tui.tui.screens.candidates_asm import asm_lines
from magpie_tui.tui.screens.candidates_counters import counters_lines
from magpie_tui.tui.screens.candidates_samples import intervals_lines, samples_lines
from magpie_tui.tui.screens.candidates_shapes import shape_plots, shape_table
from magpie_tui.tui.screens.candidates_table import percent
from magpie_tui.tui.screens.candidates_text import Line, PaneInputs, fact, reason_lines
from magpie_tui.tui.screens.workspace_report_lines import diff_contents
from magpie_tui.workspaces.candidates import Candidate, GateCheck
from magpie_tui.workspaces.detail import WorkspaceDetail
from magpie_tui.workspaces.entry_difference import changes_between, entries_of
from magpie_tui.workspaces.source_difference import compare_sources, sources_of
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

__all__ = ["Line", "PaneInputs", "pane_lines", "ratio_text"]

CHECK_STYLES = {"fail": "$error", "pass": "$success", "not_run": "$quiet"}
CHECK_TEXTS = {"fail": "FAIL", "pass": "pass", "not_run": "not run"}


def pane_lines(name: str, inputs: PaneInputs) -> list[Line]:
    """Return the lines of one pane."""
    makers = {
        "shapes": shapes_lines,
        "gate": gate_lines,
        "samples": samples_lines,
        "intervals": intervals_lines,
        "counters": counters_lines,
        "diff": diff_lines,
        "asm": asm_lines,
        "build": build_lines,
    }
    return makers[name](inputs)


def shapes_lines(inputs: PaneInputs) -> list[Line]:
    """Ratios per shape, or that there is one shape, with time, ratio and interval."""
    row, base = inputs.row, inputs.baseline
    lines = reason_lines(inputs)
    if row.shapes:
        return [*lines, *([""] if lines else []), *shape_table(inputs), *shape_plots(inputs)]
    return [*lines, *_one_shape(inputs, row, base)]


def _one_shape(inputs: PaneInputs, row: Candidate, base: Candidate | None) -> Iterator[Line]:
    width = inputs.width
    for name, kernel in (("time", row), ("baseline", base)):
        if kernel is None or (kernel is row and name == "baseline"):
            continue
        if kernel.time_us is None:
            yield from fact(name, f"-  {kernel.reasons.get('time', 'not measured')}", width)
            continue
        text = format_seconds(kernel.time_us * 1e-6)
        if kernel.time_low_us is not None and kernel.time_high_us is not None:
            text += f"  [{format_seconds(kernel.time_low_us * 1e-6)} .. {format_seconds(kernel.time_high_us * 1e-6)}]"
        extras = kernel.kernel.extras
        blocks = (extras.timing or {}).get("replicates") if extras is not None else None
        if isinstance(blocks, int):
            text += f"  median of {plural(blocks, 'block')}"
        yield from fact(name, text, width)
    if not row.is_baseline and inputs.found.baseline is not None:
        yield from fact("ratio", ratio_text(row), width)
    yield from fact("shapes", "the report has one shape, that of the inputs: no ratios per shape", width)


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
        return [*lines, *fact("gate", text, inputs.width)]
    counts = {word: sum(check.status == word for check in checks) for word in CHECK_TEXTS}
    proof = as_text(as_mapping(inputs.row.kernel.extras.gate if inputs.row.kernel.extras else None).get("proof"))
    text = f"{counts['pass']} pass   {counts['fail']} fail   {counts['not_run']} not run"
    lines += fact("gate", text + (f"   proved by {proof}" if proof else ""), inputs.width)
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


def diff_lines(inputs: PaneInputs) -> list[Line]:
    """What the candidate changes in its sources."""
    row, base = inputs.row, inputs.baseline
    config, record = inputs.detail.config, inputs.detail.record
    if base is None:
        names = sources_of(row.name, config, record)
        lines = fact("diff", "there is no baseline to compare with", inputs.width)
        return lines + [line for name in names for line in fact("source", str(name), inputs.width)]
    if row is base:
        lines = fact("diff", "this is the baseline", inputs.width)
        for name in sources_of(row.name, config, record):
            lines += fact("source", str(name), inputs.width)
        return lines
    hashes: dict[str, str] = {}
    for kernel in (row, base):
        gate = as_mapping(kernel.kernel.extras.gate) if kernel.kernel.extras is not None else {}
        hashes |= {path: digest for path, digest in as_mapping(gate.get("sources")).items() if isinstance(digest, str)}
    entries = entries_of(config)
    old, new = entries.get(base.name, {}), entries.get(row.name, {})
    lines = [line for change in changes_between(old, new) for line in fact("change", str(change), inputs.width)]
    found = compare_sources(_files(base.name, old, inputs), _files(row.name, new, inputs), hashes)
    lines += [line for note in found.notes for line in fact("note", note, inputs.width)]
    if not found.lines:
        return [*lines, *([] if found.notes else fact("diff", "the files are equal, line by line", inputs.width))]
    lines += fact("diff", f"{found.added} lines added, {found.removed} removed against {base.name}", inputs.width)
    return [*lines, *diff_contents(found.lines)]


def _files(name: str, entry: Mapping[str, object], inputs: PaneInputs) -> list[Path]:
    """Return the sources of a kernel and the files that tune it."""
    tuning = [Path(str(item)) for item in as_list(entry.get("config_files"))]
    return _absolute([*sources_of(name, inputs.detail.config, inputs.detail.record), *tuning])


def _absolute(paths: Sequence[Path]) -> list[Path]:
    return [path.absolute() for path in paths]


def build_lines(inputs: PaneInputs) -> list[Line]:
    """How it was built, from what, and what a profiler saw."""
    row, width = inputs.row, inputs.width
    kernel = row.kernel
    stage = kernel.compiling
    lines = fact("build", stage.word + (f": {stage.note}" if stage.note else ""), width)
    entry = _entry(row.name, inputs.detail)
    for name, key in (("compile", "compiling_command"), ("testcase", "testcase_command"), ("profile", "prof_command")):
        for command in _commands(entry.get(key)):
            lines += fact(name, command, width)
    for name, value in as_mapping(entry.get("env")).items():
        lines += fact("env", f"{name}={value}", width)
    own = as_mapping(entry.get("magpie_tui"))
    for option in as_list(own.get("compile_options")):
        lines += fact("option", str(option), width)
    lines += _built(row, width)
    gate = as_mapping(kernel.extras.gate) if kernel.extras is not None else {}
    for path, digest in as_mapping(gate.get("sources")).items():
        lines += fact("source", f"{path}  {str(digest)[:12]}", width)
    if kernel.compiling_result is not None:
        for error in kernel.compiling_result.errors:
            lines += fact("error", error, width, "$error")
    return lines


def _built(row: Candidate, width: int) -> list[Line]:
    """What a kernel without a main was compiled to."""
    built = as_mapping(row.kernel.extras.more.get("build")) if row.kernel.extras is not None else {}
    if not built:
        return []
    lines = fact("binary", f"{built.get('binary')}  {str(built.get('sha256'))[:12]}", width)
    lines += fact("function", str(built.get("function")), width)
    options = [str(item) for item in as_list(built.get("options"))]
    if options:
        lines += fact("options", " ".join(options), width)
    told = [f"{name.replace('_', ' ')} {value}" for name, value in as_mapping(built.get("driver")).items()]
    if told:
        lines += fact("driver", ", ".join(told), width)
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
