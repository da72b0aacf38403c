"""``magpie-tui trace``."""

from __future__ import annotations

from magpie_tui.cli.group import LazyCommand, LazyGroup, group_app

COMMANDS: dict[str, LazyCommand] = {
    "kernels": LazyCommand(
        "magpie_tui.cli.trace_kernels", "Rank kernels by their share of the device's time.", "", function="kernels"
    ),
    "summary": LazyCommand(
        "magpie_tui.cli.trace_kernels",
        "Account for every event: what was read, repaired and dropped, and which numbers that touches.",
        "",
        function="summary",
    ),
    "stages": LazyCommand(
        "magpie_tui.cli.trace_time",
        "Show the steps of an engine by stage: prefilldecode, decode, prefill; --json holds every listing.",
        "",
        function="stages",
    ),
    "gaps": LazyCommand(
        "magpie_tui.cli.trace_time",
        "Show when the device stood idle, why, and what stands around the largest gaps.",
        "",
        function="gaps",
    ),
    "collectives": LazyCommand(
        "magpie_tui.cli.trace_collectives",
        "Match collectives across ranks: size, latency, bandwidth, skew, waits and the straggler.",
        "",
        function="collectives",
    ),
    "ceilings": LazyCommand(
        "magpie_tui.cli.trace_ceilings",
        "Measure this machine's copy and matrix rates with torch and keep them as named ceilings.",
        "",
        function="ceilings",
    ),
    "diff": LazyCommand(
        "magpie_tui.cli.trace_diff",
        "Compare kernels, operators and stages of two runs: slower, faster, new, gone; per step where both have steps.",
        "",
        function="diff",
    ),
    "roofline": LazyCommand(
        "magpie_tui.cli.trace_roofline",
        "List operators with shapes, time, work and their distance to the device's ceilings.",
        "",
        function="roofline",
    ),
    "split": LazyCommand(
        "magpie_tui.cli.trace_split",
        "Cut a trace into steady-state windows, phases or single steps, with execution_details.csv and .json.",
        "",
        function="split",
    ),
}


class TraceGroup(LazyGroup):
    """Imports only the command that is used: what others need takes as long to import as a report to show."""

    lazy_commands = COMMANDS


app = group_app("Read traces of the torch profiler.", TraceGroup)


@app.callback()
def _trace() -> None:
    """Read traces of the torch profiler."""
