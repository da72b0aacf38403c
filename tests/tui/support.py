"""A small fixed world for tests of the app: machine, runs, workspaces and the time are always the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from textual.pilot import Pilot

from magpie_tui.machine.model import Containers, Disk, Gpu, GpuProcess, Host, Machine, Reading, Tool
from magpie_tui.processes.usage import ProcessUsage, TreeUsage
from magpie_tui.runs.model import Progress, Run, RunState
from magpie_tui.tui.app import MagpieApp
from magpie_tui.tui.background import MachineReading
from magpie_tui.tui.facts import frame_facts
from magpie_tui.tui.run_calls import RunCalls
from magpie_tui.tui.services import Services
from magpie_tui.tui.terminal import TerminalTraits
from magpie_tui.tui.widgets.frame import StatusRow
from magpie_tui.workspaces.browse import WorkspaceSummary
from tests.tui.settle import paint

NOW = datetime(2026, 12, 2, 14, 10, 1, tzinfo=timezone.utc)
ROOT = Path("/data/qwen3-8b-decode")
PATIENCE_S = 60.0
LOOKS_A_FRAME = 10
"""While a test waits, the app paints 20 times a second at most: painting may lead to what is waited for."""


def make_gpu(index: int, *processes: GpuProcess, throttle: tuple[str, ...] = ()) -> Gpu:
    """Return an MI300X."""
    return Gpu(
        index=index,
        vendor="AMD",
        name="AMD Instinct MI300X",
        architecture="gfx942",
        memory_total_bytes=206_142_603_264,
        memory_used_bytes=168_000_000_000 if processes else 300_000_000,
        clock_core_mhz=1985.0 if processes else 132.0,
        clock_core_max_mhz=2100.0,
        power_w=612.0 if processes else 141.0,
        power_cap_w=750.0,
        temperature_c=71.0 if processes else 39.0,
        utilization_percent=97.0 if processes else 0.0,
        throttle_reasons=throttle,
        processes=processes,
        visible=True,
        sources=("amdsmi",),
        reasons={"ecc_enabled": "the library does not tell"},
    )


def make_machine(gpus: Sequence[Gpu] | None = None, *, free_bytes: int = 1_800_000_000_000) -> Machine:
    """Return a machine of eight GPUs: two are ours, one is somebody else's."""
    if gpus is None:
        ours = GpuProcess(pid=4127, name="python", memory_bytes=160_000_000_000, ours=True)
        theirs = GpuProcess(pid=990, name="train.py", memory_bytes=64_000_000_000, ours=False)
        gpus = [make_gpu(i, *({2: (ours,), 3: (ours,), 7: (theirs,)}.get(i, ()))) for i in range(8)]
    return Machine(
        vendor="AMD" if gpus else None,
        architecture="gfx942" if gpus else None,
        gpus=tuple(gpus),
        driver_version="6.14.5" if gpus else None,
        runtime_version="7.2.0" if gpus else None,
        visible_devices={},
        host=Host(
            hostname="mi300x-04.cluster",
            kernel="6.8.0",
            system="Ubuntu 24.04",
            cpu_model="AMD EPYC 9654",
            cores=384,
            usable_cores=384,
            memory_total_bytes=1_500_000_000_000,
            memory_available_bytes=1_400_000_000_000,
            load_average=2.1,
            governor="performance",
            numa_nodes=2,
            numa_balancing=False,
            inside_container=True,
        ),
        disk=Disk(ROOT / "results", total_bytes=3_800_000_000_000, free_bytes=free_bytes),
        containers=Containers(Tool("docker", Path("/usr/bin/docker"), "28.2.2", True), True, "28.2.2"),
        tools=(
            Tool("hipcc", Path("/opt/rocm/bin/hipcc"), "7.2.26015", False),
            Tool("g++", Path("/usr/bin/g++"), "13.3.0", True),
            Tool("nvcc", reason="not found"),
        ),
        packages=(),
        ports=(),
        readings=(Reading("amdsmi", tuple(gpus)) if gpus else Reading("amdsmi", reason="the library is not there"),),
        read_at="2026-12-02T14:10:00Z",
        reasons={} if gpus else {"gpus": "neither a GPU library nor a vendor's tool is installed"},
    )


