"""The options of analyze and compare, declared once for the command line and for forms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import OptionSpec, Values
from magpie_tui.basics.text import nearest, plural, printable
from magpie_tui.configs.kernel import kernel_entries_from_arguments, load_kernel_config
from magpie_tui.configs.kernel_model import KERNEL_TYPES, KernelConfig
from magpie_tui.kernels.settings import EvaluationSettings, quick_settings
from magpie_tui.kernels.shapes import points_of_run

FAIL_ON_WORDS = (
    "slower",
    "equivalent",
    "inconclusive",
    "mixed",
    "suspect",
    "invalid",
    "incorrect",
    "no_winner",
)
"""Outcomes of a comparison that ``--fail-on`` can turn into exit status 1."""

_KERNELS = OptionSpec("kernels", (), "paths", "Source files; left out when a kernel config is given.", metavar="KERNEL")
_CONFIG = OptionSpec("kernel_config", ("--kernel-config", "-k"), "path", "Kernel config (YAML).", metavar="FILE")
_TESTCASE = OptionSpec(
    "testcase", ("--testcase", "-t"), "text", "Command that exits 0 when the kernel is right.", metavar="CMD"
)
_TYPE = OptionSpec("type", ("--type",), "choice", "Type of the source files.", default="hip", choices=KERNEL_TYPES)
_COMPILE = OptionSpec("compile_cmd", ("--compile-cmd",), "text", "Command that builds the kernel.", metavar="CMD")
_NO_PERF = OptionSpec("no_perf", ("--no-perf",), "flag", "Prove correctness only; time nothing.", default=False)
_OUTPUT = OptionSpec(
    "output_dir", ("--output-dir", "-o"), "path", "Parent of the workspace.", default="./results", metavar="DIR"
)
_BASELINE = OptionSpec(
    "baseline",
    ("--baseline",),
    "text",
    "Index (from 0) or id of the kernel that the others are compared with.",
    default="0",
    metavar="N|ID",
)
_ONLY = OptionSpec(
    "only",
    ("--only",),
    "texts",
    "Compare only these kernels (and the baseline), by index or id; all by default.",
    metavar="N|ID...",
    advanced=True,
)
_FAIL_ON = OptionSpec(
    "fail_on", ("--fail-on",), "texts", f"Exit 1 on these outcomes: {', '.join(FAIL_ON_WORDS)}.", metavar="WORD..."
)
_UPSTREAM_SCORE = OptionSpec(
    "upstream_score",
    ("--upstream-score",),
    "flag",
    "Also report upstream's weighted score of profiler metrics; it never ranks.",
    default=False,
    advanced=True,
)
_QUICK = OptionSpec(
    "quick",
    ("--quick",),
    "flag",
    "A first look: times each kernel for about 5 s, after builds and a shorter gate; the report says so.",
    default=False,
)
_STRAIN = OptionSpec(
    "strain",
    ("--strain",),
    "flag",
    "Also judge with memory nearly full and on another device (G22); take a device that nobody else uses.",
    default=False,
    advanced=True,
)
_MEASURING = (
    OptionSpec(
        "budget", ("--budget",), "number", "Seconds for timing one kernel.", metavar="S", minimum=0.1, advanced=True
    ),
    OptionSpec(
        "timeout",
        ("--timeout",),
        "number",
        "Limit of each command and call in seconds.",
        metavar="S",
        minimum=0.1,
        advanced=True,
    ),
    OptionSpec(
        "seed",
        ("--seed",),
        "integer",
        "Start of all random numbers; drawn by default.",
        metavar="N",
        minimum=0,
        advanced=True,
    ),
    OptionSpec(
        "threads",
        ("--threads",),
        "integer",
        "Threads of CPU kernels; by default all CPUs but one.",
        metavar="N",
        minimum=1,
        advanced=True,
    ),
    OptionSpec(
        "quantity",
        ("--quantity",),
        "choice",
        "What is compared on a GPU: the time on the device, or that of the whole call; on a CPU it is the call.",
        choices=("device_time", "call_time"),
        advanced=True,
    ),
    OptionSpec(
        "cache",
        ("--cache",),
        "choice",
        "State in which calls find the caches; cold as far as it can be had.",
        default="cold",
        choices=("cold", "warm"),
        advanced=True,
    ),
)
_SHAPES_FROM = (
    OptionSpec(
        "shapes_from",
        ("--shapes-from",),
        "path",
        "Take the shapes, weighted by their time, from this trace or workspace; needs --kernel.",
        metavar="TRACE|WORKSPACE",
    ),
    OptionSpec(
        "kernel",
        ("--kernel",),
        "text",
        "Name (or part of it) of the kernel or operator whose shapes --shapes-from takes.",
        metavar="NAME",
    ),
    _STRAIN,
)
_LATENCY = (
    OptionSpec(
        "no_latency",
        ("--no-latency",),
        "flag",
        "Accepted as upstream's latency line has it: no timing.",
        default=False,
        advanced=True,
    ),
    OptionSpec(
        "latency_method",
        ("--latency-method",),
        "choice",
        "Accepted as upstream's latency line has it; none means no timing.",
        choices=("auto", "cuda_graph", "kernel_trace", "rocprof_timestamps", "both", "none"),
        advanced=True,
    ),
    OptionSpec(
        "latency_rep_ms",
        ("--latency-rep-ms",),
        "integer",
        "Accepted as upstream's latency line has it.",
        metavar="MS",
        minimum=1,
        advanced=True,
    ),
)

ANALYZE_OPTIONS: tuple[OptionSpec, ...] = (
    _KERNELS,
    _CONFIG,
    _TESTCASE,
    _TYPE,
    _COMPILE,
    _NO_PERF,
    _OUTPUT,
    _QUICK,
    *_SHAPES_FROM,
    *_MEASURING,
    *_LATENCY,
)
COMPARE_OPTIONS: tuple[OptionSpec, ...] = (
    _KERNELS,
    _CONFIG,
    _TESTCASE,
    _TYPE,
    _BASELINE,
    _NO_PERF,
    _OUTPUT,
    _QUICK,
    _FAIL_ON,
    _UPSTREAM_SCORE,
    _ONLY,
    *_SHAPES_FROM,
    *_MEASURING,
    *_LATENCY,
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asked for, checked.

    Attributes:
        baseline: Index; None for analyze.
        fail_on: Words of ``FAIL_ON_WORDS``.
        notes: What has no effect, for people.
    """

    config: KernelConfig
    settings: EvaluationSettings
    output_dir: Path
    baseline: int | None = None
    fail_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name of the run: the config's, or the first kernel's."""
        if self.config.path is not None:
            return self.config.path.stem
        return self.config.kernels[0].id if self.config.kernels else ""


def _text(values: Values, name: str) -> str | None:
    value = values.get(name)
    return None if value is None else str(value)


def _number(values: Values, name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def settings_of(values: Values) -> EvaluationSettings:
    """Return the settings that the options stand for."""
    settings = EvaluationSettings()
    budget, timeout = _number(values, "budget"), _number(values, "timeout")
    seed, threads = _number(values, "seed"), _number(values, "threads")
    if budget is not None:
        settings = replace(settings, timing=replace(settings.timing, budget_s=budget))
    if timeout is not None:
        settings = replace(settings, gate=replace(settings.gate, timeout_s=timeout))
    untimed = bool(values.get("no_perf") or values.get("no_latency") or values.get("latency_method") == "none")
    settings = replace(
        settings,
        timed=not untimed,
        seed=None if seed is None else int(seed),
        threads=None if threads is None else int(threads),
        upstream_score=bool(values.get("upstream_score")),
    )
    quantity, cache = _text(values, "quantity"), _text(values, "cache") or "cold"
    settings = replace(settings, timing=replace(settings.timing, quantity=quantity, cache=cache))
    if values.get("strain"):
        settings = replace(settings, gate=replace(settings.gate, strain=True))
    return quick_settings(settings) if values.get("quick") else settings


def _paths(values: Values) -> tuple[Path, ...]:
    value = values.get("kernels")
    return tuple(Path(item) for item in value) if isinstance(value, (tuple, list)) else ()


def _notes(values: Values) -> list[str]:
    notes = []
    config = values.get("kernel_config") is not None
    if config and _paths(values):
        notes.append("the source files on the command line are ignored, because a kernel config is given")
    if config and (values.get("testcase") or values.get("compile_cmd")):
        notes.append("--testcase and --compile-cmd are ignored, because a kernel config is given")
    if values.get("latency_method") not in (None, "none") or values.get("latency_rep_ms") is not None:
        notes.append("--latency-method and --latency-rep-ms have no effect: kernels are timed by our own schedule")
    return notes


def _config(values: Values, *, comparing: bool) -> KernelConfig:
    path = _text(values, "kernel_config")
    if path is not None:
        return load_kernel_config(Path(path))
    paths = _paths(values)
    if not paths:
        raise UserInputError("there is nothing to judge", hint="give source files, or a kernel config with -k FILE")
    testcase = _text(values, "testcase")
    config = kernel_entries_from_arguments(
        paths,
        type=_text(values, "type") or "hip",
        testcase=testcase,
        compile_cmd=_text(values, "compile_cmd"),
        mode="compare" if comparing else "analyze",
    )
    if not comparing and not testcase:
        raise UserInputError(
            "--testcase is required for analyze mode",
            hint="give a command that exits 0 when the kernel is right, or a kernel config with a `reference:`",
        )
    return config


def analyze_request(values: Values) -> Request:
    """Check the options of analyze and load what they name.

    Raises:
        UserInputError: Something is wrong with them or with the config.
    """
    config, notes = _shaped(_config(values, comparing=False), values)
    output_dir = Path(_text(values, "output_dir") or "./results")
    return Request(config, settings_of(values), output_dir, notes=(*_notes(values), *notes))


def _shaped(config: KernelConfig, values: Values) -> tuple[KernelConfig, list[str]]:
    """Take the shapes from a trace if asked for; returns what to tell people as well."""
    path, name = _text(values, "shapes_from"), _text(values, "kernel")
    if path is None and name is None:
        return config, []
    if path is None or name is None:
        given, missing = ("--kernel", "--shapes-from") if path is None else ("--shapes-from", "--kernel")
        raise UserInputError(
            f"{given} needs {missing}", key=missing, hint="--shapes-from TRACE --kernel NAME takes shapes from a trace"
        )
    from magpie_tui.kernels.trace_shapes import with_shapes_from

    return with_shapes_from(config, Path(path), name)


def compare_request(values: Values) -> Request:
    """Check the options of compare and load what they name.

    Raises:
        UserInputError: Something is wrong with them or with the config, or there are fewer than two kernels.
    """
    config, notes = _shaped(_config(values, comparing=True), values)
    if len(config.kernels) < 2:
        raise UserInputError(
            f"a comparison needs at least two kernels, not {plural(len(config.kernels), 'kernel')}", path=config.path
        )
    baseline = find_kernel(config, _text(values, "baseline") or "0", "--baseline")
    config, baseline = _selected(config, baseline, values)
    points_of_run(config.kernels, baseline)
    output_dir = Path(_text(values, "output_dir") or "./results")
    return Request(config, settings_of(values), output_dir, baseline, _fail_on(values), (*_notes(values), *notes))


def _selected(config: KernelConfig, baseline: int, values: Values) -> tuple[KernelConfig, int]:
    """Return the config with the baseline and the kernels of ``--only`` alone, and where the baseline is then.

    Raises:
        UserInputError: There is no such kernel, only the baseline is named, or a kernel's reference is left out.
    """
    given = values.get("only")
    words = [str(word) for word in given if str(word)] if isinstance(given, (tuple, list)) else []
    if not words:
        return config, baseline
    chosen = sorted({baseline, *(find_kernel(config, word, "--only") for word in words)})
    if len(chosen) < 2:
        raise UserInputError(
            "--only names the baseline alone: there is nothing to compare it with",
            key="--only",
            hint="name at least one candidate",
        )
    kernels = [config.kernels[index] for index in chosen]
    ids = {entry.id for entry in kernels}
    for entry in kernels:
        needed = None if entry.reference is None else entry.reference.entry_id
        if needed is not None and needed not in ids:
            raise UserInputError(
                f"--only leaves out {printable(needed)}, the reference of {printable(entry.id)}",
                key="--only",
                hint=f"name {printable(needed)} too",
            )
    place = chosen.index(baseline)
    shapes = next((entry.shapes for entry in config.kernels if entry.shapes), ())
    if shapes and not any(entry.shapes for entry in kernels):
        # Shapes are written once in a config and hold for all its kernels.
        kernels[place] = replace(kernels[place], shapes=shapes)
    return replace(config, kernels=tuple(kernels)), place


def find_kernel(config: KernelConfig, text: str, option: str) -> int:
    """Return the index of the kernel that ``option`` names by index or id.

    Raises:
        UserInputError: There is none, or several have that id.
    """
    ids = [entry.id for entry in config.kernels]
    named = [index for index, name in enumerate(ids) if name == text]
    if len(named) == 1:
        return named[0]
    known = ", ".join(f"{index} = {printable(name)}" for index, name in enumerate(ids))
    if len(named) > 1:
        raise UserInputError(f"several kernels have the id {printable(text)}", key=option, hint=f"by index: {known}")
    digits = text.lstrip("-")
    if digits.isdigit() and 0 <= int(text) < len(ids):
        return int(text)
    raise UserInputError(
        f"{option} {printable(text)}: there is no such kernel", key=option, hint=f"choose from {known}"
    )


def _fail_on(values: Values) -> tuple[str, ...]:
    given = values.get("fail_on")
    words = (
        [word.strip() for item in given for word in str(item).split(",")] if isinstance(given, (tuple, list)) else []
    )
    for word in words:
        if word and word not in FAIL_ON_WORDS:
            guess = nearest(word, FAIL_ON_WORDS)
            hint = f"did you mean {guess}?" if guess else f"one of {', '.join(FAIL_ON_WORDS)}"
            raise UserInputError(
                f"--fail-on: {printable(word)} is no outcome of a comparison", key="--fail-on", hint=hint
            )
    return tuple(word for word in words if word)
