"""What the screens say about one run, as lines; no widget in here."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells, set_cell_size
from textual.content import Content

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_clock
from magpie_tui.runs.model import Run, RunState
from magpie_tui.runs.words import cost_text, cpu_text, run_facts, says_text, step_text

if TYPE_CHECKING:
    from magpie_tui.machine.model import Machine
    from magpie_tui.processes.usage import TreeUsage
    from magpie_tui.runs.flags import Flags
    from magpie_tui.runs.news import RunNews
    from magpie_tui.runs.steps import Step
    from magpie_tui.serving.live import LiveView

LABEL = 8
"""Cells of the words at the beginning of the lines."""

BAR = 20
MOST_PROCESSES = 40
MOST_FLAGS = 20
LONGEST_FACT = 1_500


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything that is known of one run on the screen.

    Attributes:
        run: The run.
        news: What its files say; None before they were read.
        usage: What it costs now; None when that was not or cannot be read.
        cores: Cores kept busy since the reading before; None with the first reading.
        machine: The machine as it was read last.
        now: The time.
        paused: Nothing is updated.
        headline: What came out of it; None when nothing did.
        live: How a benchmark is going; None for other runs, and before it is told.
    """

    run: Run
    now: datetime
    news: RunNews | None = None
    usage: TreeUsage | None = None
    cores: float | None = None
    machine: Machine | None = field(default=None, repr=False)
    paused: bool = False
    headline: str | None = None
    live: LiveView | None = field(default=None, repr=False)

    @property
    def end(self) -> datetime | None:
        """Where the last step ends: the end of the run, or now."""
        return self.run.ended_at if self.run.is_over else self.now


def state_note(view: RunView) -> str:
    """The end of the rule over the lines: ``running 9:43``, ``failed after 3:20, exit 3``."""
    run = view.run
    took_s = run.took_s(view.now)
    words = run.state.value
    if took_s is not None:
        words += f" after {format_clock(took_s)}" if run.is_over else f" {format_clock(took_s)}"
    if run.is_over and run.exit_status:
        words += f", exit {run.exit_status}"
    return f"{words}, paused" if view.paused else words


def summary_lines(view: RunView, width: int, count: int) -> list[Content]:
    """The lines about a run, each as wide as the screen.

    Args:
        width: Cells of a line.
        count: Lines there is room for: 3 or 5, and more for a benchmark that goes on.
    """
    run = view.run
    if view.live is not None and view.live.phases and not run.is_over:
        from magpie_tui.tui.screens.run_live_lines import live_lines

        told_live = live_lines(view.live, width - LABEL, count, now_s=view.now.timestamp())
        return [_labelled(label, text, style, width) for label, text, style in told_live]
    steps = ("steps", steps_line(view, width - LABEL), "")
    if run.reason and (run.state is not RunState.ended or not run.checked):
        style = "$error" if run.state is RunState.failed else "$warning"
        says = ("why", _why(view), style)
    else:
        says = ("says", printable(says_text(run) or ("nothing" if run.is_over else "nothing yet")), "")
    costs = ("costs", cost_line(view, width - LABEL), "")
    flags = ("flags", flags_line(view), "$warning" if _flag_count(view) else "$quiet")
    result = ("result", _result(view), "" if run.workspace else "$quiet")
    told = bool(view.news and view.news.steps)
    if count >= 5:
        lines = [steps, says, costs, flags, result]
    else:
        first = steps if told and not run.is_over else says
        lines = [first, costs, flags if _flag_count(view) else result]
    return [_labelled(label, text, style, width) for label, text, style in lines[:count]]


def _labelled(label: str, text: str, style: str, width: int) -> Content:
    shown = set_cell_size(shorten_middle(text, max(0, width - LABEL)), max(0, width - LABEL))
    return Content.assemble((f"{label:<{LABEL}}", "$quiet"), (shown, style) if style else shown)


def _why(view: RunView) -> str:
    """The reason, and what to do about it."""
    run = view.run
    hint = ""
    if run.state is RunState.lost:
        hint = "   (X ends what it left behind, R runs it again)"
    elif run.state is RunState.failed and _flag_count(view):
        hint = "   (! in the log goes to the first cause)"
    return printable(run.reason or "") + hint


def _result(view: RunView) -> str:
    """Where the results are, and what they say."""
    run = view.run
    headline = f"   {printable(view.headline)}" if view.headline else ""
    if run.workspace is None:
        return "none" if run.is_over else "none yet"
    try:
        return printable(run.workspace.relative_to(run.output_dir.parent)) + headline
    except ValueError:
        return printable(run.workspace) + headline


def steps_line(view: RunView, width: int) -> str:
    """The steps, the present one in capitals; where there is no room the first ones are only counted."""
    news = view.news
    if news is None:
        return "reading"
    if not news.steps:
        return "none told" if view.run.is_over else "none told yet"
    last = news.steps[-1]
    if not view.run.is_over:
        last = replace(last, name=last.name.upper())
    shown = [printable(step_text(last, view.end))]
    hidden = news.steps_forgotten + len(news.steps) - 1
    for step in reversed(news.steps[:-1]):
        word = printable(step_text(step, view.end))
        if cell_len(" > ".join([word, *shown])) + (16 if hidden > 1 else 0) > width:
            break
        shown.insert(0, word)
        hidden -= 1
    return " > ".join([f"{hidden:,} before", *shown] if hidden else shown)


