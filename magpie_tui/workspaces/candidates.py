"""A comparison (or an analysis) as rows: one candidate a row, with a reason for every number that is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from magpie_tui.basics.text import plural
from magpie_tui.basics.units import format_percent
from magpie_tui.workspaces.entry_difference import changes_between, entries_of
from magpie_tui.workspaces.headlines import baseline_index, median_us
from magpie_tui.workspaces.kernel_state import KernelState
from magpie_tui.workspaces.kernel_table import kernel_table
from magpie_tui.workspaces.reports import AnalyzeReport, CompareReport
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text

CHECK_WORDS = ("fail", "not_run", "pass")
"""Outcomes of a check of the gate, those that matter most first."""


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One check of the correctness gate.

    Attributes:
        id: ``G1`` to ``G24``, or ``testcase``.
        title: What it checks.
        status: ``pass``, ``fail`` or ``not_run``.
        reason: What it found, or why it did not run.
    """

    id: str
    title: str
    status: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ShapeRatio:
    """One shape of a candidate.

    Attributes:
        shape: As the report names it.
        share: Share of the trace's time, 0 to 1; None where it is unknown.
        baseline_us, time_us: Median times in µs.
        ratio, ratio_low, ratio_high: Baseline's time divided by the candidate's, with its interval.
        guard: Outside the mean: it shows what the tuning costs elsewhere.
        size: Bytes of one call's inputs and outputs, or what the config declares; None when unknown.
        bytes_per_s, flops_per_s: Of the candidate; None when unknown.
        reason: Why there is no time.
    """

    shape: str
    share: float | None = None
    baseline_us: float | None = None
    time_us: float | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    guard: bool = False
    size: float | None = None
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BinaryFacts:
    """What a kernel's binary says.

    Attributes:
        name: The function in it.
        registers: Vector registers of a thread.
        spills: Registers that did not fit (AMD), or bytes of local memory of a thread (NVIDIA: stack included).
        shared_bytes: Static shared memory of a block.
        occupancy, most_occupancy: Waves that fit on one SIMD or scheduler, and the device's most.
        arch, source: What it was built for, and what was read.
    """

    name: str
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    occupancy: int | None = None
    most_occupancy: int | None = None
    arch: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kernel of the report.

    Attributes:
        index: Its place in the config.
        name: Its id.
        rank: Shared by kernels that cannot be told apart; None when it is not ranked.
        is_baseline: True for the one that the others are compared with.
        change: What was changed against the baseline, one line, where the config says it.
        word: Verdict, or the state where there is none: what the table shows.
        state: Kernel state.
        time_us, time_low_us, time_high_us: Median time in µs and its interval.
        ratio, ratio_low, ratio_high: Baseline's time divided by this one's, with its interval.
        replicates: Blocks behind the ratio.
        needed: Blocks in all that would settle an inconclusive verdict.
        errors: Everything that went wrong.
        checks: Checks of the gate; empty in other programs' reports.
        shapes: Ratios per shape; empty where the report has one shape.
        binary: Registers, spills and occupancy of the kernel in its binary that needs the most registers.
        reasons: Name of a field to the reason why it is None.
        kernel: The whole state.
    """

    index: int
    name: str
    rank: int | None
    is_baseline: bool
    change: str | None
    word: str
    state: str
    time_us: float | None
    time_low_us: float | None
    time_high_us: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    replicates: int | None
    needed: int | None
    errors: tuple[str, ...]
    checks: tuple[GateCheck, ...]
    shapes: tuple[ShapeRatio, ...]
    reasons: Mapping[str, str]
    kernel: KernelState
    binary: BinaryFacts | None = None

    @property
    def says(self) -> str:
        """The word with what belongs to it: ``inconclusive (6 more blocks)``."""
        if self.word == "inconclusive" and self.needed is not None and self.replicates is not None:
            more = self.needed - self.replicates
            if more > 0:
                return f"inconclusive ({plural(more, 'more block')})"
        return self.word

    @property
    def first_error(self) -> str | None:
        """The first line of what went wrong, or of what limits the verdict."""
        for text in (*self.errors, self.reasons.get("verdict", "")):
            for line in text.splitlines():
                if line.strip():
                    return line.strip()
        return None


@dataclass(frozen=True, slots=True)
class Candidates:
    """All kernels of a report.

    Attributes:
        rows: Ranked ones first, best first; then the others in the config's order.
        records: The rows of the report's main table by index, as the commands print them.
        baseline: Index of the baseline; None in an analysis and in other programs' reports.
        winner: Index of the candidate that was proved faster.
        margin: Smallest ratio difference worth a claim, as a fraction; None when it is unknown.
        floor: The margin before the A/A control raised it.
        conditions: How it was timed, phrases.
        sentence: What came out, one sentence.
    """

    rows: tuple[Candidate, ...]
    records: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    baseline: int | None = None
    winner: int | None = None
    margin: float | None = None
    floor: float | None = None
    conditions: tuple[str, ...] = ()
    sentence: str = ""

    def named(self, index: int | None) -> Candidate | None:
        """Return the kernel with this place in the config."""
        return next((row for row in self.rows if row.index == index), None)


def candidates_of(report: AnalyzeReport | CompareReport, config: Mapping[str, object] | None = None) -> Candidates:
    """Return the kernels of a report as rows.

    Args:
        config: The workspace's ``config.yaml``, which may say what each candidate changes.
    """
    baseline = baseline_index(report) if isinstance(report, CompareReport) else None
    records = {index: record for index, record in enumerate(kernel_table(report).records())}
    changes = changes_of(config)
    rows = [
        _candidate(report, index, state, records[index], baseline, changes.get(state.kernel_id))
        for index, state in enumerate(report.kernels)
    ]
    rows.sort(key=_order)
    timing = as_mapping(report.extras.timing) if report.extras is not None else {}
    margin = as_mapping(timing.get("margin"))
    winner = report.winner if isinstance(report, CompareReport) and report.ours else None
    found = Candidates(
        rows=tuple(rows),
        records=records,
        baseline=baseline,
        winner=winner,
        margin=as_number(margin.get("value")),
        floor=as_number(margin.get("floor")),
    )
    compared = sum(row.ratio is not None and not row.is_baseline for row in rows)
    conditions = tuple(_conditions(report, timing, margin, compared))
    return Candidates(
        found.rows, records, baseline, winner, found.margin, found.floor, conditions, _sentence(report, found)
    )


def settled_as(ratio: float | None, margin: float | None) -> str:
    """Say as what more replicates would settle an inconclusive verdict, with a space in front; empty when unknown."""
    if ratio is None or margin is None or ratio <= 0:
        return ""
    if max(ratio, 1 / ratio) >= 1 + margin:
        return f" as {'faster' if ratio > 1 else 'slower'}"
    return f" as equivalent within {format_percent(margin)}"


def _order(row: Candidate) -> tuple[bool, int, float, int]:
    return row.rank is None, row.rank or 0, -(row.ratio or 0.0), row.index


def changes_of(config: Mapping[str, object] | None) -> dict[str, str]:
    """Return kernel id to the line that says what it changes: the config's own, else what its entry shows."""
    found = _seen_changes(config)
    for item in as_list((config or {}).get("kernels")):
        entry = as_mapping(item)
        name = as_text(entry.get("kernel_id")) or as_text(entry.get("id"))
        for place in (entry, as_mapping(entry.get("magpie_tui")), as_mapping(entry.get("extra"))):
            text = as_text(place.get("change")) or as_text(place.get("description"))
            if name is not None and text and text.strip():
                found[name] = text.strip().splitlines()[0]
    return found


