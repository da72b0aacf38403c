"""Writes the report of a campaign in the form that is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import write_text
from magpie_tui.campaigns.bundle_files import write_bundle
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Campaign
from magpie_tui.campaigns.report import report_blocks, verified_text
from magpie_tui.campaigns.report_blocks import to_html, to_markdown
from magpie_tui.campaigns.report_facts import ReportFacts, gather_facts
from magpie_tui.campaigns.report_pr import pull_request_blocks
from magpie_tui.campaigns.state import runs_of_steps, view_campaign

FORM_OF_ENDING = {".html": "html", ".htm": "html", ".md": "md", ".pr.md": "pr", ".tar.gz": "bundle", ".tgz": "bundle"}


@dataclass(frozen=True, slots=True)
class Texts:
    """A campaign's report in every form; all of them say the same, of one moment."""

    campaign: Campaign
    facts: ReportFacts
    md: str
    html: str
    pr: str

    def form(self, name: str) -> str:
        """Return the text of ``md``, ``html`` or ``pr``."""
        return {"md": self.md, "html": self.html, "pr": self.pr}[name]


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written; ``left_out`` says what is not in a bundle, and why."""

    path: Path
    verified: str
    left_out: dict[str, str] = field(default_factory=dict)


def report_texts(directory: Path) -> Texts:
    """Read a campaign, verify what it states, and tell it.

    Raises:
        UserInputError: The campaign cannot be read.
    """
    campaign = load_campaign(directory)
    facts = gather_facts(campaign, view_campaign(campaign, runs_of_steps(campaign)))
    blocks = report_blocks(facts)
    return Texts(
        campaign,
        facts,
        md=to_markdown(blocks),
        html=to_html(blocks, f"Campaign {campaign.name}"),
        pr=to_markdown(pull_request_blocks(facts)),
    )


def bundle_of(texts: Texts, path: Path) -> dict[str, str]:
    """Pack a campaign with its reports; returns what was left out, with the reason."""
    return write_bundle(texts.campaign, path, {"report.md": texts.md, "report.html": texts.html})


def form_of(path: Path) -> str:
    """Return the form that a file's ending asks for.

    Raises:
        UserInputError: The ending names none.
    """
    name = path.name.lower()
    for ending in sorted(FORM_OF_ENDING, key=len, reverse=True):
        if name.endswith(ending):
            return FORM_OF_ENDING[ending]
    raise UserInputError("the ending says no form", path=path, hint="end the name with .html, .md, .pr.md or .tar.gz")


def write_report(directory: Path, path: Path) -> Written:
    """Write a campaign's report; the ending of ``path`` says the form.

    Raises:
        UserInputError: The ending names no form, or the campaign cannot be read.
        MachineError: The file cannot be written.
    """
    form = form_of(path)
    texts = report_texts(directory)
    left_out: dict[str, str] = {}
    if form == "bundle":
        left_out = bundle_of(texts, path)
    else:
        write_text(path, texts.form(form))
    return Written(path, verified_text(texts.facts), left_out)
