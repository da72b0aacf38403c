"""What a candidate of a campaign changes against the baseline kernel: its config and its sources."""

from __future__ import annotations

import difflib
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns.model import Campaign
from magpie_tui.configs.check import check_file
from magpie_tui.configs.kernel_model import KernelConfig
from magpie_tui.workspaces.source_difference import SourceDifference, compare_sources


def candidate_difference(campaign: Campaign, label: str) -> tuple[str, ...]:
    """Return the difference as unified text: the configs first, then the sources pairwise, in their order.

    Raises:
        UserInputError: There is no such candidate or no baseline kernel, or a config cannot be read.
    """
    base, candidate = campaign.files.get("analyze"), campaign.candidates.get(label)
    if candidate is None:
        raise UserInputError(f"there is no candidate {label!r}", path=campaign.path)
    if base is None:
        raise UserInputError("the baseline kernel has no config to compare with", path=campaign.path)
    configs = tuple(difflib.unified_diff(_lines(base), _lines(candidate), str(base), str(candidate), lineterm="", n=3))
    before, after = _sources(base), _sources(candidate)
    if before == after:
        return (*configs, f"the sources are the same: {', '.join(map(str, before)) or 'none'}")
    found: SourceDifference = compare_sources(before, after)
    return (*configs, *found.lines, *found.notes)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UserInputError(f"the config cannot be read: {error.strerror or error}", path=path) from None


def _sources(path: Path) -> tuple[Path, ...]:
    config = check_file(path).config
    if not isinstance(config, KernelConfig):
        raise UserInputError("this is no kernel config", path=path)
    return tuple(source for entry in config.kernels for source in entry.source_files)


def config_sources(path: Path) -> tuple[Path, ...]:
    """Return the sources that a kernel config names, also while gaps of it are to be filled; none for other files."""
    try:
        return _sources(path)
    except UserInputError:
        return ()


def changed_lines(campaign: Campaign, label: str) -> tuple[int, int, str]:
    """Return how many lines a candidate adds and removes, and whether they are of its ``source`` or its ``config``.

    Raises:
        UserInputError: As ``candidate_difference``.
    """
    base, candidate = campaign.files.get("analyze"), campaign.candidates.get(label)
    if base is None or candidate is None:
        raise UserInputError("there is no such candidate, or no baseline kernel", path=campaign.path)
    before, after = _sources(base), _sources(candidate)
    if before != after:
        found = compare_sources(before, after)
        return found.added, found.removed, "source"
    lines = [line for line in candidate_difference(campaign, label) if not line.startswith(("+++", "---"))]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines), "config"
