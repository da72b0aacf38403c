"""An experiment as lines: the verdict, figures against their margin, pairs, what it rests on; no widget in here."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.cells import set_cell_size
from textual.content import Content

from magpie_tui.basics.tables import shorten_middle
from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_clock, format_percent
from magpie_tui.serving.experiment_state import ExperimentState, order_of
from magpie_tui.serving.verdict_model import MetricOutcome, Pair, ServedRun, ServingVerdict
from magpie_tui.serving.verdict_text import value_text
from magpie_tui.tui.screens.experiments_reading import ExperimentReading
from magpie_tui.tui.screens.run_live_lines import live_lines
from magpie_tui.tui.widgets.interval_bar import ASCII, UTF8, BarGlyphs, IntervalAxis, axis_for

_STYLES = {
    "improved": "$success",
    "improved_with_regression": "$warning",
    "regressed": "$error",
    "unexplained": "$warning",
    "not_comparable": "$error",
    "invalid": "$error",
}
_BAR = 26
_NAME = 24
_STATES = {
    "ok": "ok",
    "worse": "WORSE",
    "inconclusive": "not excluded",
    "not_evaluated": "not evaluated",
    "not_applicable": "-",
}
_NARROW = 100
_RUN_LINES = 6


def headline(reading: ExperimentReading) -> tuple[str, str]:
    """Return the first line about an experiment and its style: the sentence, or how far it is and no word yet."""
    state, verdict = reading.state, reading.verdict
    if state is None:
        return reading.failure or "it cannot be read", "$error"
    if reading.ended and verdict is not None:
        return f"{verdict.word.upper().replace('_', ' ')}   {verdict.sentence}", _STYLES.get(verdict.word, "")
    done = 0 if verdict is None else len(verdict.pairs)
    word = "RUNNING" if state.state == "running" else "STOPPED"
    left = _time_left(state, done)
    parts = [f"{word}   {state.interim or f'{done} of ' + plural(state.plan.pairs, 'pair')}"]
    if left is not None and state.state == "running":
        parts.append(f"about {format_clock(left)} left")
    if state.reason and state.state == "stopped":
        parts.append(state.reason)
    note = f"   (no verdict before pair {state.plan.pairs})" if state.state == "running" else ""
    return ", ".join(parts) + note, "$accent" if state.state == "running" else "$warning"


def _time_left(state: ExperimentState, done: int) -> float | None:
    if not state.pair_seconds:
        return None
    return (state.plan.pairs - done) * sum(state.pair_seconds) / len(state.pair_seconds)


def pane_lines(
    reading: ExperimentReading, pane: str, width: int, *, ascii_only: bool, now_s: float | None = None
) -> list[Content]:
    """Return the lines of a pane: ``figures``, ``pairs``, ``trust`` or ``text``."""
    verdict = reading.verdict
    if reading.state is None or verdict is None:
        return [Content(printable(reading.failure or "nothing yet"))]
    glyphs = ASCII if ascii_only else UTF8
    lines = {
        "figures": lambda: list(_figures(reading, verdict, width, glyphs, now_s)),
        "pairs": lambda: list(_pairs(reading, verdict, width)),
        "trust": lambda: list(_trust(reading, verdict, width)),
    }
    if pane in lines:
        return lines[pane]()
    if not reading.text:
        return [Content("the text is written at the end")]
    return [Content(printable(line)) for line in reading.text.splitlines()]


def _gains(outcome: MetricOutcome) -> tuple[float, float, float] | None:
    """Low end, point and high end of the gain in percent, positive is better; None where not evaluated."""
    interval = outcome.interval
    if interval is None:
        return None
    if outcome.is_share:
        values = [interval.low, interval.point, interval.high]
        known = [interval.point if value is None else value for value in values]
        return known[0] * 100, known[1] * 100, known[2] * 100
    low = interval.point if interval.low is None else interval.low
    high = interval.point if interval.high is None else interval.high
    return (low - 1) * 100, (interval.point - 1) * 100, (high - 1) * 100


def _figures(
    reading: ExperimentReading, verdict: ServingVerdict, width: int, glyphs: BarGlyphs, now_s: float | None
) -> Iterator[Content]:
    outcomes = [verdict.primary, *verdict.guards]
    ratios = [gains for item in outcomes if not item.is_share and (gains := _gains(item)) is not None]
    axis = axis_for([(low, high) for low, _point, high in ratios], cells=_BAR, margin=verdict.primary.margin * 100)
    has_bar = width >= _NARROW
    header = f"  {'figure':<{_NAME}}{'A':>14}{'B':>14}  {'gain':>8}  {'95 % interval':<18}"
    yield Content.assemble((header + (axis.header() if has_bar else "") + "  margin", "$quiet"))
    for outcome in outcomes:
        yield _figure(outcome, axis, glyphs, primary=outcome is verdict.primary, has_bar=has_bar, ended=reading.ended)
    yield Content("")
    yield Content.assemble(("gain in %, + is better in every row; * decides", "$quiet"))
    if reading.running is not None:
        number, arm, live = reading.running
        yield Content("")
        yield Content.assemble((f"now: pair {number}, {arm.upper()}", "bold $primary"))
        for label, text, style in live_lines(live, width - 8, _RUN_LINES, now_s=now_s):
            shown = shorten_middle(text, max(10, width - 8))
            yield Content.assemble((f"{label:<8}", "$quiet"), (shown, style) if style else shown)


def _figure(
    outcome: MetricOutcome, axis: IntervalAxis, glyphs: BarGlyphs, *, primary: bool, has_bar: bool, ended: bool
) -> Content:
    gains = _gains(outcome)
    mark = "*" if primary else " "
    a, b = value_text(outcome.key, outcome.baseline), value_text(outcome.key, outcome.optimized)
    start = f"{mark} {set_cell_size(outcome.title, _NAME)}{a:>14}{b:>14}  "
    if gains is None:
        return Content.assemble(start, (f"{'-':>8}  {printable(outcome.reason or 'not evaluated')}", "$quiet"))
    low, point, high = gains
    has_interval = outcome.interval is not None and outcome.interval.low is not None
    interval = f"{low:+.1f} .. {high:+.1f}" if has_interval else "none with so few"
    text = f"{start}{point:>+8.1f}  {interval:<18}"
    own = IntervalAxis(axis.low, axis.high, axis.cells, outcome.margin * 100)
    blank = outcome.is_share or not all(map(math.isfinite, gains))
    bar = " " * axis.cells if blank else own.bar(low if has_interval else None, point, high, glyphs=glyphs)
    margin = format_percent(outcome.margin) if not outcome.is_share else f"{outcome.margin * 100:g} p"
    state = "" if primary or not ended else f"  {_STATES[outcome.state]}"
    style = "$error" if outcome.state == "worse" and ended else ""
    return Content.assemble(text, bar if has_bar else "", f"  {margin}", (state, style) if style else state)


def _pairs(reading: ExperimentReading, verdict: ServingVerdict, width: int) -> Iterator[Content]:
    state = reading.state
    key = verdict.primary.key
    yield Content.assemble((f"  pair  order  {'A':>14}{'B':>14}      gain  {'state':<12} runs", "$quiet"))
    for pair in verdict.pairs:
        yield Content(_pair(pair, key, verdict.primary))
    done = {pair.number for pair in verdict.pairs}
    for number in range(1, (state.plan.pairs if state else 0) + 1):
        if number not in done:
            order = " ".join(arm.upper() for arm in order_of(number))
            yield Content.assemble((f"  {number:>4}  {order:<5}  {'to come':>14}", "$quiet"))
    for text in verdict.set_aside:
        for line in _folded(f"set aside and run again: {printable(text)}", width):
            yield Content.assemble((line, "$warning"))


def _pair(pair: Pair, key: str, primary: MetricOutcome) -> str:
    a, b = pair.a.values.get(key), pair.b.values.get(key)
    order = {"a": "A B", "b": "B A", None: "?"}[pair.first]
    gain = "-"
    if a and b:
        ratio = b / a if primary.unit in ("tok/s", "req/s") else a / b
        gain = f"{(ratio - 1) * 100:+.1f} %"
    states = [f"{arm} {run.status}" for arm, run in (("A", pair.a), ("B", pair.b)) if run.status != "ok"]
    names = f"{pair.a.workspace.name} {pair.b.workspace.name}"
    row = f"  {pair.number:>4}  {order:<5}  {value_text(key, a):>14}{value_text(key, b):>14}  {gain:>8}"
    return f"{row}  {', '.join(states) or 'ok':<12} {names}"


def _trust(reading: ExperimentReading, verdict: ServingVerdict, width: int) -> Iterator[Content]:
    for what, text in _trust_facts(reading, verdict):
        pieces = _folded(printable(text), max(20, width - 16))
        yield Content.assemble((f"{what:<14}", "$quiet"), pieces[0] if pieces else "")
        for piece in pieces[1:]:
            yield Content(" " * 14 + piece)


def _trust_facts(reading: ExperimentReading, verdict: ServingVerdict) -> Iterator[tuple[str, str]]:
    state = reading.state
    if state is not None:
        for arm in ("a", "b"):
            yield arm.upper(), state.configs[arm]["path"]
    compared = verdict.comparability
    declared = [item for item in compared.differences if item.declared]
    yield "comparable", f"{plural(len(declared), 'declared difference')}, {len(compared.forbidding)} others"
    for item in compared.differences:
        yield "  declared" if item.declared else "  OTHER", f"{item.name}: {item.a} / {item.b}"
    runs: list[ServedRun] = [run for pair in verdict.pairs for run in (pair.a, pair.b)]
    valid = sum(run.status == "ok" for run in runs)
    yield "runs valid", f"{valid} of {plural(len(runs), 'run')}"
    yield "new kernel", verdict.proof_of_use.text
    yield "adds up", verdict.plausibility.text
    if verdict.sign_flip_p is not None:
        yield "sign flip", f"p {verdict.sign_flip_p:.3g} (exact, a cross-check of the interval)"
    if verdict.pairs_needed is not None:
        yield "pairs needed", f"about {verdict.pairs_needed}"
    if compared.unknown:
        yield "not told", ", ".join(compared.unknown)
    for reason in verdict.reasons if reading.ended else ():
        yield "because", reason
    kernels = verdict.kernels
    yield "now top", kernels.new_bottleneck or kernels.reason or "the same kernel as before"
    for name in kernels.regressions:
        yield "slower", name


def _folded(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(20, width), break_on_hyphens=False) or [""]
