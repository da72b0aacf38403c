"""Times the kernels of a run that were proved correct, and takes what timing showed back into their states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.basics.json_strict import dumps
from magpie_tui.kernels import checks
from magpie_tui.kernels.evaluation import Evaluation, KernelOutcome, digests_of
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import JudgeFailedError
from magpie_tui.kernels.model import GateCheck, Judgement
from magpie_tui.kernels.preflight import last_level_cache_bytes
from magpie_tui.kernels.ranking import timing_of
from magpie_tui.kernels.sessions import HarnessBrokenError
from magpie_tui.kernels.timing import Measurement, Schedule, sample_rows

SAMPLES_NAME = "samples.jsonl"


def why_not_timed(outcome: KernelOutcome, *, wanted: bool) -> str | None:
    """Return why a kernel is not timed, or None when it is to be."""
    if not outcome.judgement.correct:
        return "it was not proved correct"
    if not wanted:
        return "not asked for (--no-perf)"
    if outcome.candidate is None:
        if outcome.entry.type in ("pytorch", "triton"):
            return "no_performance_data: without a reference there are no inputs to call it with"
        return "no_performance_data: this version times callables; the run time of a whole program is no kernel time"
    return None


class Timer:
    """Times kernels of one run in one schedule."""

    def __init__(self, evaluation: Evaluation, outcomes: Sequence[KernelOutcome]) -> None:
        self._evaluation = evaluation
        self.measurement = Measurement()
        self._outcomes = {outcome.index: outcome for outcome in outcomes}
        self._schedule: Schedule | None = None
        wanted = evaluation.settings.timed
        for outcome in outcomes:
            outcome.untimed = why_not_timed(outcome, wanted=wanted)
        self._candidates = [
            outcome.candidate for outcome in outcomes if outcome.untimed is None and outcome.candidate is not None
        ]

    @property
    def on_gpu(self) -> bool:
        """Whether the kernels ran on a GPU."""
        return any(candidate.loaded.get("device") == "cuda" for candidate in self._candidates)

    def _task_outcome(self) -> KernelOutcome:
        """Return the kernel whose reference makes the inputs of all."""
        index = self._evaluation.baseline
        return self._outcomes[self._candidates[0].index if index is None else index]

    def run(self) -> None:
        """Time the kernels; in a comparison only when the baseline and a candidate can be timed."""
        baseline = self._evaluation.baseline
        indices = {candidate.index for candidate in self._candidates}
        if baseline is not None and (baseline not in indices or len(indices) < 2):
            for candidate in self._candidates:
                missing = "the baseline" if baseline not in indices else "every candidate"
                self._outcomes[candidate.index].untimed = f"no_performance_data: {missing} has no time to compare with"
            return
        groups = [self._candidates] if baseline is not None else [[candidate] for candidate in self._candidates]
        for group in groups:
            self._time(group)
        self._take_back()

    def _time(self, candidates: Sequence[Candidate]) -> None:
        evaluation = self._evaluation
        entry = self._outcomes[candidates[0].index].entry if evaluation.baseline is None else self._task_outcome().entry
        task = evaluation.reference_for(entry)
        if task is None:
            return
        self._schedule = Schedule(
            evaluation.settings.timing,
            evaluation.judge_of(task),
            baseline=evaluation.baseline,
            rng=evaluation.rng,
            timeout_s=evaluation.timeout_s(entry),
            on_gpu=self.on_gpu,
            progress=lambda step, done, total: evaluation.report(step, done, total, ""),
        )
        self._guarded(candidates, lambda schedule: schedule.run(candidates, self.measurement))

    def _guarded(self, candidates: Sequence[Candidate], work: Callable[[Schedule], None]) -> None:
        """Run ``work(schedule)``; when the reference or the harness fails, the kernels stay correct and untimed."""
        if self._schedule is None:
            return
        try:
            work(self._schedule)
        except (JudgeFailedError, HarnessBrokenError) as error:
            for candidate in candidates:
                self.measurement.untimed.setdefault(candidate.index, f"resource: {error}")

    def confirm(self, chosen: int) -> None:
        """Run fresh replicates of the baseline and the chosen candidate."""
        wanted = (self._evaluation.baseline, chosen)
        candidates = [candidate for candidate in self._candidates if candidate.index in wanted]
        count = max(self._evaluation.settings.timing.fewest_replicates, self._replicates(chosen))
        self._guarded(
            candidates, lambda schedule: schedule.run(candidates, self.measurement, phase="confirm", count=count)
        )
        self._take_back()

    def _replicates(self, chosen: int) -> int:
        """Return how many replicates the confirmation gets: as many as the choice had, up to ten."""
        return min(10, len(self.measurement.medians(chosen, phase="choose")))

    def cache_state(self) -> str:
        """Return ``cold`` when the rotated inputs are three times the last-level cache, else ``warm``."""
        cache = last_level_cache_bytes()
        size = self.measurement.facts.get("input_bytes")
        if self.on_gpu or cache is None or not isinstance(size, int):
            return "warm"
        return "cold" if size >= 3 * cache else "warm"

    def _take_back(self) -> None:
        """Set the timings, and let kernels that failed while they were timed lose their state ``correct``."""
        for candidate in self._candidates:
            outcome = self._outcomes[candidate.index]
            failure = self.measurement.failed.get(candidate.index)
            if failure is not None:
                word, reason = failure
                found = checks.check("G14", "fail", reason)
                replaced = _with(outcome.judgement.checks, found)
                outcome.judgement = Judgement(word, reason, checks=replaced)
                outcome.timing, outcome.untimed = None, "it failed while it was timed"
                continue
            outcome.timing = timing_of(
                self.measurement, candidate.index, self._evaluation.settings.timing, cache=self.cache_state()
            )
            self._finish_checks(outcome, candidate.index)

    def _finish_checks(self, outcome: KernelOutcome, index: int) -> None:
        """G1 and G18 need what was seen while timing."""
        if digests_of(outcome.entry) != outcome.digests:
            reason = "a source file changed while the kernel was judged or timed"
            outcome.judgement = Judgement("invalid", reason, checks=outcome.judgement.checks, ours=True)
            return
        untimed = self.measurement.untimed.get(index)
        if untimed is None:
            clocks = checks.check("G18", "pass", "windows by the process's stamps agree with the parent's clock")
        else:
            clocks = checks.check("G18", "fail" if "clocks disagree" in untimed else "not_run", untimed)
        outcome.judgement = replace(outcome.judgement, checks=_with(outcome.judgement.checks, clocks))

    def write_samples(self) -> list[Path]:
        """Write every window to ``samples.jsonl``; returns the files written."""
        if not self.measurement.replicates:
            return []
        ids = {index: outcome.entry.id for index, outcome in self._outcomes.items()}
        rows = sample_rows(self.measurement, ids)
        path = self._evaluation.workspace / SAMPLES_NAME
        write_text(path, "".join(dumps(row, indent=None) + "\n" for row in rows), durable=True)
        return [path]

    def facts(self) -> Mapping[str, object]:
        """Return how the kernels were timed."""
        settings = self._evaluation.settings.timing
        loaded = next((candidate.loaded for candidate in self._candidates if candidate.loaded), {})
        return {
            "quantity": "call_time",
            "cache": self.cache_state(),
            "quick": self._evaluation.settings.quick,
            "process_start": "new interpreter" if settings.fresh_interpreter else "fork",
            "budget_s_per_arm": settings.arm_budget_s(on_gpu=self.on_gpu),
            "elapsed_s": round(self.measurement.elapsed_s, 3),
            "ended_by": self.measurement.ended_by if self.measurement.replicates else None,
            "threads": self._evaluation.threads,
            "device": loaded.get("device_name") or loaded.get("device"),
            "torch": loaded.get("torch"),
            "timer": "perf_counter_ns",
            "last_level_cache_bytes": last_level_cache_bytes(),
            "window_s": settings.window_s,
            "order": "mirrored blocks (A B ... B A), first order drawn",
            **self.measurement.facts,
        }


def _with(all_checks: Sequence[GateCheck], found: GateCheck) -> tuple[GateCheck, ...]:
    return tuple(found if check.id == found.id else check for check in all_checks)
