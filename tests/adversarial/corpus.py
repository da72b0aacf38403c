"""Runs one kernel of the corpus through the gate, confined as in earnest."""

from __future__ import annotations

import hashlib
import random
import sys
from dataclasses import replace
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.gate import Candidate, Gate
from magpie_tui.kernels.judges import Judge, reference_of_entry
from magpie_tui.kernels.model import GateCheck, Judgement
from magpie_tui.kernels.rights import rights_for
from magpie_tui.kernels.sessions import Harness
from magpie_tui.kernels.settings import GateSettings
from tests.adversarial.catalogue import HERE, Case

SETTINGS = GateSettings(
    timeout_s=60, repeats=3, calls=12, variants=0, growth=False, holds=2, hold_s=0.05, traced_after=2
)
"""Short, but with every check: what a case needs more it says itself."""


class Corpus:
    """Judges cases one after another; one judge a reference, so that what is true is computed once. Close it."""

    def __init__(self, harness: Harness, place: Path, *, memory_bytes: int | None = 4 << 30) -> None:
        self._harness = harness
        self._place = place
        self._memory_bytes = memory_bytes
        self._judges: dict[str, Judge] = {}
        self.results = place / "results"
        (self.results / "logs").mkdir(parents=True)
        self._seeds = [random.SystemRandom().getrandbits(31) for _ in range(SETTINGS.seeds)]

    def _judge(self, case: Case) -> Judge:
        if case.reference not in self._judges:
            entry = KernelEntry(case.reference, "pytorch", (HERE / "references" / f"{case.reference}.py",))
            task = reference_of_entry(entry)
            assert task is not None
            log = self.results / "logs" / f"reference_{case.reference}"
            self._judges[case.reference] = Judge(
                task, self._harness, self._place / "exchange", log, SETTINGS.timeout_s, 1, self._memory_bytes, 7
            )
        return self._judges[case.reference]

    def run(self, case: Case) -> Judgement:
        """Judge one case."""
        judge = self._judge(case)
        kind = "triton" if case.device == "gpu" and "triton" in case.source.read_text() else "pytorch"
        entry = replace(KernelEntry(case.kernel, kind, (case.source,)), **case.entry)  # type: ignore[arg-type]
        exchange = self._place / "exchange"
        rights = rights_for(
            place=exchange / "kernels" / case.kernel,
            source=case.source,
            references=[judge.task.source],
            secrets=[self.results],
            others=[],
            exchange=exchange,
            environment={},
        )
        settings = replace(SETTINGS, **case.settings)  # type: ignore[arg-type]
        candidate = Candidate(
            index=0,
            entry=entry,
            source=case.source,
            harness=self._harness,
            logs=self.results / "logs",
            threads=1,
            memory_bytes=self._memory_bytes,
            seed=7,
            timeout_s=settings.timeout_s,
            rights=rights,
        )
        digests = {str(case.source): hashlib.sha256(case.source.read_bytes()).hexdigest()}
        rng = random.Random(11)
        return Gate(candidate, judge, settings, self._seeds, rng, lambda step: None, digests).run()

    def close(self) -> None:
        """End the references."""
        for judge in self._judges.values():
            judge.close()


def failed(judgement: Judgement) -> list[GateCheck]:
    """Return the checks that failed."""
    return [check for check in judgement.checks if check.status == "fail"]


def problem(case: Case, judgement: Judgement) -> str | None:
    """Return what is not as the catalogue says, or None."""
    names = [check.id for check in failed(judgement)]
    if judgement.word != case.word:
        return f"{judgement.word} instead of {case.word}: {judgement.reason}"
    if case.check is None:
        return f"{', '.join(names)} failed: {judgement.reason}" if names else None
    return (
        None if names == [case.check] else f"caught by {', '.join(names)} instead of {case.check}: {judgement.reason}"
    )


def explain(case: Case, judgement: Judgement) -> None:
    """Print a judgement in full, for whoever looks into a case."""
    print(case.name, judgement.word, judgement.reason, file=sys.stderr)
    for check in judgement.checks:
        print("  ", check.id, check.status, check.reason or "", file=sys.stderr)
