"""Device time of kernels with a main of their own: runs of the program under a tool that stamps its dispatches.

A run of the program is a block: a process of its own, interleaved with those of the other arms. Its time is the sum of
the durations of everything that it ran on the device.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.blocks import Block, NothingTimedError
from magpie_tui.kernels.judges import InputSet
from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.model import Series, Window
from magpie_tui.kernels.profilers.model import Backend, ProfilerFailedError
from magpie_tui.kernels.profilers.run import dispatches

TOOL_OF_TYPE: Mapping[str, Backend] = {"cuda": "ncu", "hip": "rocprofv3"}
"""Tool that gives device durations, by the type of a kernel."""
CACHE_UNDER: Mapping[Backend, str] = {"ncu": "cold"}
"""ncu empties the caches before each kernel; under other tools they are as the program leaves them."""
FEWEST_RUNS = 6


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel that is a program.

    Attributes:
        index: Its place in the config.
        environment: Of its processes.
        tool: What stamps its dispatches.
        place: Directory for what the tool writes.
        timeout_s: Limit of one run.
    """

    index: int
    entry: KernelEntry
    environment: Mapping[str, str]
    tool: Backend
    place: Path
    timeout_s: float


def tool_for(entry: KernelEntry, search_path: str | None) -> tuple[Backend | None, str | None]:
    """Return the tool that stamps the dispatches of a program, or None and the reason."""
    tool = TOOL_OF_TYPE.get(entry.type)
    if tool is None:
        return None, "no_performance_data: the run time of a whole program is no kernel time"
    if not entry.testcase_commands:
        return None, "no_performance_data: it has no testcase command that could be run"
    if shutil.which(tool, path=search_path) is None:
        return None, f"no_performance_data: {tool}, which would stamp its kernels, is not on PATH"
    return tool, None


class ProgramBlocks:
    """Blocks that are runs of programs."""

    def __init__(self) -> None:
        self._runs = 0

    def begin(self, candidate: Program, measurement: Measurement) -> list[InputSet]:
        """Programs bring their own inputs."""
        return []

    def end(self, sets: Sequence[InputSet]) -> None:
        """There is nothing to forget."""

    def together(self, arms: Sequence[tuple[Program, bool]], sets: Sequence[InputSet], *, share_s: float) -> None:
        """Runs of programs follow each other."""

    def run(self, candidate: Program, sets: Sequence[InputSet], *, share_s: float, control: bool) -> Block:
        """Run the last testcase command once under the tool.

        Raises:
            NothingTimedError: The tool failed, or saw nothing on the device.
        """
        self._runs += 1
        directory = candidate.place / f"run_{self._runs:03d}"
        started = time.perf_counter_ns()
        try:
            found = dispatches(
                candidate.tool,
                candidate.entry.testcase_commands[-1],
                cwd=candidate.entry.working_dir,
                environment=candidate.environment,
                directory=directory,
                timeout_s=candidate.timeout_s,
            )
        except ProfilerFailedError as error:
            raise NothingTimedError(f"no_performance_data: {error}") from error
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        ended = time.perf_counter_ns()
        window = Window(started, ended, started, ended, 1, tuple(found))
        cache = CACHE_UNDER.get(candidate.tool, "warm")
        kernels = tuple(item.name for item in found)
        return Block(
            (),
            Series("device_time", "device_stamps", cache, (window,)),
            kernels=kernels if len(kernels) <= 100 else tuple(dict.fromkeys(kernels)),
            notes={"stamps_by": f"{candidate.tool}; a call is a run of the program"},
        )