def _seen_changes(config: Mapping[str, object] | None) -> dict[str, str]:
    """Return kernel id to what its entry says otherwise than the baseline's."""
    entries = entries_of(config)
    baseline = as_count(as_mapping((config or {}).get("magpie_tui")).get("baseline"))
    names = list(entries)
    if baseline is None or baseline >= len(names):
        return {}
    base = entries[names[baseline]]
    found = {name: changes_between(base, entry) for name, entry in entries.items() if entry is not base}
    return {name: "; ".join(map(str, changes)) for name, changes in found.items() if changes}


def _candidate(
    report: AnalyzeReport | CompareReport,
    index: int,
    state: KernelState,
    record: Mapping[str, object],
    baseline: int | None,
    change: str | None,
) -> Candidate:
    extras = state.extras
    verdict = extras.verdict if extras is not None else None
    timing = as_mapping(extras.timing) if extras is not None else {}
    low, high = (as_number(item) for item in _pair(timing.get("interval_us")))
    is_baseline = index == baseline
    timed = state.proved_correct and median_us(state) is not None
    own = verdict.ratio if verdict is not None else None
    ratio = (1.0 if timed else None) if is_baseline else own
    word = "baseline" if is_baseline and state.word == "correct" else state.word
    if verdict is not None and not is_baseline and state.word == "correct":
        word = verdict.word
    return Candidate(
        index=index,
        name=state.kernel_id or f"kernel {index}",
        rank=as_count(record.get("rank")) if state.proved_correct else None,
        is_baseline=is_baseline,
        change=change,
        word=word,
        state=state.word,
        time_us=median_us(state),
        time_low_us=low,
        time_high_us=high,
        ratio=ratio,
        ratio_low=verdict.ratio_low if verdict is not None and not is_baseline else None,
        ratio_high=verdict.ratio_high if verdict is not None and not is_baseline else None,
        replicates=verdict.replicates if verdict is not None else as_count(timing.get("replicates")),
        needed=None if verdict is None else as_count(verdict.more.get("replicates_needed")),
        errors=state.errors,
        checks=gate_checks(state),
        shapes=_shapes(state),
        reasons=_reasons(report, state, is_baseline),
        kernel=state,
        binary=_binary(state),
    )


