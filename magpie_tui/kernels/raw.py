"""Kernels without a main: compiled here or in a child, and called on tensors with declared arguments."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.configs.raw_keys import RAW_TYPES, role_of
from magpie_tui.kernels.commands import CommandStage, run_commands
from magpie_tui.kernels.model import Fact, StageOutcome
from magpie_tui.kernels.raw_dtypes import at_dtypes, dtype_sets
from magpie_tui.kernels.sessions import Harness, HarnessBrokenError, Message, SessionFailedError

QUOTED_DIAGNOSTICS = 12
_STAGE = CommandStage("build", "Build", "invalid")
_SEVERITY = r"(?P<severity>(?:catastrophic |fatal )?error|warning)"
_EDG = re.compile(rf"(?P<path>.+?)\((?P<line>\d+)\): {_SEVERITY}[^:]*: (?P<text>.*)")
_CLANG = re.compile(rf"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): {_SEVERITY}: (?P<text>.*)")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that a compiler said about a source.

    Attributes:
        severity: ``error`` or ``warning``.
        column: From 1; None when the compiler did not tell.
    """

    path: str
    line: int
    column: int | None
    severity: str
    text: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" + (f":{self.column}" if self.column is not None else "")
        return f"{place}: {self.severity}: {self.text}"


def diagnostics(log: str) -> list[Diagnostic]:
    """Read a compiler's log: NVRTC's (the column is told by its caret), clang's, gcc's."""
    lines = log.splitlines()
    found = []
    for number, line in enumerate(lines):
        match = _CLANG.match(line) or _EDG.match(line)
        if match is None:
            continue
        column: int | None = int(match["column"]) if "column" in match.groupdict() else None
        if column is None:
            column = _caret_column(lines[number + 1 : number + 3])
        severity = "warning" if match["severity"] == "warning" else "error"
        found.append(Diagnostic(match["path"], int(match["line"]), column, severity, match["text"].strip()))
    return found


def _caret_column(following: Sequence[str]) -> int | None:
    """Return the column that a caret under a quoted source line points to; NVRTC indents both by two spaces."""
    if len(following) < 2 or following[1].strip() != "^":
        return None
    return following[1].index("^") - 1


