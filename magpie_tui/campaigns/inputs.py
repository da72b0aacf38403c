"""What a step rests on, as digests: by them it is told whether a result is still about what is there now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.files import open_regular
from magpie_tui.basics.json_strict import dumps
from magpie_tui.basics.text import utf8_bytes
from magpie_tui.campaigns.model import Campaign, Link
from magpie_tui.campaigns.steps import BY_KEY, Step
from magpie_tui.workspaces.names import parse_workspace_name, report_name

MISSING = "missing"
_CHUNK = 1 << 20


def digest_of(text: str) -> str:
    """Return a short digest of a text."""
    return hashlib.sha256(utf8_bytes(text)).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """Return the digest of a file's content; ``missing`` where it cannot be read."""
    found = hashlib.sha256()
    try:
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError:
        return MISSING
    return found.hexdigest()[:16]


def config_digest(path: Path) -> str:
    """Return the digest of a config and of the sources that it names."""
    own = file_digest(path)
    if own == MISSING:
        return MISSING
    sources = [f"{source}={file_digest(source)}" for source in sources_of_config(path)]
    return digest_of("\n".join([own, *sources])) if sources else own


def sources_of_config(path: Path) -> list[Path]:
    """Return the source files of a kernel config; none for other configs and for those that cannot be read."""
    from magpie_tui.configs.check import check_file
    from magpie_tui.configs.kernel import load_kernel_config

    try:
        if check_file(path).kind != "kernel":
            return []
        config = load_kernel_config(path)
    except MagpieTuiError:
        return []
    return sorted({source for entry in config.kernels for source in entry.source_files})


def counting_links(links: Iterable[Link]) -> tuple[Link, ...]:
    """Return the last link of each label."""
    last: dict[str | None, Link] = {}
    for link in links:
        last.pop(link.label, None)
        last[link.label] = link
    return tuple(last.values())


def link_digest(link: Link) -> str:
    """Return what identifies the result behind a link: its place and its report."""
    name = parse_workspace_name(link.path.name)
    report = report_name(name.kind) if name else None
    return f"{link.label or ''}:{link.path}:{file_digest(link.path / report) if report else ''}"


def result_digest(campaign: Campaign, key: str, twin_tables: Mapping[str, int]) -> str:
    """Return what a later step would rest on: the results of one step.

    Args:
        twin_tables: Name → size of the tables that the twin's workspace holds; the result of ``stages``.
    """
    record = campaign.step(key)
    if key == "stages":
        links = [link_digest(link) for link in counting_links(campaign.step("twin").links)]
        return digest_of(dumps([links, sorted(twin_tables.items())], indent=None))
    if BY_KEY[key].workspace is None:
        return digest_of(dumps(dict(record.decision or {}), indent=None))
    return digest_of("\n".join(link_digest(link) for link in counting_links(record.links)))


def inputs_of(
    campaign: Campaign, step: Step, twin_tables: Mapping[str, int], label: str | None = None
) -> dict[str, str]:
    """Return the digests of everything that a step rests on now.

    Args:
        label: For ``candidates``: only this one's config counts.
    """
    found: dict[str, str] = {}
    for name in step.inputs:
        if name == "candidates":
            for candidate, path in campaign.candidates.items():
                if label is None or candidate == label:
                    found[f"candidate {candidate}"] = config_digest(path)
        elif name in campaign.files:
            found[f"config {name}"] = config_digest(campaign.files[name])
    for need in step.needs:
        digest = result_digest(campaign, need, twin_tables)
        if campaign.step(need).skipped is None and digest not in _NO_RESULT:
            found[f"step {need}"] = digest
    return found


_NO_RESULT = frozenset({digest_of(""), digest_of(dumps({}, indent=None)), digest_of(dumps([[], []], indent=None))})
"""Digests of steps without a workspace, a decision and tables: nothing rests on what is not there."""


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the inputs that are no longer what they were; new ones count, unknown ones do not."""
    if not before:
        return []
    known = {name: digest for name, digest in before.items() if digest not in _NO_RESULT}
    return sorted(name for name in {*known, *now} if known.get(name) != now.get(name))
