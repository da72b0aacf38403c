"""Reads and writes ``campaign.yaml``: readable, complete, replaced as a whole."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import create_directory, is_regular_file, write_text
from magpie_tui.basics.paths import expanded
from magpie_tui.campaigns.model import FILE_NAME, Campaign, Goal, Link, Note, StepRecord
from magpie_tui.campaigns.steps import BY_KEY, STEPS, TEMPLATES
from magpie_tui.workspaces.damage import Damaged, read_yaml_file

VERSION = 1
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
"""How times are written: UTC, seconds."""
_HEADER = """\
# A magpie-tui campaign: links to workspaces and decisions, nothing else. Everything shown is derived from them.
# It may be edited by hand; paths are relative to this file where they lie below it.
"""
_KEYS = ("version", "name", "template", "created", "seen", "output_dir", "goal", "files", "candidates", "steps")
_UNQUOTED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
Value = TypeVar("Value")


def now_utc() -> str:
    """Return the time as it is written down: UTC, seconds."""
    return datetime.now(timezone.utc).strftime(TIME_FORMAT)


def load_campaign(path: Path) -> Campaign:
    """Read a campaign.

    Args:
        path: Its directory or its file.

    Raises:
        UserInputError: There is none, or it is damaged; with line and column where those are known.
    """
    file = path if is_regular_file(path) else path / FILE_NAME
    value = read_yaml_file(file)
    if isinstance(value, Damaged):
        if value.gone:
            raise UserInputError("no campaign is here", path=file, hint="magpie-tui campaign new DIR makes one")
        raise UserInputError(
            f"the campaign cannot be read: {value.reason}", path=file, line=value.line, column=value.column
        )
    return _Reader(file.absolute()).campaign(value)


class _Reader:
    """Turns plain values into a campaign; every complaint names its key."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def wrong(self, key: str, message: str, hint: str | None = None) -> UserInputError:
        return UserInputError(f"{key}: {message}", path=self.file, hint=hint)

    def campaign(self, value: object) -> Campaign:
        keys = self.mapping("the file", value)
        unknown = sorted(set(keys) - set(_KEYS))
        if unknown:
            raise self.wrong(unknown[0], "unknown key", hint=f"known keys: {', '.join(_KEYS)}")
        if keys.get("version") != VERSION:
            raise self.wrong("version", f"is {keys.get('version')!r}, this program reads {VERSION}")
        template = self.text("template", keys.get("template"))
        if template not in TEMPLATES:
            raise self.wrong(
                "template", f"there is no template {template!r}", hint=f"templates: {', '.join(TEMPLATES)}"
            )
        return Campaign(
            directory=self.file.parent,
            name=self.text("name", keys.get("name")),
            template=template,
            created=self.time("created", keys.get("created")),
            output_dir=self.path("output_dir", keys.get("output_dir")),
            goal=self.goal(keys.get("goal")),
            files=self.paths("files", keys.get("files")),
            candidates=self.paths("candidates", keys.get("candidates")),
            steps=self.steps(keys.get("steps")),
            seen=self.maybe(keys.get("seen"), lambda found: self.time("seen", found)),
        )

    def maybe(self, value: object, read: Callable[[object], Value]) -> Value | None:
        return None if value is None else read(value)

    def mapping(self, key: str, value: object) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise self.wrong(key, f"expected keys and values, found {type(value).__name__}")
        return {str(name): item for name, item in value.items()}

    def items(self, key: str, value: object) -> list[object]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(key, f"expected a list, found {type(value).__name__}")
        return value

    def text(self, key: str, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise self.wrong(key, f"expected a text, found {value!r}")
        return value

    def time(self, key: str, value: object) -> str:
        text = self.text(key, value)
        # A time without quotes is one to YAML, and comes back in its long form.
        return text.removesuffix("+00:00") + "Z" if _UNQUOTED_TIME.fullmatch(text) else text

    def path(self, key: str, value: object) -> Path:
        text = self.text(key, value)
        try:
            os.fsencode(text)
        except UnicodeEncodeError:
            text = "\0"
        if "\0" in text:
            raise self.wrong(key, "this is no path: it has characters that no file name can have")
        return Path(os.path.normpath(self.file.parent / expanded(Path(text))))

    def paths(self, key: str, value: object) -> dict[str, Path]:
        if value is None:
            return {}
        return {name: self.path(f"{key}.{name}", item) for name, item in self.mapping(key, value).items()}

    def digests(self, key: str, value: object) -> dict[str, str]:
        if value is None:
            return {}
        return {name: self.text(f"{key}.{name}", item) for name, item in self.mapping(key, value).items()}

    def goal(self, value: object) -> Goal | None:
        if value is None:
            return None
        keys = self.mapping("goal", value)
        gain = keys.get("gain_pct")
        if isinstance(gain, bool) or not isinstance(gain, (int, float)):
            raise self.wrong("goal.gain_pct", f"expected a number of percent, found {gain!r}")
        guards = tuple(self.text("goal.guards", item) for item in self.items("goal.guards", keys.get("guards")))
        return Goal(self.text("goal.metric", keys.get("metric")), float(gain), guards)

    def steps(self, value: object) -> dict[str, StepRecord]:
        if value is None:
            return {}
        found = {}
        for key, item in self.mapping("steps", value).items():
            if key not in BY_KEY:
                raise self.wrong(f"steps.{key}", "there is no such step", hint=f"steps: {', '.join(BY_KEY)}")
            found[key] = self.step(f"steps.{key}", item)
        return found

    def step(self, key: str, value: object) -> StepRecord:
        keys = self.mapping(key, value)
        decision = keys.get("decision")
        return StepRecord(
            links=tuple(self.link(f"{key}.workspaces", item) for item in self.items(key, keys.get("workspaces"))),
            skipped=self.maybe(keys.get("skipped"), lambda found: self.text(f"{key}.skipped", found)),
            decision=None if decision is None else self.mapping(f"{key}.decision", decision),
            decided=self.digests(f"{key}.decided", keys.get("decided")),
            notes=tuple(self.note(f"{key}.notes", item) for item in self.items(key, keys.get("notes"))),
        )

    def link(self, key: str, value: object) -> Link:
        keys = self.mapping(key, value)
        return Link(
            self.path(f"{key}.path", keys.get("path")),
            self.time(f"{key}.time", keys.get("time")),
            self.digests(f"{key}.inputs", keys.get("inputs")),
            adopted=keys.get("adopted") is True,
            label=self.maybe(keys.get("label"), lambda found: self.text(f"{key}.label", found)),
        )

    def note(self, key: str, value: object) -> Note:
        keys = self.mapping(key, value)
        return Note(self.time(f"{key}.time", keys.get("time")), self.text(f"{key}.text", keys.get("text")))


def save_campaign(campaign: Campaign) -> Campaign:
    """Write a campaign, replacing the file as a whole; returns it.

    Raises:
        MachineError: The file cannot be written.
    """
    create_directory(campaign.directory)
    write_text(campaign.path, campaign_text(campaign), durable=True)
    return campaign


def campaign_text(campaign: Campaign) -> str:
    """Return the text of ``campaign.yaml``."""
    import yaml

    text = yaml.safe_dump(_plain(campaign), sort_keys=False, allow_unicode=True, width=120, default_flow_style=False)
    return _HEADER + text


def _plain(campaign: Campaign) -> dict[str, object]:
    def shown(path: Path) -> str:
        return str(path.relative_to(campaign.directory)) if path.is_relative_to(campaign.directory) else str(path)

    value: dict[str, object] = {
        "version": VERSION,
        "name": campaign.name,
        "template": campaign.template,
        "created": campaign.created,
        "seen": campaign.seen,
        "output_dir": shown(campaign.output_dir),
        "goal": None
        if campaign.goal is None
        else {
            "metric": campaign.goal.metric,
            "gain_pct": campaign.goal.gain_pct,
            "guards": list(campaign.goal.guards),
        },
        "files": {name: shown(path) for name, path in campaign.files.items()},
        "candidates": {name: shown(path) for name, path in campaign.candidates.items()},
        "steps": {
            step.key: _plain_step(campaign.steps[step.key], shown) for step in STEPS if step.key in campaign.steps
        },
    }
    return {key: item for key, item in value.items() if item is not None}


def _plain_step(record: StepRecord, shown: Callable[[Path], str]) -> dict[str, object]:
    value: dict[str, object] = {}
    if record.links:
        value["workspaces"] = [
            {
                "path": shown(link.path),
                "time": link.time,
                **({"label": link.label} if link.label else {}),
                **({"adopted": True} if link.adopted else {}),
                "inputs": dict(link.inputs),
            }
            for link in record.links
        ]
    if record.skipped is not None:
        value["skipped"] = record.skipped
    if record.decision is not None:
        value["decision"] = dict(record.decision)
        value["decided"] = dict(record.decided)
    if record.notes:
        value["notes"] = [{"time": note.time, "text": note.text} for note in record.notes]
    return value


def with_step(campaign: Campaign, key: str, record: StepRecord) -> Campaign:
    """Return the campaign with another record of one step."""
    return replace(campaign, steps={**campaign.steps, key: record})
