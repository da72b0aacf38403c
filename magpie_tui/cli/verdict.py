"""``magpie-tui verdict``, and how a verdict is printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from magpie_tui.basics.errors import ExitCode
from magpie_tui.basics.options import Values
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_percent
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import command_app
from magpie_tui.cli.kernel_running import command_of
from magpie_tui.cli.output import Column, format_table, terminal_width, write, write_json
from magpie_tui.serving.experiment_options import VERDICT_OPTIONS, fail_on_words

if TYPE_CHECKING:
    from magpie_tui.serving.verdict_model import ServingVerdict

app = command_app("Judge runs that are there already.")

_NO = frozenset({"invalid", "not_comparable"})


def exit_code(verdict: ServingVerdict, fail_on: tuple[str, ...]) -> ExitCode:
    """Return 1 when there is no comparison (``invalid``, ``not_comparable``), or for a word of ``fail_on``."""
    return ExitCode.ANSWER_IS_NO if verdict.word in _NO or verdict.word in fail_on else ExitCode.OK


def print_verdict(verdict: ServingVerdict, directory: Path | None) -> None:
    """Print the sentence, the figures, what differs, and where the files are."""
    from magpie_tui.serving.verdict_text import MARKDOWN_NAME, verdict_json

    if global_options().json:
        write_json(verdict_json(verdict))
        return
    write(printable(verdict.sentence))
    for reason in verdict.reasons[1:]:
        write(printable(f"  {reason}"))
    write()
    _print_figures(verdict)
    write()
    for item in verdict.comparability.differences:
        kind = "the change under test" if item.declared else "not declared"
        write(printable(f"Differs ({kind}): {item.name}: A {item.a} · B {item.b}"))
    for note in (*verdict.comparability.notes, *verdict.comparability.unknown):
        write(printable(f"Note: {note}"))
    write(printable(f"Use of the change: {verdict.proof_of_use.text}"))
    if verdict.plausibility.expected is not None:
        write(printable(f"Expected: {verdict.plausibility.text}"))
    if verdict.pairs_needed is not None:
        write(f"About {verdict.pairs_needed} pairs would settle it.")
    if verdict.kernels.new_bottleneck is not None:
        write(printable(f"New bottleneck: {verdict.kernels.new_bottleneck}"))
    if directory is not None:
        write()
        write(f"To send on: {directory / MARKDOWN_NAME}")
        write(f"Workspace: {directory}")


def _print_figures(verdict: ServingVerdict) -> None:
    from magpie_tui.serving.verdict_rule import change_and_interval
    from magpie_tui.serving.verdict_text import value_text

    outcomes = (verdict.primary, *verdict.guards)
    columns = [
        Column("Figure", shrink=True),
        Column("A", align="right"),
        Column("B", align="right"),
        Column("Change", align="right"),
        Column("Interval", align="right"),
        Column("Margin", align="right"),
        Column("State"),
    ]
    rows = [
        (
            outcome.title,
            value_text(outcome.key, outcome.baseline),
            value_text(outcome.key, outcome.optimized),
            *change_and_interval(outcome),
            format_percent(outcome.margin),
            "decides" if outcome is verdict.primary and outcome.state == "ok" else outcome.state.replace("_", " "),
        )
        for outcome in outcomes
    ]
    write(format_table(columns, rows, width=terminal_width()))
    for outcome in outcomes:
        if outcome.state == "not_evaluated":
            write(printable(f"Not evaluated: {outcome.title}: {outcome.reason}"))


def _run(values: Values) -> int:
    from magpie_tui.basics.files import create_directory
    from magpie_tui.serving.experiment import read_control
    from magpie_tui.serving.verdict import judge_workspaces
    from magpie_tui.serving.verdict_rule import Question
    from magpie_tui.serving.verdict_text import write_verdict

    baseline, optimized = Path(str(values["baseline"])), values.get("optimized")
    fail_on = fail_on_words(values.get("fail_on"))
    changes, control = values.get("change"), values.get("control")
    ratio, kernel, replaces = values.get("kernel_ratio"), values.get("kernel"), values.get("replaces")
    floors, refused = read_control(None if control is None else Path(str(control)))
    question = Question(
        primary=None if values.get("metric") is None else str(values["metric"]),
        changes=tuple(changes) if isinstance(changes, (tuple, list)) else (),
        kernel=None if kernel is None else str(kernel),
        replaces=None if replaces is None else str(replaces),
        kernel_ratio=float(ratio) if isinstance(ratio, (int, float)) else None,
        floors=floors,
    )
    verdict = judge_workspaces(baseline, None if optimized is None else Path(str(optimized)), question, invalid=refused)
    directory = values.get("output_dir")
    target = None if directory is None else create_directory(Path(str(directory)))
    if target is not None:
        title = f"{baseline.name} and {Path(str(optimized)).name}" if optimized is not None else baseline.name
        write_verdict(target, verdict, title=title, more={})
    print_verdict(verdict, target)
    return exit_code(verdict, fail_on)


@app.command(cls=command_of(VERDICT_OPTIONS, _run))
def verdict() -> None:
    """Judge workspaces: a claim only from runs that took turns, otherwise indicative at most.

    Example: magpie-tui verdict results/baseline results/optimized
    """
