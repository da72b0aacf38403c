"""Parts of the gate by themselves: what is hidden, what is watched, what a bound allows, what a refusal is."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.kernels import checks
from magpie_tui.kernels.harness.carry import read_value, write_value
from magpie_tui.kernels.harness.confine import _entries_but, landlock_version
from magpie_tui.kernels.harness.gating import GateRequests
from magpie_tui.kernels.harness.loading import LoadedKernel, load_module
from magpie_tui.kernels.model import Fact, GateCheck
from magpie_tui.kernels.probes import LATE_WORK_NS, is_refusal
from magpie_tui.kernels.settings import EvaluationSettings, GateSettings, quick_settings
from magpie_tui.kernels.watching import IdentityWatch, thread_times
from tests.adversarial.catalogue import HERE
from tests.conftest import PROJECT_ROOT
from tests.kernels.conftest import JudgeKernel


@settings(max_examples=40, deadline=None)
@given(st.sets(st.sampled_from(["a", "b/c", "b/d/e", "b/d/f", "g/h/i"]), min_size=1, max_size=4))
def test_everything_but_the_hidden_is_allowed(tmp_path_factory: pytest.TempPathFactory, hidden: set[str]) -> None:
    root = tmp_path_factory.mktemp("tree")
    for name in ("a", "b/c", "b/d/e", "b/d/f", "g/h/i", "g/k", "l"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    secrets = sorted(str(root / name) for name in hidden)
    allowed = list(_entries_but(str(root), secrets))

    def reachable(path: Path) -> bool:
        return any(str(path) == item or str(path).startswith(item + "/") for item in allowed)

    for path in root.rglob("*"):
        if path.is_file():
            assert reachable(path) != (str(path) in secrets)


CONFINED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from magpie_tui.kernels.harness.confine import Confinement
place = sys.argv[2]
made = Confinement({{"landlock": {landlock}, "hidden": [place + "/secret"], "protected": [place + "/others"],
    "writable": [place + "/own"], "environment": {{"TMPDIR": place + "/own/tmp"}}, "family": []}})
tried = {{}}
for name, mode in (("secret/x", "r"), ("others/x", "a"), ("elsewhere", "w"), ("own/x", "w"), ("others/x", "r")):
    try:
        open(place + "/" + name, mode).close()
        tried[name + mode] = True
    except OSError:
        tried[name + mode] = False
import ctypes
native = ctypes.CDLL(None).open((place + "/secret/x").encode(), 0) >= 0
print(json.dumps([made.facts, tried, native, made.attempts]))
"""


