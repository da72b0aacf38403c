"""``analyze_report.json`` and ``compare_report.json``: every generation is read, upstream's own keys are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.files import write_json
from magpie_tui.workspaces.damage import DamagedReportError, kind_of
from magpie_tui.workspaces.extras import EXTRAS_KEY, Extras, Verdict
from magpie_tui.workspaces.kernel_state import (
    KernelState,
    Metric,
    PerformanceResult,
    ProfiledKernel,
    Stage,
    StageResult,
    StageState,
    score_of,
)
from magpie_tui.workspaces.values import (
    as_bool,
    as_index,
    as_list,
    as_mapping,
    as_number,
    as_text,
    mapping_or_none,
    without,
)

__all__ = [
    "AnalyzeReport",
    "CompareReport",
    "DamagedReportError",
    "Extras",
    "KernelState",
    "Metric",
    "PerformanceResult",
    "ProfiledKernel",
    "Stage",
    "StageResult",
    "StageState",
    "Verdict",
    "compare_summary",
    "score_of",
]


_STATE_MARKS = frozenset({"compiling_state", "correctness_state", "performance_state"})


def _looks_like_state(value: object) -> bool:
    return isinstance(value, Mapping) and not _STATE_MARKS.isdisjoint(value)


def _states(values: Sequence[object]) -> tuple[KernelState, ...]:
    states = (KernelState.from_json(item) for item in values)
    return tuple(state for state in states if state is not None)


@dataclass(frozen=True, slots=True)
class AnalyzeReport:
    """The report of an ``analyze`` run.

    Attributes:
        timestamp: Local time ``YYYYmmdd_HHMMSS`` at which it was saved; None when the report has none.
        results: One state a kernel, in config order.
        extras: Our own keys; None in another program's report.
        more: Further keys, kept as they are.
        problems: What is odd about the file (other shapes, entries that are no states).
    """

    timestamp: str | None
    results: tuple[KernelState, ...]
    extras: Extras | None = None
    more: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def kernels(self) -> tuple[KernelState, ...]:
        """The states, under the name that both reports have."""
        return self.results

    @property
    def all_correct(self) -> bool:
        """True when there is a kernel and every kernel was proved correct."""
        return bool(self.results) and all(state.proved_correct for state in self.results)

    def to_json(self) -> dict[str, object]:
        """Return upstream's object, with our keys under ``magpie_tui``."""
        values: dict[str, object] = {
            "mode": "analyze",
            "timestamp": self.timestamp,
            "results": [state.to_json() for state in self.results],
        }
        if self.extras is not None:
            values[EXTRAS_KEY] = self.extras.to_json()
        return {**values, **self.more}

    def write(self, workspace: Path) -> Path:
        """Write ``analyze_report.json`` durably and return its path."""
        path = workspace / "analyze_report.json"
        write_json(path, self.to_json(), durable=True)
        return path

    @classmethod
    def from_json(cls, value: object) -> AnalyzeReport:
        """Read any generation: the usual list, a single state, a mapping of states, or a flat state without wrapper.

        Raises:
            DamagedReportError: ``value`` is none of these.
        """
        keys = mapping_or_none(value)
        if keys is None:
            raise DamagedReportError(f"the report is no JSON object but {kind_of(value)}")
        problems: list[str] = []
        more = without(keys, ("mode", "timestamp", "results", EXTRAS_KEY))
        if "results" not in keys and _looks_like_state(keys):
            problems.append("one flat state without `results` (as the MCP server returns it)")
            items: list[object] = [without(keys, ("mode", "timestamp"))]
            more = {}
        else:
            items = _unwrapped_states(keys.get("results"), problems)
        states = _states(items)
        if len(states) < len(items):
            problems.append(f"{len(items) - len(states)} of {len(items)} entries of `results` are no objects")
        if not states and not more and as_text(keys.get("mode")) != "analyze":
            raise DamagedReportError("the file holds no kernel states: it is no analyze report")
        return cls(
            as_text(keys.get("timestamp")), states, Extras.from_json(keys.get(EXTRAS_KEY)), more, tuple(problems)
        )


