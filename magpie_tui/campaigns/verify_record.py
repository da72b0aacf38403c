"""Checks of ``record.json``: the effective config, raw files, reports and sources are what their hashes say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from magpie_tui.campaigns.verify_model import Check, CheckState, Originals, cannot, sha256_of
from magpie_tui.workspaces.damage import Damaged
from magpie_tui.workspaces.record import RECORD_NAME, config_sha256, read_record
from magpie_tui.workspaces.values import as_list, as_mapping, as_text


def record_checks(workspace: Path, originals: Originals) -> Iterator[Check]:
    """Check every hash that the record of a workspace states."""
    record = read_record(workspace / RECORD_NAME)
    if isinstance(record, Damaged):
        if record.gone:
            yield cannot(RECORD_NAME, "", "there is no record: another program made this workspace")
        else:
            yield Check(RECORD_NAME, "", CheckState.DIFFERS, "a record", record.text)
        return
    if record.get("status") == "started":
        yield cannot(RECORD_NAME, "status", "the run was not ended: the record was never completed")
    yield _effective_config(workspace, record, originals)
    for group in ("samples", "results"):
        for item in map(as_mapping, as_list(record.get(group))):
            yield _inside(workspace, group, item, originals)
    for item in map(as_mapping, as_list(record.get("files"))):
        yield _source(item)


def _effective_config(workspace: Path, record: Mapping[str, object], originals: Originals) -> Check:
    key = "effective_config_sha256"
    computed = config_sha256(as_mapping(record.get("effective_config")))
    stated = record.get(key)
    if stated == computed:
        return Check(RECORD_NAME, key, CheckState.OK)
    if workspace / RECORD_NAME in originals.digests:
        return cannot(RECORD_NAME, key, "paths or secrets were taken out of this copy")
    return Check(RECORD_NAME, key, CheckState.DIFFERS, stated, computed)


def _inside(workspace: Path, group: str, item: Mapping[str, object], originals: Originals) -> Check:
    """Compare the hash of a file of the workspace; in a bundle with what it was before it was scrubbed."""
    name, stated = as_text(item.get("path")) or "", as_text(item.get("sha256"))
    path = workspace / name
    if stated is None:
        return cannot(name, "sha256", as_text(item.get("reason")) or "the record has no hash of it")
    if not path.is_file():
        return cannot(name, "sha256", "the file is not there any more")
    computed = originals.digests.get(path) or sha256_of(path)
    if computed == stated:
        return Check(name, "sha256", CheckState.OK)
    return Check(name, f"sha256 ({RECORD_NAME} {group})", CheckState.DIFFERS, stated, computed)


def _source(item: Mapping[str, object]) -> Check:
    """Compare a source outside the workspace, where it lies on this machine."""
    role, stated = as_text(item.get("role")) or "file", as_text(item.get("sha256"))
    path = Path(as_text(item.get("path")) or "")
    key = f"files: {role} {path.name}"
    if stated is None:
        return cannot(RECORD_NAME, key, as_text(item.get("reason")) or "the record has no hash of it")
    if not path.is_absolute() or not path.is_file():
        return cannot(RECORD_NAME, key, "the file is not on this machine")
    computed = sha256_of(path)
    state = CheckState.OK if computed == stated else CheckState.DIFFERS
    return Check(RECORD_NAME, key, state, *((stated, computed) if state is CheckState.DIFFERS else ()))