def make_run(
    run_id: str,
    state: RunState,
    label: str,
    *,
    kind: str = "compare",
    minutes_ago: float = 10.0,
    progress: Progress | None = None,
    last_line: str | None = None,
    reason: str | None = None,
) -> Run:
    """Return a run that started ``minutes_ago``."""
    started = NOW - timedelta(minutes=minutes_ago)
    over = state in (RunState.ended, RunState.failed, RunState.stopped, RunState.lost)
    return Run(
        id=run_id,
        kind=kind,
        label=label,
        command=("magpie-tui", kind),
        cwd=ROOT,
        output_dir=ROOT / "results",
        directory=ROOT / "results/.magpie-tui/runs" / run_id,
        engine="builtin",
        detached=True,
        state=state,
        reason=reason,
        checked=True,
        exit_code=None if not over else (0 if state is RunState.ended else 3),
        signal=None,
        starter=None,
        supervisor=None,
        worker=None,
        created_at=started,
        started_at=started,
        ended_at=started + timedelta(minutes=3) if over else None,
        host="mi300x-04",
        workspace=None,
        stop=None,
        leftover_processes=0,
        remaining_processes=(),
        progress=progress,
        last_line=last_line,
    )


def make_usage() -> TreeUsage:
    """Return what two processes cost; one of them is on GPU 2 of ``make_machine``."""
    return TreeUsage(
        (
            ProcessUsage(4120, 1, "sh", "sh -c bench x[/b]", 0, 0.01, 1_600_000, 1),
            ProcessUsage(4127, 2, "python", "python -m gemm[m=16]", 1, 492.0, 1_200_000_000, 61),
        ),
        cpu_s=492.5,
        taken_s=0.0,
    )


def make_runs() -> list[Run]:
    """Return two live runs and three that are over."""
    return [
        make_run(
            "20261202_140211_aaaa",
            RunState.running,
            "fp8-kv pair 1/8, B",
            kind="benchmark",
            minutes_ago=8,
            progress=Progress("measure", 706, 1280, "requests"),
        ),
        make_run(
            "20261202_140018_bbbb",
            RunState.running,
            "pa-candidates",
            progress=Progress("block", 3, 10, message="D +-0.9, stops 0.5"),
        ),
        make_run(
            "20261202_135019_cccc",
            RunState.ended,
            "fp8-kv pair 1/8, A",
            kind="benchmark",
            minutes_ago=20,
            last_line="2,939 tok/s",
        ),
        make_run("20261202_125037_dddd", RunState.failed, "gemm[m=16] x[/b]", minutes_ago=80, reason="died in graphs"),
        make_run(
            "20261129_182200_eeee",
            RunState.lost,
            "baseline-monday",
            kind="benchmark",
            minutes_ago=4000,
            reason="host restarted",
        ),
    ]


def make_workspaces() -> list[WorkspaceSummary]:
    """Return two workspaces."""
    return [
        WorkspaceSummary(
            path=ROOT / "results/compare_pa_20261202_093300",
            kind="compare",
            label="paged_attention",
            time="2026-12-02 09:33:00",
            status="ok",
            headline="A 1.228 x, C 1.061 x, B slower, E incorrect",
        ),
        WorkspaceSummary(
            path=ROOT / "results/analyze_vector_add_20261201_120000",
            kind="analyze",
            label="vector_add",
            time="2026-12-01 12:00:00",
            status="failed",
            headline="0 of 1 kernels correct",
        ),
    ]


