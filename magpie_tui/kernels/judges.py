"""The parent's side of a reference: which one a kernel has, its process, the inputs it makes."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.configs.kernel_model import KernelEntry, Reference
from magpie_tui.kernels.model import Fact
from magpie_tui.kernels.sessions import Harness, Message, Session, SessionFailedError
from magpie_tui.kernels.shapes import ShapePoint


class JudgeFailedError(Exception):
    """The reference could not do its part; never the fault of the kernel that is judged.

    Attributes:
        resource: Time or memory ran out, rather than the reference being wrong.
    """

    def __init__(self, reason: str, *, resource: bool) -> None:
        super().__init__(reason)
        self.resource = resource


@dataclass(frozen=True, slots=True)
class ReferenceTask:
    """What a judge loads.

    Attributes:
        kind: ``callable`` (a ``Model`` or function of a Python file) or ``saved``.
        source: The file.
        function: Name inside it; None is ``Model``.
        title: For people.
        entry: The entry whose interpreter, environment and function names apply.
    """

    kind: str
    source: Path
    function: str | None
    title: str
    entry: KernelEntry

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for tasks that one process can serve."""
        entry = self.entry
        names = (entry.get_inputs_func, entry.get_init_inputs_func)
        return (self.kind, self.source, self.function, names, entry.python, tuple(sorted(entry.env.items())))


def reference_of_entry(entry: KernelEntry) -> ReferenceTask | None:
    """Return the task that takes an entry itself as the reference; None when it holds nothing to call."""
    if entry.type not in ("pytorch", "triton") or entry.source_file is None:
        return None
    return ReferenceTask("callable", entry.source_file, entry.kernel_name, f"kernel {entry.id}", entry)


def find_reference(entry: KernelEntry, kernels: tuple[KernelEntry, ...]) -> ReferenceTask | None:
    """Return the reference that ``entry`` names, or None when it names none (or one that cannot be called)."""
    reference: Reference | None = entry.reference
    if reference is None:
        return None
    if reference.kind == "entry":
        for other in kernels:
            if other.id == reference.entry_id:
                return reference_of_entry(other)
        return None
    if reference.path is None:
        return None
    kind = "saved" if reference.kind == "saved" else "callable"
    return ReferenceTask(kind, reference.path, reference.function, reference.text, entry)


def tolerance_message(entry: KernelEntry) -> dict[str, Fact]:
    """Return the configured tolerance as the harness takes it."""
    return {name: {"atol": value.atol, "rtol": value.rtol} for name, value in entry.tolerance.items()}


LARGEST_KEPT = 32_000_000
"""Bytes of an input set that is kept, with its expected outputs, for the next kernel."""


@dataclass
class InputSet:
    """Inputs that a judge made and remembers.

    Attributes:
        key: Its name for the judge.
        path: File for the candidates.
        answers: What the judge has already said about it.
    """

    key: str
    path: Path
    size_bytes: int
    answers: dict[str, Message] = field(default_factory=dict)


