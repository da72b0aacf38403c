"""A campaign's bundle: a ``.tar.gz`` with report, configs, sources and workspaces, without secrets and home paths.

``manifest.json`` states the hash of each file as it is in the bundle and, of those in which something was taken out,
the hash of what it was: so that the records inside still hold on another machine.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import atomic_writer
from magpie_tui.basics.json_strict import dumps, loads
from magpie_tui.basics.paths import home_directory
from magpie_tui.basics.redact import REDACTED, is_secret_name, redact_command, redact_text, redact_values
from magpie_tui.basics.text import utf8_bytes
from magpie_tui.campaigns.caches_aside import RECORD_NAME as MOVED_NAME
from magpie_tui.campaigns.difference import config_sources
from magpie_tui.campaigns.file import campaign_text, now_utc
from magpie_tui.campaigns.inputs import counting_links
from magpie_tui.campaigns.model import FILE_NAME, Campaign, Link, StepRecord
from magpie_tui.campaigns.verify_model import sha256_of
from magpie_tui.workspaces.values import as_mapping, as_text

SCHEMA = "magpie-tui/bundle/1"
MANIFEST_NAME = "manifest.json"
LARGEST_FILE_BYTES = 64 * 1024 * 1024
"""Larger files (traces, mostly) stay out; the manifest says which."""
LARGEST_TRACE_BYTES = 1024**3
_LARGEST_UNPACKED_BYTES = 8 * 1024**3
_NUMBER_LINE = re.compile(r"[:=]\s*-?[0-9][0-9.eE+-]*,?\s*(#.*)?$")
_USER = re.compile(r"(?P<place>/home/|/Users/)[^/\s\"':,]+")


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
    """Take secrets, the home directory and users' names in paths out of running text; a number stays as it is."""
    lines = text.splitlines(keepends=True)
    return _without_home("".join(line if _NUMBER_LINE.search(line) else redact_text(line) for line in lines))


def _without_home(text: str) -> str:
    home = str(home_directory())
    found = text.replace(home, "~") if len(home) > 1 else text
    return _USER.sub(rf"\g<place>{REDACTED}", found)


def scrub_tree(value: object) -> object:
    """Do the same to a JSON tree: texts and names are scrubbed, numbers stay."""
    if isinstance(value, dict):
        return {
            _without_home(str(key)): REDACTED
            if isinstance(item, str) and item and is_secret_name(str(key))
            else scrub_tree(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return [_without_home(item) for item in redact_command(value)]
        return [scrub_tree(item) for item in value]
    return scrub(value) if isinstance(value, str) else value


def _scrub_file(name: str, text: str) -> str:
    """Scrub a file by its form; what is no valid JSON is running text."""
    try:
        if name.endswith(".json"):
            tree = loads(text)
            clean = scrub_tree(tree)
            return text if clean == tree else dumps(clean) + "\n"
        if name.endswith(".jsonl"):
            return "".join(_scrub_line(line) for line in text.splitlines(keepends=True))
    except ValueError:
        pass
    return scrub(text)


def _scrub_line(line: str) -> str:
    row = loads(line)
    clean = scrub_tree(row)
    return line if clean == row else dumps(clean, indent=None) + "\n"


def write_bundle(campaign: Campaign, path: Path, reports: Mapping[str, str]) -> dict[str, str]:
    """Write the bundle; returns what was left out, with reasons.

    Args:
        reports: Name → text of reports that go in at the top.

    Raises:
        MachineError: It cannot be written, or a file cannot be read.
    """
    content = _Content()
    moved = _moved(campaign, content)
    _put(content, FILE_NAME, utf8_bytes(campaign_text(moved)))
    for name, text in reports.items():
        _put(content, name, utf8_bytes(text))
    if (campaign.directory / MOVED_NAME).is_file():
        _read(content, campaign.directory / MOVED_NAME, MOVED_NAME)
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
    """Add a file, scrubbed; one that cannot be scrubbed stays out."""
    try:
        clean = _scrub_archive(data) if name.endswith(".json.gz") else _scrub_file(name, data.decode("utf-8")).encode()
    except (UnicodeDecodeError, EOFError, OSError, zlib.error):
        content.left_out[name] = "a binary file: paths and secrets in it could not be taken out"
        return
    if clean is None:
        content.left_out[name] = f"unpacked it has more than {LARGEST_TRACE_BYTES} bytes"
        return
    if clean != data:
        content.originals[name] = hashlib.sha256(data).hexdigest()
    content.files[name] = clean


def _scrub_archive(data: bytes) -> bytes | None:
    """Scrub a packed trace; the bytes as they are where there is nothing to take out, None where it is too large."""
    with gzip.open(io.BytesIO(data)) as file:
        raw = file.read(LARGEST_TRACE_BYTES + 1)
    if len(raw) > LARGEST_TRACE_BYTES:
        return None
    text = raw.decode("utf-8")
    clean = _without_home(redact_values(text))
    return data if clean == text else gzip.compress(clean.encode(), mtime=0)


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
    for number, source in enumerate(_sources(campaign)):
        _read(content, source, f"sources/{number}/{source.name}")
    steps: dict[str, StepRecord] = {}
    for key, record in campaign.steps.items():
        links = tuple(_workspace(content, key, link, campaign) for link in counting_links(record.links))
        steps[key] = replace(record, links=links)
    return replace(campaign, output_dir=campaign.directory / "results", files=files, candidates=candidates, steps=steps)


def _sources(campaign: Campaign) -> list[Path]:
    """Sources that the configs name and that lie elsewhere: the original of the kernel, mostly."""
    configs = [*campaign.files.values(), *campaign.candidates.values()]
    found = dict.fromkeys(source for config in configs for source in config_sources(config))
    return [source for source in found if not source.is_relative_to(campaign.directory / "kernels")]


def _file(content: _Content, path: Path, place: str, campaign: Campaign) -> Path:
    kernels = campaign.directory / "kernels"
    inside = f"kernels/{path.relative_to(kernels)}" if path.is_relative_to(kernels) else f"{place}/{path.name}"
    _read(content, path, inside)
    return campaign.directory / inside


def _workspace(content: _Content, step: str, link: Link, campaign: Campaign) -> Link:
    inside = f"results/{step}{f'-{link.label}' if link.label else ''}/{link.path.name}"
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
