"""The profiler stage of a run, and what the binaries of its kernels say; after timing, never part of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.configs.kernel_model import Command, KernelEntry
from magpie_tui.kernels.assembly import Listing, save_binary, save_triton
from magpie_tui.kernels.binary_facts import KernelFacts, of_driver, read_binary, read_triton_cache
from magpie_tui.kernels.commands import child_environment
from magpie_tui.kernels.evaluation import Evaluation, KernelOutcome
from magpie_tui.kernels.harness import main as harness_main
from magpie_tui.kernels.judges import InputSet, JudgeFailedError
from magpie_tui.kernels.preflight import interpreter_of
from magpie_tui.kernels.profilers.choose import DEFAULT_TIMEOUT_S, Choice
from magpie_tui.kernels.profilers.model import Backend, ProfileTask
from magpie_tui.kernels.profilers.run import profile
from magpie_tui.kernels.rights import CACHE_VARIABLES
from magpie_tui.kernels.sessions import HarnessBrokenError, SessionFailedError

WARM_UP_CALLS = 3
PROFILED_CALLS = 5
"""Calls of a kernel without a program of its own, before and while the profiler looks."""


def profile_kernels(evaluation: Evaluation, outcomes: Iterable[KernelOutcome]) -> None:
    """Profile the correct kernels whose profiler is here, and read what the binaries of all kernels say."""
    for outcome in outcomes:
        place = evaluation.exchange / "kernels" / str(outcome.index)
        outcome.facts = tuple(binary_facts(outcome, place))
        listings = evaluation.logs_of(outcome.entry, outcome.index) / "asm"
        outcome.listings = tuple(item.to_json(evaluation.workspace) for item in listings_of(outcome, place, listings))
        choice = evaluation.preflight.profilers.get(outcome.index, Choice(None, reason="not looked for"))
        if not evaluation.settings.timed:
            outcome.unprofiled = "not asked for (--no-perf)"
        elif not outcome.judgement.correct:
            outcome.unprofiled = "it was not proved correct"
        elif choice.backend is None:
            outcome.unprofiled = choice.reason
        else:
            evaluation.report("profiling", None, None, f"{outcome.entry.id}: {choice.backend}")
            _profile(evaluation, outcome, choice.backend)


def _profile(evaluation: Evaluation, outcome: KernelOutcome, backend: Backend) -> None:
    entry = outcome.entry
    logs = evaluation.logs_of(entry, outcome.index)
    inputs: InputSet | None = None
    commands: tuple[Command, ...] = entry.testcase_commands
    if outcome.candidate is not None:
        made = _call_command(evaluation, outcome)
        if isinstance(made, str):
            outcome.unprofiled = made
            return
        command, inputs = made
        commands = (command,)
    performance = evaluation.config.performance
    section = performance.get(backend)
    limit = performance.get("timeout_seconds")
    task = ProfileTask(
        commands=commands,
        cwd=entry.working_dir,
        environment=child_environment(entry, evaluation.preflight.extra_path),
        directory=evaluation.workspace / "performance" / logs.name / backend,
        timeout_s=float(limit) if isinstance(limit, (int, float)) else DEFAULT_TIMEOUT_S,
        settings=section if isinstance(section, dict) else {},
        marked=inputs is not None and backend == "ncu",
    )
    outcome.profile = profile(backend, task)
    if inputs is not None:
        inputs.path.unlink(missing_ok=True)


def _call_command(evaluation: Evaluation, outcome: KernelOutcome) -> tuple[Command, InputSet] | str:
    """Return the command that calls a kernel on fresh inputs, and these; or why there is none."""
    candidate, entry = outcome.candidate, outcome.entry
    task = evaluation.reference_for(entry)
    if candidate is None or task is None:
        return "there is no reference that makes inputs"
    judge = evaluation.judge_of(task)
    points = evaluation.points_of(entry)
    try:
        judge.load()
        seed = evaluation.rng.getrandbits(31)
        shape = points[0] if points else None
        if judge.facts["makes_inputs"]:
            inputs = judge.make_inputs(seed, shape=shape)
        else:
            own = candidate.own_inputs(seed, judge.path("own"), shape)
            inputs = judge.make_inputs(seed, adopt=own, shape=shape)
    except (JudgeFailedError, SessionFailedError, HarnessBrokenError) as error:
        return f"no inputs to call it with: {error}"
    request = {
        "source": str(candidate.source),
        "function": entry.kernel_name,
        "get_init_inputs": entry.get_init_inputs_func,
        "seed": candidate.seed,
        "raw": candidate.raw,
        "init_path": judge.facts.get("init_path"),
        "state_path": judge.facts.get("state_path"),
        "inputs": str(inputs.path),
        "confine": None if candidate.rights is None else candidate.rights.message(family=[os.getpid()]),
        "warm_up": WARM_UP_CALLS,
        "calls": PROFILED_CALLS,
    }
    path = evaluation.logs_of(entry, outcome.index) / "profiled.json"
    write_text(path, json.dumps(request), durable=False)
    return (interpreter_of(entry), str(harness_main.__file__), "once", str(path)), inputs


def listings_of(outcome: KernelOutcome, place: Path, directory: Path) -> Iterator[Listing]:
    """Save the instructions of a kernel's binaries in ``directory``; none where no tool can show them."""
    entry = outcome.entry
    if outcome.binary is not None:
        yield from save_binary(outcome.binary.path, outcome.binary.function, directory)
    elif entry.type == "triton":
        cache = triton_cache(entry, place)
        if cache is not None and cache.is_dir():
            yield from save_triton(cache, _triton_names(entry), directory)
    elif entry.type in ("hip", "cuda"):
        for path in _built_programs(entry)[:1]:
            yield from save_binary(path, None, directory)


