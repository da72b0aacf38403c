"""The options of experiment and verdict, declared once for the command line and for forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.errors import UserInputError
from magpie_tui.basics.options import OptionSpec, OptionValue, Values
from magpie_tui.basics.text import nearest
from magpie_tui.serving.experiment_state import ExperimentPlan
from magpie_tui.serving.verdict_model import LATENCY_RULES, LEAST_PAIRS, THROUGHPUT_RULES, WORDS

DEFAULT_PAIRS = 8
MOST_PAIRS = 99
METRICS = tuple(rule.key for rule in (*THROUGHPUT_RULES, *LATENCY_RULES))

_JUDGING = (
    OptionSpec(
        "metric",
        ("--metric",),
        "choice",
        "The one metric that decides, chosen beforehand; goodput where objectives are set, else output_throughput.",
        choices=METRICS,
    ),
    OptionSpec(
        "change",
        ("--change",),
        "texts",
        "Facts that may differ beyond what the configs change on purpose, such as engine.version or server.*.",
        metavar="FACT...",
        advanced=True,
    ),
    OptionSpec(
        "kernel",
        ("--kernel",),
        "text",
        "Part of the name of a kernel that only B has: its use has to be proved by profiled twins.",
        metavar="NAME",
        advanced=True,
    ),
    OptionSpec(
        "replaces",
        ("--replaces",),
        "text",
        "Part of the name of the kernel in A that it takes the place of.",
        metavar="NAME",
        advanced=True,
    ),
    OptionSpec(
        "kernel_ratio",
        ("--kernel-ratio",),
        "number",
        "How many times faster the kernel is, as a comparison confirmed it; tells what gain to expect.",
        metavar="X",
        minimum=0.01,
        advanced=True,
    ),
    OptionSpec(
        "control",
        ("--control",),
        "path",
        "Experiment of the baseline against itself, whose spread raises the margins.",
        metavar="DIR",
        advanced=True,
    ),
    OptionSpec("fail_on", ("--fail-on",), "texts", f"Exit 1 on these verdicts: {', '.join(WORDS)}.", metavar="WORD..."),
)
EXPERIMENT_OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec("baseline", ("--baseline", "-a"), "path", "Benchmark config of the baseline A.", metavar="BASE.yaml"),
    OptionSpec("optimized", ("--optimized", "-b"), "path", "Benchmark config of B.", metavar="OPT.yaml"),
    OptionSpec(
        "pairs",
        ("--pairs",),
        "integer",
        f"Pairs of runs, fixed beforehand; a claim needs {LEAST_PAIRS} or more, fewer are indicative.",
        default=DEFAULT_PAIRS,
        metavar="N",
        minimum=1,
        maximum=MOST_PAIRS,
    ),
    *_JUDGING,
    OptionSpec("twins", ("--twins",), "flag", "Run a profiled twin of each arm at the end.", default=False),
    OptionSpec(
        "seed", ("--seed",), "integer", "Seed of the first pair; each pair takes the next.", default=0, minimum=0
    ),
    OptionSpec(
        "share_servers",
        ("--share-servers",),
        "flag",
        "Neighbouring runs of one arm use one server, its cache emptied in between; said so in the verdict.",
        default=False,
        advanced=True,
    ),
    OptionSpec(
        "guard_share",
        ("--guard-share",),
        "number",
        "End a run of B whose throughput stays below this share of the baseline's.",
        metavar="F",
        minimum=0.01,
        maximum=0.99,
        advanced=True,
    ),
    OptionSpec(
        "stop_on",
        ("--stop-on",),
        "texts",
        "Kinds of flags in the server's log that end a run.",
        metavar="KIND...",
        advanced=True,
    ),
    OptionSpec(
        "run_mode", ("--run-mode",), "choice", "Overrides both configs.", choices=("docker", "local"), advanced=True
    ),
    OptionSpec("resume", ("--resume",), "path", "Go on with an experiment that was interrupted.", metavar="DIR"),
    OptionSpec(
        "output_dir", ("--output-dir", "-o"), "path", "Parent of the experiment.", default="./results", metavar="DIR"
    ),
)
VERDICT_OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec(
        "baseline",
        (),
        "path",
        "Workspace, directory of workspaces, or an experiment.",
        required=True,
        metavar="BASELINE",
    ),
    OptionSpec(
        "optimized",
        (),
        "path",
        "Workspace or directory of workspaces; left out when the first is an experiment.",
        metavar="[OPTIMIZED]",
    ),
    *_JUDGING,
    OptionSpec(
        "output_dir",
        ("--output-dir", "-o"),
        "path",
        "Write verdict.json and verdict.md here.",
        metavar="DIR",
    ),
)


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """What ``experiment`` was asked.

    Attributes:
        resume: Directory of an interrupted experiment; the configs are None then.
    """

    plan: ExperimentPlan
    a: Path | None
    b: Path | None
    resume: Path | None
    output_dir: Path
    fail_on: tuple[str, ...]


def experiment_request(values: Values) -> ExperimentRequest:
    """Read the options.

    Raises:
        UserInputError: Neither two configs nor an experiment to go on with, or an unknown word.
    """
    resume = _path(values.get("resume"))
    a, b = _path(values.get("baseline")), _path(values.get("optimized"))
    if resume is None and (a is None or b is None):
        raise UserInputError(
            "an experiment needs two configs", hint="magpie-tui experiment -a BASE.yaml -b OPT.yaml, or --resume DIR"
        )
    if resume is not None and (a is not None or b is not None):
        raise UserInputError(
            "an experiment that goes on has its configs already", key="resume", hint="leave -a, -b out"
        )
    share, control = values.get("guard_share"), _path(values.get("control"))
    kernel = _text(values.get("kernel"))
    plan = ExperimentPlan(
        pairs=int(str(values.get("pairs") or DEFAULT_PAIRS)),
        primary=str(values.get("metric") or default_metric([path for path in (a, b) if path is not None])),
        seed=int(str(values.get("seed") or 0)),
        changes=_texts(values.get("change")),
        kernel=kernel,
        replaces=_text(values.get("replaces")),
        kernel_ratio=_number(values.get("kernel_ratio")),
        twins=bool(values.get("twins")) or kernel is not None,
        share_servers=bool(values.get("share_servers")),
        guard_share=_number(share),
        stop_on_flags=_texts(values.get("stop_on")),
        run_mode=_text(values.get("run_mode")),
        control=None if control is None else str(control.absolute()),
    )
    output = _path(values.get("output_dir")) or Path("./results")
    return ExperimentRequest(plan, a, b, resume, output, fail_on_words(values.get("fail_on")))


def default_metric(configs: Sequence[Path]) -> str:
    """Return ``goodput`` where every config sets objectives, else ``output_throughput``.

    Raises:
        UserInputError: A config is wrong.
    """
    from magpie_tui.configs.benchmark import load_benchmark_config
    from magpie_tui.serving.outcome import objectives_of

    objectives = [objectives_of(load_benchmark_config(path)) for path in configs]
    return "goodput" if objectives and not any(item.is_empty for item in objectives) else "output_throughput"


def fail_on_words(value: OptionValue) -> tuple[str, ...]:
    """Return the words of ``--fail-on``, which may be parted by commas too.

    Raises:
        UserInputError: One is no verdict.
    """
    words = tuple(word for item in _texts(value) for word in item.split(",") if word)
    for word in words:
        if word not in WORDS:
            guess = nearest(word, WORDS)
            raise UserInputError(
                f"{word!r} is no verdict",
                key="--fail-on",
                hint=f"did you mean {guess}?" if guess else f"one of {', '.join(WORDS)}",
            )
    return words


def _path(value: OptionValue) -> Path | None:
    return None if value is None else Path(str(value))


def _text(value: OptionValue) -> str | None:
    return None if value in (None, "") else str(value)


def _number(value: OptionValue) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _texts(value: OptionValue) -> tuple[str, ...]:
    items: Sequence[str] = value if isinstance(value, (tuple, list)) else ()
    return tuple(item for item in items if item)
