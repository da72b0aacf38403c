"""Measure the ceilings of this machine in a child process and keep them under the device's name."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.files import write_json
from magpie_tui.basics.paths import private_directory
from magpie_tui.machine.host import read_host
from magpie_tui.processes.children import ChildResult, run_child
from magpie_tui.traces.roofline.ceilings import (
    MEASURED,
    Ceilings,
    device_named,
    measured_directory,
    read_arch_file,
)

DEVICES = ("auto", "cuda", "cpu")
_CHILD = "magpie_tui.traces.roofline.measure_child"
_LIMIT_S = 900.0
_NO_TORCH = re.compile(r"No module named '?torch'?")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One rate.

    Attributes:
        what: "copy", "read" or a compute spec like "matrix_bf16".
        best_per_s, median_per_s: Bytes or operations a second over the calls; None with ``reason``.
        calls: Timed calls.
        shape: What was copied or multiplied.
        reason: Why there is no rate.
    """

    what: str
    best_per_s: float | None
    median_per_s: float | None
    calls: int
    shape: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuredCeilings:
    """What was measured, and where it is kept."""

    ceilings: Ceilings
    path: Path
    measurements: tuple[Measurement, ...]
    torch: str
    runtime: str
    threads: int | None


def measure_ceilings(
    *, device: str = "auto", seconds: float = 1.0, megabytes: int = 0, python: Path | None = None
) -> MeasuredCeilings:
    """Measure copy and matrix rates with torch and keep them as ceilings of this machine's device.

    Args:
        device: "auto" (a GPU where torch sees one), "cuda" (CUDA and HIP alike) or "cpu".
        seconds: Time for each rate.
        megabytes: Buffer that is copied, in MiB; 0 takes one far larger than the caches.
        python: Interpreter that has torch; ours without it.

    Raises:
        UserInputError: ``device`` is unknown or ``seconds`` out of range.
        MachineError: torch is missing, sees no such device, or fails.
    """
    if device not in DEVICES:
        raise UserInputError(f"no device is called {device!r}", key="--device", hint=", ".join(DEVICES))
    if not 0.01 <= seconds <= 60:
        raise UserInputError("the time for a rate is 0.01 to 60 seconds", key="--seconds")
    if megabytes < 0:
        raise UserInputError("the size of a buffer is a positive number of MiB", key="--size-mb")
    facts = _facts(device, seconds, megabytes, python)
    results = facts["results"]
    measurements = tuple(Measurement(**item) for item in results) if isinstance(results, list) else ()
    content = _content(facts, measurements)
    directory = private_directory(measured_directory())
    path = directory / f"{re.sub(r'[^A-Za-z0-9.-]+', '_', str(content['name'])).strip('_')}.json"
    write_json(path, content)
    threads = facts["threads"]
    return MeasuredCeilings(
        read_arch_file(path),
        path,
        measurements,
        str(facts["torch"]),
        str(facts["runtime"]),
        threads if isinstance(threads, int) else None,
    )


def _facts(device: str, seconds: float, megabytes: int, python: Path | None) -> Mapping[str, object]:
    """Run the child and read what it printed."""
    root = str(Path(__file__).parents[3])
    program = f"import sys\nsys.path.insert(0, {root!r})\nfrom {_CHILD} import main\nmain()"
    interpreter = str(python) if python is not None else sys.executable
    with tempfile.TemporaryDirectory(prefix="magpie-tui-ceilings-") as folder:
        out, err = Path(folder) / "stdout", Path(folder) / "stderr"
        result = run_child(
            [interpreter, "-X", "utf8", "-c", program, device, str(seconds), str(megabytes)],
            stdout_path=out,
            stderr_path=err,
            timeout_s=_LIMIT_S,
        )
        if not result.ok:
            raise _failure(result, err.read_text("utf-8", "replace"), interpreter)
        try:
            facts = json.loads(out.read_text("utf-8").splitlines()[-1])
        except (ValueError, IndexError) as error:
            raise MachineError("the measuring process printed no result", hint="run it again with -v") from error
    if not isinstance(facts, dict):
        raise MachineError("the measuring process printed no result", hint="run it again with -v")
    return facts


def _failure(result: ChildResult, stderr: str, interpreter: str) -> MachineError:
    if result.not_started:
        return MachineError(result.not_started, hint="--python names an interpreter that has torch")
    if _NO_TORCH.search(stderr):
        return MachineError(
            f"{interpreter} has no torch, which measures the ceilings",
            hint="pip install 'magpie-tui[torch]', or --python with an interpreter that has it",
        )
    if result.timed_out:
        return MachineError(f"measuring did not end within {_LIMIT_S:.0f} s", hint="try --device cpu or less --seconds")
    lines = [line for line in stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit status {result.exit_code}, signal {result.signal}"
    return MachineError(f"measuring failed: {last}", hint="--device cpu measures without a GPU")


def _content(facts: Mapping[str, object], measurements: tuple[Measurement, ...]) -> dict[str, object]:
    """The file: TraceLens's form with what it does not know under names of ours."""
    rates = {item.what: item.best_per_s for item in measurements if item.best_per_s is not None}
    host = read_host()
    raw = str(facts["name"] or host.cpu_model or "CPU")
    listed = device_named(raw)
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    memory = facts["memory_bytes"]
    return {
        "name": listed.name if listed is not None else raw,
        "kind": MEASURED,
        "source": f"measured on {host.hostname} at {when} with torch {facts['torch']}, {facts['runtime']}",
        "mem_bw_gbps": max(rates.get("copy", 0.0), rates.get("read", 0.0)) / 1e9,
        "memory_gb": memory / 1e9 if isinstance(memory, int) else None,
        "max_achievable_tflops": {
            what: rate / 1e12 for what, rate in rates.items() if what.startswith(("matrix_", "vector_"))
        },
        "device_name": raw,
        "threads": facts["threads"],
        "measurements": [
            {
                "what": item.what,
                "best_per_s": item.best_per_s,
                "median_per_s": item.median_per_s,
                "calls": item.calls,
                "shape": item.shape,
                "reason": item.reason,
            }
            for item in measurements
        ],
    }