@pytest.mark.parametrize("landlock", [True, False])
def test_a_process_gives_its_rights_up(tmp_path: Path, landlock: bool) -> None:
    import json

    for name in ("secret", "others", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text("x")
    program = CONFINED.format(landlock=landlock)
    done = subprocess.run(
        [sys.executable, "-c", program, str(PROJECT_ROOT), str(tmp_path)], capture_output=True, text=True, check=True
    )
    facts, tried, native, attempts = json.loads(done.stdout)
    real = landlock and landlock_version() > 0
    assert bool(facts["landlock"]) == real
    assert (facts["readable"] == []) == real
    assert tried == {"secret/xr": False, "others/xa": False, "elsewherew": not real, "own/xw": True, "others/xr": True}
    assert native != real  # only the kernel of the system holds native code back
    assert [item["what"] for item in attempts] == ["read", "write"]


def test_replaced_functions_are_seen_from_outside() -> None:
    program = (
        "import sys, json, types, time\n"
        f"sys.path.insert(0, {str(PROJECT_ROOT)!r})\n"
        "from magpie_tui.kernels.harness import identities\n"
        "identities.WATCHED = {'time': ('perf_counter_ns', 'monotonic'), 'json': ('dumps', 'not_there')}\n"
        "print(json.dumps(identities.survey()), flush=True)\n"
        "steps = {'clock': lambda: setattr(time, 'monotonic', print),\n"
        "  'code': lambda: setattr(json.dumps, '__code__', (lambda obj, **k: '').__code__),\n"
        "  'new': lambda: setattr(json, 'not_there', 1),\n"
        "  'many': lambda: [setattr(json, f'x{n}', n) for n in range(999)]}\n"
        "for line in sys.stdin:\n    steps[line.strip()]()\n    print('done', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        import json

        assert process.stdin is not None and process.stdout is not None
        watch = IdentityWatch(process.pid, json.loads(process.stdout.readline()))
        assert watch.compare().names == () and watch.compare().reason is None
        names: list[str] = []
        for step, name in (
            ("many", None),
            ("clock", "time.monotonic"),
            ("code", "json.dumps"),
            ("new", "json.not_there"),
        ):
            process.stdin.write(step + "\n")
            process.stdin.flush()
            process.stdout.readline()
            names += [name] if name else []
            assert sorted(watch.compare().names) == sorted(names)
        process.stdin.close()
    assert "cannot be read" in (watch.compare().reason or "")


def test_the_threads_of_a_process_are_counted() -> None:
    assert os.getpid() in thread_times(os.getpid())
    assert thread_times(2**22 + 1) == {}


@pytest.mark.parametrize(
    ("reason", "zero_size", "refused"),
    [
        ("it raised ValueError: rows must be even (k.py:3)", False, True),
        ("it raised AssertionError", True, True),
        ("it raised RuntimeError: x must be contiguous", False, True),
        ("it raised RuntimeError: x must be contiguous", True, False),
        ("it raised RuntimeError: shape '[8, 16]' is invalid for input of size 136", False, False),
        ("it raised ZeroDivisionError: division by zero", False, False),
        ("it was ended by SIGSEGV", False, False),
    ],
)
def test_a_refusal_is_told_from_a_failure(reason: str, zero_size: bool, refused: bool) -> None:
    assert is_refusal(reason, zero_size=zero_size) is refused


def test_findings_of_one_check_are_joined() -> None:
    good, bad = checks.check("G18", "pass", "a; b", x=1), checks.check("G18", "fail", "c")
    later, skipped = checks.check("G18", "pass", "b; d", y=2), checks.check("G18", "not_run", "e")
    assert checks.joined(None, good) is good
    assert checks.joined(good, bad) is bad and checks.joined(bad, good) is bad
    assert checks.joined(good, later) == GateCheck("G18", good.title, "pass", "a; b; d", {"x": 1, "y": 2})
    assert checks.joined(good, skipped).status == "pass" and "e" in (checks.joined(good, skipped).reason or "")


def test_a_first_look_shortens_the_gate_and_says_so() -> None:
    gate = quick_settings(EvaluationSettings()).gate
    assert gate.quick and not gate.growth and not gate.sanitize
    assert gate.seeds < GateSettings().seeds and gate.variants < GateSettings().variants


@pytest.mark.torch
def test_bounds_follow_the_usual_size_and_errors_have_no_direction() -> None:
    torch = pytest.importorskip("torch")
    from magpie_tui.kernels.harness import numbers

    torch.manual_seed(3)
    values = torch.randn(4000, dtype=torch.float64)
    bound = numbers.tolerance_for("float32", {})
    noise = values * (1 + 5e-5 * torch.randn(4000, dtype=torch.float64).clamp(-1.5, 1.5))
    assert numbers.within(numbers.deviation(noise, values, bound))
    scaled = numbers.deviation(values * (1 + 7e-5), values, bound)
    assert scaled["over"] == 0 and scaled["bias"] < 0.5 and not numbers.within(scaled)
    with_outlier = values.clone()
    with_outlier[7] = 1e7
    assert numbers.size_of(with_outlier) < 1e-2 * numbers.rms(with_outlier)
    assert numbers.size_of(values) == numbers.rms(values)
    one_hot = torch.zeros(1000, dtype=torch.float64)
    one_hot[5] = 1.0
    assert numbers.size_of(one_hot) == numbers.rms(one_hot)


NAN_REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        y[0] = float("nan")
        return y

def get_inputs():
    return [torch.randn(8, 16)]
"""


@pytest.mark.torch
def test_gaps_between_elements_survive_the_way_to_a_device(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    gaps, exchanged = torch.arange(8.0)[::2], torch.ones(3, 4).t()
    write_value(str(tmp_path / "inputs"), [gaps, exchanged, torch.ones(5)])
    carried = read_value(str(tmp_path / "inputs"))
    for device in ("cpu", "meta"):  # the latter stands for any device that is not the CPU
        assert [item.stride() for item in carried.value(device)] == [(2,), (1, 4), (1,)]
    assert torch.equal(carried.value()[0], gaps)


def test_threads_that_are_gone_before_anybody_looks_are_counted(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    write_value(str(tmp_path / "inputs"), [torch.ones(8, 16), torch.ones(16)])

    class Slow(GateRequests):
        """Copies results so slowly that a helper has ended before the answer, as it happens on a GPU."""

        def _synchronize(self) -> None:
            helper = getattr(self._kernel and self._kernel.model, "helper", None)
            if helper is not None:
                helper.join()

    used = {}
    for name in ("works_on", "honest_affine"):
        module = load_module(str(HERE / "kernels" / f"{name}.py"), f"held_{name}")
        server, model = Slow(), module.Model()
        server._kernel = LoadedKernel(module, model, model)
        used[name] = server._do_hold({"inputs": str(tmp_path / "inputs")})["others_ns"]
    assert used["honest_affine"] < LATE_WORK_NS < used["works_on"]


def test_a_pool_that_still_looks_for_work_is_no_fault_of_the_call(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    write_value(str(tmp_path / "inputs"), [torch.ones(8, 16), torch.ones(16)])

    def look_for_work() -> None:
        # Without the interpreter's lock, as the threads of a pool do.
        while time.thread_time_ns() < 3 * LATE_WORK_NS:
            hashlib.blake2b(bytes(1 << 16)).digest()

    class Pooled(GateRequests):
        """Has a thread that is busy for a while when the inputs have been read, and copies results slowly."""

        pool: threading.Thread
        called = False

        def _read(self, path: str) -> list[Any]:
            found = super()._read(path)
            self.pool = threading.Thread(target=look_for_work, daemon=True)
            self.pool.start()
            return found

        def _call(self, arguments: list[Any]) -> Any:
            self.called = True
            return super()._call(arguments)

        def _synchronize(self) -> None:
            if self.called:
                self.pool.join()

    module = load_module(str(HERE / "kernels" / "honest_affine.py"), "held_with_a_pool")
    model = module.Model()
    for server in (GateRequests(), Pooled()):  # the first one pays for what every first call pays for
        server._kernel = LoadedKernel(module, model, model)
        told = server._do_hold({"inputs": str(tmp_path / "inputs")})
    assert told["others_ns"] < LATE_WORK_NS


def test_nan_in_the_reference_must_be_declared(judge_kernel: JudgeKernel) -> None:
    same = NAN_REFERENCE.replace("x * 2", "x + x")
    undeclared = judge_kernel(same, reference=NAN_REFERENCE)
    assert (undeclared.word, undeclared.ours) == ("invalid", True)
    assert "equal_nan" in (undeclared.reason or "")
    declared = GateSettings(timeout_s=60, repeats=2, calls=6, variants=0, growth=False, holds=1, equal_nan=True)
    assert judge_kernel(same, reference=NAN_REFERENCE, settings=declared).word == "correct"
    without = same.replace('float("nan")', "0.0")
    refused = judge_kernel(without, reference=NAN_REFERENCE, settings=declared)
    assert [item.id for item in refused.checks if item.status == "fail"] == ["G10"]


@pytest.mark.torch
def test_a_source_that_was_exchanged_after_it_was_hashed_is_found(judge_kernel: JudgeKernel) -> None:
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x, w): return x * w + 1\n"
    judgement = judge_kernel(source, digests={"kernel.py": "0" * 64})
    assert [item.id for item in judgement.checks if item.status == "fail"] == ["G1"]
    assert replace(judgement).word == "incorrect"


@pytest.mark.torch
def test_a_reference_that_takes_too_long_is_no_fault_of_the_kernel(judge_kernel: JudgeKernel) -> None:
    kernel = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * 2\n"
    slow = kernel.replace("return x * 2", "__import__('time').sleep(60)")
    inputs = "def get_inputs(): return [torch.randn(8, 16)]\n"
    judgement = judge_kernel(kernel, reference=slow + inputs, settings=GateSettings(timeout_s=4))
    assert (judgement.word, judgement.ours) == ("resource", True)
    assert "the reference" in (judgement.reason or "")
    assert {check.status for check in judgement.checks if check.id != "G23"} == {"not_run"}


@pytest.mark.parametrize(
    ("got", "expected", "text"),
    [
        (-4.381692, -4.376332, "-4.382 instead of -4.376"),
        (1.0, 2.0, "1 instead of 2"),
        (0.1 + 0.2, 0.3, "0.30000000000000004 instead of 0.29999999999999999"),
        (2.5, 2.5, "2.5 instead of 2.5"),
    ],
)
def test_a_deviation_shows_digits_that_differ(got: float, expected: float, text: str) -> None:
    found: dict[str, Fact] = {"max_abs": 0.005, "position": [1], "got": got, "expected": expected, "allowed": 1e-4}
    told = checks.describe_deviation({"name": "", "deviation": found, "tolerance": {"rtol": 0, "scale": 0, "atol": 0}})
    assert f"at [1]: {text}, allowed 0.0001" in told
