"""Programs with a main of their own: stamped by a tool, interleaved, compared; a tool that fails is nobody's fault."""

from __future__ import annotations

import os
import random
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelConfig, KernelEntry
from magpie_tui.kernels.compare import _rank
from magpie_tui.kernels.evaluation import Evaluation, KernelOutcome
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.measuring import Timer
from magpie_tui.kernels.model import Judgement
from magpie_tui.kernels.preflight import Preflight
from magpie_tui.kernels.programs import Program, ProgramBlocks, tool_for
from magpie_tui.kernels.ranking import rank
from magpie_tui.kernels.settings import EvaluationSettings, TimingSettings
from magpie_tui.kernels.timing import Schedule
from magpie_tui.kernels.timings import timing_of

NCU = """#!/bin/sh
while [ "$1" != "--log-file" ]; do shift; done
log=$2
for last; do true; done
echo "$last" >> "$RUNS"
[ "$last" = broken ] && exit 9
{
  echo '"ID","Process ID","Kernel Name","Context","Stream","gpu__time_duration.sum"'
  echo '"","","","","","ns"'
  [ "$last" = silent ] || echo "\\"0\\",\\"1\\",\\"work(float*)\\",\\"1\\",\\"7\\",\\"${last}0000\\""
  [ "$last" = silent ] || echo "\\"1\\",\\"1\\",\\"work(float*)\\",\\"1\\",\\"7\\",\\"${last}0010\\""
} > "$log"
"""


def program(index: int, argument: str, directory: Path) -> Program:
    """Return a program whose argument the imitated tool takes as its duration in 10 us."""
    tools = directory / "tools"
    tools.mkdir(exist_ok=True)
    tool = tools / "ncu"
    tool.write_text(NCU)
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "RUNS": str(directory / "runs")}
    entry = KernelEntry(f"k{index}", "cuda", (), testcase_commands=(("./program", argument),))
    return Program(index, entry, environment, "ncu", directory / f"place_{index}", 20.0)


def measured(programs: list[Program], *, baseline: int | None = 0) -> Measurement:
    """Run the schedule."""
    result = Measurement()
    settings = TimingSettings(fewest_replicates=6)
    Schedule(
        settings,
        ProgramBlocks(),
        baseline=baseline,
        rng=random.Random(2),
        on_gpu=True,
        progress=lambda step, done, total: None,
    ).run(programs, result)
    return result


def test_runs_of_programs_are_interleaved_and_rank_by_their_dispatches(tmp_path: Path) -> None:
    programs = [program(0, "4", tmp_path), program(1, "2", tmp_path)]
    result = measured(programs)
    timings = {index: timing_of(result, index, TimingSettings()) for index in (0, 1)}
    first = timings[0]
    assert first.median is not None and first.median.point == 80_010
    assert (first.quantity, first.facts["method"], first.facts["kernels"]) == (
        "device_time",
        "device_stamps",
        ["work(float*)", "work(float*)"],
    )
    ranking = rank(result, 0, [1], TimingSettings(), timings)
    assert ranking.comparisons[1].word == "faster" and ranking.chosen == 1
    order = (tmp_path / "runs").read_text().split()
    assert len(order) == 18 and order[:3] == order[5:2:-1], "the order is mirrored from one replicate to the next"
    assert not list((tmp_path / "place_0").iterdir()), "what the tool wrote is not kept"


def test_a_program_without_kernels_and_a_tool_that_fails_give_no_time(tmp_path: Path) -> None:
    silent = measured([program(0, "silent", tmp_path)], baseline=None)
    assert "no_kernel_launched" in silent.untimed[0] and not silent.failed
    broken = measured([program(0, "broken", tmp_path)], baseline=None)
    assert broken.untimed[0].startswith("no_performance_data") and not broken.failed


def test_what_no_tool_can_stamp_says_why() -> None:
    plain = KernelEntry("k", "cpp", (), testcase_commands=(("./program",),))
    assert tool_for(plain, "/usr/bin") == (
        None,
        "no_performance_data: the run time of a whole program is no kernel time",
    )
    hip = KernelEntry("k", "hip", (), testcase_commands=(("./program",),))
    assert "rocprofv3" in (tool_for(hip, "/nowhere")[1] or "")


def test_data_for_one_of_two_kernels_is_no_comparison(tmp_path: Path) -> None:
    source = tmp_path / "base.py"
    entries = (KernelEntry("base", "pytorch", (source,)), KernelEntry("program", "cpp", testcase_commands=(("true",),)))
    made = Evaluation(
        KernelConfig(None, entries), EvaluationSettings(), tmp_path, Preflight({}), lambda *step: None, baseline=0
    )
    with made as evaluation:
        harness = evaluation.harness_of(entries[0])
        called = Candidate(0, entries[0], source, harness, tmp_path, 1, None, 7, 60.0)
        right = Judgement("correct", proof="reference")
        outcomes = [
            KernelOutcome(0, entries[0], judgement=right, candidate=called),
            KernelOutcome(1, entries[1], judgement=right),
        ]
        timer = Timer(evaluation, outcomes)
        timer.run()  # the harness is never started: nothing is timed for nothing
        ranking = _rank(timer, outcomes, 0, evaluation.settings)
    assert (ranking.winner, ranking.order, ranking.reason) == (None, (), "no_performance_data")
    assert outcomes[0].untimed == "no_performance_data: every candidate has no time to compare with"
    assert "run time of a whole program is no kernel time" in (outcomes[1].untimed or "")
