"""Kernel names without what a compiler added: mangling, clone marks, template arguments, parameters."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

_CLONE = re.compile(r"\s*\[clone [^\]]*\]")
_SUFFIX = re.compile(r"(?:\.kd|\.k\.d|\.llvm\.\d+|\.intern\.\w+|\.cold)+\Z")
_MANGLED = re.compile(r"\A_?_Z")
_OPENING = {">": "<", ")": "(", "}": "{"}
_LENGTH = re.compile(r"\d+")
_RETURN_TYPE = re.compile(r"\A(?:static |inline |__global__ )*(?:void|int|bool|float|std::enable_if\b.*::type) ")


def strip_suffixes(name: str) -> str:
    """Return the name without clone marks and the suffixes of code objects (``.kd``)."""
    return _SUFFIX.sub("", _CLONE.sub("", name.strip()))


@functools.lru_cache(maxsize=1 << 14)
def demangled(name: str) -> str:
    """Return the C++ form of a mangled name; what is not mangled comes back without suffixes.

    Names that a profiler has cut off cannot be demangled; of these the nested name is read as far as it goes.
    """
    text = strip_suffixes(name)
    if not _MANGLED.match(text):
        return text
    import pydemumble

    whole: str = pydemumble.demangle(text)
    return whole or _nested_name(text)


def _nested_name(text: str) -> str:
    """Read ``_ZN5aiter10rms_kernelI…`` as ``aiter::rms_kernel``; the text itself where it is no such name."""
    position = text.index("_Z") + 2
    nested = text[position : position + 1] == "N"
    position += nested
    parts: list[str] = []
    while True:
        length = _LENGTH.match(text, position)
        if length is None:
            break
        end = length.end() + int(length[0])
        parts.append(text[length.end() : end])
        position = end
        if not nested:
            break
    return "::".join(part for part in parts if part and not part.startswith("_GLOBAL__N")) or text


def without_brackets(text: str) -> str:
    """Cut everything between ``<>``, ``()`` and ``{}``."""
    return "".join(character for character, depth in _depths(text) if depth == 0).strip() or text


def _depths(text: str) -> Iterator[tuple[str, int]]:
    """Yield each character with the number of brackets around it; an opening one counts itself, a closing one too.

    ``>`` closes only what ``<`` opened: comparisons and arrows inside other brackets are no brackets.
    """
    open_brackets: list[str] = []
    previous = ""
    for character in text:
        if character in "<({":
            open_brackets.append(character)
            yield character, len(open_brackets)
        elif character in ">)}" and open_brackets and open_brackets[-1] == _OPENING[character] and previous != "-":
            yield character, len(open_brackets)
            open_brackets.pop()
        else:
            yield character, len(open_brackets)
        previous = character


_LAUNCH_WRAPPERS = re.compile(r"\A(?:cutlass::(?:Kernel2?|device_kernel)|ck_tile::kentry|ck::kernel_launch)\Z")
"""Functions that say nothing themselves: they run the kernel that is their template argument."""


@functools.lru_cache(maxsize=1 << 14)
def function_of(plain: str) -> str:
    """Return the qualified function of a demangled name: ``void vllm::rms_norm<float>(float*)`` → ``vllm::rms_norm``.

    Where it is a library's launch wrapper, the kernel inside it is returned.
    """
    if plain.startswith(("Memcpy ", "Memset ")):
        return plain.partition(" (")[0]
    text = plain.replace("(anonymous namespace)::", "").replace("{anonymous}::", "")
    if not any(sign in text for sign in "<( "):
        return text
    bare = without_brackets(text)
    function = bare.split(" ")[-1].strip(":") if " " in bare else bare
    if _LAUNCH_WRAPPERS.match(function):
        for argument in template_arguments(text):
            inner = without_brackets(argument)
            if not inner.isdigit():
                return inner
    return function


def template_arguments(plain: str) -> tuple[str, ...]:
    """Return the outermost template arguments of the function: ``f<a, b<c> >(int)`` → ``("a", "b<c>")``."""
    begin = plain.find("<", len(_return_type(plain)))
    if begin < 0:
        return ()
    found: list[str] = []
    current = ""
    for character, depth in _depths(plain[begin:]):
        if depth == 0:
            break
        if depth == 1 and character in "<>,":
            found.append(current.strip())
            current = ""
            if character == ">":
                break
        else:
            current += character
    return tuple(argument for argument in found if argument)


def _return_type(plain: str) -> str:
    match = _RETURN_TYPE.match(plain)
    return match[0] if match else ""
