"""Disassembles what was built, once, at the end of a run: whoever looks later may not have the tools or the binary."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.files import write_text
from magpie_tui.basics.text import printable
from magpie_tui.kernels.binary_facts import elf_machine, output_of, triton_metadata
from magpie_tui.kernels.model import Fact

MOST_BYTES = 4 << 20
"""Of one listing that is kept."""
_INTERMEDIATE = {".ttgir": "ttgir", ".ptx": "ptx", ".amdgcn": "amdgcn"}
"""Texts that Triton leaves beside a binary, and what they are called."""
_SYMBOL = re.compile(r"^(?:[0-9a-fA-F]+ )?<?(?P<name>[^<>\s]+)>:\s*$")


@dataclass(frozen=True, slots=True)
class Listing:
    """The instructions of one kernel.

    Attributes:
        kind: ``sass``, ``gcn``, ``x86-64``, ``aarch64`` for machine code; ``ptx``, ``amdgcn``, ``ttgir`` above it.
        name: Of the function.
        path: The text, in the workspace.
    """

    kind: str
    name: str
    path: Path

    def to_json(self, workspace: Path) -> dict[str, Fact]:
        """Return the listing as reports hold it, its path relative to the workspace."""
        return {"kind": self.kind, "name": self.name, "file": self.path.relative_to(workspace).as_posix()}


def disassembled(binary: Path) -> tuple[str, str] | None:
    """Return kind and text of all machine code in a file; None without its tool."""
    machine = elf_machine(binary)
    tried: tuple[tuple[str, str], ...]
    if machine == 224:
        tried = (("llvm-objdump", "gcn"), ("/opt/rocm/llvm/bin/llvm-objdump", "gcn"))
    elif machine == 190:
        tried = (("cuobjdump", "sass"),)
    else:
        name = {62: "x86-64", 183: "aarch64"}.get(machine or 0, "machine code")
        tried = (("cuobjdump", "sass"), ("objdump", name), ("llvm-objdump", name))
    for tool, kind in tried:
        arguments = ["--dump-sass"] if kind == "sass" else ["-d", "--no-show-raw-insn"]
        text = output_of([tool, *arguments, str(binary)])
        if text is not None and (kind != "sass" or "Function :" in text):
            return kind, text
    return None


def of_function(text: str, function: str) -> str:
    """Return the parts of objdump's listing that belong to a function and to what the compiler split off from it."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines():
        match = _SYMBOL.match(line)
        if match is not None:
            name = match["name"]
            inside = name == function or name.startswith((f"{function}.", f"{function}("))
        if inside:
            kept.append(line)
    return "\n".join(kept)


def _saved(directory: Path, kind: str, name: str, text: str) -> Listing:
    directory.mkdir(parents=True, exist_ok=True)
    clean = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:80]
    path = directory / f"{clean}.{kind}.txt"
    write_text(path, text[:MOST_BYTES], durable=False)
    return Listing(kind, name, path)


def save_binary(binary: Path, function: str | None, directory: Path) -> Iterator[Listing]:
    """Save the machine code of a binary; of a library for the CPU only the function's own."""
    found = disassembled(binary)
    if found is None:
        return
    kind, text = found
    if kind not in ("sass", "gcn") and function is not None:
        text = of_function(text, function) or text
    yield _saved(directory, kind, printable(function or binary.stem), text)


def save_triton(cache: Path, names: frozenset[str], directory: Path) -> Iterator[Listing]:
    """Save what Triton compiled: its own texts and the machine code of the binaries beside them."""
    seen: set[tuple[str, str]] = set()
    # The newest of several compilations of one function comes first: it is what ran last.
    metadata = sorted(cache.rglob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in metadata:
        try:
            facts = None if path.name.startswith("__grp__") else triton_metadata(path.read_text(errors="replace"))
        except OSError:
            continue
        if facts is None or facts.name not in names:
            continue
        for suffix, kind in _INTERMEDIATE.items():
            text = path.with_suffix(suffix)
            if text.is_file() and (kind, facts.name) not in seen:
                seen.add((kind, facts.name))
                yield _saved(directory, kind, facts.name, text.read_text(errors="replace"))
        for suffix in (".cubin", ".hsaco"):
            binary = path.with_suffix(suffix)
            if binary.is_file() and (suffix, facts.name) not in seen:
                seen.add((suffix, facts.name))
                yield from save_binary(binary, facts.name, directory)
