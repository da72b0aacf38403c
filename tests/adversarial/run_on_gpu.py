"""Runs the whole corpus on a GPU and prints which check caught what.

    python tests/adversarial/run_on_gpu.py [--json FILE] [NAME ...]

Needs PyTorch with a GPU, Triton, and nothing else of the tests. Exit status 1 when a cheat was not caught by the check
meant for it, or an honest kernel did not pass.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from magpie_tui.kernels.model import Judgement
from magpie_tui.kernels.sessions import Harness
from tests.adversarial.catalogue import BROKEN, CHEATS, GPU_CHEATS, GPU_HONEST, HONEST, Case
from tests.adversarial.corpus import Corpus, failed, problem


def cases(names: list[str]) -> list[Case]:
    """Return the cases that make sense on a GPU, or those that are named."""
    every = [case for case in (*CHEATS, *GPU_CHEATS, *BROKEN, *HONEST, *GPU_HONEST) if case.device != "cpu"]
    return [case for case in every if not names or case.kernel in names]


def patient(case: Case) -> Case:
    """Return the case with time for a GPU's process to start."""
    timeout_s = max(20.0, float(str(case.settings.get("timeout_s", 120.0))))
    return replace(case, settings={**case.settings, "timeout_s": timeout_s})


def row(case: Case, judgement: Judgement, wrong: str | None, seconds: float) -> dict[str, object]:
    """Return what is known about a case."""
    return {
        "kernel": case.name,
        "expected": case.check or case.word,
        "state": judgement.word,
        "failed": [check.id for check in failed(judgement)],
        "ok": wrong is None,
        "seconds": round(seconds, 1),
        "reason": judgement.reason,
        "checks": {check.id: [check.status, check.reason] for check in judgement.checks},
    }


def main() -> int:
    """Run the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corpus-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        log = place / "harness.log"
        harness = Harness(
            python=sys.executable, environment=dict(os.environ), directory=None, log=log, start_timeout_s=300
        )
        corpus = Corpus(harness, place, memory_bytes=None)
        rows: list[dict[str, object]] = []
        try:
            for case in map(patient, cases(given.names)):
                started = time.monotonic()
                judgement = corpus.run(case)
                wrong = problem(case, judgement)
                rows.append(row(case, judgement, wrong, time.monotonic() - started))
                verdict = "ok  " if wrong is None else "FAIL"
                expected = f"{case.check or case.word:8}"
                line = f"{verdict} {expected} {case.name:32} {judgement.word:10}"
                print(f"{line} {rows[-1]['seconds']:>5} s  {wrong or ''}")
                sys.stdout.flush()
        finally:
            corpus.close()
            harness.close()
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))
    good = sum(bool(item["ok"]) for item in rows)
    print(f"{good} of {len(rows)} as the catalogue says")
    return 0 if good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