@dataclass
class World:
    """What the services answer; tests change it while the app runs."""

    runs: list[Run] = field(default_factory=make_runs)
    workspaces: list[WorkspaceSummary] = field(default_factory=make_workspaces)
    machine: Machine = field(default_factory=make_machine)
    output_dirs: list[Path] = field(default_factory=list)
    now: datetime = NOW
    stopped: list[str] = field(default_factory=list)
    machine_readings: int = 0
    environment: dict[str, str] = field(default_factory=lambda: {"MAGPIE_TUI_THEME": "dark"})

    def read_machine(self, thorough: bool) -> MachineReading:
        """Count the readings."""
        self.machine_readings += 1
        facts = replace(frame_facts(self.machine), host="mi300x-04")
        return MachineReading(self.machine, facts, frozenset(), self.now.timestamp())

    def stop_run(self, run: Run) -> str:
        """Remember who was stopped."""
        self.stopped.append(run.id)
        return "4 processes ended"

    def read_run(self, run: Run) -> Run:
        """The run as it is now."""
        return next((item for item in self.runs if item.id == run.id), run)

    def remove_run(self, run: Run) -> None:
        """Remove it from the list."""
        self.runs.remove(self.read_run(run))

    def run_again(self, run: Run) -> Run:
        """Put a new run on top of the list."""
        again = replace(run, id="20261202_141001_ffff", state=RunState.running, ended_at=None, started_at=self.now)
        self.runs.insert(0, again)
        return again

    def kill_run(self, run: Run) -> str:
        """Remember who was killed."""
        self.stopped.append(run.id)
        return "2 processes killed"

    def run_calls(self) -> RunCalls:
        """What the screens of runs ask."""
        return RunCalls(
            read=self.read_run,
            usage=lambda run: None if run.is_over else make_usage(),
            headline=lambda run: "A 1.228 x, C 1.061 x" if run.is_over and run.workspace is not None else None,
            count_processes=lambda run: 0 if run.is_over else 4,
            kill=self.kill_run,
            remove=self.remove_run,
            start_again=self.run_again,
        )

    def services(self) -> Services:
        """Return the services that answer from here."""
        return Services(
            list_runs=lambda: tuple(self.runs),
            list_workspaces=lambda: tuple(self.workspaces),
            read_machine=self.read_machine,
            stop_run=self.stop_run,
            output_dirs=lambda: tuple(self.output_dirs),
            run_calls=self.run_calls(),
            now=lambda: self.now,
            environment=self.environment,
        )

    def app(self, **options: object) -> MagpieApp:
        """Return the app over this world."""
        traits = options.get("traits", TerminalTraits())
        keymap = options.get("keymap", {})
        assert isinstance(traits, TerminalTraits) and isinstance(keymap, dict)
        return MagpieApp(ROOT, self.services(), traits=traits, keymap=keymap)


def empty_world() -> World:
    """Return a world without GPUs, runs and results."""
    return World(runs=[], workspaces=[], machine=make_machine([]))


Condition = Callable[[], bool]


async def wait_until(pilot: Pilot[None], condition: Condition, what: str = "the condition") -> None:
    """Let the app work until ``condition`` holds."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    looks = 0
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"waited in vain for {what}; the screen is:\n{screen_text(pilot)}")
        await asyncio.sleep(0.005)
        looks += 1
        if looks % LOOKS_A_FRAME == 0:
            paint()
    await pilot.pause()


async def wait_ready(pilot: Pilot[None]) -> MagpieApp:
    """Wait until runs, machine and results were read and shown; return the app."""
    app = pilot.app
    assert isinstance(app, MagpieApp)
    await wait_until(pilot, lambda: app.runs is not None and app.machine_reading is not None, "the first readings")
    await app.workers.wait_for_complete()
    await pilot.pause()
    return app


def screen_text(pilot: Pilot[None]) -> str:
    """Return what the top screen shows, line by line, without trailing blanks."""
    # The compositor is private in Textual; nothing else gives the text as it is painted (pinned version).
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def status(app: MagpieApp) -> str:
    """Return the message in row 26."""
    for screen in reversed(app.screen_stack):
        for row in screen.query(StatusRow):
            return str(row.message)
    return ""


@dataclass
class Stage:
    """What a proof of an action works with."""

    pilot: Pilot[None]
    app: MagpieApp
    world: World
    key: str
    """The first default key of the action; empty for palette-only actions."""

    async def press(self) -> None:
        """Press the key of the action."""
        await self.pilot.press(self.key)
        await self.pilot.pause()

    async def wait(self, condition: Condition, what: str = "the condition") -> None:
        """Let the app work until ``condition`` holds."""
        await wait_until(self.pilot, condition, what)


Proof = Callable[[Stage], Awaitable[None]]
PROOFS: dict[str, Proof] = {}
ALONE: set[str] = set()
"""Actions whose proofs need an app of their own: they end it, or change what no restart puts back."""


def proves(*action_ids: str, alone: bool = False) -> Callable[[Proof], Proof]:
    """Mark a function as the test of actions: it does the keys' work on a stage and asserts what happened.

    Args:
        alone: It ends the app, or changes in it what ``restart`` does not put back, so no other proof shares it.
    """

    def register(proof: Proof) -> Proof:
        if alone:
            ALONE.update(action_ids)
        for action_id in action_ids:
            assert action_id not in PROOFS, f"{action_id} has a proof already"
            PROOFS[action_id] = proof
        return proof

    return register
