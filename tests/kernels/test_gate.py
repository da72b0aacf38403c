"""The correctness gate on kernels that are right, wrong, broken and hostile: each gets its own state and reason."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from magpie_tui.configs.kernel_model import KernelEntry, Tolerance
from magpie_tui.kernels.checks import ORDER
from magpie_tui.kernels.judges import ReferenceTask
from magpie_tui.kernels.model import Judgement
from magpie_tui.kernels.sessions import Harness
from magpie_tui.kernels.settings import GateSettings
from tests.kernels.conftest import REFERENCE, JudgeKernel

pytestmark = pytest.mark.torch

HEAD = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, w):\n"
RIGHT = HEAD + "        return torch.addcmul(torch.ones(()), x, w)\n"
FEW = GateSettings(timeout_s=60, seeds=2, repeats=2, calls=6, call_sets=2, variants=0, growth=False, holds=1)


def status(judgement: Judgement, identity: str) -> str:
    """Return the status of one check."""
    return next(check.status for check in judgement.checks if check.id == identity)


def failed(judgement: Judgement) -> list[str]:
    """Return the ids of the failed checks."""
    return [check.id for check in judgement.checks if check.status == "fail"]


def test_a_right_kernel_passes_and_every_check_is_named(judge_kernel: JudgeKernel) -> None:
    judgement = judge_kernel(RIGHT)
    assert (judgement.word, judgement.reason) == ("correct", None)
    assert judgement.proof == "reference"
    assert [check.id for check in judgement.checks] == list(ORDER)
    ran = ("G2", "G3", "G4", "G5", "G8", "G9", "G10", "G11", "G13", "G14", "G23")
    assert all(status(judgement, identity) == "pass" for identity in ran)
    assert all(check.reason for check in judgement.checks if check.status == "not_run")


WRONG = {
    "one element": ("        y = x * w + 1\n        y[3, 5] += 0.01\n        return y\n", "G9"),
    "shape": ("        return (x * w + 1).flatten()\n", "G5"),
    "strides": ("        return (x * w + 1).t().contiguous().t()\n", "G5"),
    "tuple": ("        return (x * w + 1, x)\n", "G5"),
    "list of tensors": ("        return [row for row in x * w + 1]\n", "G5"),
    "dict": ("        return {'y': x * w + 1}\n", "G5"),
    "no tensor": ("        return object()\n", "G5"),
    "none": ("        return None\n", "G5"),
    "number": ("        return 3.0\n", "G5"),
    "infinity": ("        y = x * w + 1\n        y[0, 0] = float('inf')\n        return y\n", "G10"),
    "only right for random values": (
        "        return x * w + 1 if x.std() > 0 else torch.zeros_like(x)\n",
        "G11",
    ),
    "not repeatable": ("        return x * w + 1 + torch.rand(()) * 1e-6\n", "G13"),
}
"""Beside those of ``tests/adversarial``."""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_results_are_refused_by_the_check_meant_for_them(judge_kernel: JudgeKernel, name: str) -> None:
    body, identity = WRONG[name]
    judgement = judge_kernel(HEAD + body)
    assert judgement.word == "incorrect", judgement
    assert failed(judgement) == [identity], judgement.reason
    assert judgement.reason


def test_the_error_says_how_far_where_and_at_which_tolerance(judge_kernel: JudgeKernel) -> None:
    reason = judge_kernel(HEAD + WRONG["one element"][0]).reason or ""
    for part in ("max abs error 0.01", "max rel error", "at [3, 5]", "rtol 0.0001", "random inputs 1", "1 of 128"):
        assert part in reason


LATER = {
    "from the eleventh call on": "self.calls > 14",
    "every second call": "self.calls > 4 and self.calls % 2 == 0",
}


@pytest.mark.parametrize("name", LATER)
def test_right_at_first_and_wrong_later_is_refused(judge_kernel: JudgeKernel, name: str) -> None:
    source = (
        "import torch\nclass Model(torch.nn.Module):\n    calls = -20\n    def forward(self, x, w):\n"
        "        self.calls += 1\n        y = x * w + 1\n"
        f"        if {LATER[name]}:\n            y[0, 0] += 1\n        return y\n"
    )
    settings = GateSettings(timeout_s=60, repeats=3, calls=48)
    judgement = judge_kernel(source, settings=settings)
    assert judgement.word == "incorrect"
    assert failed(judgement) == ["G14"]
    assert "call 4" in (judgement.reason or "") and "of 48 in a row" in (judgement.reason or "")


ENDS = {
    "syntax error": ("def broken(:\n", "crashed", "SyntaxError"),
    "import error": ("import no_such_module_at_all\n", "crashed", "no_such_module_at_all"),
    "no Model": ("import torch\n", "invalid", "no 'Model'"),
    "wrong arity": (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\n",
        "crashed",
        "TypeError",
    ),
    "raises": (HEAD + "        raise RuntimeError('broken on purpose')\n", "crashed", "broken on purpose"),
    "sys.exit": (HEAD + "        raise SystemExit(0)\n", "crashed", "SystemExit"),
    "abort": ("import os\n" + HEAD + "        os.abort()\n", "crashed", "SIGABRT"),
    "killed": ("import os, signal\n" + HEAD + "        os.kill(os.getpid(), 9)\n", "resource", "SIGKILL"),
    "closes descriptors": ("import os\n" + HEAD + "        os.closerange(3, 500)\n        return x\n", "crashed", ""),
    "writes into every descriptor": (
        "import os\n" + HEAD + "        for fd in range(3, 60):\n            try: os.write(fd, b'{}' * 9)\n"
        "            except OSError: pass\n        return x * w + 1\n",
        "crashed",
        "disturbed the connection",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_broken_kernels_get_their_own_state(judge_kernel: JudgeKernel, name: str) -> None:
    source, word, text = ENDS[name]
    judgement = judge_kernel(source)
    assert (judgement.word, text in (judgement.reason or "")) == (word, True), judgement.reason
    assert not judgement.ours


def test_the_place_in_the_kernels_file_is_named(judge_kernel: JudgeKernel) -> None:
    assert "(kernel.py:4)" in (judge_kernel(HEAD + "        raise ValueError\n").reason or "")


def test_what_a_kernel_prints_means_nothing(judge_kernel: JudgeKernel) -> None:
    noise = "        print('PASSED ' * 100000, flush=True)\n        import sys; sys.stderr.write('x' * 1000000)\n"
    assert judge_kernel(HEAD + noise + "        return x * w + 1\n").word == "correct"
    assert judge_kernel(HEAD + noise + "        return x\n").word == "incorrect"


def test_a_kernel_that_kills_its_parent_harms_only_itself(judge_kernel: JudgeKernel) -> None:
    judgement = judge_kernel("import os\n" + HEAD + "        os.kill(os.getppid(), 9)\n        os._exit(1)\n")
    assert (judgement.word, failed(judgement)) == ("incorrect", ["G19"])
    assert judge_kernel(RIGHT).word == "correct"


def test_two_harnesses_share_an_import_and_nothing_else(harness: Harness, tmp_path: Path) -> None:
    log = tmp_path / "branch.log"
    branch = Harness(python=harness.python, environment={}, directory=None, log=log, start_timeout_s=60, beside=harness)
    try:
        with harness.open("judge", source=None, log=tmp_path / "judge") as judge:
            with branch.open("judge", source=None, log=tmp_path / "own") as session:
                parent = int(Path(f"/proc/{session.pid}/stat").read_text().rpartition(")")[2].split()[1])
                os.kill(parent, signal.SIGKILL)
            with branch.open("judge", source=None, log=tmp_path / "own") as session:
                assert Path(f"/proc/{session.pid}").exists(), "it got a new process to come from"
            branch.close()
            assert judge.ask({"do": "drop", "keys": []}, timeout_s=20) is not None
    finally:
        branch.close()


BAD_REFERENCES = {
    "raises": ("        raise RuntimeError('no')\n", "invalid", "the reference"),
    "crashes": ("        import os; os._exit(3)\n", "invalid", "exited with status 3"),
    "is not finite": ("        return x / 0 * 0\n", "invalid", "no finite value"),
    "ignores an input": ("        return x * 2.5 + 1\n", "invalid", "does not change with input[1]"),
    "is constant": ("        return torch.ones_like(x) + 0 * x * w\n", "invalid", ""),
}


@pytest.mark.parametrize("name", BAD_REFERENCES)
def test_a_broken_reference_is_never_the_kernels_fault(judge_kernel: JudgeKernel, name: str) -> None:
    body, word, text = BAD_REFERENCES[name]
    inputs = "\ndef get_inputs():\n    return [torch.randn(8, 16), torch.rand(16)]\n"
    judgement = judge_kernel(RIGHT, reference=HEAD + body + inputs)
    assert judgement.word == word, judgement
    assert text in (judgement.reason or "")
    assert judgement.ours


def test_a_tolerance_that_accepts_zeros_lets_nothing_pass(judge_kernel: JudgeKernel) -> None:
    softmax = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return torch.softmax(x, -1)\n"
    inputs = "def get_inputs(): return [torch.randn(1, 393216)]\n"
    zeros = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return torch.zeros_like(x)\n"
    lax = {"*": Tolerance(atol=1e-2)}
    for source in (zeros, softmax):
        judgement = judge_kernel(source, reference=softmax + inputs, tolerance=lax)
        assert judgement.word == "invalid"
        assert "tolerance_not_discriminating" in (judgement.reason or "")
        assert failed(judgement) == ["G3"]
    assert judge_kernel(zeros, reference=softmax + inputs, settings=FEW).word == "incorrect"
    assert judge_kernel(softmax, reference=softmax + inputs, settings=FEW).word == "correct"


def test_weights_and_constructor_arguments_are_the_references(judge_kernel: JudgeKernel) -> None:
    body = (
        "import torch\nclass Model(torch.nn.Module):\n"
        "    def __init__(self, size, scale):\n        super().__init__()\n"
        "        {extra}self.linear = torch.nn.Linear(size, size)\n        self.scale = scale\n"
        "    def forward(self, x): return self.linear(x) * self.scale\n"
    )
    functions = "def get_inputs(): return [torch.randn(4, 16)]\ndef get_init_inputs(): return [16, 2.0]\n"
    reference = body.format(extra="") + functions
    assert judge_kernel(body.format(extra="torch.rand(7); "), reference=reference).word == "correct"


def test_in_place_kernels_are_judged_by_what_they_wrote(judge_kernel: JudgeKernel) -> None:
    reference = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): x.mul_(2).add_(1)\n"
        "def get_inputs(): return [torch.randn(8, 8)]\n"
    )
    right = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): x.copy_(x * 2 + 1)\n"
    assert judge_kernel(right, reference=reference, in_place=True).word == "correct"
    assert judge_kernel(right.replace("+ 1", "+ 2"), reference=reference, in_place=True).word == "incorrect"


def test_integer_outputs_must_be_exact(judge_kernel: JudgeKernel) -> None:
    reference = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x.argsort(-1)\n"
        "def get_inputs(): return [torch.randn(4, 64)]\n"
    )
    right = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return torch.sort(x).indices\n"
    assert judge_kernel(right, reference=reference).word in ("correct", "incorrect")  # ties on structured values
    assert judge_kernel(right.replace(".indices", ".indices.roll(1, -1)"), reference=reference).word == "incorrect"


def test_saved_outputs_with_their_inputs_can_be_the_reference(judge_kernel: JudgeKernel, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    cases = []
    for _ in range(3):
        x, w = torch.randn(8, 16), torch.rand(16)
        cases.append({"inputs": [x, w], "outputs": x * w + 1})
    saved = tmp_path / "saved.pt"
    torch.save(cases, saved)
    task = ReferenceTask("saved", saved, None, "saved.pt", KernelEntry("kernel", "pytorch"))
    judgement = judge_kernel(RIGHT, task=task)
    assert judgement.word == "correct", judgement.reason
    assert (status(judgement, "G11"), status(judgement, "G4")) == ("not_run", "not_run")
    assert judge_kernel(HEAD + WRONG["one element"][0], task=task).word == "incorrect"
    torch.save(x * w + 1, saved)
    without_inputs = judge_kernel(RIGHT, task=task)
    assert without_inputs.word == "invalid"
    assert "outputs without the inputs" in (without_inputs.reason or "")


def test_the_kernels_own_inputs_are_used_when_the_reference_makes_none(judge_kernel: JudgeKernel) -> None:
    reference = REFERENCE.partition("def get_inputs")[0]
    own = RIGHT + "\ndef get_inputs():\n    return [torch.randn(8, 16), torch.rand(16)]\n"
    assert judge_kernel(own, reference=reference, settings=FEW).word == "correct"
    missing = judge_kernel(RIGHT, reference=reference)
    assert missing.word == "crashed"
    assert "get_inputs" in (missing.reason or "")
