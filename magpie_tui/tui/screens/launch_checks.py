"""What keeps a run from starting, found out before it is tried: the config, the engine, this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.options import OptionSpec, OptionValue, Values
from magpie_tui.basics.text import plural, printable

if TYPE_CHECKING:
    from magpie_tui.configs.review import Review, ReviewItem
    from magpie_tui.kernels.options import Request
    from magpie_tui.runs.model import Run

LaunchMode = Literal["analyze", "compare", "benchmark", "experiment"]
MODES_OF_KIND: dict[str, tuple[LaunchMode, ...]] = {
    "kernel": ("analyze", "compare"),
    "benchmark": ("benchmark", "experiment"),
}
SERVED: tuple[LaunchMode, ...] = ("benchmark", "experiment")
"""Modes that start a server: they have a review of their own, and the built-in engine only."""
ENGINES = ("builtin", "magpie")
MOST_PROBLEMS = 5
MOST_CHOICE_CELLS = 48

_GIVEN = frozenset({"kernels", "kernel_config", "testcase", "type", "compile_cmd"})
"""Options that the config stands for."""

_OURS = frozenset({"quick", "budget", "seed", "timeout", "threads", "fail_on"})
_UPSTREAMS = frozenset({"no_latency", "latency_method", "latency_rep_ms"})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One thing to know before a run is started.

    Attributes:
        what: Short name: ``line 3``, ``compiler g++``, ``engine magpie``.
        reason: What is wrong.
        hint: What to do, or empty.
        blocks: False: it runs, but something is doubtful.
    """

    what: str
    reason: str
    hint: str = ""
    blocks: bool = True

    @property
    def text(self) -> str:
        """One line without the hint."""
        return f"{self.what}: {self.reason}" if self.what else self.reason


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the review of a served run.

    Attributes:
        arm: ``A`` or ``B`` of an experiment; empty for a single run.
    """

    arm: str
    item: ReviewItem

    @property
    def text(self) -> str:
        """One line without the hint."""
        return f"{self.arm + ': ' if self.arm else ''}{self.item.name}: {self.item.evidence}"


@dataclass(frozen=True, slots=True)
class Readiness:
    """All that was found, and how long it may take.

    Attributes:
        budget: How long at most the timing takes by the protocol, or a served run by earlier ones, as words; empty when
            it is not timed here, or not known.
        points: Every point of a served run's review.
    """

    obstacles: tuple[Obstacle, ...] = ()
    budget: str = ""
    points: tuple[Point, ...] = ()

    @property
    def blockers(self) -> tuple[Obstacle, ...]:
        """What must be gone first."""
        return tuple(item for item in self.obstacles if item.blocks)


def form_specs(mode: LaunchMode, engine: str, kernel_ids: Sequence[str]) -> tuple[OptionSpec, ...]:
    """Return the options that a form of that mode and engine shows; what the engine ignores is left out.

    The baseline is a choice of the config's kernels where these are few enough to stand side by side.
    """
    from dataclasses import replace

    from magpie_tui.kernels.options import ANALYZE_OPTIONS, COMPARE_OPTIONS
    from magpie_tui.serving.experiment_options import EXPERIMENT_OPTIONS
    from magpie_tui.serving.options import BENCHMARK_OPTIONS

    if mode == "benchmark":
        return BENCHMARK_OPTIONS
    if mode == "experiment":
        return tuple(spec for spec in EXPERIMENT_OPTIONS if spec.name not in ("baseline", "resume"))
    left_out = _GIVEN | (_OURS if engine == "magpie" else _UPSTREAMS)
    specs = ANALYZE_OPTIONS if mode == "analyze" else COMPARE_OPTIONS
    shown = []
    for spec in specs:
        if spec.name in left_out:
            continue
        if spec.name == "baseline" and can_choose(kernel_ids):
            spec = replace(spec, kind="choice", choices=tuple(kernel_ids), default=kernel_ids[0], help=_BASELINE_HELP)
        shown.append(spec)
    return tuple(shown)


_BASELINE_HELP = "The kernel that the others are compared with."


def can_choose(kernel_ids: Sequence[str]) -> bool:
    """True when the kernels can be named by their ids and fit into one row."""
    plain = all(printable(name) == name and name.strip() == name and name and name != "0" for name in kernel_ids)
    fits = sum(len(name) + 2 for name in kernel_ids) <= MOST_CHOICE_CELLS
    return len(kernel_ids) > 1 and len(set(kernel_ids)) == len(kernel_ids) and plain and fits


def find_obstacles(
    path: Path,
    mode: LaunchMode,
    engine: str,
    values: Values,
    *,
    output_dir: Path,
    review: Review | None,
    on_point: Callable[[Point], None] = lambda _point: None,
) -> Readiness:
    """Look at everything that the command itself looks at before it starts; blocks for some seconds.

    Args:
        values: Options of the form.
        review: What is known of this machine for this config; None: it is reviewed now.
        on_point: Told each point of a served run as soon as it is decided.
    """
    from magpie_tui.configs.check import check_file

    found: list[Obstacle] = []
    if mode in SERVED:
        from magpie_tui.tui.screens.launch_served import find_served

        return find_served(path, mode, values, output_dir=output_dir, review=review, on_point=on_point)
    kernel_mode: Literal["analyze", "compare"] = "compare" if mode == "compare" else "analyze"
    check = check_file(path, mode=kernel_mode)
    errors = [problem for problem in check.problems if problem.severity == "error"]
    for problem in errors[:MOST_PROBLEMS]:
        found.append(Obstacle(f"line {problem.line}", problem.message, problem.hint or ""))
    if len(errors) > MOST_PROBLEMS:
        found.append(Obstacle("", f"{plural(len(errors) - MOST_PROBLEMS, 'more error')} in the config"))
    if errors:
        return Readiness(tuple(found))
    request, extra_path = _of_command(path, mode, engine, values, found)
    time = "" if request is None or engine == "magpie" else _budget(request)
    _of_machine(path, kernel_mode, output_dir, review, found, has_other_paths=extra_path)
    warnings = len(check.problems)
    if warnings:
        found.append(Obstacle("config", plural(warnings, "warning"), "its text pane lists them", blocks=False))
    return Readiness(tuple(found), time)


def of_error(what: str, error: MagpieTuiError) -> Obstacle:
    return Obstacle(what, error.message, error.hint or "")


def _of_command(
    path: Path, mode: LaunchMode, engine: str, values: Values, found: list[Obstacle]
) -> tuple[Request | None, bool]:
    """What the command says of its options, the engine and the kernels."""
    from magpie_tui.kernels.options import analyze_request, compare_request

    given: dict[str, OptionValue] = {**values, "kernel_config": str(path)}
    try:
        request = (compare_request if mode == "compare" else analyze_request)(given)
    except MagpieTuiError as error:
        named = error.key is not None and error.message.startswith(error.key)
        found.append(of_error("" if named else "options", error))
        return None, False
    if engine == "magpie":
        from magpie_tui.runs.upstream import find_upstream

        try:
            find_upstream(with_version=False)
        except MagpieTuiError as error:
            found.append(of_error("engine", error))
        return request, False
    return request, _of_kernels(request, found)


def _of_kernels(request: Request, found: list[Obstacle]) -> bool:
    """What our own engine lacks; True when it adds directories of compilers to PATH."""
    from magpie_tui.configs.framework import load_framework_config
    from magpie_tui.kernels.preflight import run_preflight

    config = request.config
    try:
        framework = load_framework_config(None)
        wanted = config.scheduler.get("environment") or ("ray" if config.ray_config is not None else None)
        place = wanted or framework.value("scheduler.environment") or "local"
        if place != "local":
            reason = f"kernels run on this machine only in this version, not in the environment {place}"
            found.append(Obstacle("environment", reason, "the engine magpie knows other environments"))
        preflight = run_preflight(
            config.kernels,
            baseline=request.baseline,
            performance=config.performance,
            profiled=request.settings.timed,
        )
    except MagpieTuiError as error:
        found.append(of_error("kernels", error))
        return False
    for index, lack in preflight.lacks.items():
        found.append(Obstacle(config.kernels[index].id, lack.reason, lack.hint or "", blocks=False))
    return bool(preflight.extra_path)


def _of_machine(
    path: Path,
    mode: Literal["analyze", "compare"],
    output_dir: Path,
    review: Review | None,
    found: list[Obstacle],
    *,
    has_other_paths: bool,
) -> None:
    from magpie_tui.configs.review import review_config

    try:
        reviewed = review or review_config(path, mode=mode, output_dir=output_dir)
    except MagpieTuiError as error:
        found.append(of_error("review", error))
        return
    # The engine names the first thing that it lacks, the review all of them.
    found[:] = [
        item
        for item in found
        if item.what != "kernels" or not any(_is_same(item.reason, seen.name) for seen in reviewed.blockers)
    ]
    said = {item.reason for item in found}
    for item in reviewed.blockers:
        if item.evidence in said:
            continue
        # Compilers that are installed but not on PATH are found by our engine.
        helped = has_other_paths and item.name.startswith("compiler ")
        found.append(Obstacle(item.name, item.evidence, item.hint or "", blocks=not helped))


def _is_same(reason: str, point: str) -> bool:
    """True when what the engine says it lacks is what a point of the review is about."""
    kind, _, name = point.partition(" ")
    return name in reason.split() if kind in ("compiler", "package") else "GPU for" in point and "GPU" in reason.split()


def _budget(request: Request) -> str:
    """How long the timing may take by the protocol; builds and tests come on top."""
    from magpie_tui.kernels.judges import reference_of_entry
    from magpie_tui.kernels.preflight import uses_harness

    kernels = request.config.kernels
    compared = request.baseline is not None and reference_of_entry(kernels[request.baseline]) is not None
    timed = [kernel for kernel in kernels if uses_harness(kernel, kernels, compared=compared)]
    if not timed or not request.settings.timed:
        return "builds and tests only, nothing is timed"
    on_gpu = any(kernel.type in ("hip", "cuda", "triton") for kernel in timed)
    seconds = request.settings.timing.arm_budget_s(on_gpu=on_gpu) * len(timed)
    return f"about {duration_text(seconds)} of timing, builds and tests on top"


def duration_text(seconds: float) -> str:
    """``45 s`` or ``2:05 min``."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"


def last_duration(runs: Sequence[Run], mode: str, path: Path) -> tuple[Run, float] | None:
    """Return the newest run of that mode from that config which did its work, and its seconds."""
    from magpie_tui.runs.model import RunState

    for run in runs:
        if run.kind != mode or run.state is not RunState.ended or run.started_at is None or run.ended_at is None:
            continue
        words = [word for word in run.command if word.endswith((".yaml", ".yml"))]
        if any((run.cwd / word).resolve() == path.resolve() for word in words):
            return run, (run.ended_at - run.started_at).total_seconds()
    return None