def _unwrapped_states(results: object, problems: list[str]) -> list[object]:
    """Return the states under ``results``, whatever wraps them."""
    if isinstance(results, list):
        return list(results)
    keys = mapping_or_none(results)
    if keys is None:
        problems.append("`results` is missing" if results is None else f"`results` is {kind_of(results)}")
        return []
    if _looks_like_state(keys):
        problems.append("`results` is one state and no list")
        return [keys]
    for name in ("results", "kernel_results"):
        if isinstance(keys.get(name), (list, dict)):
            problems.append(f"the states lie in `results.{name}` (a wrapper that was not taken off)")
            inner: list[str] = []
            return _unwrapped_states(keys[name], inner)
    if keys and all(_looks_like_state(item) for item in keys.values()):
        problems.append("`results` is a mapping of kernel ids and no list")
        return [{**as_mapping(item), "kernel_id": name} for name, item in keys.items()]
    problems.append("`results` holds no kernel states")
    return []


_METRICS_KEY = "comparison_metrics"


@dataclass(frozen=True, slots=True)
class CompareReport:
    """The report of a ``compare`` run.

    Attributes:
        timestamp: Local time ``YYYYmmdd_HHMMSS`` at which it was saved.
        kernels: One state a kernel, in config order.
        perf_scores: For each kernel the ratio to the baseline (ours: baseline's time / its time) or upstream's score;
            None for what is not correct or was not timed.
        rankings: (index, ratio or score), best first; only correct kernels that have one.
        winner: Index of a kernel that is proved faster than the baseline; upstream also names one without data.
        summary: Text; None means that ``to_json`` writes it from the facts.
        extras: Our own keys; None in another program's report.
        correctness: As written in another program's report; ``to_json`` always writes what the states prove.
        more, more_results, more_metrics: Further keys of the three levels, kept as they are.
        problems: What is odd about the file.
    """

    timestamp: str | None
    kernels: tuple[KernelState, ...]
    perf_scores: tuple[float | None, ...] = ()
    rankings: tuple[tuple[int, float], ...] = ()
    winner: int | None = None
    summary: str | None = None
    extras: Extras | None = None
    correctness: tuple[bool | None, ...] = ()
    more: Mapping[str, object] = field(default_factory=dict)
    more_results: Mapping[str, object] = field(default_factory=dict)
    more_metrics: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def all_correct(self) -> bool:
        """True when there is a kernel and every kernel was proved correct."""
        return bool(self.kernels) and all(state.proved_correct for state in self.kernels)

    @property
    def has_performance_data(self) -> bool:
        """True when at least two kernels have a score: with fewer nothing was compared."""
        return sum(score is not None for score in self.perf_scores) >= 2

    @property
    def ours(self) -> bool:
        """True when we wrote the report, so that scores are ratios of times to the baseline's."""
        return self.extras is not None

    def to_json(self) -> dict[str, object]:
        """Return upstream's object, with our keys under ``magpie_tui``."""
        scores = list(self.perf_scores) or [None] * len(self.kernels)
        metrics: dict[str, object] = {
            # Without states (upstream loses them on Ray) what was written is all there is.
            "correctness": [state.proved_correct for state in self.kernels] or list(self.correctness),
            "all_correct": self.all_correct,
            "perf_scores": scores,
        }
        results: dict[str, object] = {
            "kernel_results": [state.to_json() for state in self.kernels],
            _METRICS_KEY: {**metrics, **self.more_metrics},
            "winner": self.winner,
            "rankings": [[index, score] for index, score in self.rankings],
            "summary": compare_summary(self) if self.summary is None else self.summary,
        }
        values: dict[str, object] = {
            "mode": "compare",
            "timestamp": self.timestamp,
            "results": {**results, **self.more_results},
        }
        if self.extras is not None:
            values[EXTRAS_KEY] = self.extras.to_json()
        return {**values, **self.more}

    def write(self, workspace: Path) -> Path:
        """Write ``compare_report.json`` durably and return its path."""
        path = workspace / "compare_report.json"
        write_json(path, self.to_json(), durable=True)
        return path

    @classmethod
    def from_json(cls, value: object) -> CompareReport:
        """Read any generation, also one whose worker's wrapper was not taken off, and one without ``results``.

        Raises:
            DamagedReportError: ``value`` is no comparison.
        """
        keys = mapping_or_none(value)
        if keys is None:
            raise DamagedReportError(f"the report is no JSON object but {kind_of(value)}")
        problems: list[str] = []
        results = _comparison_in(keys, problems)
        if not results and as_text(keys.get("mode")) != "compare":
            raise DamagedReportError("the file holds no comparison: it is no compare report")
        metrics = as_mapping(results.get(_METRICS_KEY))
        items = as_list(results.get("kernel_results"))
        states = _states(items)
        if len(states) < len(items):
            problems.append(f"{len(items) - len(states)} of {len(items)} entries of `kernel_results` are no objects")
        correctness = tuple(as_bool(item) for item in as_list(metrics.get("correctness")))
        scores = tuple(as_number(item) for item in as_list(metrics.get("perf_scores")))
        count = max(len(states), len(correctness), len(scores))
        flat = results is keys
        known = ("mode", "timestamp", "results", EXTRAS_KEY)
        return cls(
            timestamp=as_text(keys.get("timestamp")),
            kernels=states,
            perf_scores=scores,
            rankings=_rankings(results.get("rankings"), count, problems),
            winner=as_index(results.get("winner"), count),
            summary=as_text(results.get("summary")),
            extras=Extras.from_json(keys.get(EXTRAS_KEY)),
            correctness=correctness,
            more={} if flat else without(keys, known),
            more_results=without(results, (*_RESULT_KEYS, *(known if flat else ()))),
            more_metrics=without(metrics, ("correctness", "all_correct", "perf_scores")),
            problems=tuple(problems),
        )


