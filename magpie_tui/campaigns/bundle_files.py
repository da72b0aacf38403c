"""A campaign's bundle: a ``.tar.gz`` with report, configs, sources and workspaces, without secrets and home paths.

``manifest.json`` states the hash of each file as it is in the bundle and, of those in which something was taken out,
the hash of what it was: so that the records inside still hold on another machine.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import atomic_writer
from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.basics.redact import REDACTED, redact_text
from magpie_tui.campaigns.file import campaign_text, now_utc
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import FILE_NAME, Campaign, Link, StepRecord
from magpie_tui.campaigns.verify_model import sha256_of
from magpie_tui.workspaces.values import as_mapping, as_text

SCHEMA = "magpie-tui/bundle/1"
MANIFEST_NAME = "manifest.json"
LARGEST_FILE_BYTES = 64 * 1024 * 1024
"""Larger files (traces, mostly) stay out; the manifest says which."""
_LARGEST_UNPACKED_BYTES = 8 * 1024**3
_TEXT_ENDINGS = frozenset(
    {".json", ".jsonl", ".yaml", ".yml", ".txt", ".log", ".csv", ".md", ".html", ".py", ".cpp", ".hip", ".cu", ".h"}
)


@dataclass(slots=True)
class _Content:
    """What goes in: name inside → bytes, with the hash of what was there before scrubbing."""

    files: dict[str, bytes] = field(default_factory=dict)
    originals: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A bundle on the disk.

    Attributes:
        directory: Where its campaign lies.
        digests: Name → SHA-256 that the manifest states.
        originals: Name → SHA-256 of what the file was before it was scrubbed.
    """

    directory: Path
    digests: Mapping[str, str]
    originals: Mapping[str, str]


def scrub(text: str) -> str:
    """Take out secrets, the home directory and the user's name in paths."""
    found = redact_text(text)
    home = str(Path.home())
    if len(home) > 1:
        found = found.replace(home, "~")
    for place in ("/home/", "/Users/"):
        found = _without_users(found, place)
    return found


def _without_users(text: str, place: str) -> str:
    return re.sub(rf"{re.escape(place)}[^/\s\"':,]+", f"{place}{REDACTED}", text)


def write_bundle(campaign: Campaign, path: Path, reports: Mapping[str, str]) -> dict[str, str]:
    """Write the bundle; returns what was left out, with reasons.

    Args:
        reports: Name → text of reports that go in at the top.

    Raises:
        MachineError: It cannot be written, or a file cannot be read.
    """
    content = _Content()
    moved = _moved(campaign, content)
    _put(content, FILE_NAME, campaign_text(moved).encode())
    for name, text in reports.items():
        _put(content, name, text.encode())
    manifest = {
        "schema": SCHEMA,
        "name": campaign.name,
        "created": now_utc(),
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "original_sha256": content.originals.get(name)}
            for name, data in sorted(content.files.items())
        },
        "left_out": content.left_out,
    }
    content.files[MANIFEST_NAME] = dumps(manifest).encode()
    top = "".join(sign if sign.isalnum() or sign in "-_" else "_" for sign in campaign.name)
    with atomic_writer(path) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in sorted(content.files.items()):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return dict(content.left_out)


def _put(content: _Content, name: str, data: bytes) -> None:
    """Add a file, scrubbed where it is text."""
    if Path(name).suffix.lower() in _TEXT_ENDINGS or b"\0" not in data[:4096]:
        try:
            clean = scrub(data.decode("utf-8")).encode()
        except UnicodeDecodeError:
            clean = data
        if clean != data:
            content.originals[name] = hashlib.sha256(data).hexdigest()
        data = clean
    content.files[name] = data


