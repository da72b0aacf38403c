"""A kernel's source and test as lines of text: what the command prints and the app shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from magpie_tui.basics.text import printable
from magpie_tui.sources.families import FAMILIES
from magpie_tui.sources.model import SourceReport


def report_lines(report: SourceReport) -> Iterator[str]:
    """Return one kernel as lines of text: its name, then one fact a line, each with its label in 12 cells."""
    facts, found, test = report.facts, report.source, report.test
    yield printable(facts.plain)
    yield f"  family      {FAMILIES[facts.family].library}"
    yield f"  category    {facts.category}"
    yield f"  function    {printable(facts.function)}"
    if facts.facts:
        yield "  facts       " + printable("; ".join(f"{key} {value}" for key, value in facts.facts.items()))
    if found is None:
        yield f"  source      none: {printable(report.reason or '')}"
    else:
        place = str(found.file) if found.file else f"{found.repository}: {found.path}"
        yield f"  source      {printable(place)}" + (f":{found.line}" if found.line else "")
        yield f"  confidence  {found.confidence}: {printable('; '.join(found.reasons))}"
        if found.url:
            yield f"  public      {found.url}"
        for loser in found.losers:
            yield f"  not taken   {printable(loser.place)}: {printable(loser.reason)}"
    if test is not None:
        yield f"  test        {printable(str(test.file))}: {printable(test.reason)}"
        yield f"  run it      {printable(shlex.join(test.command))}"
        if test.baseline:
            yield f"  reference   {test.baseline} ({test.baseline_kind})"
    if report.triton is not None:
        yield f"  Triton kin  {printable(str(report.triton.file))}:{report.triton.line} {report.triton.symbol}"
