"""What the screens say about a benchmark while it runs, as lines; no widget in here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from magpie_tui.basics.text import plural, printable
from magpie_tui.basics.units import format_bytes, format_clock
from magpie_tui.serving.live import LiveSample, LiveView
from magpie_tui.serving.model import Phase

LEVELS = " .:-=+*#"
"""Heights of a line of figures; plain characters are one cell wide in every terminal."""
_FIGURES = 36
"""Cells left for the figures behind a line of figures."""

Line = tuple[str, str, str]
"""Label, text, style."""


def live_lines(live: LiveView, width: int, count: int, *, now_s: float | None = None) -> list[Line]:
    """Return the lines about a benchmark that goes on, the most needed ones first.

    Args:
        width: Cells for the text of a line.
        count: Lines there is room for.
        now_s: Seconds since the epoch; None: as of the last thing that was told.
    """
    lines: list[Line] = [("phase", phase_line(live, now_s), ""), ("load", load_line(live), "")]
    rates = rate_line(live, width)
    if rates:
        lines.append(("tok/s", rates, ""))
    waits = ttft_line(live, width)
    if waits:
        lines.append(("TTFT", waits, ""))
    flags = flag_line(live)
    if flags:
        lines.append(("flags", flags, "$warning"))
    server = server_line(live)
    if server:
        lines.append(("server", server, ""))
    for index, values in sorted(live.last.gpus.items()) if live.last else ():
        lines.append((f"gpu {index}", gpu_line(values), ""))
    return lines[:count]


def phase_line(live: LiveView, now_s: float | None = None) -> str:
    """``start 0:48 > warm-up 0:20 > MEASURE 3:59``."""
    if not live.phases:
        return "begins"
    ends = [*(begin for _name, begin in live.phases[1:]), live.at_s(now_s)]
    words = [f"{name} {format_clock(end - begin)}" for (name, begin), end in zip(live.phases, ends, strict=True)]
    if "outcome" not in live.facts:
        name, _, rest = words[-1].rpartition(" ")
        words[-1] = f"{name.upper()} {rest}"
    left = live.eta_s()
    return " > ".join(words) + (f"   about {format_clock(left)} left" if left is not None else "")


def load_line(live: LiveView) -> str:
    """``32 in flight   706 done   0 failed   of 1,280``."""
    last = live.last
    if last is None:
        return "not yet"
    total = "" if last.total is None else f"   of {last.total:,}"
    error = f"   {printable(last.message)}" if last.message else ""
    return f"{last.in_flight:,} in flight   {last.done:,} done   {last.failed:,} failed{total}{error}"


def rate_line(live: LiveView, width: int) -> str:
    """Throughput over time and the newest figure; empty before there is any."""
    samples = _shown_samples(live)
    known = [sample.tokens_per_s for sample in samples if sample.tokens_per_s is not None]
    if not known:
        return ""
    return f"{sparkline(rates_of(samples), _room(width))}   {known[-1]:,.0f}   so far"


def ttft_line(live: LiveView, width: int) -> str:
    """TTFT over time, of the requests that got their first token since the sample before; empty before there is any."""
    known = [sample.ttft_ms for sample in _shown_samples(live) if sample.ttft_ms is not None]
    if not known:
        return ""
    return f"{sparkline(known, _room(width))}   {known[-1]:,.1f} ms, highest {max(known):,.1f}   so far"


def _shown_samples(live: LiveView) -> tuple[LiveSample, ...]:
    """Samples of the measured part, or of the warm-up before there are any."""
    return live.measured() or tuple(sample for sample in live.samples if sample.phase == Phase.warm_up.value)


def _room(width: int) -> int:
    """Cells of a line of figures; the same for all, so that they stand under each other."""
    return max(8, min(48, width - _FIGURES))


def rates_of(samples: Sequence[LiveSample]) -> list[float]:
    """Return tokens/s in order; 0 where none came."""
    return [sample.tokens_per_s or 0.0 for sample in samples]


def sparkline(values: Sequence[float], cells: int) -> str:
    """Return values over time in so many cells, the highest one at full height; several in a cell are averaged."""
    if not values or cells < 1:
        return ""
    if len(values) > cells:
        edges = [round(place * len(values) / cells) for place in range(cells + 1)]
        values = [sum(values[low:high]) / (high - low) for low, high in itertools.pairwise(edges)]
    top = max(values)
    if top <= 0 or not math.isfinite(top):
        return LEVELS[0] * len(values)
    return "".join(LEVELS[min(len(LEVELS) - 1, max(0, round(value / top * (len(LEVELS) - 1))))] for value in values)


def server_line(live: LiveView) -> str:
    """What the server's own metrics say; empty where it exposes none."""
    values = live.last.server if live.last else {}
    words = [
        _number(values, "running", "running"),
        _number(values, "waiting", "waiting"),
        _share(values, "kv_cache", "KV {}"),
        _number(values, "preempted", "preempted"),
        _share(values, "cache_hits", "{} cache hits"),
    ]
    return "   ".join(word for word in words if word)


def _number(values: Mapping[str, float], name: str, word: str) -> str:
    return f"{values[name]:,.0f} {word}" if name in values else ""


def _share(values: Mapping[str, float], name: str, text: str) -> str:
    return text.format(f"{100 * values[name]:.0f} %") if name in values else ""


def gpu_line(values: Mapping[str, float]) -> str:
    """``1,985 MHz   612 W   71 C   168.0 GB``."""
    words = [
        f"{values['clock_core_mhz']:,.0f} MHz" if "clock_core_mhz" in values else "",
        f"{values['power_w']:,.0f} W" if "power_w" in values else "",
        f"{values['temperature_c']:.0f} C" if "temperature_c" in values else "",
        format_bytes(values["memory_used_bytes"]) if "memory_used_bytes" in values else "",
    ]
    return "   ".join(word for word in words if word) or "nothing can be read"


def flag_line(live: LiveView) -> str:
    """The newest flag of the server's log, and how many there are; empty without any."""
    if not live.flags:
        return ""
    flag = live.flags[-1]
    more = len(live.flags) - 1
    text = f"! {printable(flag.text)} (server.log line {flag.line:,})"
    return text + (f"   and {plural(more, 'other flag')}" if more else "")


def command_lines(live: LiveView) -> list[tuple[str, str]]:
    """Return the raw commands of server and client with their environment, to copy, each with its name."""
    import json
    import shlex

    found = []
    for name, kind in (("server command", "server"), ("client command", "client_command")):
        facts = live.facts.get(kind, {})
        command, environment = facts.get("command"), facts.get("environment")
        if isinstance(command, list) and command:
            variables = environment.items() if isinstance(environment, dict) else ()
            words = [f"{variable}={shlex.quote(str(value))}" for variable, value in variables]
            found.append((name, " ".join([*words, shlex.join(map(str, command))])))
    client = live.facts.get("client", {})
    if client:
        found.append(("client plan", json.dumps({key: value for key, value in client.items() if key != "at_s"})))
    return found
