"""``trace ceilings``: measure this machine's copy and matrix ceilings, or list those that are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.units import NOT_MEASURED
from magpie_tui.cli.output import Column, ListFormat, print_listing
from magpie_tui.cli.trace_common import Format, say
from magpie_tui.traces.listings import digits

if TYPE_CHECKING:
    from magpie_tui.traces.roofline.ceilings import Ceilings
    from magpie_tui.traces.roofline.measure import MeasuredCeilings

RATES = 8
"""Copy, read, and products in six precisions."""
MEASURED_SCHEMA = "magpie-tui/trace_ceilings/1"


def ceilings(
    list_known: Annotated[
        bool, typer.Option("--list", help="List the ceilings that are known instead of measuring.")
    ] = False,
    device: Annotated[str, typer.Option("--device", metavar="auto|cuda|cpu", help="What to measure.")] = "auto",
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="Time for each rate.")] = 1.0,
    size_mb: Annotated[
        int, typer.Option("--size-mb", metavar="N", help="Buffer that is copied, in MiB (default: 2048 GPU, 256 CPU).")
    ] = 0,
    python: Annotated[
        Path | None, typer.Option("--python", metavar="FILE", help="Interpreter that has torch (default: ours).")
    ] = None,
    list_format: Format = ListFormat.table,
) -> None:
    """Measure this machine's copy and matrix rates with torch and keep them as named ceilings.

    `trace roofline` then shows them beside the theoretical ones of the same device.

    Example: magpie-tui trace ceilings --list
    """
    if list_known:
        _list(list_format)
        return
    from magpie_tui.traces.roofline.bounds import rate_text
    from magpie_tui.traces.roofline.measure import measure_ceilings
    from magpie_tui.traces.roofline.rows import Bound

    say("note", f"measuring up to {RATES} rates for {seconds:g} s each")
    found = measure_ceilings(device=device, seconds=seconds, megabytes=size_mb, python=python)
    columns = [
        Column("rate"),
        Column("best", "right"),
        Column("median", "right"),
        Column("calls", "right"),
        Column("of"),
        Column("reason", shrink=True),
    ]
    rows: list[list[object]] = []
    for item in found.measurements:
        bound = Bound.memory if item.what in {"copy", "read"} else Bound.compute
        best, median = (
            NOT_MEASURED if rate is None else rate_text(rate, bound) for rate in (item.best_per_s, item.median_per_s)
        )
        rows.append([item.what, best, median, item.calls, item.shape, item.reason or ""])
    print_listing(columns, rows, list_format=list_format, json_value=_measured_json(found), empty="nothing measured")
    say("note", f"kept as {found.ceilings.label!r} in {found.path}")


def _measured_json(found: MeasuredCeilings) -> dict[str, object]:
    from magpie_tui.basics.json_strict import to_plain

    return {
        "schema": MEASURED_SCHEMA,
        "path": str(found.path),
        "ceilings": to_plain(found.ceilings),
        "measurements": to_plain(found.measurements),
        "torch": found.torch,
        "runtime": found.runtime,
        "threads": found.threads,
    }


def _list(list_format: ListFormat) -> None:
    """Print shipped and measured ceilings."""
    from magpie_tui.basics.json_strict import to_plain
    from magpie_tui.traces.roofline.ceilings import devices, measured_ceilings

    known = [*measured_ceilings(), *(item for device in devices() for item in device.ceilings)]
    columns = [
        Column("device"),
        Column("kind"),
        Column("GB/s", "right"),
        Column("bf16 TFLOP/s", "right"),
        Column("fp8 TFLOP/s", "right"),
        Column("fp4 TFLOP/s", "right"),
        Column("source", shrink=True),
    ]
    rows = [
        [
            item.device,
            item.kind,
            digits(None if item.bandwidth is None else item.bandwidth / 1e9, 1),
            *(_peak(item, f"matrix_{precision}") for precision in ("bf16", "fp8", "fp4")),
            item.source,
        ]
        for item in known
    ]
    value = {"schema": "magpie-tui/ceilings/1", "ceilings": to_plain(known)}
    print_listing(columns, rows, list_format=list_format, json_value=value, empty="no ceilings are known")


def _peak(item: Ceilings, spec: str) -> object:
    peak = item.peaks.get(spec)
    return digits(None if peak is None else peak / 1e12, 1)
