"""An experiment on disk: what was asked, which runs are done, what was set aside; enough to go on after any end."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.files import write_bytes, write_json
from magpie_tui.serving.verdict_model import LEAST_PAIRS, RULES, Arm
from magpie_tui.serving.verdict_reading import REPORT_NAME
from magpie_tui.workspaces.damage import Damaged, read_json_file
from magpie_tui.workspaces.values import as_count, as_list, as_mapping, as_number, as_text, as_texts

STATE_NAME = "experiment.json"
STATE_SCHEMA_VERSION = 1
State = Literal["running", "stopped", "ended"]
_ARMS: tuple[Arm, Arm] = ("a", "b")


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """What was asked; fixed before the first run.

    Attributes:
        pairs: Planned pairs.
        primary: Key of the metric that decides.
        seed: Of the first pair; each further pair, and each repeated one, takes the next.
        changes: Facts that may differ, beyond those that the configs change on purpose.
        kernel, replaces, kernel_ratio: See ``Question``.
        twins: A profiled run of each arm at the end.
        share_servers: Neighbouring runs of one arm use one server, its prefix cache emptied in between.
        guard_share: A run slower than this share of the baseline's throughput is ended; None: never.
        stop_on_flags: Kinds of flags in the server's log that end a run.
        run_mode: Overrides both configs.
        control: Experiment of the baseline against itself, whose spread raises the margins.
    """

    pairs: int = 8
    primary: str = "output_throughput"
    seed: int = 0
    changes: tuple[str, ...] = ()
    kernel: str | None = None
    replaces: str | None = None
    kernel_ratio: float | None = None
    twins: bool = False
    share_servers: bool = False
    guard_share: float | None = None
    stop_on_flags: tuple[str, ...] = ()
    run_mode: str | None = None
    control: str | None = None

    @property
    def most_set_aside(self) -> int:
        """Pairs that may be repeated; more means that the machine or a config is not fit."""
        return max(1, self.pairs // 4)

    @property
    def can_claim(self) -> bool:
        """True with enough pairs for a claim."""
        return self.pairs >= LEAST_PAIRS


def order_of(number: int) -> tuple[Arm, Arm]:
    """Return the arms of a pair in the order of their runs: A B, B A, A B, …"""
    return ("a", "b") if number % 2 else ("b", "a")


@dataclass(frozen=True, slots=True)
class SetAside:
    """A pair that was run again because a run of it did not count.

    Attributes:
        reason: Of the run that did not count; never its figures.
    """

    pair: int
    reason: str


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """The content of ``experiment.json``.

    Attributes:
        configs: Path, hash and name of the copy, by arm.
        began_at: UTC.
        interim: The interval as it stands, for people.
    """

    plan: ExperimentPlan
    configs: Mapping[str, Mapping[str, str]]
    state: State
    began_at: str
    set_aside: tuple[SetAside, ...] = ()
    interim: str | None = None
    reason: str | None = None
    pair_seconds: tuple[float, ...] = field(default=())

    def seed_of(self, number: int) -> int:
        """Return the seed of a pair, a new one after each that was set aside."""
        return self.plan.seed + number - 1 + 1000 * sum(item.pair == number for item in self.set_aside)


def start_state(directory: Path, plan: ExperimentPlan, a: Path, b: Path, *, began_at: str) -> ExperimentState:
    """Copy the configs into the experiment and write its state.

    Raises:
        UserInputError: A config cannot be read.
        MachineError: The directory cannot be written.
    """
    configs: dict[str, Mapping[str, str]] = {}
    for arm, path in zip(_ARMS, (a, b), strict=True):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UserInputError(f"the config cannot be read: {error.strerror}", path=path) from error
        copy = f"config_{arm}.yaml"
        write_bytes(directory / copy, data)
        configs[arm] = {
            "path": str(path.absolute()),
            "sha256": hashlib.sha256(data).hexdigest(),
            "copy": copy,
        }
    state = ExperimentState(plan, configs, "running", began_at)
    write_state(directory, state)
    return state


def write_state(directory: Path, state: ExperimentState) -> None:
    """Write ``experiment.json`` durably.

    Raises:
        MachineError: The directory cannot be written.
    """
    write_json(directory / STATE_NAME, {"schema_version": STATE_SCHEMA_VERSION, **asdict(state)}, durable=True)


def read_state(directory: Path) -> ExperimentState:
    """Read what ``write_state`` wrote.

    Raises:
        UserInputError: There is no experiment, or its state is damaged.
    """
    path = directory / STATE_NAME
    value = read_json_file(path)
    if isinstance(value, Damaged):
        if value.gone:
            raise UserInputError("there is no experiment here", path=directory, hint="give the directory experiment_…")
        raise value.error()
    keys = as_mapping(value)
    plan = as_mapping(keys.get("plan"))
    state = as_text(keys.get("state"))
    configs = {arm: as_mapping(as_mapping(keys.get("configs")).get(arm)) for arm in _ARMS}
    pairs = as_count(plan.get("pairs"))
    if pairs is None or state not in ("running", "stopped", "ended") or not all(configs.values()):
        raise UserInputError("this is no state of an experiment", path=path)
    kept: State = "running" if state == "running" else ("stopped" if state == "stopped" else "ended")
    return ExperimentState(
        plan=_plan(plan, pairs),
        configs={arm: {name: str(item) for name, item in values.items()} for arm, values in configs.items()},
        state=kept,
        began_at=as_text(keys.get("began_at")) or "",
        set_aside=tuple(
            SetAside(as_count(item.get("pair")) or 0, as_text(item.get("reason")) or "")
            for item in map(as_mapping, as_list(keys.get("set_aside")))
        ),
        interim=as_text(keys.get("interim")),
        reason=as_text(keys.get("reason")),
        pair_seconds=tuple(
            number for number in map(as_number, as_list(keys.get("pair_seconds"))) if number is not None
        ),
    )


def _plan(keys: Mapping[str, object], pairs: int) -> ExperimentPlan:
    primary = as_text(keys.get("primary")) or "output_throughput"
    return ExperimentPlan(
        pairs=pairs,
        primary=primary if primary in RULES else "output_throughput",
        seed=as_count(keys.get("seed")) or 0,
        changes=as_texts(keys.get("changes")),
        kernel=as_text(keys.get("kernel")),
        replaces=as_text(keys.get("replaces")),
        kernel_ratio=as_number(keys.get("kernel_ratio")),
        twins=keys.get("twins") is True,
        share_servers=keys.get("share_servers") is True,
        guard_share=as_number(keys.get("guard_share")),
        stop_on_flags=as_texts(keys.get("stop_on_flags")),
        run_mode=as_text(keys.get("run_mode")),
        control=as_text(keys.get("control")),
    )


def run_directory(directory: Path, number: int, arm: Arm) -> Path:
    """Return the workspace of one run."""
    return directory / f"pair_{number:02d}_{arm}"


def clear_incomplete(workspace: Path) -> None:
    """Put away what an interrupted run left, so that its directory is free; nothing is deleted."""
    if not workspace.exists() or (workspace / REPORT_NAME).is_file():
        return
    put_away(workspace, "interrupted")


def put_away(workspace: Path, word: str) -> None:
    """Rename a workspace to ``<word>_<its name>_<n>``."""
    if not workspace.exists():
        return
    count = 1
    while (target := workspace.with_name(f"{word}_{workspace.name}_{count}")).exists():
        count += 1
    workspace.rename(target)


def with_set_aside(state: ExperimentState, number: int, reason: str) -> ExperimentState:
    """Return the state with one more pair set aside."""
    return replace(state, set_aside=(*state.set_aside, SetAside(number, reason)))
