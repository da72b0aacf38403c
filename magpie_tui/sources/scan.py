"""One source file → the kernels that it defines, and what a test mentions: a text search, fast and forgiving."""

from __future__ import annotations

import re
from dataclasses import dataclass

CPP_SUFFIXES = frozenset({".cu", ".cuh", ".hip", ".cpp", ".cc", ".cxx", ".hpp", ".h", ".hxx", ".inl"})
SUFFIXES = CPP_SUFFIXES | {".py"}
MAX_BYTES = 4_000_000
"""Larger files are generated tables; they are not read."""

_ATTRIBUTES = re.compile(rb"__(?:launch_bounds|attribute|align)__\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_FUNCTION = re.compile(rb"\b([A-Za-z_]\w*)\s*\(")
_NAMESPACE = re.compile(
    rb"^[ \t]*(?:inline\s+)?namespace\s+([\w:]+)\s*\{|^\}\s*(?://|/\*)\s*(?:end )?namespace\b[ \t]*([\w:]*)", re.M
)
_FUNCTOR = re.compile(
    rb"\b(?:struct|void|class)\s+(\w+(?:Functor|_functor|_kernel_cuda|_kernel_impl|KernelImpl|Ops))\b(?![^;{(]*;)"
)
_JIT = re.compile(
    rb"^[ \t]*@(?:triton\.|gluon\.|tl\.)?jit\b(?:\((?:[^()]|\([^()]*\))*\))?[ \t]*(?:#[^\n]*)?\n"
    rb"(?:[ \t]*(?:@[^\n]*|#[^\n]*|)\n){0,6}?[ \t]*def[ \t]+(\w+)[ \t]*\(",
    re.M,
)
_DEF = re.compile(rb"^(?:[ \t]{0,4})def[ \t]+(\w+)[ \t]*\(", re.M)
_WORD = re.compile(rb"\b[A-Za-z_]\w{4,}\b")
_TEST_DIRECTORIES = frozenset({"test", "tests", "op_tests", "testing", "unit_tests"})
_SIGNATURE_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Found:
    """A definition in one file; ``kind`` is ``global``, ``functor``, ``triton`` or ``function``."""

    symbol: str
    kind: str
    line: int
    scope: str = ""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one file holds; ``words`` only for tests."""

    found: tuple[Found, ...]
    words: tuple[str, ...] = ()


def is_test(path: str) -> bool:
    """Tell whether a path, relative to its repository, is a Python test."""
    *directories, name = path.split("/")
    if not name.endswith(".py"):
        return False
    return name.startswith("test_") or name.endswith("_test.py") or not _TEST_DIRECTORIES.isdisjoint(directories)


def scan(path: str, data: bytes) -> FileFacts:
    """Find definitions in the bytes of a file; ``path`` is relative to its repository."""
    if path.endswith(".py"):
        found = _triton(data)
        if is_test(path):
            found += tuple(
                Found(match[1].decode(), "function", _line(data, match.start(1))) for match in _DEF.finditer(data)
            )
            words = {match[0] for match in _WORD.finditer(data)}
            return FileFacts(found, tuple(sorted(word.decode() for word in words)))
        return FileFacts(found)
    return FileFacts(_globals(data) + _functors(data))


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _triton(data: bytes) -> tuple[Found, ...]:
    if b"triton" not in data or b"jit" not in data:
        return ()
    return tuple(Found(match[1].decode(), "triton", _line(data, match.start(1))) for match in _JIT.finditer(data))


def _globals(data: bytes) -> tuple[Found, ...]:
    found: list[Found] = []
    position = data.find(b"__global__")
    namespaces = _namespaces(data) if position >= 0 else []
    while position >= 0:
        end = position + len(b"__global__")
        line_start = data.rfind(b"\n", 0, position) + 1
        before = data[line_start:position]
        if b"//" not in before and not before.lstrip().startswith((b"*", b"#")):
            signature = _ATTRIBUTES.sub(b" ", data[end : end + _SIGNATURE_BYTES])
            name = _FUNCTION.search(signature)
            if name is not None and not re.search(rb"[;{}]", signature[: name.start()]):
                symbol = name[1].decode()
                found.append(Found(symbol, "global", _line(data, position), _scope(namespaces, position)))
        position = data.find(b"__global__", end)
    return tuple(found)


def _functors(data: bytes) -> tuple[Found, ...]:
    if b"at::native" not in data and b"namespace native" not in data:
        return ()
    return tuple(
        Found(match[1].decode(), "functor", _line(data, match.start(1)), "at::native")
        for match in _FUNCTOR.finditer(data)
    )


def _namespaces(data: bytes) -> list[tuple[int, str | None]]:
    """Positions at which a namespace opens (its name) or is said to close (None)."""
    return [(match.start(), match[1].decode() if match[1] else None) for match in _NAMESPACE.finditer(data)]


def _scope(namespaces: list[tuple[int, str | None]], position: int) -> str:
    stack: list[str] = []
    for at, name in namespaces:
        if at > position:
            break
        if name is not None:
            stack.append(name)
        elif stack:
            stack.pop()
    return "::".join(stack)
