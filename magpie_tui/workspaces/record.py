"""The reproducibility record: written before the first measurement, completed after it.

``record.json`` holds everything that another person needs to judge or repeat a run. What could not be read is null
with a reason beside it; secrets are taken out by name and by look.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.files import write_json
from magpie_tui.basics.json_strict import to_plain
from magpie_tui.basics.redact import (
    known_secrets,
    redact_command,
    redact_environment,
    redact_text,
    redact_tree,
    without_known,
)
from magpie_tui.workspaces.damage import Damaged, kind_of, read_bounded, read_json_file
from magpie_tui.workspaces.facts import (
    PYTHON_FACTS_PROGRAM,
    FileFacts,
    HostFacts,
    PythonFacts,
    ToolFacts,
    hash_file,
    read_host,
    read_our_python,
    read_tool,
)
from magpie_tui.workspaces.values import as_mapping, as_texts, mapping_or_none

__all__ = [
    "PYTHON_FACTS_PROGRAM",
    "FileFacts",
    "GivenConfig",
    "HostFacts",
    "PythonFacts",
    "RecordInputs",
    "ReproducibilityRecord",
    "ToolFacts",
    "complete_record",
    "hash_file",
    "read_record",
    "start_record",
]

RECORD_NAME = "record.json"
RECORD_SCHEMA_VERSION = 1
_LARGEST_GIVEN_CONFIG_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GivenConfig:
    """A config file as the user gave it.

    Attributes:
        sha256: Of the file's bytes.
        text: Its text with secrets taken out; None with a reason when it can't be read.
    """

    path: str
    sha256: str | None
    text: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RecordInputs:
    """What a run knows before its first measurement.

    Attributes:
        mode: ``analyze``, ``compare`` or ``benchmark``.
        effective_config: After defaults, flags and expansion, as plain data.
        config_files: Files that the user gave.
        seeds: Purpose to seed.
        devices: One mapping a device (name, arch, uuid, index, memory, clocks, power cap, ECC, partition mode).
        drivers: Driver and runtime versions.
        compilers: Tool to version, path and flags.
        python: The interpreter that runs candidates; None means that it is ours.
        files: Role and path of each source, binary or data file that is to be hashed.
        schedule: How measurements are ordered and how many there will be.
        peaks: Peaks used for rooflines, each with its source.
        serving: Image digest, model revision or hash of the weight index, and the like.
        command_line: Arguments of this program; None means those of this process.
        environment: Variables; None means those of this process.
        host: None means that it is read.
    """

    mode: str
    effective_config: Mapping[str, object]
    config_files: Sequence[Path] = ()
    seeds: Mapping[str, int] = field(default_factory=dict)
    devices: Sequence[Mapping[str, object]] = ()
    drivers: Mapping[str, object] = field(default_factory=dict)
    compilers: Mapping[str, object] = field(default_factory=dict)
    python: PythonFacts | None = None
    files: Sequence[tuple[str, Path]] = ()
    schedule: Mapping[str, object] = field(default_factory=dict)
    peaks: Mapping[str, object] = field(default_factory=dict)
    serving: Mapping[str, object] = field(default_factory=dict)
    command_line: Sequence[str] | None = None
    environment: Mapping[str, str] | None = None
    host: HostFacts | None = None


@dataclass(frozen=True, slots=True)
class ReproducibilityRecord:
    """The content of ``record.json``.

    Attributes:
        status: ``started`` until it is completed; then the outcome's word.
        started_at, ended_at: UTC, ISO 8601 with ``Z``.
        effective_config_sha256: Of the canonical JSON (sorted keys, no spaces) of ``effective_config`` as kept here.
        samples: Files of raw samples and per-request rows, relative to the workspace, with their hashes.
        results: Reports and the snapshot of the config, likewise, as they were when the run ended.
        discarded: Samples left out, each with its reason.
        telemetry: Readings of the devices during the run.
    """

    mode: str
    status: str
    started_at: str
    ended_at: str | None
    tool: ToolFacts
    command_line: tuple[str, ...]
    working_directory: str | None
    config_files: tuple[GivenConfig, ...]
    effective_config: Mapping[str, object]
    effective_config_sha256: str
    seeds: Mapping[str, int]
    host: HostFacts
    devices: tuple[Mapping[str, object], ...]
    drivers: Mapping[str, object]
    compilers: Mapping[str, object]
    python: PythonFacts
    files: tuple[FileFacts, ...]
    environment: Mapping[str, str]
    schedule: Mapping[str, object]
    peaks: Mapping[str, object]
    serving: Mapping[str, object] = field(default_factory=dict)
    samples: tuple[FileFacts, ...] = ()
    results: tuple[FileFacts, ...] = ()
    discarded: tuple[Mapping[str, object], ...] = ()
    telemetry: Mapping[str, object] = field(default_factory=dict)
    schema_version: int = RECORD_SCHEMA_VERSION

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {field_.name: to_plain(getattr(self, field_.name)) for field_ in dataclasses.fields(self)}


def config_sha256(config: Mapping[str, object]) -> str:
    """Return the SHA-256 of the canonical JSON of ``config``: sorted keys, no spaces, UTF-8."""
    text = json.dumps(to_plain(dict(config)), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _given_config(path: Path, secrets: frozenset[str]) -> GivenConfig:
    data = read_bounded(path, _LARGEST_GIVEN_CONFIG_BYTES)
    if isinstance(data, Damaged):
        return GivenConfig(str(path), None, None, data.reason)
    text = without_known(redact_text(data.decode("utf-8", "replace")), secrets)
    return GivenConfig(str(path), hashlib.sha256(data).hexdigest(), str(text))


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _working_directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        return None


def start_record(
    workspace: Path, inputs: RecordInputs, *, clock: Callable[[], float] = time.time
) -> ReproducibilityRecord:
    """Collect the record, write ``record.json`` durably and return it. To be called before the first measurement.

    Raises:
        MachineError: The workspace cannot be written.
    """
    started_at = _utc(clock())
    environment = dict(os.environ if inputs.environment is None else inputs.environment)
    config = to_plain(dict(inputs.effective_config))
    secrets = known_secrets(environment) | known_secrets(config)
    effective = as_mapping(without_known(redact_tree(config), secrets))
    command_line = redact_command(sys.argv if inputs.command_line is None else inputs.command_line)
    environment_kept = {
        name: str(without_known(value, secrets)) for name, value in redact_environment(environment).items()
    }
    record = ReproducibilityRecord(
        mode=inputs.mode,
        status="started",
        started_at=started_at,
        ended_at=None,
        tool=read_tool(),
        command_line=as_texts(without_known(command_line, secrets)),
        working_directory=_working_directory(),
        config_files=tuple(_given_config(path, secrets) for path in inputs.config_files),
        effective_config=effective,
        effective_config_sha256=config_sha256(effective),
        seeds=dict(inputs.seeds),
        host=inputs.host or read_host(),
        devices=tuple(dict(device) for device in inputs.devices),
        drivers=dict(inputs.drivers),
        compilers=dict(inputs.compilers),
        python=inputs.python or read_our_python(),
        files=tuple(hash_file(role, path) for role, path in inputs.files),
        environment=environment_kept,
        schedule=dict(inputs.schedule),
        peaks=dict(inputs.peaks),
        serving=dict(inputs.serving),
    )
    write_json(workspace / RECORD_NAME, record.to_json(), durable=True)
    return record


def complete_record(
    workspace: Path,
    record: ReproducibilityRecord,
    *,
    status: str,
    files: Sequence[tuple[str, Path]] = (),
    samples: Sequence[Path] = (),
    results: Sequence[Path] = (),
    discarded: Sequence[Mapping[str, object]] = (),
    telemetry: Mapping[str, object] | None = None,
    schedule: Mapping[str, object] | None = None,
    compilers: Mapping[str, object] | None = None,
    clock: Callable[[], float] = time.time,
) -> ReproducibilityRecord:
    """Complete the record after the last measurement, write it durably and return it.

    Args:
        status: The outcome's word, for example ``ended``, ``failed``, ``stopped``.
        files: Further files to hash, for example binaries that were built meanwhile.
        samples: Files with raw samples or per-request rows; named relative to the workspace.
        results: Reports that are written already and will not change any more; likewise.
        schedule, compilers: What became known meanwhile; added to what is there.
    """
    completed = dataclasses.replace(
        record,
        status=status,
        ended_at=_utc(clock()),
        files=(*record.files, *(hash_file(role, path) for role, path in files)),
        samples=tuple(_facts_inside(workspace, "samples", path) for path in samples),
        results=tuple(_facts_inside(workspace, "results", path) for path in results),
        discarded=tuple(dict(item) for item in discarded),
        telemetry=dict(telemetry or {}),
        schedule={**record.schedule, **(schedule or {})},
        compilers={**record.compilers, **(compilers or {})},
    )
    write_json(workspace / RECORD_NAME, completed.to_json(), durable=True)
    return completed


def _facts_inside(workspace: Path, role: str, path: Path) -> FileFacts:
    facts = hash_file(role, workspace / path)
    try:
        shown = (workspace / path).absolute().relative_to(workspace.absolute())
    except ValueError:
        shown = path
    return dataclasses.replace(facts, path=str(shown))


def read_record(path: Path) -> Mapping[str, object] | Damaged:
    """Return the JSON object of a ``record.json``, whatever schema version it has."""
    value = read_json_file(path)
    if isinstance(value, Damaged):
        return value
    keys = mapping_or_none(value)
    return Damaged(path, f"the record is no JSON object but {kind_of(value)}") if keys is None else keys
