"""One line for each step: what was measured or decided."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import Campaign, Link
from magpie_tui.campaigns.steps import Step
from magpie_tui.workspaces.browse import summarize

_TABLES = "tracelens"
UNFINISHED_NAME = ".stages-unfinished"
"""Lies beside ``campaign.yaml`` while tables are written, and after a process that was killed while it wrote some."""
_SIMPLE = "_kernel_roofline_simple.csv"


def twin_workspace(campaign: Campaign) -> Path | None:
    """Return the profiled workspace that counts."""
    links = counting_links(campaign.step("twin").links)
    return links[-1].path if links else None


def twin_tables(campaign: Campaign) -> dict[str, int]:
    """Return the tables of the twin's workspace: path inside ``tracelens/`` → size in bytes.

    Tables that are still being written, or were when their writer was killed, are none.
    """
    workspace = twin_workspace(campaign)
    if workspace is None or (campaign.directory / UNFINISHED_NAME).exists():
        return {}
    root = workspace / _TABLES
    return {str(path.relative_to(root)): path.stat().st_size for path in sorted(root.rglob("*.csv")) if path.is_file()}


def finding_of(links: tuple[Link, ...]) -> str | None:
    """Return the headlines of the workspaces that count."""
    said = []
    for link in links:
        summary = summarize(link.path)
        text = summary.headline if summary is not None else "the workspace is gone"
        said.append(f"{link.label}: {text}" if link.label else text)
    return "; ".join(said) or None


def decision_text(step: Step, decision: Mapping[str, object] | None) -> str | None:
    """Return a decision in words."""
    if decision is None:
        return None
    if step.key == "kernels":
        share = decision.get("share_pct")
        part = f" {share:.1f} % of the device time" if isinstance(share, (int, float)) else ""
        return f"pick {decision.get('kernel', '?')}{part}"
    if step.key == "integrate":
        return f"{decision.get('kind', '?')}: {decision.get('what', '?')}"
    return "; ".join(f"{key}: {value}" for key, value in decision.items())


def stage_finding(campaign: Campaign, tables: Mapping[str, int]) -> str | None:
    """Return the stages for which there are rooflines, the dominant one first, with their times."""
    workspace = twin_workspace(campaign)
    if workspace is None or not tables:
        return None
    found = []
    for name in tables:
        if name.endswith(_SIMPLE):
            total, top = _simple_table(workspace / _TABLES / name)
            if total is not None:
                stage = Path(name).name.removesuffix(_SIMPLE)
                found.append((total, f"{stage} {total:.2f} ms{f', most in {top}' if top else ''}"))
    if not found:
        return f"{len(tables)} tables"
    return "; ".join(text for _, text in sorted(found, reverse=True))


def _simple_table(path: Path) -> tuple[float | None, str | None]:
    """Sum of kernel times in ms, and the operation with most of it; None where the table cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            rows = [
                (float(row["kernel_time_ms_sum"]), row.get("name") or row.get("op_name") or "")
                for row in csv.DictReader(file)
                if row.get("kernel_time_ms_sum")
            ]
    except (OSError, ValueError, csv.Error):
        return None, None
    if not rows:
        return None, None
    return sum(time for time, _ in rows), max(rows)[1]
