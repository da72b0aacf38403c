"""One line for each step: what was measured or decided."""

from __future__ import annotations

import csv
import math
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
_STEPS = Path("torch_trace", "trace_split", "execution_details.csv")
_STEP_COUNTS = (
    ("prefilldecode", "phase_num_prefilldecode"),
    ("decode_only", "phase_num_decode"),
    ("prefill_only", "phase_num_prefill"),
)


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
    """Return the stages for which there are rooflines, the one with most time in the whole trace first.

    A table is about one step, so its time says nothing of the stage's weight: the share is over all steps that the
    trace was cut into.
    """
    workspace = twin_workspace(campaign)
    if workspace is None or not tables:
        return None
    shares = _stage_shares(workspace / _STEPS)
    found = []
    for name in tables:
        if name.endswith(_SIMPLE):
            total, top = _simple_table(workspace / _TABLES / name)
            if total is not None:
                stage = Path(name).name.removesuffix(_SIMPLE)
                share = next((part for label, part in shares.items() if stage.startswith(label)), None)
                weight = "" if share is None else f" {share:.1%} of the kernel time of all steps,".replace("%", " %")
                text = f"{stage}{weight} one step of it {total:.2f} ms{f', most in {top}' if top else ''}"
                found.append((share or 0.0, total, text))
    if not found:
        return f"{len(tables)} tables"
    return "; ".join(text for _, _, text in sorted(found, reverse=True))


def _stage_shares(path: Path) -> dict[str, float]:
    """Return for each stage, by its label, its part of the kernel time of all single steps, 0 to 1; empty if unknown.

    Args:
        path: ``execution_details.csv`` of the trace that the stages' tables are about.
    """
    times = {label: 0.0 for label, _ in _STEP_COUNTS}
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            for row in csv.DictReader(file):
                label = next((label for label, column in _STEP_COUNTS if row.get(column) == "1"), None)
                # Windows hold the same steps again.
                if label is None or row.get("num_steps") != "1" or "_steady_state_" in Path(row["output_path"]).name:
                    continue
                times[label] += float(row["gpu_busy_duration"])
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}
    total = sum(times.values())
    return {label: time / total for label, time in times.items()} if 0 < total < math.inf else {}


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
