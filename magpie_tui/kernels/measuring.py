"""Times the kernels of a run that were proved correct, and takes what timing showed back into their states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.basics.json_strict import dumps
from magpie_tui.kernels import checks
from magpie_tui.kernels.commands import child_environment
from magpie_tui.kernels.evaluation import Evaluation, KernelOutcome, digests_of
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.gpu_windows import GpuTiming
from magpie_tui.kernels.judges import Judge, JudgeFailedError
from magpie_tui.kernels.live import SamplesLog
from magpie_tui.kernels.measurement import Measurement, Phase, sample_rows
from magpie_tui.kernels.model import Comparison, GateCheck, Judgement, Timing
from magpie_tui.kernels.physical_floor import floor_ns, peaks_of
from magpie_tui.kernels.preflight import last_level_cache_bytes
from magpie_tui.kernels.programs import FEWEST_RUNS, TOOL_OF_TYPE, Program, ProgramBlocks, tool_for
from magpie_tui.kernels.ranking import Ranking, second_method
from magpie_tui.kernels.sessions import HarnessBrokenError
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.shapes import ShapePoint, points_of, points_of_run, weights_of
from magpie_tui.kernels.telemetry import GpuSampler
from magpie_tui.kernels.timing import CallableBlocks, Schedule
from magpie_tui.kernels.timings import cache_of, method_of, quantity_of, timing_of

SAMPLES_NAME = "samples.jsonl"


Run = Callable[[Collection[int], Measurement, Phase, "int | None"], None]
"""Runs one schedule for the arms named: into a measurement, in a phase, exactly so many replicates if given."""


def why_not_timed(outcome: KernelOutcome, *, wanted: bool, extra_path: Sequence[str] = ()) -> str | None:
    """Return why a kernel is not timed, or None when it is to be.

    Args:
        extra_path: Directories of tools that are installed but not on PATH.
    """
    if not outcome.judgement.correct:
        return "it was not proved correct"
    if not wanted:
        return "not asked for (--no-perf)"
    if outcome.candidate is None:
        if outcome.entry.type in ("pytorch", "triton"):
            return "no_performance_data: without a reference there are no inputs to call it with"
        return tool_for(outcome.entry, child_environment(outcome.entry, extra_path).get("PATH"))[1]
    return None


class Timer:
    """Times kernels of one run: those of a comparison in one schedule, others one by one. Close it."""

    def __init__(self, evaluation: Evaluation, outcomes: Sequence[KernelOutcome]) -> None:
        self._evaluation = evaluation
        self.measurement = Measurement()
        self._measurements: dict[int, Measurement] = {}
        self._outcomes = {outcome.index: outcome for outcome in outcomes}
        self._runs: list[Run] = []
        self._sampler: GpuSampler | None = None
        self._floor_note: str | None = None
        ids = {outcome.index: outcome.entry.id for outcome in outcomes}
        self._log = SamplesLog(evaluation.workspace / SAMPLES_NAME, ids)
        wanted, extra = evaluation.settings.timed, evaluation.preflight.extra_path
        for outcome in outcomes:
            outcome.untimed = why_not_timed(outcome, wanted=wanted, extra_path=extra)
        timed = [outcome for outcome in outcomes if outcome.untimed is None]
        self._candidates = [outcome.candidate for outcome in timed if outcome.candidate is not None]
        self._programs = [self._program(outcome) for outcome in timed if outcome.candidate is None]

    def _program(self, outcome: KernelOutcome) -> Program:
        evaluation, entry = self._evaluation, outcome.entry
        environment = child_environment(entry, evaluation.preflight.extra_path)
        place = evaluation.exchange / f"stamps_{outcome.index}"
        tool = TOOL_OF_TYPE[entry.type]
        return Program(outcome.index, entry, environment, tool, place, evaluation.timeout_s(entry))

    @property
    def on_gpu(self) -> bool:
        """Whether the kernels ran on a GPU."""
        called = any(candidate.loaded.get("device") == "cuda" for candidate in self._candidates)
        return called or (bool(self._programs) and not self._candidates)

    def _new_sampler(self) -> GpuSampler:
        """Read the first GPU that programs started from here can see."""
        gpus = self._evaluation.preflight.gpus or ()
        index = next((gpu.index for gpu in gpus if gpu.visible is not False), 0)
        return GpuSampler(self._evaluation.exchange, index=index)

    def close(self) -> None:
        """End the process that reads the device's sensors."""
        if self._sampler is not None:
            self._sampler.close()
            self._sampler = None

    def run(self) -> None:
        """Time the kernels; in a comparison only when the baseline and a candidate can be timed, in the same way."""
        baseline = self._evaluation.baseline
        if baseline is not None and not self._comparable(baseline):
            return
        if self.on_gpu:
            self._sampler = self._new_sampler()
        try:
            if baseline is None:
                for candidate in self._candidates:
                    self._time([candidate], Measurement())
                for program in self._programs:
                    self._time_programs([program], Measurement())
            elif self._candidates:
                self._time(self._candidates, self.measurement)
            else:
                self._time_programs(self._programs, self.measurement)
        finally:
            self.close()
        self._take_back()

    def _comparable(self, baseline: int) -> bool:
        """Keep the arms that are timed as the baseline is; False when there is nothing to compare."""
        programs = any(item.index == baseline for item in self._programs)
        others: Sequence[Candidate | Program] = self._candidates if programs else self._programs
        for item in others:
            how = "a program and this one is called" if programs else "called and this one is a program"
            self._outcomes[item.index].untimed = f"no_performance_data: the baseline is {how}: no equal times"
        self._candidates, self._programs = ([], self._programs) if programs else (self._candidates, [])
        arms = set(self._timed())
        if baseline in arms and len(arms) > 1:
            return True
        for index in arms:
            missing = "the baseline" if baseline not in arms else "every candidate"
            self._outcomes[index].untimed = f"no_performance_data: {missing} has no time to compare with"
        return False

    def _time_programs(self, programs: Sequence[Program], measurement: Measurement) -> None:
        evaluation = self._evaluation
        timing = evaluation.settings.timing
        self._measurements |= {program.index: measurement for program in programs}
        schedule: Schedule[Program] = Schedule(
            replace(timing, fewest_replicates=min(timing.fewest_replicates, FEWEST_RUNS)),
            ProgramBlocks(),
            baseline=evaluation.baseline,
            rng=evaluation.rng,
            on_gpu=True,
            progress=self._progress("", measurement),
        )

        def run(arms: Collection[int], into: Measurement, phase: Phase, count: int | None) -> None:
            schedule.run([item for item in programs if item.index in arms], into, phase=phase, count=count)

        self._runs = [run]
        run({program.index for program in programs}, measurement, "choose", None)

    def _time(self, candidates: Sequence[Candidate], measurement: Measurement) -> None:
        evaluation = self._evaluation
        baseline = evaluation.baseline
        index = candidates[0].index if baseline is None else baseline
        entry = self._outcomes[index].entry
        self._measurements |= {candidate.index: measurement for candidate in candidates}
        task = evaluation.reference_for(entry)
        if task is None:
            return
        points = points_of(entry) if baseline is None else points_of_run(evaluation.config.kernels, baseline)
        if points:
            measurement.shapes = tuple(point.id for point in points)
            measurement.weights = weights_of(points)
        judge = evaluation.judge_of(task)
        timeout_s = evaluation.timeout_s(entry)
        gpu = GpuTiming(evaluation.settings.timing, judge, timeout_s, self._sampler) if self.on_gpu else None
        self._runs = [self._run_at(point, judge, gpu, candidates) for point in (points or (None,))]
        self._guarded([item.index for item in candidates], measurement, "choose", None)
        self._set_floors(measurement)

    def _run_at(
        self, point: ShapePoint | None, judge: Judge, gpu: GpuTiming | None, candidates: Sequence[Candidate]
    ) -> Run:
        """Return what runs the schedule at one point of the shape grid."""
        evaluation = self._evaluation
        timing, timeout_s = evaluation.settings.timing, judge.timeout_s
        name = "" if point is None else point.id
        schedule = Schedule(
            timing,
            CallableBlocks(timing, judge, evaluation.rng, timeout_s=timeout_s, gpu=gpu, shape=point),
            baseline=evaluation.baseline,
            rng=evaluation.rng,
            on_gpu=self.on_gpu,
            shape=name,
            progress=self._progress(name, self._measurements[candidates[0].index]),
        )

        def run(arms: Collection[int], into: Measurement, phase: Phase, count: int | None) -> None:
            schedule.run([item for item in candidates if item.index in arms], into, phase=phase, count=count)

        return run

    def _guarded(self, arms: Collection[int], measurement: Measurement, phase: Phase, count: int | None) -> None:
        """Run every point; when the reference or the harness fails, the kernels stay correct and untimed."""
        try:
            for run in self._runs:
                run(arms, measurement, phase, count)
        except (JudgeFailedError, HarnessBrokenError) as error:
            for index in arms:
                measurement.untimed.setdefault(index, f"resource: {error}")

    def _set_floors(self, measurement: Measurement) -> None:
        """Set the times that this device cannot beat; an unknown device has none, and the report says so."""
        loaded = self._loaded()
        name = loaded.get("device_name")
        peaks = peaks_of(str(name)) if self.on_gpu and name else None
        if peaks is None:
            device = name or "a CPU"
            self._floor_note = f"not applied: no theoretical peaks are known for {device}"
            return
        self._floor_note = f"{peaks.bytes_per_s / 1e12:g} TB/s ({peaks.source})"
        caches = loaded.get("caches")
        cache = caches.get("total_bytes") if isinstance(caches, Mapping) else None
        for shape, size in measurement.output_bytes.items():
            measurement.floors_ns[shape] = floor_ns(peaks, output_bytes=size, cache_bytes=cache)

    def _loaded(self) -> Mapping[str, object]:
        return next((candidate.loaded for candidate in self._candidates if candidate.loaded), {})

    def confirm(self, chosen: int) -> None:
        """Run fresh replicates of the baseline and the chosen candidate."""
        arms = [chosen] if self._evaluation.baseline is None else [self._evaluation.baseline, chosen]
        timing = self._evaluation.settings.timing
        count = max(timing.fewest_replicates, min(timing.fewest_for_small, self._replicates(chosen)))
        if self.on_gpu:
            self._sampler = self._new_sampler()
        try:
            self._guarded(arms, self.measurement, "confirm", count)
        finally:
            self.close()
        self._take_back()

    def _replicates(self, chosen: int) -> int:
        """Return how many replicates the choice had, at the point with the fewest."""
        shapes = self.measurement.shapes
        return min(len(self.measurement.medians(chosen, phase="choose", shape=shape)) for shape in shapes)

    def _timed(self) -> list[int]:
        """Return the indices of the kernels that are timed."""
        return sorted([*(item.index for item in self._candidates), *(item.index for item in self._programs)])

    def _take_back(self) -> None:
        """Set the timings, and let kernels that failed while they were timed lose their state ``correct``."""
        for index in self._timed():
            outcome = self._outcomes[index]
            measurement = self._measurements.get(index, self.measurement)
            failure = measurement.failed.get(index)
            if failure is not None:
                word, reason = failure
                tampering = outcome.candidate.tampering if outcome.candidate is not None else None
                found = tampering or checks.check("G14", "fail", reason)
                replaced = _with(outcome.judgement.checks, found)
                outcome.judgement = Judgement(word, reason, checks=replaced, quick=outcome.judgement.quick)
                outcome.timing, outcome.untimed = None, "it failed while it was timed"
                continue
            outcome.timing = timing_of(measurement, index, self._evaluation.settings.timing)
            self._finish_checks(outcome, measurement)

    def _finish_checks(self, outcome: KernelOutcome, measurement: Measurement) -> None:
        """Finish the checks that need what was seen while timing: identity, clocks, plausibility."""
        index = outcome.index
        if digests_of(outcome.entry) != outcome.digests:
            reason = "a source file changed while the kernel was judged or timed"
            outcome.judgement = Judgement("invalid", reason, checks=outcome.judgement.checks, ours=True)
            return
        if outcome.candidate is None:
            return
        untimed = measurement.untimed.get(index)
        if untimed is None:
            clocks = checks.check("G18", "pass", "windows by the process's stamps agree with the parent's clock")
        else:
            clocks = checks.check("G18", "fail" if "clocks disagree" in untimed else "not_run", untimed)
        before = next((item for item in outcome.judgement.checks if item.id == clocks.id), None)
        found = checks.joined(before, clocks)
        outcome.judgement = replace(outcome.judgement, checks=_with(outcome.judgement.checks, found))

    def take_ranking(self, ranking: Ranking | None = None) -> None:
        """G24: a speed-up that is too good must be seen by a second method, and none may be faster than the device."""
        for index in self._timed():
            outcome = self._outcomes[index]
            comparison = None if ranking is None else ranking.comparisons.get(index)
            if outcome.judgement.correct and outcome.timing is not None:
                found = plausible(comparison, outcome.timing, self._evaluation.settings.timing)
                outcome.judgement = replace(outcome.judgement, checks=_with(outcome.judgement.checks, found))

    def _progress(self, shape: str, measurement: Measurement) -> Callable[[str, float, float], None]:
        """Return what reports the progress of a schedule and keeps its new samples for whoever watches."""

        def report(step: str, done: float, total: float) -> None:
            self._log.add(measurement)
            self._evaluation.report(step, done, total, shape)

        return report

    def call_bytes(self, index: int) -> dict[str, int]:
        """Return point to the bytes of inputs and outputs of one call, where both are known."""
        measurement = self._measurements.get(index, self.measurement)
        inputs, outputs = measurement.input_bytes, measurement.output_bytes
        return {name: inputs[name] + outputs[name] for name in inputs.keys() & outputs.keys()}

    def points_of(self, index: int) -> tuple[ShapePoint, ...]:
        """Return the points at which a kernel was timed; empty without a shape grid."""
        baseline = self._evaluation.baseline
        if baseline is not None:
            return points_of_run(self._evaluation.config.kernels, baseline)
        return points_of(self._outcomes[index].entry)

    def device(self) -> str | None:
        """Return the name of the device that ran, ``cpu`` for the processor."""
        loaded = self._loaded()
        name = loaded.get("device_name") or loaded.get("device")
        return None if name is None else str(name)

    def write_samples(self) -> list[Path]:
        """Write every window to ``samples.jsonl``; returns the files written."""
        ids = {index: outcome.entry.id for index, outcome in self._outcomes.items()}
        distinct = list({id(item): item for item in (*self._measurements.values(), self.measurement)}.values())
        rows = [row for item in distinct for row in sample_rows(item, ids)]
        if not rows:
            return []
        path = self._evaluation.workspace / SAMPLES_NAME
        write_text(path, "".join(dumps(row, indent=None) + "\n" for row in rows), durable=True)
        return [path]

    def facts(self) -> Mapping[str, object]:
        """Return how the kernels were timed."""
        settings = self._evaluation.settings.timing
        loaded = self._loaded()
        measured = [item for item in self._measurements.values() if item.replicates] or [self.measurement]
        first = measured[0]
        ended = list(dict.fromkeys(item.ended() for item in measured if item.replicates))
        fresh = settings.fresh_interpreter and not self.on_gpu
        return {
            "quantity": quantity_of(first),
            "cache": cache_of(first),
            "method": method_of(first),
            "reduction": first.reduction if method_of(first) == "device_stamps" else None,
            "second_method": second_method(first),
            "quick": self._evaluation.settings.quick,
            "process_start": "new interpreter" if fresh else "fork",
            "budget_s_per_arm": settings.arm_budget_s(on_gpu=self.on_gpu),
            "elapsed_s": round(sum(item.elapsed_s for item in {id(item): item for item in measured}.values()), 3),
            "ended_by": ended[0] if len(ended) == 1 else (", ".join(map(str, ended)) or None),
            "threads": self._evaluation.threads,
            "device": loaded.get("device_name") or loaded.get("device"),
            "torch": loaded.get("torch"),
            "timer": "perf_counter_ns",
            "last_level_cache_bytes": self._cache_bytes(),
            "caches": loaded.get("caches"),
            "allocator": loaded.get("allocator"),
            "physical_floor": self._floor_note,
            "window_s": settings.window_s,
            "order": "mirrored blocks (A B ... B A), first order drawn",
            **first.facts,
        }

    def _cache_bytes(self) -> int | None:
        caches = self._loaded().get("caches")
        if isinstance(caches, Mapping):
            total = caches.get("total_bytes")
            return total if isinstance(total, int) else None
        return last_level_cache_bytes()


def plausible(comparison: Comparison | None, timing: Timing, settings: TimingSettings) -> GateCheck:
    """G24 for one kernel: its time against the device's floor, its ratio against what is credible without a proof."""
    at_points = timing.shapes or {"": timing}
    below = [name for name, item in at_points.items() if item.facts.get("below_floor")]
    if below:
        where = f" at {below[0]}" if below[0] else ""
        return checks.check("G24", "fail", f"its time{where} is below what the device can do")
    if comparison is None:
        if any("below_floor" in item.facts for item in at_points.values()):
            return checks.check("G24", "pass", "its time is possible on this device")
        return checks.check("G24", "not_run", "no ratio, and no peaks are known for this device")
    if comparison.word == "suspect":
        return checks.check("G24", "fail", comparison.reason, **comparison.facts)
    if "second_method_ratio" in comparison.facts:
        said = f"a ratio above {settings.largest_ratio:g}, seen by a second method as well"
        return checks.check("G24", "pass", said, **comparison.facts)
    return checks.check("G24", "pass", f"its ratio is below {settings.largest_ratio:g}")


def _with(all_checks: Sequence[GateCheck], found: GateCheck) -> tuple[GateCheck, ...]:
    return tuple(found if check.id == found.id else check for check in all_checks)