def _pair(value: object) -> tuple[object, object]:
    items = as_list(value)
    return (items[0], items[1]) if len(items) == 2 else (None, None)


def gate_checks(state: KernelState) -> tuple[GateCheck, ...]:
    """Return the checks of a kernel's gate in their order; none in other programs' reports."""
    gate = as_mapping(state.extras.gate) if state.extras is not None else {}
    checks = []
    for item in as_list(gate.get("checks")):
        keys = as_mapping(item)
        name = as_text(keys.get("id"))
        if name is not None:
            status = as_text(keys.get("status")) or "not_run"
            checks.append(GateCheck(name, as_text(keys.get("title")) or "", status, as_text(keys.get("reason"))))
    return tuple(checks)


def _shapes(state: KernelState) -> tuple[ShapeRatio, ...]:
    extras = state.extras
    if extras is None:
        return ()
    places = [extras.more, extras.timing or {}, extras.verdict.more if extras.verdict is not None else {}]
    items = next((as_list(place.get("shapes")) for place in places if as_list(place.get("shapes"))), [])
    found = []
    for item in items:
        keys = as_mapping(item)
        name = keys.get("shape", keys.get("name"))
        if keys and name is not None:
            found.append(
                ShapeRatio(
                    shape=name
                    if isinstance(name, str)
                    else " x ".join(str(part) for part in as_list(name)) or str(name),
                    share=as_number(keys.get("share", keys.get("weight"))),
                    baseline_us=as_number(keys.get("baseline_us")),
                    time_us=as_number(keys.get("median_us")),
                    ratio=as_number(keys.get("ratio")),
                    ratio_low=as_number(keys.get("ratio_low")),
                    ratio_high=as_number(keys.get("ratio_high")),
                    guard=keys.get("guard") is True,
                    size=as_number(keys.get("bytes")),
                    bytes_per_s=as_number(keys.get("bytes_per_s")),
                    flops_per_s=as_number(keys.get("flops_per_s")),
                    reason=as_text(keys.get("reason")),
                )
            )
    return tuple(found)


def _binary(state: KernelState) -> BinaryFacts | None:
    """Return the facts of the binary's kernel with the most registers; None where the report has none."""
    extras = state.extras
    items = [as_mapping(item) for item in as_list(extras.more.get("binary"))] if extras is not None else []
    known = [item for item in items if as_count(item.get("registers")) is not None]
    if not known:
        return None
    most = max(known, key=lambda item: as_count(item.get("registers")) or 0)
    spills = as_count(most.get("spills"))
    return BinaryFacts(
        name=as_text(most.get("name")) or "",
        registers=as_count(most.get("registers")),
        spills=as_count(most.get("local_bytes")) if spills is None else spills,
        shared_bytes=as_count(most.get("shared_bytes")),
        occupancy=as_count(most.get("occupancy")),
        most_occupancy=as_count(most.get("most_occupancy")),
        arch=as_text(most.get("arch")),
        source=as_text(most.get("source")) or "",
    )


def _reasons(report: AnalyzeReport | CompareReport, state: KernelState, is_baseline: bool) -> dict[str, str]:
    """Say for every field that may be None why it is, and for the verdict what limits it."""
    extras = state.extras
    reasons: dict[str, str] = {}
    timing = as_mapping(extras.timing) if extras is not None else {}
    verdict = extras.verdict if extras is not None else None
    if median_us(state) is None:
        reasons["time"] = _why_no_time(state, timing)
    elif timing.get("interval_us") is None:
        blocks = as_count(timing.get("replicates"))
        reasons["time_interval"] = (
            "the report has no interval of the time" if blocks is None else f"too few blocks for an interval: {blocks}"
        )
    if isinstance(report, AnalyzeReport):
        reasons["ratio"] = "an analysis compares nothing"
        reasons["rank"] = "an analysis ranks nothing"
    elif is_baseline:
        if "time" in reasons:
            reasons["ratio"] = f"there is no time: {reasons['time']}"
        reasons["ratio_interval"] = "the baseline is what the others are compared with"
    elif verdict is None or verdict.ratio is None:
        reasons["ratio"] = (verdict.reason if verdict is not None else None) or _why_no_ratio(report, state, reasons)
    if isinstance(report, CompareReport) and not state.proved_correct:
        reasons["rank"] = f"only correct kernels are ranked, this one is {state.word}"
    if not state.proved_correct and not state.errors:
        text = extras.reason if extras is not None else None
        reasons["state"] = text or state.correctness.note or "the report does not prove it correct"
    if verdict is not None and verdict.reason:
        reasons["verdict"] = verdict.reason
    if _binary(state) is None:
        reasons["binary"] = "nothing tells registers and spills: no binary of a GPU kernel, or no tool to read it"
    if not _changes_known(state):
        reasons["change"] = "the config does not say what this candidate changes; the pane diff shows it"
    return reasons


