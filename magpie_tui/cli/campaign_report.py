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
    from magpie_tui.campaigns.bundle_files import write_bundle
    from magpie_tui.campaigns.file import load_campaign
    from magpie_tui.campaigns.report import report_blocks
    from magpie_tui.campaigns.report_blocks import to_html, to_markdown
    from magpie_tui.campaigns.report_facts import gather_facts
    from magpie_tui.campaigns.report_pr import pull_request_blocks
    from magpie_tui.campaigns.state import live_runs, view_campaign

    campaign = load_campaign(directory)
    facts = gather_facts(campaign, view_campaign(campaign, live_runs(campaign)))
    blocks = report_blocks(facts)
    texts = {
        ReportFormat.md: to_markdown(blocks),
        ReportFormat.html: to_html(blocks, f"Campaign {campaign.name}"),
        ReportFormat.pr: to_markdown(pull_request_blocks(facts)),
    }
    left_out: dict[str, str] = {}
    if output is not None:
        write_text(output, texts[form])
    if bundle is not None:
        reports = {"report.md": texts[ReportFormat.md], "report.html": texts[ReportFormat.html]}
        left_out = write_bundle(campaign, bundle, reports)
    if wants_json():
        counts = facts.verification.to_json()["counts"]
        value = {"schema": SCHEMA, "report": output, "bundle": bundle, "left_out": left_out, "verification": counts}
        write_json(value if output is not None else {**value, "text": texts[form]})
        return
    if output is None:
        write(texts[form].rstrip("\n"))
    else:
        write(f"report: {printable(str(output))}")
    for name, reason in left_out.items():
        write(f"left out of the bundle: {printable(name)}: {printable(reason)}")
    if bundle is not None:
        write(f"bundle: {printable(str(bundle))}")
