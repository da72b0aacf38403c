"""A recommendation as JSON and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from magpie_tui.basics.text import printable
from magpie_tui.campaigns.recommend import Choice, KernelEvidence, Recommendation
from magpie_tui.sources.families import FAMILIES
from magpie_tui.sources.model import SourceReport


def recommendation_json(found: Recommendation) -> dict[str, object]:
    """Return the JSON object; what was not measured is null."""
    return {
        "stage": {"name": found.stage, "reason": found.stage_reason, "device_time_ms": found.stage_ms},
        "ceilings": found.ceilings,
        "recommended": None if found.chosen is None else _choice(found.chosen),
        "alternatives": [_choice(choice) for choice in found.alternatives],
        "rejected": [
            {"measured": _evidence(item.evidence), "source": _source(item.source), "reason": item.reason}
            for item in found.rejected
        ],
        "trace_quality": list(found.quality),
    }


def _choice(choice: Choice) -> dict[str, object]:
    gain = choice.gain
    return {
        "measured": _evidence(choice.evidence),
        "source": _source(choice.source),
        "end_to_end_gain_pct": None if gain is None else {"low": gain.low_pct, "high": gain.high_pct},
        "assumptions": list(choice.assumptions),
    }


def _evidence(item: KernelEvidence) -> dict[str, object]:
    return {
        "kernel": item.name,
        "calls": item.calls,
        "time_ms": item.time_ms,
        "share_of_stage_pct": item.share_of_stage_pct,
        "share_of_trace_pct": item.share_of_trace_pct,
        "mean_us": item.mean_us,
        "operator": item.op,
        "shapes": item.shapes,
        "types": item.types,
        "input_dims": item.input_dims,
        "input_types": item.input_types,
        "bound": item.bound,
        "ceiling": item.ceiling,
        "percent_of_ceiling": item.percent_of_ceiling,
        "time_above_ceiling_ms": item.win_ms,
        "why_no_ceiling": item.reason if item.ceiling is None else None,
    }


def _source(report: SourceReport) -> dict[str, object]:
    source, test = report.source, report.test
    return {
        "family": report.facts.family,
        "library": FAMILIES[report.facts.family].library,
        "category": report.facts.category,
        "facts": dict(report.facts.facts),
        "file": source.file if source else None,
        "line": source.line if source else None,
        "repository": source.repository if source else None,
        "confidence": source.confidence if source else None,
        "reasons": list(source.reasons) if source else [],
        "why_none": report.reason if source is None else None,
        "test_file": test.file if test else None,
        "test_command": list(test.command) if test else None,
        "baseline_function": test.baseline if test else None,
    }


def recommendation_lines(found: Recommendation) -> Iterator[str]:
    """The recommendation as Markdown; it can be read as it is in a terminal too."""
    yield f"# Kernel to work on: {_name(found.chosen.evidence.name) if found.chosen else 'none'}"
    yield ""
    yield f"Stage {found.stage} ({found.stage_reason}), {found.stage_ms:.3f} ms of device time."
    yield f"Ceilings: {found.ceilings}."
    if found.chosen is None:
        yield ""
        yield "No kernel can be worked on safely here; the reasons follow."
    else:
        yield from _chosen_lines(found.chosen)
    if found.alternatives:
        yield ""
        yield "## Further ones"
        yield ""
        for choice in found.alternatives:
            yield f"- {_short(choice.evidence)}{_gain(choice)}"
    if found.rejected:
        yield ""
        yield "## Passed over, though larger"
        yield ""
        for item in found.rejected:
            yield f"- {_short(item.evidence)}: {printable(item.reason)}"
    if found.quality:
        yield ""
        yield "## Quality of the trace"
        yield ""
        for text in found.quality:
            yield f"- {printable(text)}"


def _chosen_lines(choice: Choice) -> Iterator[str]:
    item, source, test = choice.evidence, choice.source.source, choice.source.test
    yield ""
    yield "## Measured"
    yield ""
    yield f"- {item.time_ms:.3f} ms in {item.calls} calls of {item.mean_us:.1f} us"
    yield f"- {item.share_of_stage_pct:.1f} % of the device time of the stage"
    if item.share_of_trace_pct is not None:
        yield f"- {item.share_of_trace_pct:.1f} % of the device time of the whole trace"
    yield f"- launched by {printable(item.op)}, shapes {printable(item.shapes)} ({printable(item.types)})"
    if item.percent_of_ceiling is not None:
        yield f"- {item.bound}-bound, {item.percent_of_ceiling:.1f} % of {item.ceiling}"
    if item.win_ms is not None:
        yield f"- {item.win_ms:.3f} ms above the ceiling"
    yield ""
    yield "## Source and test"
    yield ""
    if source is not None:
        place = f"{source.file}:{source.line}" if source.line else str(source.file)
        yield f"- {printable(place)}"
        yield f"- confidence {source.confidence}: {printable('; '.join(source.reasons))}"
    if test is not None:
        yield f"- guarded by `{printable(shlex.join(test.command))}`"
        if test.baseline:
            yield f"- reference: `{test.baseline}` in that test"
    yield ""
    yield "## Worth"
    yield ""
    if choice.gain is None:
        yield "- not known: there is no ceiling to compare with"
    else:
        low, high = choice.gain.low_pct, choice.gain.high_pct
        yield f"- end to end at most +{high:.1f} % if it reached its ceiling, +{low:.1f} % at half the way"
    yield ""
    yield "## Assumed, not measured"
    yield ""
    for text in choice.assumptions:
        yield f"- {printable(text)}"


def _short(item: KernelEvidence) -> str:
    return f"{_name(item.name)}: {item.time_ms:.3f} ms, {item.share_of_stage_pct:.1f} % of the stage"


def _gain(choice: Choice) -> str:
    if choice.gain is None:
        return "; worth not known"
    return f"; worth +{choice.gain.low_pct:.1f} to +{choice.gain.high_pct:.1f} %"


def _name(name: str) -> str:
    text = printable(name)
    return text if len(text) <= 90 else f"{text[:60]}...{text[-27:]}"