_RESULT_KEYS = ("kernel_results", _METRICS_KEY, "winner", "rankings", "summary")


def _comparison_in(keys: dict[str, object], problems: list[str]) -> dict[str, object]:
    """Return the object that holds the comparison: ``results``, the object itself, or one inside a wrapper."""
    if "results" not in keys:
        if "kernel_results" in keys or _METRICS_KEY in keys:
            problems.append("the comparison lies at the top level, without `results`")
            return keys
        problems.append("`results` is missing")
        return {}
    results = keys["results"]
    for _ in range(4):
        inner = mapping_or_none(results)
        if inner is None:
            break
        if "kernel_results" in inner or _METRICS_KEY in inner:
            if not as_list(inner.get("kernel_results")):
                problems.append("the comparison holds no kernels (upstream loses them when it runs on Ray)")
            return inner
        if "results" not in inner:
            break
        problems.append("the comparison lies in a wrapper that was not taken off (as upstream's Ray runs write it)")
        results = inner["results"]
    if isinstance(results, list):
        problems.append("`results` is a list of states and no comparison")
        return {"kernel_results": results}
    problems.append("`results` holds no comparison")
    return {}


def _rankings(value: object, count: int, problems: list[str]) -> tuple[tuple[int, float], ...]:
    ranked: list[tuple[int, float]] = []
    for item in as_list(value):
        pair = as_list(item)
        index = as_index(pair[0], count) if pair else None
        score = as_number(pair[1]) if len(pair) > 1 else None
        if index is None or score is None:
            problems.append("`rankings` holds an entry that is no pair of a kernel's index and its score")
            continue
        ranked.append((index, score))
    return tuple(ranked)


def compare_summary(report: CompareReport) -> str:
    """Return the text of ``results.summary``: upstream's lines, with a winner only where one was proved."""
    kernels = report.kernels
    lines = [
        f"Compared {len(kernels)} kernel implementations",
        "",
        f"Correctness: {sum(state.proved_correct for state in kernels)}/{len(kernels)} passed",
        "",
        "Results:",
    ]
    for index, state in enumerate(kernels):
        mark = "✓" if state.proved_correct else "✗"
        note = "" if state.proved_correct else f" ({state.word})"
        lines.append(f"  {mark} Kernel {index}: {state.kernel_id}{note}")
    lines.append("")
    if report.winner is not None and report.winner < len(kernels):
        lines.append(f"Winner: Kernel {report.winner} ({kernels[report.winner].kernel_id})")
    else:
        reason = report.extras.reason if report.extras is not None else None
        lines.append(f"No winner: {reason.replace('_', ' ')}" if reason else "No winner")
    return "\n".join(lines)
