"""The report of a campaign: what was claimed, what it rests on, what was assumed, and how to repeat everything."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from magpie_tui.campaigns.goal import goal_judged
from magpie_tui.campaigns.model import StepState
from magpie_tui.campaigns.report_blocks import Block, Bullets, Code, Grid, Heading, Paragraph, Plot
from magpie_tui.campaigns.report_facts import Recorded, ReportFacts
from magpie_tui.campaigns.report_plots import RatioRow, bar_plot, ratio_plot
from magpie_tui.campaigns.verify_model import CheckState
from magpie_tui.serving.verdict_model import MetricOutcome, ServingVerdict
from magpie_tui.serving.verdict_rule import change_and_interval
from magpie_tui.serving.verdict_text import value_text
from magpie_tui.workspaces.benchmark import BenchmarkReport
from magpie_tui.workspaces.candidates import Candidate, Candidates
from magpie_tui.workspaces.values import as_list, as_mapping, as_text, as_texts

_MOST_KERNELS = 8
_ASSUMED = ("assumptions", "gain", "against")
"""Parts of a decision that nobody measured."""


def report_blocks(facts: ReportFacts) -> list[Block]:
    """Return the whole report."""
    return [
        Heading(f"Campaign {facts.campaign.name}", 1),
        *_verdicts(facts),
        *_steps(facts),
        *_kernel(facts),
        *_comparison(facts.compared),
        *_integration(facts),
        *_serving(facts.judged),
        *_not_verified(facts),
        *_record(facts),
        *_commands(facts),
    ]


def kernel_verdict(facts: ReportFacts) -> str:
    """Return what came out for the kernel alone, one sentence."""
    return facts.compared.sentence if facts.compared is not None else "No kernel was measured in this campaign."


def serving_verdict(facts: ReportFacts) -> str:
    """Return what came out end to end, one sentence."""
    return facts.judged.sentence if facts.judged is not None else f"No claim: {facts.why_not_judged}."


def verified_text(facts: ReportFacts) -> str:
    """Return how the verification of the raw data came out, one sentence."""
    counts = facts.verification.counts
    told = ", ".join(f"{counts.get(state, 0)} {state.value}" for state in CheckState)
    differing = facts.verification.differing
    end = f"; the first that differs: {differing[0].file} {differing[0].key}" if differing else ""
    return f"Stated values computed again from the raw data kept here: {told}{end}."


def _verdicts(facts: ReportFacts) -> Iterator[Block]:
    goal = facts.campaign.goal
    yield Paragraph(
        f"Started {facts.campaign.created}, template {facts.campaign.template}."
        + (f" Goal: {goal.metric} +{goal.gain_pct:g} %." if goal is not None else " No goal was set.")
    )
    rows = [("kernel alone", kernel_verdict(facts)), ("end to end", serving_verdict(facts))]
    judged = goal_judged(facts.campaign)
    if goal is not None and judged:
        rows.append((f"goal: {goal.metric} +{goal.gain_pct:g} %", f"{judged}."))
    yield Grid(("level", "verdict"), rows)
    yield Paragraph(verified_text(facts))


def _steps(facts: ReportFacts) -> Iterator[Block]:
    yield Heading("Steps")
    rows = [
        (
            str(view.number),
            view.title,
            f"{view.state.value} {view.because}".strip(),
            view.when or "",
            view.finding or "",
        )
        for view in facts.views
    ]
    yield Grid(("#", "step", "state", "when (UTC)", "finding"), rows, right=(0,))
    notes = [f"{view.number} {view.title}, {note.time}: {note.text}" for view in facts.views for note in view.notes]
    if notes:
        yield Heading("Notes", 3)
        yield Bullets(notes)


def _kernel(facts: ReportFacts) -> Iterator[Block]:
    decision = facts.decision
    twin = facts.profiled
    kernels = twin.report.kernel_summary if twin is not None and isinstance(twin.report, BenchmarkReport) else ()
    if not decision and not kernels:
        return
    yield Heading("The kernel, and why")
    if decision:
        measured = [(key, _words(value)) for key, value in decision.items() if key not in _ASSUMED]
        yield Heading("Measured or found", 3)
        yield Grid(("what", "value"), measured)
        assumed = [_words(item) for item in as_list(decision.get("assumptions"))]
        assumed += [f"{key}: {_words(decision[key])}" for key in ("gain", "against") if key in decision]
        yield Heading("Assumed, not measured", 3)
        yield Bullets(assumed or ["nothing was written down"])
    rows = [(item.name, item.percent) for item in kernels if item.percent is not None][:_MOST_KERNELS]
    if rows:
        yield Plot(
            bar_plot([(name, share) for name, share in rows if share is not None], "%"),
            "Share of the device time in the profiled run (profiling changes times).",
        )


def _words(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_words, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _comparison(compared: Candidates | None) -> Iterator[Block]:
    if compared is None:
        return
    yield Heading("The kernels")
    yield Paragraph(compared.sentence)
    yield Grid(
        ("rank", "kernel", "state", "time (us)", "baseline's time / its time", "verdict"),
        [_kernel_row(row) for row in compared.rows],
        right=(0, 3, 4),
    )
    ratios = [
        RatioRow(row.name, row.ratio, row.ratio_low, row.ratio_high)
        for row in compared.rows
        if row.ratio is not None and not row.is_baseline
    ]
    if ratios:
        yield Plot(
            ratio_plot(ratios, compared.margin), "Ratio to the baseline, above 1 is faster; grey: no difference."
        )
    if compared.conditions:
        yield Bullets(compared.conditions)


def _kernel_row(row: Candidate) -> tuple[str, ...]:
    def interval(value: float | None, low: float | None, high: float | None) -> str:
        if value is None:
            return "not measured"
        return f"{value:.4g}" + ("" if low is None or high is None else f" ({low:.4g} to {high:.4g})")

    name = f"{row.name} (baseline)" if row.is_baseline else row.name
    name = f"{name}: {row.change}" if row.change else name
    measured_base = row.is_baseline and row.time_us is not None
    ratio = "1" if measured_base else interval(None if row.is_baseline else row.ratio, row.ratio_low, row.ratio_high)
    time = interval(row.time_us, row.time_low_us, row.time_high_us)
    return "" if row.rank is None else str(row.rank), name, row.state, time, ratio, row.says


def _integration(facts: ReportFacts) -> Iterator[Block]:
    """How the winner was put in, whether both sides stay installed, and which compile caches could not hide it."""
    if facts.side_by_side is None:
        return
    decision = facts.campaign.step("integrate").decision or {}
    yield Heading("Integration")
    yield Paragraph(f"{decision.get('kind')}: {_words(decision.get('what'))}. {facts.side_by_side.text}.")
    if facts.moved:
        yield Paragraph("Compile caches that were moved aside, so that no server took the old kernel from them:")
        rows = [(item.tool, str(item.path), item.time, item.restored or "not yet") for item in facts.moved]
        yield Grid(("cache", "place", "moved aside (UTC)", "put back (UTC)"), rows)
    else:
        yield Paragraph("No compile cache was moved aside for it.")


def _serving(judged: ServingVerdict | None) -> Iterator[Block]:
    if judged is None:
        return
    yield Heading("End to end")
    yield Paragraph(judged.sentence)
    outcomes = (judged.primary, *judged.guards)
    yield Grid(
        ("metric", "state", "baseline", "optimized", "change", "interval"),
        [_metric_row(outcome) for outcome in outcomes],
        right=(2, 3, 4, 5),
    )
    ratios = [
        RatioRow(outcome.title, outcome.interval.point, outcome.interval.low, outcome.interval.high)
        for outcome in outcomes
        if outcome.interval is not None and not outcome.is_share and outcome.interval.point > 0
    ]
    if ratios:
        yield Plot(ratio_plot(ratios, judged.primary.margin), "Ratios over pairs, above 1 is better; grey: the margin.")
    reasons = [*judged.reasons, *judged.comparability.notes, *judged.set_aside]
    if reasons:
        yield Bullets(reasons)


def _metric_row(outcome: MetricOutcome) -> tuple[str, ...]:
    change, interval = change_and_interval(outcome)
    values = value_text(outcome.key, outcome.baseline), value_text(outcome.key, outcome.optimized)
    state = outcome.state.replace("_", " ")
    return outcome.title, f"{state}: {outcome.reason}" if outcome.reason else state, *values, change, interval


def _not_verified(facts: ReportFacts) -> Iterator[Block]:
    yield Heading("Not verified")
    yield Bullets(facts.not_verified() or ["nothing is known that was not verified"])
    differing = facts.verification.differing
    if differing:
        yield Heading("Differs from the raw data", 3)
        rows = [(item.file, item.key, _words(item.stated), _words(item.recomputed)) for item in differing]
        yield Grid(("file", "key", "stated", "recomputed"), rows)


def _record(facts: ReportFacts) -> Iterator[Block]:
    if not facts.recorded:
        return
    yield Heading("Record")
    header = ("step", "workspace", "program", "machine", "device", "started (UTC)", "config (SHA-256)")
    yield Grid(header, [_record_row(item) for item in facts.recorded])


def _record_row(item: Recorded) -> tuple[str, ...]:
    name = f"{item.step} {item.link.label}" if item.link.label else item.step
    if item.record is None:
        why = "an experiment: its runs have the records" if item.experiment else "no record: made by another program"
        return name, item.link.path.name, why, "", "", item.link.time, ""
    tool, host = as_mapping(item.record.get("tool")), as_mapping(item.record.get("host"))
    devices = [as_text(as_mapping(device).get("name")) or "?" for device in as_list(item.record.get("devices"))]
    program = f"{tool.get('name')} {tool.get('version')} {(as_text(tool.get('commit')) or '')[:12]}".strip()
    program += ", modified" if tool.get("modified") else ""
    machine = f"{host.get('cpu_model') or host.get('architecture')}, {host.get('system')} {host.get('kernel')}"
    digest = (as_text(item.record.get("effective_config_sha256")) or "")[:16]
    started = as_text(item.record.get("started_at")) or ""
    return name, item.link.path.name, program, machine, ", ".join(devices) or "CPU", started, digest


def _commands(facts: ReportFacts) -> Iterator[Block]:
    """The command lines that made the workspaces, as their records hold them."""
    lines = []
    for item in facts.recorded:
        command = [*_command(item.record)] if item.record is not None else item.experiment
        if command:
            lines += [f"# step {item.step}{f' {item.link.label}' if item.link.label else ''}", *command]
    yield Heading("To repeat everything")
    if lines:
        yield Code(lines)
    rest = [
        shlex.join(view.action.command)
        for view in facts.views
        if view.action is not None and view.action.command and view.state is not StepState.RUNNING
    ]
    yield Paragraph("To check this report against the raw data, and to go on:")
    yield Code([shlex.join(["magpie-tui", "verify", str(facts.campaign.directory)]), *rest])


def _command(record: Mapping[str, object]) -> Iterator[str]:
    words = as_texts(record.get("command_line"))
    directory = as_text(record.get("working_directory"))
    if directory:
        yield shlex.join(["cd", directory])
    yield shlex.join(["magpie-tui", *words[1:]])