def _changes_known(state: KernelState) -> bool:
    return state.extras is not None and bool(as_text(state.extras.more.get("change")))


def _why_no_time(state: KernelState, timing: Mapping[str, object]) -> str:
    said = as_text(timing.get("reason"))
    if said:
        return said.replace("_", " ")
    if not state.proved_correct:
        return "not timed: it was not proved correct"
    return "the report holds no time of this kernel"


def _why_no_ratio(report: CompareReport, state: KernelState, reasons: Mapping[str, str]) -> str:
    if not report.ours:
        return "this report was written by another program, whose scores are no ratios to a baseline"
    if "time" in reasons:
        return f"there is no time: {reasons['time']}"
    return "no block was timed together with the baseline"


def _conditions(
    report: AnalyzeReport | CompareReport, timing: Mapping[str, object], margin: Mapping[str, object], compared: int
) -> Sequence[str]:
    parts = []
    quantity = as_text(timing.get("quantity"))
    if quantity:
        cache = as_text(timing.get("cache"))
        parts.append(quantity.replace("_", " ") + (f", {cache} cache" if cache else ""))
    value = as_number(margin.get("value"))
    if value is not None:
        control = as_number(margin.get("control_ratio"))
        seen = "" if control is None else f", A/A {format_percent(control - 1, signed=True)}"
        parts.append(f"margin {format_percent(value)}{seen}")
    if compared > 1:
        parts.append(f"Holm over {compared}")
    if timing.get("quick") is True:
        parts.append("quick: a first look")
    device = as_text(timing.get("device"))
    if device:
        parts.append(f"on {device}")
    if isinstance(report, CompareReport) and not report.ours:
        parts.append("written by another program: its scores are no measured ratios")
    return parts


def _sentence(report: AnalyzeReport | CompareReport, found: Candidates) -> str:
    """Say what came out: who is faster, or that the baseline stays and why."""
    rows = found.rows
    if not rows:
        return "the report holds no kernel"
    correct = sum(row.kernel.proved_correct for row in rows)
    if isinstance(report, AnalyzeReport):
        return f"{correct} of {plural(len(rows), 'kernel')} proved correct"
    if not report.ours:
        return f"{correct} of {plural(len(rows), 'kernel')} proved correct; no verdict can be taken from this report"
    base = found.named(found.baseline)
    if base is not None and not base.kernel.proved_correct:
        return f"no verdict: the baseline {base.name} is {base.state}"
    winner = found.named(found.winner)
    if winner is not None:
        return _winner_sentence(winner, rows)
    reason = report.extras.reason if report.extras is not None else None
    if reason == "no_performance_data" or all(row.ratio is None for row in rows if not row.is_baseline):
        return "baseline stays: no candidate has a time"
    if reason == "the_baseline_differs_from_itself":
        return "baseline stays: it differs from itself on this machine, so nothing can be told apart"
    if reason == "not_confirmed":
        return "baseline stays: the leader was not confirmed on fresh replicates"
    margin = "" if found.margin is None else f" by more than {found.margin * 100:.3g} %"
    undecided = [row for row in rows if row.word == "inconclusive"]
    text = f"baseline stays: no candidate is {'proved ' if undecided else ''}faster{margin}"
    if undecided:
        names = ", ".join(row.name for row in undecided[:3]) + (", ..." if len(undecided) > 3 else "")
        text += f"; {names}: undecided"
    return text


def _winner_sentence(winner: Candidate, rows: Sequence[Candidate]) -> str:
    tied = [row.name for row in rows if row.rank == winner.rank and row is not winner and not row.is_baseline]
    text = f"{winner.name} leads {'together with ' + ', '.join(tied) if tied else 'alone'}"
    undecided = [row for row in rows if row.word == "inconclusive"]
    if undecided:
        verb = "cannot" if len(undecided) == 1 else "cannot all"
        text += f"; {', '.join(row.name for row in undecided[:3])} {verb} be told from the baseline yet"
    return text