@dataclass
class Judge:
    """A reference in its own process.

    Attributes:
        harness: Where it runs.
        exchange: Directory for inputs and outputs; nothing in it is kept.
    """

    task: ReferenceTask
    harness: Harness
    exchange: Path
    log: Path
    timeout_s: float
    threads: int
    memory_bytes: int | None
    seed: int
    session: Session | None = None
    facts: Message = field(default_factory=dict)
    rules: Message = field(default_factory=dict)
    sets: dict[str, InputSet] = field(default_factory=dict)

    def _ask(self, request: Message) -> Message:
        if self.session is None:
            raise JudgeFailedError("the reference is not loaded", resource=False)
        try:
            return self.session.ask(request, timeout_s=self.timeout_s)
        except SessionFailedError as error:
            reason = f"the reference ({self.task.title}) failed: {error.reason}"
            raise JudgeFailedError(reason, resource=error.word in ("timeout", "resource")) from error

    def path(self, name: str) -> Path:
        """Return a new path for an exchanged value: what kernels read lies apart from what they write."""
        directory = self.exchange / ("inputs" if name in ("inputs", "init", "state") else "outputs")
        directory.mkdir(parents=True, exist_ok=True)
        return directory / f"{name}_{secrets.token_hex(8)}.bin"

    def load(self) -> None:
        """Start the process, load the reference, write its constructor arguments and weights.

        Raises:
            JudgeFailedError: It cannot be loaded.
        """
        if self.session is not None:
            return
        entry = self.task.entry
        try:
            self.session = self.harness.open("judge", source=self.task.source, log=self.log)
        except SessionFailedError as error:
            raise JudgeFailedError(
                f"the reference ({self.task.title}) did not start: {error.reason}", resource=True
            ) from error
        loaded = self._ask(
            {
                "do": "load",
                "kind": self.task.kind,
                "source": str(self.task.source),
                "function": self.task.function,
                "get_inputs": entry.get_inputs_func,
                "get_init_inputs": entry.get_init_inputs_func,
                "seed": self.seed,
                "threads": self.threads,
                "memory_bytes": self.memory_bytes,
                "tolerance": {},
                "in_place": False,
            }
        )
        self.rules = {}
        init, state = self.path("init"), self.path("state")
        carried = self._ask({"do": "carry_out", "init_path": str(init), "state_path": str(state)})
        self.facts = {
            **loaded,
            "init_path": str(init) if carried["has_init"] else None,
            "state_path": str(state) if carried["weights"] else None,
        }

    def begin_kernel(self, entry: KernelEntry) -> None:
        """Use the tolerance and rules of ``entry`` from now on."""
        rules: Message = {"tolerance": tolerance_message(entry), "in_place": entry.in_place}
        if rules != self.rules:
            self._ask({"do": "settings", **rules})
            self.rules = rules
            for inputs in self.sets.values():
                inputs.answers.clear()

    def make_inputs(
        self,
        seed: int,
        *,
        structure: str | None = None,
        adopt: Path | None = None,
        shape: ShapePoint | None = None,
    ) -> InputSet:
        """Make inputs, or return those made before from the same seed at the same point of the shape grid.

        Args:
            structure: Values laid over them.
            adopt: Inputs that were made elsewhere.
            shape: None takes the inputs that the file makes without being asked for a shape.
        """
        key = f"{seed}_{structure or 'random'}" + (f"_{shape.id}" if shape is not None else "")
        if key in self.sets and adopt is None:
            return self.sets[key]
        path = self.path("inputs")
        request: Message = {"do": "inputs", "key": key, "seed": seed, "path": str(path), "structure": structure}
        if shape is not None:
            request["shape"] = shape.to_message()
        if adopt is not None:
            request["adopt"] = str(adopt)
        size = int(self._ask(request)["bytes"])
        self.sets[key] = InputSet(key, path, size)
        return self.sets[key]

    def _once(self, what: str, inputs: InputSet) -> Message:
        """Ask a question about inputs whose answer does not change while their rules hold."""
        if what not in inputs.answers:
            inputs.answers[what] = self._ask({"do": what, "key": inputs.key})
        return inputs.answers[what]

    def discriminates(self, inputs: InputSet) -> Message:
        """See the harness: which impostors the bound would let pass."""
        return self._once("discriminates", inputs)

    def varies(self, inputs: InputSet) -> Message:
        """See the harness: which inputs the reference ignores."""
        return self._once("varies", inputs)

    def legal(self, inputs: InputSet) -> Message:
        """See the harness: whether the reference is finite for these inputs."""
        return self._once("legal", inputs)

    def extents(self, inputs: InputSet) -> Message:
        """See the harness: the different extents of the inputs, and whether they hold indices."""
        return self._once("extents", inputs)

    def time(self, inputs: InputSet) -> Message:
        """See the harness: how long the reference takes."""
        return self._ask({"do": "time", "key": inputs.key})

    def derive(self, base: InputSet, how: str, *, old: int = 0, new: int = 0) -> tuple[InputSet | None, str | None]:
        """Make inputs from ``base``; returns them, or None and why the reference does not take them."""
        key = f"{base.key}_{how}_{old}_{new}"
        path = self.path("inputs")
        request: Message = {"do": "derive", "key": key, "base": base.key, "how": how, "old": old, "new": new}
        answer = self._ask({**request, "path": str(path)})
        if not answer["legal"]:
            return None, str(answer["reason"])
        made = self.sets[key] = InputSet(key, path, int(answer["bytes"]))
        made.answers["elements"] = {"elements": answer["elements"]}
        return made, None

    def accepts(self, base: InputSet, how: str, *, old: int, new: int) -> bool:
        """Say whether the reference takes inputs derived from ``base``; they are not kept."""
        made, _why = self.derive(base, how, old=old, new=new)
        if made is not None:
            self.drop(made)
        return made is not None

    def check(self, inputs: InputSet, outputs: Path, *, any_strides: bool = False) -> Message:
        """Compare a candidate's outputs with what is true for ``inputs``; the file is removed."""
        request: Message = {"do": "check", "key": inputs.key, "outputs": str(outputs), "any_strides": any_strides}
        try:
            return self._ask(request)
        finally:
            outputs.unlink(missing_ok=True)

    def drop(self, *sets: InputSet) -> None:
        """Forget inputs.

        That the process is gone is said by the next question that matters: this one is asked while other errors, or an
        interruption, are on their way and must arrive.
        """
        with contextlib.suppress(JudgeFailedError):
            self._ask({"do": "drop", "keys": [inputs.key for inputs in sets]})
        for inputs in sets:
            inputs.path.unlink(missing_ok=True)
            self.sets.pop(inputs.key, None)

    def keep_if_small(self, inputs: InputSet) -> None:
        """Forget inputs that would take much memory if they were kept for the next kernel."""
        if inputs.size_bytes > LARGEST_KEPT:
            self.drop(inputs)

    def forget(self) -> None:
        """Remove the files of all inputs."""
        for inputs in self.sets.values():
            inputs.path.unlink(missing_ok=True)
        self.sets.clear()

    def close(self) -> None:
        """End the process."""
        self.forget()
        if self.session is not None:
            self.session.close()
            self.session = None