def cost_line(view: RunView, width: int = 1_000) -> str:
    """What it costs the machine, or has cost it; where there is no room the number of processes goes first."""
    run, usage = view.run, view.usage
    if run.is_over:
        return cost_text(run) or "not known: nobody was there to count at its end"
    if not run.checked:
        return "cannot be read from here"
    if usage is None:
        return "reading"
    parts = [
        plural(len(usage.processes), "process", "processes"),
        *([] if view.cores is None else [f"{view.cores:.2f} cores"]),
        f"{cpu_text(usage.cpu_s)} of CPU",
        f"{format_bytes(usage.resident_bytes)} in RAM",
        *gpu_words(view.machine, usage.pids),
    ]
    while len(parts) > 2 and cell_len("   ".join(parts)) > width:
        del parts[0]
    return "   ".join(parts)


def gpu_words(machine: Machine | None, pids: frozenset[int]) -> list[str]:
    """``GPU 2 168.0 GB`` for each GPU on which these processes are, and a word where that cannot be read."""
    words = []
    for gpu in machine.gpus if machine is not None else ():
        if gpu.processes is None:
            words.append(f"GPU {gpu.index} ?")
            continue
        ours = [process for process in gpu.processes if process.pid in pids]
        if ours:
            known = [process.memory_bytes for process in ours if process.memory_bytes is not None]
            words.append(f"GPU {gpu.index} {format_bytes(sum(known) if len(known) == len(ours) else None)}")
    return words


def _flag_count(view: RunView) -> int:
    news = view.news
    return 0 if news is None else news.stdout_flags.count + news.stderr_flags.count


def flags_line(view: RunView) -> str:
    """The first flagged line, where it is, and how many more there are."""
    news = view.news
    if news is None:
        return "reading"
    flagged: list[tuple[str, Flags]] = [("stdout", news.stdout_flags), ("stderr", news.stderr_flags)]
    found = [(name, flags) for name, flags in flagged if flags.count]
    if not found:
        return "none" if news.complete else "none so far"
    name, first = found[0]
    place = name if first.line is None else f"{name} {first.line:,}"
    more = sum(flags.count for _name, flags in found) - 1
    return f"! {place}: {printable(first.text)}" + (f"   and {more:,} more" if more else "")


# All that is known


def detail_lines(view: RunView, width: int) -> list[Content]:
    """The facts that ``runs show`` prints, the steps, and the processes."""
    lines: list[Content] = []
    facts = run_facts(view.run, view.now)
    facts["result"] = view.headline
    if view.usage is not None:
        facts["cost"] = cost_line(view)
    for what, value in facts.items():
        if value is None and what not in ("workspace",):
            continue
        text = "none" if value is None else printable(value)
        lines += _wrapped(what, text, width)
    if view.live is not None:
        lines += _live_details(view.live, width)
    if view.news is not None and view.news.steps:
        lines += [Content(""), _heading("Steps"), *_step_lines(view, width)]
    if view.usage is not None and view.usage.processes:
        lines += [Content(""), _heading("Processes"), *_process_lines(view.usage, width)]
    return lines


def _live_details(live: LiveView, width: int) -> list[Content]:
    """Flags of the server's log, and the raw commands."""
    from magpie_tui.tui.screens.run_live_lines import command_lines

    lines: list[Content] = []
    if live.flags:
        lines += [Content(""), _heading("Flags of the server's log")]
        for flag in live.flags[-MOST_FLAGS:]:
            lines += _wrapped(
                f"line {flag.line:,}", printable(f"{flag.text} ({flag.phase.value}): {flag.quote}"), width
            )
    commands = command_lines(live)
    if commands:
        lines += [Content(""), _heading("Commands")]
        for name, text in commands:
            lines += _wrapped(name, printable(text), width)
    return lines


def _heading(title: str) -> Content:
    return Content.assemble((title, "bold $primary"))


def _wrapped(what: str, text: str, width: int) -> list[Content]:
    """One fact, over as many lines as it needs."""
    room = max(20, width - 15)
    if len(text) > LONGEST_FACT:
        text = f"{text[:LONGEST_FACT]}.. ({len(text):,} characters)"
    pieces = _pieces(text, room)
    first = Content.assemble((f"{what:<14} ", "$quiet"), pieces[0])
    return [first, *(Content(" " * 15 + piece) for piece in pieces[1:])]


def _pieces(text: str, room: int) -> list[str]:
    """Cut a text where a word or a part of a path ends, or anywhere where that would leave half a line empty."""
    pieces = []
    while cell_len(text) > room:
        line = chop_cells(text, room)[0]
        end = max(line.rfind(" "), line.rfind("/")) + 1
        line = line[:end] if end > len(line) // 2 else line
        pieces.append(line)
        text = text[len(line) :]
    return [*pieces, text]


