"""A verdict for people (``verdict.md``) and for programs (``verdict.json``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from magpie_tui.basics.files import write_json, write_text
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.basics.text import printable
from magpie_tui.basics.units import format_percent
from magpie_tui.serving.verdict_model import (
    RULES,
    VERDICT_SCHEMA_VERSION,
    MetricOutcome,
    Pair,
    ServedRun,
    ServingVerdict,
)
from magpie_tui.serving.verdict_rule import outcome_text
from magpie_tui.statistics.intervals import Interval

JSON_NAME = "verdict.json"
MARKDOWN_NAME = "verdict.md"


def write_verdict(directory: Path, verdict: ServingVerdict, *, title: str, more: Mapping[str, object]) -> None:
    """Write both files durably.

    Args:
        title: Heading of the text.
        more: Further keys of the JSON object (the experiment's state, the configs).

    Raises:
        MachineError: The disk is full or the directory cannot be written.
    """
    write_json(directory / JSON_NAME, {**verdict_json(verdict), **more}, durable=True)
    write_text(directory / MARKDOWN_NAME, markdown(verdict, title=title), durable=True)


def verdict_json(verdict: ServingVerdict) -> dict[str, object]:
    """Return the object of ``verdict.json``."""
    interval = verdict.primary.interval
    return {
        "schema_version": VERDICT_SCHEMA_VERSION,
        "verdict": {
            "word": verdict.word,
            "sentence": verdict.sentence,
            "reason": verdict.reasons[0] if verdict.reasons else None,
            "ratio": None if interval is None else interval.point,
            "ratio_low": None if interval is None else interval.low,
            "ratio_high": None if interval is None else interval.high,
            "confidence": verdict.confidence,
            "replicates": len(verdict.pairs),
        },
        "reasons": list(verdict.reasons),
        "primary": _outcome_json(verdict.primary),
        "guards": [_outcome_json(guard) for guard in verdict.guards],
        "comparability": {
            "comparable": not verdict.comparability.forbidding,
            "differences": to_plain(verdict.comparability.differences),
            "unknown": list(verdict.comparability.unknown),
            "notes": list(verdict.comparability.notes),
        },
        "proof_of_use": to_plain(verdict.proof_of_use),
        "plausibility": to_plain(verdict.plausibility),
        "kernels": to_plain(verdict.kernels),
        "planned_pairs": verdict.planned,
        "interleaved": verdict.interleaved,
        "sign_flip_p": verdict.sign_flip_p,
        "pairs_needed": verdict.pairs_needed,
        "set_aside": list(verdict.set_aside),
        "pairs": [_pair_json(pair) for pair in verdict.pairs],
    }


def _outcome_json(outcome: MetricOutcome) -> dict[str, object]:
    return {
        "metric": outcome.key,
        "title": outcome.title,
        "unit": outcome.unit,
        "compared_by": "difference" if outcome.is_share else "ratio",
        "margin": outcome.margin,
        "state": outcome.state,
        "baseline": outcome.baseline,
        "optimized": outcome.optimized,
        "interval": None if outcome.interval is None else _interval_json(outcome.interval),
        "p_value": outcome.p_value,
        "reason": outcome.reason,
    }


def _interval_json(interval: Interval) -> dict[str, object]:
    plain: dict[str, object] = to_plain(interval)
    return plain


def _pair_json(pair: Pair) -> dict[str, object]:
    return {"number": pair.number, "first": pair.first, "a": _run_json(pair.a), "b": _run_json(pair.b)}


def _run_json(run: ServedRun) -> dict[str, object]:
    return {
        "workspace": str(run.workspace),
        "status": run.status,
        "reasons": list(run.reasons),
        "writer": run.writer,
        "started_at": None if run.started_at is None else run.started_at.isoformat(),
        "values": dict(run.values),
        "seed": run.facts.get("load.seed"),
        "notes": list(run.notes),
    }


# Markdown.


def markdown(verdict: ServingVerdict, *, title: str) -> str:
    """Return the text that a person can send on: the sentence first, then everything that it rests on."""
    parts = [
        f"# {_safe(title)}",
        f"**{_safe(verdict.sentence)}**",
        _rest_of_reasons(verdict),
        _figures(verdict),
        _pairs_table(verdict),
        _comparability(verdict),
        _evidence(verdict),
        _kernels(verdict),
        _how(verdict),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _safe(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")


def _rest_of_reasons(verdict: ServingVerdict) -> str:
    return "\n".join(f"- {_safe(reason)}" for reason in verdict.reasons[1:])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join(" ---: " if place in right else " --- " for place in range(len(header))) + "|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(_safe(cell) for cell in row) + " |" for row in rows)])


def value_text(key: str, value: float | None) -> str:
    """Return a figure with its unit."""
    if value is None:
        return "-"
    rule = RULES[key]
    if rule.is_share:
        return format_percent(value, digits=2)
    return f"{value:,.1f} {rule.unit}" if value >= 100 else f"{value:,.3g} {rule.unit}"


_STATES = {
    "ok": "ok",
    "worse": "WORSE",
    "inconclusive": "no loss shown, a loss of the margin not excluded",
    "not_evaluated": "not evaluated",
    "not_applicable": "not applicable",
}


def _figures(verdict: ServingVerdict) -> str:
    rows = []
    for role, outcome in (("primary", verdict.primary), *(("guard", guard) for guard in verdict.guards)):
        state = "decides" if role == "primary" and outcome.state == "ok" else _STATES[outcome.state]
        rows.append(
            (
                outcome.title,
                value_text(outcome.key, outcome.baseline),
                value_text(outcome.key, outcome.optimized),
                outcome_text(outcome),
                format_percent(outcome.margin),
                state,
            )
        )
    header = ("figure", "baseline A", "optimized B", "change from A to B", "margin", "state")
    return "## Figures\n\n" + _table(header, rows, right=(1, 2))


def _pairs_table(verdict: ServingVerdict) -> str:
    if not verdict.pairs:
        return ""
    key = verdict.primary.key
    rows = []
    for pair in verdict.pairs:
        a, b = pair.a.values.get(key), pair.b.values.get(key)
        ratio = "-" if a is None or b is None or a <= 0 else f"{(b / a - 1) * 100:+.1f} %"
        order = {"a": "A B", "b": "B A", None: "not known"}[pair.first]
        rows.append(
            (
                str(pair.number),
                order,
                value_text(key, a),
                value_text(key, b),
                ratio,
                _status(pair),
                pair.a.workspace.name,
            )
        )
    header = ("pair", "order", "A", "B", "B / A", "status", "workspace of A")
    text = f"## Pairs ({verdict.primary.title})\n\n" + _table(header, rows, right=(0, 2, 3, 4))
    aside = "\n".join(f"- set aside and run again: {_safe(item)}" for item in verdict.set_aside)
    return text + (f"\n\n{aside}" if aside else "")


def _status(pair: Pair) -> str:
    words = [f"{arm} {run.status}" for arm, run in (("A", pair.a), ("B", pair.b)) if run.status != "ok"]
    return ", ".join(words) or "ok"


def _comparability(verdict: ServingVerdict) -> str:
    found = verdict.comparability
    lines = ["## What differs", ""]
    if found.differences:
        rows = [
            (item.name, str(item.a), str(item.b), "the change under test" if item.declared else "NOT DECLARED")
            for item in found.differences
        ]
        lines.append(_table(("fact", "A", "B", ""), rows))
    else:
        lines.append("Nothing that the runs tell of themselves differs between the arms.")
    lines += ["", *(f"- {_safe(note)}" for note in (*found.notes, *found.unknown))]
    return "\n".join(lines).rstrip()


def _evidence(verdict: ServingVerdict) -> str:
    lines = [
        "## Evidence",
        "",
        f"- use of the change: {verdict.proof_of_use.state.replace('_', ' ')}: {_safe(verdict.proof_of_use.text)}",
        f"- what to expect: {_safe(verdict.plausibility.text)}",
    ]
    if verdict.sign_flip_p is not None:
        lines.append(f"- exact sign-flip test over {len(verdict.pairs)} pairs: p = {verdict.sign_flip_p:.3f}")
    lines.append(f"- runs of both arms took turns: {'yes' if verdict.interleaved else 'no'}")
    if verdict.pairs_needed is not None:
        lines.append(f"- about {verdict.pairs_needed} pairs would settle it at the scatter seen")
    return "\n".join(lines)


def _kernels(verdict: ServingVerdict) -> str:
    view = verdict.kernels
    if not view.changes:
        return f"## Kernels\n\nNot shown: {_safe(view.reason or 'no traces')}."

    def percent(value: float | None) -> str:
        return "-" if value is None else f"{value:.1f} %"

    def microseconds(value: float | None) -> str:
        return "-" if value is None else f"{value:,.1f} µs"

    rows = [
        (
            f"`{item.name[:80]}`",
            percent(item.before_percent),
            percent(item.after_percent),
            microseconds(item.before_us),
            microseconds(item.after_us),
        )
        for item in view.changes
    ]
    lines = [
        "## Kernels (profiled twins; their times explain and are in no figure above)",
        "",
        _table(("kernel", "share A", "share B", "a call A", "a call B"), rows, right=(1, 2, 3, 4)),
    ]
    if view.new_bottleneck is not None:
        lines += ["", f"New bottleneck: `{_safe(view.new_bottleneck)}`."]
    if view.regressions:
        lines += [
            "",
            "Slower a call by more than 10 %: " + ", ".join(f"`{_safe(name)}`" for name in view.regressions) + ".",
        ]
    return "\n".join(lines)


def _how(verdict: ServingVerdict) -> str:
    return (
        "## How it was judged\n\n"
        f"The unit is the run. Per pair the log ratio of {verdict.primary.title}; mean and Student's t interval over "
        f"{len(verdict.pairs)} of {verdict.planned} planned pairs, an exact sign-flip test beside it. A gain counts "
        f"when the interval lies above 0 and the point reaches the margin of {format_percent(verdict.primary.margin)}; "
        "guards are corrected for their number (Holm). Every number can be computed again from the workspaces of the "
        "pairs."
    )
