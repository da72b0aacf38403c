"""The short text of a pull request: what changes, what it brings, what was not verified."""

from __future__ import annotations

from collections.abc import Iterator

from magpie_tui.campaigns.report import kernel_verdict, serving_verdict, verified_text
from magpie_tui.campaigns.report_blocks import Block, Bullets, Heading, Paragraph
from magpie_tui.campaigns.report_facts import ReportFacts

_MOST_CAVEATS = 6


def pull_request_blocks(facts: ReportFacts) -> list[Block]:
    """Return the text; no plots and no tables, so that it reads well as a commit message too."""
    return list(_blocks(facts))


def _blocks(facts: ReportFacts) -> Iterator[Block]:
    kernel = facts.decision.get("kernel")
    faster = facts.compared is not None and facts.compared.winner is not None
    if kernel and faster:
        yield Heading(f"Speed up {kernel}")
    else:
        yield Heading(f"{kernel}: no claim yet" if kernel else f"Results of campaign {facts.campaign.name}")
    yield Bullets([f"kernel alone: {kernel_verdict(facts)}", f"end to end: {serving_verdict(facts)}"])
    changed = _change(facts)
    if changed:
        yield Paragraph(changed)
    integration = facts.campaign.step("integrate").decision
    if integration:
        yield Paragraph(f"Integrated as {integration.get('kind')}: {integration.get('what')}")
    yield Paragraph(verified_text(facts))
    caveats = facts.not_verified()
    if caveats:
        more = [f"and {len(caveats) - _MOST_CAVEATS} more, listed in the full report"]
        yield Paragraph("Not verified:")
        yield Bullets([*caveats[:_MOST_CAVEATS], *(more if len(caveats) > _MOST_CAVEATS else [])])


def _change(facts: ReportFacts) -> str:
    compared = facts.compared
    winner = compared.named(compared.winner) if compared is not None else None
    return f"The change: {winner.change}" if winner is not None and winner.change else ""