def _cut(line: str, width: int) -> str:
    return line if cell_len(line) <= width else set_cell_size(line, max(0, width - 1)) + ">"


def _step_lines(view: RunView, width: int) -> list[Content]:
    assert view.news is not None
    steps = view.news.steps
    lines = []
    if view.news.steps_forgotten:
        lines.append(Content.assemble((f"{view.news.steps_forgotten:,} steps before these", "$quiet")))
    widest = min(28, max(cell_len(printable(step.name)) for step in steps))
    amounts = min(28, max(cell_len(step.amount) for step in steps))
    for step in steps:
        name = set_cell_size(shorten_middle(printable(step.name), widest), widest)
        amount = set_cell_size(printable(step.amount), amounts)
        took = f"{format_clock(step.took_s(view.end)):>8}"
        line = f"{name}  {took}  {progress_bar(step)}  {amount}  {printable(step.message)}"
        lines.append(Content(_cut(line.rstrip(), width)))
    return lines


def progress_bar(step: Step) -> str:
    """``[##########..........]``; blank where no total was told."""
    fraction = step.fraction
    if fraction is None:
        return " " * (BAR + 2)
    full = int(fraction * BAR)
    return f"[{'#' * full}{'.' * (BAR - full)}]"


def _process_lines(usage: TreeUsage, width: int) -> list[Content]:
    lines = [Content.assemble((f"{'pid':>8}  {'CPU':>10}  {'in RAM':>9}  {'threads':>7}  command", "$quiet"))]
    for process in usage.processes[:MOST_PROCESSES]:
        command = printable(process.command or f"[{process.name}]")
        numbers = f"{cpu_text(process.cpu_s):>10}  {format_bytes(process.resident_bytes):>9}  {process.threads:>7}"
        line = f"{process.pid:>8}  {numbers}  {'  ' * min(process.depth, 8)}{command}"
        lines.append(Content(_cut(line, width)))
    if len(usage.processes) > MOST_PROCESSES:
        lines.append(Content.assemble((f"and {len(usage.processes) - MOST_PROCESSES:,} more", "$quiet")))
    return lines


# Questions


def stop_question(runs: Sequence[Run], counts: Sequence[int], grace_s: float, now: datetime) -> tuple[str, str, str]:
    """Title, the word for doing it, and details of the question before runs are stopped."""
    names = ", ".join(run.label or run.id for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
    total = sum(counts)
    processes = plural(total, "process", "processes")
    first = runs[0]
    lines = []
    if all(run.state is RunState.stopping for run in runs):
        title, word = f"Kill what is left of {names}?", "kill"
        lines.append(f"it is being stopped already; {processes} would be killed at once (SIGKILL)")
        grace_s = 0.0
    elif all(run.is_over for run in runs):
        title, word = f"End what {names} left behind?", "kill"
        lines.append(f"{processes} of it still {'runs' if total == 1 else 'run'} and would be killed (SIGKILL)")
    else:
        title, word = f"Stop {names}?", "stop"
        lines.append(f"{processes} will be stopped: SIGTERM, then SIGKILL after {grace_s:.0f} s")
    for run in runs[:5]:
        how_far = run.progress.text if run.progress else ""
        lines.append("  ".join(filter(None, [run.label or run.id, state_note(RunView(run, now)), how_far])))
    if len(runs) > 5:
        lines.append(f"and {len(runs) - 5} more")
    lines.append("$ " + shlex.join(["magpie-tui", "runs", "stop", *(run.id for run in runs[:5])]))
    if not first.is_over and grace_s:
        lines[-1] += f" --grace {grace_s:.0f}"
    return title, word, "\n".join(lines)


def remove_question(runs: Sequence[Run]) -> tuple[str, str]:
    """Title and details of the question before runs are removed."""
    names = ", ".join(run.label or run.id for run in runs[:3]) + (", ..." if len(runs) > 3 else "")
    lines = ["state, events and logs are deleted:", *(f"  {run.directory}" for run in runs[:5])]
    if len(runs) > 5:
        lines.append(f"  and {len(runs) - 5} more")
    kept = [str(run.workspace) for run in runs if run.workspace is not None]
    lines.append(f"results stay: {kept[0] if len(kept) == 1 else plural(len(kept), 'workspace')}" if kept else "")
    lines.append("$ " + shlex.join(["magpie-tui", "runs", "remove", *(run.id for run in runs[:5])]))
    return f"Remove {names}?", "\n".join(line for line in lines if line)


def again_question(run: Run, now: datetime) -> tuple[str, str]:
    """Title and details of the preview before a run is started again."""
    lines = [
        "$ " + shlex.join(run.command),
        "",
        f"in       {run.cwd}",
        f"output   {run.output_dir}",
        f"engine   {run.engine}",
        f"before   {state_note(RunView(run, now))}",
        "It gets the environment of this app: that of the run was not written down.",
    ]
    return f"Run {run.label or run.id} again?", "\n".join(lines)
