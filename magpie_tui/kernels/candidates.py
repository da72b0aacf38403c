"""A kernel that can be called: starts its processes, takes their rights away, loads it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels import checks
from magpie_tui.kernels.judges import Judge
from magpie_tui.kernels.model import GateCheck
from magpie_tui.kernels.rights import Rights
from magpie_tui.kernels.sessions import Harness, Message, Session, SessionFailedError
from magpie_tui.kernels.shapes import ShapePoint
from magpie_tui.kernels.watching import IdentityWatch


@dataclass
class Candidate:
    """A kernel that can be called, and where it runs.

    Attributes:
        index: Its place in the config.
        logs: Directory for what it prints.
        threads, memory_bytes: Settings of its process.
        seed: Of its constructor.
        raw: For a kernel without a main: its binary, arguments and launch geometry.
        rights: What its processes may do; None leaves them everything that the user may do.
        loaded: What its process said when the file was loaded.
        confined: What its process said when its rights were taken.
        poisons: Patterns that its process can fill memory with.
        watch: The functions that must stay as they are in the process opened last.
        tampering: The failed check, when a timed process did what it must not.
    """

    index: int
    entry: KernelEntry
    source: Path
    harness: Harness
    logs: Path
    threads: int
    memory_bytes: int | None
    seed: int
    timeout_s: float
    raw: Message | None = None
    rights: Rights | None = None
    loaded: Message = field(default_factory=dict)
    confined: Message = field(default_factory=dict)
    poisons: tuple[str, ...] = ()
    watch: IdentityWatch | None = None
    tampering: GateCheck | None = None

    def open(self, judge: Judge | None, *, log: str, fresh: bool = False, gate: bool = False) -> Session:
        """Start a process, load the kernel with the reference's arguments and weights, and return its session.

        Args:
            gate: The process is to answer the gate's questions about memory and identities.

        Raises:
            SessionFailedError: The kernel's file cannot be loaded.
        """
        rights = self.rights
        if judge is None and rights is not None:
            rights = rights.elsewhere("inputs")
        if rights is not None:
            _empty(rights.exchanged)
        session = self.harness.open("candidate", source=self.source, log=self.logs / log, fresh=fresh)
        try:
            self._prepare(session, judge, rights, gate=gate)
            self._load(session, judge, timed=not gate)
        except SessionFailedError as error:
            error.attempts = list(session.attempts)
            session.close()
            raise
        return session

    def _prepare(self, session: Session, judge: Judge | None, rights: Rights | None, *, gate: bool) -> None:
        """Before anything of the kernel is loaded: note what must stay as it is, then take the rights away."""
        if gate:
            device = "cpu" if (self.raw or {}).get("type") == "cpp" else None
            answer = session.ask({"do": "poison", "device": device}, timeout_s=self.timeout_s)
            self.poisons = tuple(answer["patterns"])
        self.watch = IdentityWatch(session.pid, session.ask({"do": "survey"}, timeout_s=self.timeout_s))
        if rights is not None:
            family = [os.getpid()]
            if judge is not None and judge.session is not None:
                family.append(judge.session.pid)
            self.confined = session.ask(rights.message(family=family), timeout_s=self.timeout_s)

    def _load(self, session: Session, judge: Judge | None, *, timed: bool) -> None:
        request: Message = {
            "do": "load",
            "source": str(self.source),
            "function": self.entry.kernel_name,
            "get_init_inputs": self.entry.get_init_inputs_func,
            "seed": self.seed,
            "threads": self.threads,
            "memory_bytes": self.memory_bytes,
            "file_bytes": 1 << 34,
            "keep_memory": timed,
            "init_path": judge.facts.get("init_path") if judge else None,
            "state_path": judge.facts.get("state_path") if judge else None,
            "raw": self.raw,
        }
        self.loaded = session.ask(request, timeout_s=self.timeout_s)

    def tampered(self, session: Session, watch: IdentityWatch | None) -> str | None:
        """Say what a process has tried or replaced that it must leave alone; None when nothing. See ``tampering``.

        Args:
            watch: What ``watch`` was when the process had been opened.
        """
        found = checks.attempts(session.attempts, self.rights)
        if watch is not None:
            found.append(checks.untouched(watch.compare()))
        wrong = [item for item in found if item.status == "fail"]
        self.tampering = wrong[0] if wrong else self.tampering
        return wrong[0].reason if wrong else None

    def own_inputs(self, seed: int, path: Path, shape: ShapePoint | None = None) -> Path:
        """Let the kernel's own file make inputs, at a point of the shape grid if given, in a process of its own."""
        with self.open(None, log="inputs") as session:
            request: Message = {"do": "own_inputs", "seed": seed, "path": str(path)}
            if shape is not None:
                request["shape"] = shape.to_message()
            session.ask({**request, "get_inputs": self.entry.get_inputs_func}, timeout_s=self.timeout_s)
        return path


def _empty(directory: Path) -> None:
    """Remove what earlier processes left where outputs are exchanged: nothing is handed from one to the next."""
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            with contextlib.suppress(OSError):
                path.unlink()
