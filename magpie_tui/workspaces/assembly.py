"""The instructions of a kernel beside those of its baseline: what kinds there are of each, and which lines differ."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.paths import real_path
from magpie_tui.workspaces.damage import Damaged, read_bounded
from magpie_tui.workspaces.values import as_list, as_mapping, as_text

LARGEST_LISTING_BYTES = 8 << 20
MOST_COMPARED = 6_000
"""Instructions of one listing that are compared line by line."""
_CONTEXT_LINES = 2

_SASS = re.compile(r"^\s*(?:/\*[0-9a-f]{4,}\*/)?\s*(?P<text>(?:@!?U?P\w+\s+)?[A-Z][A-Z0-9_.]+.*?)\s*;")
_OBJDUMP = re.compile(r"^(?:\s*[0-9a-f]+:\s+|\s+)(?P<text>[a-z{(]\S*.*)$")
_PLAIN = re.compile(r"^\s+(?P<text>(?:@!?%p\w+ )?[a-z][\w.]*\b.*?)\s*;?\s*$")
_TARGET = re.compile(r"\b(?:0x)?[0-9a-f]+ <[^>]+>|<[^>]*\+0x[0-9a-f]+>|\$?[\w.]*L?BB[\w.]*")
_COMMENT = re.compile(r"\s*(?://|#|;).*$")

_CLASSES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "sass": (
        ("matrix", r"(HG|I|D|B|Q|H|U?T?C?G?)MMA|UTC.*MMA"),
        ("global memory", r"LDG|STG|LD|ST|ATOMG?|RED|LDGSTS|UTMA\w*|UBLKCP|CCTL"),
        ("shared memory", r"LDS\w*|STS\w*|ATOMS|STSM"),
        ("local memory", r"LDL|STL"),
        ("special function", r"MUFU"),
        ("conversion", r"[FI]2[FI]P?|F2FP|I2FP?|F2IP?"),
        ("float", r"(F|H|D)(ADD|MUL|FMA|MNMX|SETP|SEL|CHK)\d*\w*|HFMA2|HADD2|HMUL2"),
        ("barrier", r"BAR|MEMBAR|SYNCS|WARPSYNC|DEPBAR|FENCE|ERRBAR|B2R|R2B"),
        ("branch", r"BRA|BRX|EXIT|CALL|RET|BSSY|BSYNC|BREAK|JMP|NANOSLEEP"),
        ("shuffle", r"SHFL|VOTE\w*|MATCH|REDUX"),
        ("integer and moves", r"\w+"),
    ),
    "gcn": (
        ("matrix", r"v_(mfma|smfmac|wmma)_\w+"),
        ("global memory", r"(global|buffer|flat)_\w+"),
        ("shared memory", r"ds_\w+"),
        ("local memory", r"scratch_\w+"),
        ("special function", r"v_(rcp|rsq|sqrt|exp|log|sin|cos)_\w+"),
        ("conversion", r"v_cvt_\w+"),
        ("float", r"v_\w*_(f16|f32|f64|bf16)\w*"),
        ("barrier", r"s_(barrier|waitcnt|wait)\w*"),
        ("branch", r"s_(c?branch|endpgm|setpc|swappc)\w*"),
        ("scalar", r"s_\w+"),
        ("integer and moves", r"\w+"),
    ),
    "ptx": (
        ("matrix", r"(wmma|mma|wgmma|tcgen05)\..*"),
        ("global memory", r"(ld|st|red|atom|prefetch)\.(global|relaxed|acquire|release).*|cp\.async.*"),
        ("shared memory", r"(ld|st|atom)\.shared.*|ldmatrix.*|stmatrix.*"),
        ("local memory", r"(ld|st)\.local.*"),
        ("special function", r"(ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh)\..*"),
        ("conversion", r"cvt.*"),
        ("float", r"(add|sub|mul|fma|mad|max|min|neg|abs|div|setp)\.\S*(f16|f32|f64|bf16)\S*"),
        ("barrier", r"(bar|barrier|fence|membar|mbarrier)\..*"),
        ("branch", r"(bra|ret|call|exit)\b.*"),
        ("shuffle", r"(shfl|vote|match|redux)\..*"),
        ("integer and moves", r"\S+"),
    ),
    "x86-64": (
        ("packed float", r"v?\w+p[sdh]"),
        (
            "scalar float",
            r"v?(mov|add|sub|mul|div|sqrt|max|min|u?comi|cvt\w*|fn?m(add|sub)\d+|round|rcp|rsqrt)s[sdh]\w*",
        ),
        (
            "packed integer and moves",
            r"vp\w+|vmov\w+|p(add|sub|mul|madd|hadd|and|or|xor|cmp|shuf|unpck|pack|s[lr]l|sra|min|max|ins|ext)\w*|mov(dq|q2)\w*",
        ),
        ("branch", r"j\w+|call\w*|ret\w*|loop\w*"),
        ("integer and moves", r"\w+"),
    ),
}
_CLASSES = {**_CLASSES, "amdgcn": _CLASSES["gcn"]}
_OTHER = (("instructions", r"\S+"),)


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing that a report names.

    Attributes:
        kind: ``sass``, ``gcn``, ``x86-64`` and so on.
        name: Of the function.
        instructions: Without addresses, encodings and names of places in the code.
        reason: Why there are none.
    """

    kind: str
    name: str
    instructions: tuple[str, ...] = ()
    reason: str | None = None

    def counts(self) -> Counter[str]:
        """Return the number of instructions of each class."""
        return Counter(class_of(self.kind, text) for text in self.instructions)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two listings beside each other.

    Attributes:
        lines: Unified text without heads of files.
        added, removed: Numbers of instructions.
        note: What was left out.
    """

    lines: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    note: str | None = None


def classes_of(kind: str) -> tuple[str, ...]:
    """Return the names of the classes of a kind of code, in the order in which they are tried and shown."""
    return tuple(name for name, _pattern in _CLASSES.get(kind, _OTHER))


def class_of(kind: str, instruction: str) -> str:
    """Return the class of an instruction."""
    words = instruction.split()
    opcode = next((word for word in words if not word.startswith("@")), "")
    whole = opcode if kind == "ptx" else opcode.split(".")[0]
    for name, pattern in _CLASSES.get(kind, _OTHER):
        if re.fullmatch(pattern, whole):
            return name
    return _CLASSES.get(kind, _OTHER)[-1][0]


def instructions_of(kind: str, text: str) -> tuple[str, ...]:
    """Return the instructions in what a disassembler or a compiler printed, so that equal code has equal lines."""
    pattern = _SASS if kind == "sass" else _PLAIN if kind in ("ptx", "amdgcn", "ttgir") else _OBJDUMP
    found = []
    for line in text.splitlines():
        match = pattern.match(line)
        if match is None:
            continue
        bare = match["text"] if kind == "ttgir" else _COMMENT.sub("", match["text"])
        bare = re.sub(r"\s+", " ", _TARGET.sub("<place>", bare)).strip()
        if bare and not bare.startswith("."):
            found.append(bare)
    return tuple(found)


def listings_of(workspace: Path, state_more: Mapping[str, object]) -> tuple[Listing, ...]:
    """Read the listings that a kernel's state names; files outside the workspace are not read."""
    found = []
    for item in as_list(state_more.get("assembly")):
        entry = as_mapping(item)
        kind, name, file = (as_text(entry.get(key)) or "" for key in ("kind", "name", "file"))
        path = real_path(workspace / file)
        if not path.is_relative_to(real_path(workspace)):
            found.append(Listing(kind, name, reason="it is outside the workspace"))
            continue
        data = read_bounded(path, LARGEST_LISTING_BYTES)
        if isinstance(data, Damaged):
            found.append(Listing(kind, name, reason="it is gone" if data.gone else data.reason))
        else:
            found.append(Listing(kind, name, instructions_of(kind, data.decode(errors="replace"))))
    return tuple(found)


def counterpart(listing: Listing, others: Sequence[Listing]) -> Listing | None:
    """Return the listing of the same kind to compare with: that of the same function, else the first."""
    same = [other for other in others if other.kind == listing.kind and other.reason is None]
    return next((other for other in same if other.name == listing.name), same[0] if same else None)


def compare(old: Listing, new: Listing) -> Difference:
    """Compare two listings line by line."""
    before, after = old.instructions[:MOST_COMPARED], new.instructions[:MOST_COMPARED]
    lines = [
        line
        for line in difflib.unified_diff(before, after, lineterm="", n=_CONTEXT_LINES)
        if not line.startswith(("---", "+++"))
    ]
    cut = max(len(old.instructions), len(new.instructions)) > MOST_COMPARED
    return Difference(
        tuple(lines),
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
        f"only the first {MOST_COMPARED:,} instructions are compared" if cut else None,
    )