def _moved(campaign: Campaign, content: _Content) -> Campaign:
    """Put the files of a campaign into the bundle; returns the campaign whose paths point there."""
    files = {name: _file(content, path, f"configs/{name}", campaign) for name, path in campaign.files.items()}
    candidates = {
        label: _file(content, path, f"candidates/{label}", campaign) for label, path in campaign.candidates.items()
    }
    for path in _below(campaign.directory / "kernels"):
        inside = f"kernels/{path.relative_to(campaign.directory / 'kernels')}"
        if inside not in content.files:
            _read(content, path, inside)
    steps: dict[str, StepRecord] = {}
    for key, record in campaign.steps.items():
        links = tuple(_workspace(content, link, campaign) for link in counting_links(record.links))
        steps[key] = replace(record, links=links)
    return replace(campaign, output_dir=campaign.directory / "results", files=files, candidates=candidates, steps=steps)


def _file(content: _Content, path: Path, place: str, campaign: Campaign) -> Path:
    kernels = campaign.directory / "kernels"
    inside = f"kernels/{path.relative_to(kernels)}" if path.is_relative_to(kernels) else f"{place}/{path.name}"
    _read(content, path, inside)
    return campaign.directory / inside


def _workspace(content: _Content, link: Link, campaign: Campaign) -> Link:
    step = f"results/{link.label}" if link.label else "results"
    inside = f"{step}/{link.path.name}"
    if not link.path.is_dir():
        content.left_out[inside] = "the workspace is not there any more"
    for path in _below(link.path):
        _read(content, path, f"{inside}/{path.relative_to(link.path)}")
    return replace(link, path=campaign.directory / inside)


def _below(directory: Path) -> Iterator[Path]:
    """Regular files below a directory; links are not followed."""
    for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield path


def _read(content: _Content, path: Path, inside: str) -> None:
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            content.left_out[inside] = f"{size} bytes, more than {LARGEST_FILE_BYTES}"
            return
        _put(content, inside, path.read_bytes())
    except OSError as error:
        content.left_out[inside] = f"cannot be read: {error.strerror or error}"


def unpack_bundle(path: Path, into: Path) -> Unpacked:
    """Unpack a bundle; nothing outside of ``into`` is touched, whatever its names say.

    Raises:
        UserInputError: It is no bundle.
        MachineError: The disk is full.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            _extract(archive, path, into)
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno == 28:
            raise MachineError("the disk is full", path=into) from None
        raise UserInputError(f"no bundle of a campaign: {error}", path=path) from None
    tops = [item for item in into.iterdir() if (item / MANIFEST_NAME).is_file()]
    if len(tops) != 1:
        raise UserInputError(f"no bundle of a campaign: it has no {MANIFEST_NAME}", path=path)
    try:
        files = as_mapping(as_mapping(loads((tops[0] / MANIFEST_NAME).read_text(encoding="utf-8"))).get("files"))
    except ValueError as error:
        raise UserInputError(f"{MANIFEST_NAME} is damaged: {error}", path=path) from None
    digests, originals = {}, {}
    for name, value in files.items():
        facts = as_mapping(value)
        digests[name] = as_text(facts.get("sha256")) or ""
        before = as_text(facts.get("original_sha256"))
        if before is not None and sha256_of(tops[0] / name) == digests[name]:
            originals[name] = before
    return Unpacked(tops[0], digests, originals)


def _extract(archive: tarfile.TarFile, path: Path, into: Path) -> None:
    total = 0
    for member in archive:
        parts = PurePosixPath(member.name).parts
        if member.isdir():
            continue
        if not member.isfile() or not parts or parts[0] == "/" or ".." in parts:
            raise UserInputError(f"the bundle holds something that is no plain file: {member.name}", path=path)
        total += member.size
        if total > _LARGEST_UNPACKED_BYTES:
            raise UserInputError("the bundle is larger than any that this program writes", path=path)
        source = archive.extractfile(member)
        target = into.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            while source is not None and (chunk := source.read(1 << 20)):
                file.write(chunk)


__all__ = ["LARGEST_FILE_BYTES", "MANIFEST_NAME", "Unpacked", "scrub", "unpack_bundle", "write_bundle"]