@dataclass(frozen=True, slots=True)
class RawBinary:
    """A compiled kernel.

    Attributes:
        path: The CUDA binary, the AMD code object or the shared library, as it is kept.
        loaded: The copy of it that is loaded: a kernel's process may not look into the workspace.
        function: The kernel's name in it.
        digest: SHA-256 of the file.
        options: The compiler's options.
        facts: What the driver says of the loaded function: registers, local_bytes, shared_bytes, most_threads,
            blocks_per_processor, threads.
        dtypes: Those that it was compiled for, by the names of the shape grid; empty where the config fixes them.
        others: The binaries for the other dtypes of the shape grid.
    """

    path: Path
    loaded: Path
    function: str
    digest: str
    options: tuple[str, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    others: tuple[RawBinary, ...] = ()


def is_raw(entry: KernelEntry) -> bool:
    """Say whether an entry is a kernel without a main: it declares its arguments."""
    return bool(entry.arguments) and entry.kernel_name is not None and entry.type in RAW_TYPES


def _argument(index: int, value: object) -> Message:
    if not isinstance(value, Mapping):
        dtype = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int32"
        return {"name": f"argument {index}", "role": "scalar", "dtype": dtype, "value": value}
    role = role_of(value)
    name = str(value.get("name") or f"argument {index}")
    if role == "scalar":
        scalar = value.get("value")
        kind = "bool" if isinstance(scalar, bool) else "float32" if isinstance(scalar, float) else "int32"
        return {"name": name, "role": role, "dtype": value.get("dtype") or kind, "value": scalar}
    return {"name": name, "role": role, "dtype": value["dtype"], "shape": list(value["shape"])}


def _constant_names(entry: KernelEntry) -> dict[str, int]:
    """Return the dimensions that have the same value at every point of the shape grid."""
    points = [point for point in entry.shapes if isinstance(point, Mapping)]
    first = points[0] if points else {}
    return {
        name: value
        for name, value in first.items()
        if isinstance(value, int) and name != "guard" and all(point.get(name) == value for point in points)
    }


def spec_of(entry: KernelEntry) -> Message:
    """Return what the child needs to call the kernel, without the binary."""
    return {
        "type": entry.type,
        "function": entry.kernel_name,
        "arguments": [_argument(index, value) for index, value in enumerate(entry.arguments)],
        "grid": list(entry.grid) or [1],
        "block": list(entry.block) or [1],
        "shared_memory": entry.shared_memory or 0,
        "names": _constant_names(entry),
    }


def load_message(entry: KernelEntry, binary: RawBinary) -> Message:
    """Return what a request ``load`` says about a compiled kernel."""
    spec = spec_of(at_dtypes(entry, binary.dtypes))
    others = [load_message(entry, other) for other in binary.others]
    found = {**spec, "binary": str(binary.loaded), "function": binary.function, "dtypes": dict(binary.dtypes)}
    return {**found, "others": others}


def build_raw(
    entry: KernelEntry, harness: Harness, environment: Mapping[str, str], logs: Path, place: Path, timeout_s: float
) -> tuple[StageOutcome, RawBinary | None]:
    """Compile the kernel's source into ``logs``, once for each dtype of the shape grid that its arguments name.

    Returns the stage, and the binary unless it failed.

    Args:
        place: Directory for the copy that is loaded.
    """
    source = entry.source_file
    if source is None:
        return StageOutcome(True, False, (f"Build failed: kernel {entry.id} has no source file",)), None
    place.mkdir(parents=True, exist_ok=True)
    stage = StageOutcome(ran=False)
    built: list[RawBinary] = []
    for dtypes in dtype_sets(entry):
        at = at_dtypes(entry, dtypes)
        stem = "_".join([source.stem, *dtypes.values()])
        if entry.type == "cpp":
            stage, binary = _build_library(at, source, environment, logs / f"{stem}.so", timeout_s)
        else:
            suffix = "cubin" if entry.type == "cuda" else "hsaco"
            stage, binary = _build_device(at, source, harness, logs / f"{stem}.{suffix}", timeout_s)
        if binary is None:
            return stage, None
        loaded = place / f"{secrets.token_hex(6)}{binary.path.suffix}"
        shutil.copyfile(binary.path, loaded)
        built.append(replace(binary, loaded=loaded, dtypes=dtypes))
    return stage, replace(built[0], others=tuple(built[1:]))


def library_command(source: Path, options: Sequence[str], binary: Path) -> tuple[str, ...]:
    """Return the command that makes a shared library of a C++ kernel."""
    optimised = any(item.startswith("-O") for item in options)
    standard = any(item.startswith("-std=") for item in options)
    usual = [*(() if optimised else ("-O2",)), *(() if standard else ("-std=c++17",))]
    return ("g++", "-shared", "-fPIC", *usual, *options, "-o", str(binary), str(source))


def _build_library(
    entry: KernelEntry, source: Path, environment: Mapping[str, str], binary: Path, timeout_s: float
) -> tuple[StageOutcome, RawBinary | None]:
    logs = binary.parent
    command = library_command(source, entry.compile_options, binary)
    stage = run_commands(
        [command], stage=_STAGE, cwd=entry.working_dir, environment=environment, logs=logs, timeout_s=timeout_s
    )
    if not stage.success:
        said = _read(logs / "build_1.stderr")
        return StageOutcome(True, False, (_failure(said) or stage.errors[0],), stage.word), None
    return stage, RawBinary(binary, binary, entry.kernel_name or "", digest_of(binary), command[3:-3])


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _failure(log: str) -> str | None:
    """Return the errors of a log with their places, or None when it names none."""
    errors = [item for item in diagnostics(log) if item.severity == "error"]
    if not errors:
        return None
    more = len(errors) - QUOTED_DIAGNOSTICS
    lines = [printable(str(item)) for item in errors[:QUOTED_DIAGNOSTICS]]
    return "\n".join([f"Build failed: {lines[0]}", *lines[1:], *([f"and {more} more errors"] if more > 0 else [])])


def _build_device(
    entry: KernelEntry, source: Path, harness: Harness, binary: Path, timeout_s: float
) -> tuple[StageOutcome, RawBinary | None]:
    logs = binary.parent
    request: Message = {
        "do": "build",
        "kind": entry.type,
        "source": str(source),
        "function": entry.kernel_name,
        "options": list(entry.compile_options),
        "binary": str(binary),
        "spec": spec_of(entry),
    }
    try:
        with harness.open("candidate", source=source, log=logs / "build") as session:
            answer = session.ask(request, timeout_s=timeout_s)
    except SessionFailedError as error:
        return StageOutcome(True, False, (f"Build failed: {error.reason}",), error.word), None
    except HarnessBrokenError as error:
        return StageOutcome(True, False, (f"Build failed: {error}",), "resource"), None
    log = str(answer.get("log") or "")
    (logs / "build.log").write_text(log)
    if not answer["built"]:
        tail = "\n".join(printable(line) for line in log.splitlines()[-QUOTED_DIAGNOSTICS:])
        return StageOutcome(True, False, (_failure(log) or f"Build failed: {tail}",), "invalid"), None
    options = tuple(str(item) for item in answer["options"])
    return StageOutcome(True, True), RawBinary(
        binary, binary, str(answer["function"]), digest_of(binary), options, answer["facts"]
    )


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def library_is_there(entry: KernelEntry, python: str, environment: Mapping[str, str]) -> bool:
    """Say whether the interpreter of an entry finds the run-time compiler that its type needs."""
    import subprocess

    from magpie_tui.kernels.harness import main

    command = [python, main.__file__, "compiler", entry.type]
    try:
        done = subprocess.run(command, env=dict(environment), capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == os.EX_OK
