"""A harness that all kernel tests share, so that PyTorch is imported once, and short ways to judge small kernels."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.gate import Candidate, Gate
from magpie_tui.kernels.judges import Judge, ReferenceTask, reference_of_entry
from magpie_tui.kernels.model import Judgement
from magpie_tui.kernels.rights import rights_for
from magpie_tui.kernels.sessions import Harness
from magpie_tui.kernels.settings import GateSettings

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, w):
        return x * w + 1

def get_inputs():
    return [torch.randn(8, 16), torch.rand(16)]
"""


_SHARED: list[Harness] = []


@pytest.fixture(scope="session")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """One interpreter that has imported PyTorch, for all directories of tests that take this fixture."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    if not _SHARED:
        log = tmp_path_factory.mktemp("harness") / "harness.log"
        environment = dict(os.environ)
        _SHARED.append(
            Harness(python=sys.executable, environment=environment, directory=None, log=log, start_timeout_s=120)
        )
    yield _SHARED[0]
    _SHARED[0].close()


JudgeKernel = Callable[..., Judgement]


@pytest.fixture
def judge_kernel(harness: Harness, tmp_path: Path) -> Iterator[JudgeKernel]:
    """Return a function that judges the text of a kernel against the text of a reference."""
    judges: list[Judge] = []

    def run(
        source: str,
        *,
        reference: str = REFERENCE,
        settings: GateSettings | None = None,
        task: ReferenceTask | None = None,
        digests: dict[str, str] | None = None,
        **entry_settings: object,
    ) -> Judgement:
        true_path, path = tmp_path / "reference.py", tmp_path / "kernel.py"
        true_path.write_text(reference)
        path.write_text(source)
        entry = replace(KernelEntry("kernel", "pytorch", (path,)), **entry_settings)  # type: ignore[arg-type]
        used = task or reference_of_entry(KernelEntry("reference", "pytorch", (true_path,)))
        assert used is not None
        gate_settings = settings or GateSettings(timeout_s=60, repeats=3, calls=12, variants=0, growth=False, holds=1)
        judge = Judge(used, harness, tmp_path / "exchange", tmp_path / "judge", gate_settings.timeout_s, 1, None, 7)
        judges.append(judge)
        memory = 4 << 30
        exchange = tmp_path / "exchange"
        rights = rights_for(
            place=exchange / "kernels" / "0",
            source=path,
            references=[used.source],
            secrets=[tmp_path / "results"],
            others=[],
            exchange=exchange,
            environment=entry.env,
        )
        candidate = Candidate(0, entry, path, harness, tmp_path, 1, memory, 7, gate_settings.timeout_s, rights=rights)
        rng = random.Random(5)
        seeds = [rng.getrandbits(31) for _ in range(gate_settings.seeds)]
        known = {str(path.with_name(name)): digest for name, digest in (digests or {}).items()}
        return Gate(candidate, judge, gate_settings, seeds, rng, lambda step: None, known).run()

    yield run
    for judge in judges:
        judge.close()
