"""``magpie-tui campaign report``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from magpie_tui.basics.text import printable
from magpie_tui.cli.output import wants_json, write, write_json

SCHEMA = "magpie-tui/campaign_report/1"


class ReportFormat(str, Enum):
    """Form of a report."""

    md = "md"
    html = "html"
    pr = "pr"


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the campaign.")],
    form: Annotated[
        ReportFormat, typer.Option("--format", help="Markdown, one HTML page, or a pull request's text.")
    ] = ReportFormat.md,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write it (stdout).")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="FILE.tar.gz", help="Also pack reports, configs, sources and workspaces."),
    ] = None,
) -> None:
    """Write what was found, what it rests on, what was not verified, and how to repeat everything.

    Every stated number is verified first. A bundle can be verified on any machine; secrets and home paths are taken
    out of it.

    Example: magpie-tui campaign report ./campaigns/one --format html -o report.html --bundle one.tar.gz
    """
    from magpie_tui.basics.files import write_text
    from magpie_tui.campaigns.report_writing import bundle_of, report_texts

    texts = report_texts(directory)
    text = texts.form(form.value)
    left_out: dict[str, str] = {}
    if output is not None:
        write_text(output, text)
    if bundle is not None:
        left_out = bundle_of(texts, bundle)
    if wants_json():
        counts = texts.facts.verification.to_json()["counts"]
        value = {"schema": SCHEMA, "report": output, "bundle": bundle, "left_out": left_out, "verification": counts}
        write_json(value if output is not None else {**value, "text": text})
        return
    if output is None:
        write(text.rstrip("\n"))
    else:
        write(f"report: {printable(str(output))}")
    for name, reason in left_out.items():
        write(f"left out of the bundle: {printable(name)}: {printable(reason)}")
    if bundle is not None:
        write(f"bundle: {printable(str(bundle))}")