def binary_facts(outcome: KernelOutcome, place: Path) -> Sequence[KernelFacts]:
    """Return registers, spills and shared memory of a kernel's binaries; empty where nothing tells them.

    Args:
        place: The directory of its own that a kernel's processes had for what compilers keep.
    """
    entry = outcome.entry
    if outcome.binary is not None:
        read, _reason = read_binary(outcome.binary.path)
        arch = _arch_of(outcome.binary.options)
        told = outcome.binary.facts
        own = [item for item in read if item.name == outcome.binary.function] or list(read)
        if not own and told:
            return [of_driver(outcome.binary.function, told, arch)]
        threads = told.get("threads")
        return [
            replace(
                item,
                arch=item.arch or arch,
                threads=item.threads or (threads if isinstance(threads, int) else None),
            )
            for item in own
        ]
    if entry.type == "triton":
        cache = triton_cache(entry, place)
        return read_triton_cache(cache, _triton_names(entry)) if cache is not None and cache.is_dir() else ()
    if entry.type in ("hip", "cuda"):
        found = (read_binary(path)[0] for path in _built_programs(entry))
        return next((facts for facts in found if facts and facts[0].registers is not None), ())
    return ()


def _arch_of(options: Sequence[str]) -> str | None:
    for option in options:
        name, _, value = option.partition("=")
        if name in ("--gpu-architecture", "-arch", "--offload-arch"):
            return value.split(":")[0]
    return None


def triton_cache(entry: KernelEntry, place: Path) -> Path | None:
    """Return where Triton kept what it compiled for an entry: in its own place, unless its ``env:`` names another."""
    own = place / CACHE_VARIABLES["TRITON_CACHE_DIR"]
    if "TRITON_CACHE_DIR" not in entry.env and own.is_dir():
        return own
    environment = child_environment(entry)
    given = environment.get("TRITON_CACHE_DIR")
    if given:
        return Path(given)
    home = environment.get("TRITON_HOME") or environment.get("HOME")
    return None if home is None else Path(home) / ".triton" / "cache"


def _triton_names(entry: KernelEntry) -> frozenset[str]:
    """Return the names of the functions in a Triton source that are compiled: those under ``@triton.jit``."""
    import re

    names: set[str] = set()
    for path in entry.source_files:
        try:
            text = path.read_text(errors="replace")
        except OSError:
            continue
        names |= set(re.findall(r"@(?:triton\.)?jit\b[^\n]*\n(?:\s*@[^\n]*\n)*\s*def\s+(\w+)", text))
    return frozenset(names)


def _built_programs(entry: KernelEntry) -> list[Path]:
    """Return the files that the compile commands name after ``-o``, last first."""
    base = entry.working_dir or Path.cwd()
    found = []
    for command in entry.compile_commands:
        for flag, value in pairwise(command):
            if flag == "-o":
                found.append(base / value)
    return [path for path in reversed(found) if path.is_file()]
