"""A campaign as it is written down, and as it is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

FILE_NAME = "campaign.yaml"


@dataclass(frozen=True, slots=True)
class Goal:
    """What the campaign is for.

    Attributes:
        metric: A metric of the verdict, for example ``output_throughput``.
        gain_pct: The gain that would reach the goal, in percent.
        guards: What may not get worse.
    """

    metric: str
    gain_pct: float
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A workspace that belongs to a step.

    Attributes:
        path: Absolute.
        time: When it was linked, UTC, ISO 8601.
        inputs: Name of an input → its digest when the workspace was made; what staleness is judged by.
        adopted: It was made outside the campaign; then ``inputs`` are those of the moment of adoption.
        label: What it is among several (the name of a candidate); None where there is one.
    """

    path: Path
    time: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    adopted: bool = False
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of a person."""

    time: str
    text: str


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What is written down about one step.

    Attributes:
        links: Its workspaces, oldest first; the last one of each label counts.
        skipped: Why it is left out; None where it is not.
        decision: What a person decided here (the kernel, how the winner was integrated), plain words or values.
        decided: Digests of the inputs when that was decided.
    """

    links: tuple[Link, ...] = ()
    skipped: str | None = None
    decision: Mapping[str, object] | None = None
    decided: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything in ``campaign.yaml``.

    Attributes:
        directory: Absolute directory of the file.
        output_dir: Below which the steps' workspaces go.
        files: Name of an input → absolute path: ``baseline``, ``profiled``, ``optimized``, ``analyze``, ``compare``.
        candidates: Label → absolute path of its config.
        seen: When a person last looked, UTC; what happened since is told from it.
    """

    directory: Path
    name: str
    template: str
    created: str
    output_dir: Path
    goal: Goal | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    candidates: Mapping[str, Path] = field(default_factory=dict)
    steps: Mapping[str, StepRecord] = field(default_factory=dict)
    seen: str | None = None

    @property
    def path(self) -> Path:
        """The file itself."""
        return self.directory / FILE_NAME

    def step(self, key: str) -> StepRecord:
        """Return what is written about a step."""
        return self.steps.get(key, StepRecord())


class StepState(str, Enum):
    """State of a step; never stored, always derived."""

    NOT_STARTED = "not started"
    BLOCKED = "blocked"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STALE = "stale"
    SKIPPED = "skipped"
    ADOPTED = "adopted"


@dataclass(frozen=True, slots=True)
class Action:
    """What can be done next.

    Attributes:
        command: Words of the command; empty where a person has to do something that is no command.
        text: What it is, in words.
        person: It needs a decision or work of a person; ``campaign next`` stops here.
    """

    command: tuple[str, ...]
    text: str
    person: bool = False


@dataclass(frozen=True, slots=True)
class StepView:
    """One step as it is shown.

    Attributes:
        because: What blocks it, what failed, or which input changed; empty otherwise.
        when: UTC time of its newest workspace or decision; None if there is none.
        finding: One line: a measurement or a decision, never a tick; None where nothing was found yet.
        workspaces: The workspaces that count.
        inputs: Digests of its inputs now.
    """

    number: int
    key: str
    title: str
    state: StepState
    because: str
    when: str | None
    finding: str | None
    workspaces: tuple[Link, ...]
    action: Action | None
    inputs: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
