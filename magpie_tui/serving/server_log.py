"""What a server's log says about the worth of a result, read while the server runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import printable
from magpie_tui.processes.tail import CHUNK_BYTES, FileTail, read_tail
from magpie_tui.serving.model import Phase, ServerFlag

FLAG_KINDS = (
    "other_dtype",
    "other_backend",
    "default_moe_config",
    "default_gemm_config",
    "kernel_built",
    "preemption",
    "graphs_off",
    "small_kv_cache",
    "error",
)
_LONGEST_LINE_BYTES = 4_000
_QUOTED = 300
_MOST_OF_A_KIND = 20
"""Flags of one kind that are kept; a server that preempts all the time would bury the others."""

_EXCEPTION = re.compile(r"(?:^|[\s\]])((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .+)?)$")
_FATAL = re.compile(
    r"(.*(?:out of memory|[Aa]ddress already in use|No space left on device|[Gg]ated repo|HIP error|CUDA error).*)$"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the config asked for, as far as a log can contradict it.

    Attributes:
        dtype: ``bfloat16`` or the like; None: any.
        kv_cache_dtype: Likewise.
        attention_backend: Likewise.
        eager: The user switched graphs off, so that a line about it is no surprise.
        kv_tokens: Tokens that the load keeps in the KV cache at once; None: not known.
    """

    dtype: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    eager: bool = False
    kv_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A kind of line and what it means; ``meaning`` returns None where the line is as it was asked for."""

    kind: str
    expression: re.Pattern[str]
    meaning: Callable[[re.Match[str], Expectation, Phase], str | None]


def _always(text: str) -> Callable[[re.Match[str], Expectation, Phase], str | None]:
    return lambda _match, _expected, _phase: text


def _dtype(match: re.Match[str], expected: Expectation, _phase: Phase) -> str | None:
    took = match[1].removeprefix("torch.")
    if expected.dtype in (None, "auto") or took == expected.dtype:
        return None
    return f"{expected.dtype} was asked for, the server took {took}"


def _kv_dtype(match: re.Match[str], expected: Expectation, _phase: Phase) -> str | None:
    asked, took = expected.kv_cache_dtype, match[1].removeprefix("torch.").strip("'\"")
    if asked in (None, "auto") or took == asked or took.startswith(f"{asked}_"):
        return None
    return f"a KV cache of {asked} was asked for, the server took {took}"


def _backend(match: re.Match[str], expected: Expectation, _phase: Phase) -> str | None:
    asked, took = expected.attention_backend, match[1]
    plain = [re.sub(r"[^a-z0-9]", "", text.lower()) for text in (asked or "", took)]
    if not plain[0] or plain[0] in plain[1] or plain[1] in plain[0]:
        return None
    return f"the attention backend {asked} was asked for, the server took {took}"


def _built(_match: re.Match[str], _expected: Expectation, phase: Phase) -> str | None:
    if phase in (Phase.measure, Phase.profile):
        return "a kernel was built during the measurement"
    return "a kernel was built during the warm-up" if phase is Phase.warm_up else None


def _graphs(_match: re.Match[str], expected: Expectation, _phase: Phase) -> str | None:
    return None if expected.eager else "graphs are off although nobody switched them off"


def _kv_size(match: re.Match[str], expected: Expectation, _phase: Phase) -> str | None:
    tokens = int(re.sub(r"[,_]", "", match[1]))
    if expected.kv_tokens is None or tokens >= expected.kv_tokens:
        return None
    return f"the KV cache holds {tokens:,} tokens, the load needs {expected.kv_tokens:,}"


def _pattern(
    kind: str, expression: str, meaning: Callable[[re.Match[str], Expectation, Phase], str | None]
) -> _Pattern:
    return _Pattern(kind, re.compile(expression), meaning)


_PATTERNS: tuple[_Pattern, ...] = (
    _pattern("other_dtype", r"(?:\bengine\b.*[ ,(]dtype=|Casting torch\.\w+ to )(torch\.\w+)", _dtype),
    _pattern("other_dtype", r"\bkv_cache_dtype=([\w.'\"]+)", _kv_dtype),
    _pattern("other_backend", r"Using (?:AttentionBackendEnum\.)?([\w ]+?)(?: attention)? backend", _backend),
    _pattern("other_backend", r"attention_backend='(\w+)'", _backend),
    _pattern("other_backend", r"[Ff]all(?:ing)? ?back to ", _always("the server fell back to something else")),
    _pattern("default_moe_config", r"Using default MoE (?:kernel )?config", _always("no tuned MoE configuration here")),
    _pattern(
        "default_gemm_config",
        r"Using default W8A8 Block|not found tuned config|shape .* not tuned|is not tuned",
        _always("no tuned GEMM configuration for these shapes"),
    ),
    _pattern(
        "kernel_built",
        r"JIT compilation during inference|\bstart build \[|Building extension module|torch\.compile takes"
        r"|Compiling a graph|finish build \[|ninja: |Autotuning kernel|Compiling kernel",
        _built,
    ),
    _pattern(
        "preemption",
        r"(?<!num_)[Pp]reempted(?! ?[:=]? ?0\b)|is preempted|Retract requests|[Rr]etracted_reqs?: [1-9]",
        _always("requests were preempted: the KV cache is too small for the load"),
    ),
    _pattern(
        "graphs_off",
        r"[Cc]uda ?graphs? (?:is|are) disabled|[Cc]udagraph (?:is )?disabled|[Dd]isabl(?:e|ing) (?:CUDA|cuda) ?graph",
        _graphs,
    ),
    _pattern("small_kv_cache", r"KV cache size: ([\d,]+) tokens", _kv_size),
    _pattern("small_kv_cache", r"\bmax_total_num_tokens=(\d+)", _kv_size),
    _pattern("error", r"(?:^|[\s(])(?:ERROR|CRITICAL|FATAL)[\s:]", _always("the server reports an error")),
)
_ANY = re.compile(b"|".join(f"(?:{item.expression.pattern})".encode() for item in _PATTERNS))
"""One search a block of lines decides whether its lines are looked at at all."""


class ServerLog:
    """Follows one growing log.

    Args:
        path: The log, which need not exist yet.
        expected: What the config asked for.
    """

    def __init__(self, path: Path, expected: Expectation) -> None:
        self._path = path
        self._tail = FileTail(path)
        self._expected = expected
        self._rest = b""
        self._lines = 0
        self._counts: dict[str, int] = {}
        self._seen: set[tuple[str, str]] = set()
        self.flags: list[ServerFlag] = []

    def read(self, phase: Phase, *, most_bytes: int = 16 * CHUNK_BYTES) -> tuple[ServerFlag, ...]:
        """Take in what is new, at most ``most_bytes``, and return the flags found in it.

        Args:
            phase: What goes on now.
        """
        before, taken = len(self.flags), 0
        while taken < most_bytes and (data := self._tail.read_new()):
            taken += len(data)
            data = self._rest + data
            end = data.rfind(b"\n") + 1
            self._look(data[:end], phase)
            self._rest = data[end:][-_LONGEST_LINE_BYTES:]
        return tuple(self.flags[before:])

    @property
    def counts(self) -> dict[str, int]:
        """Lines of each kind, those not kept included."""
        return dict(self._counts)

    def _look(self, lines: bytes, phase: Phase) -> None:
        if _ANY.search(lines) is None:
            self._lines += lines.count(b"\n")
            return
        for raw in lines.split(b"\n")[:-1]:
            self._lines += 1
            if _ANY.search(raw[:_LONGEST_LINE_BYTES]):
                self._judge(raw[:_LONGEST_LINE_BYTES].decode("utf-8", "replace").strip(), phase)

    def _judge(self, line: str, phase: Phase) -> None:
        for pattern in _PATTERNS:
            match = pattern.expression.search(line)
            text = None if match is None else pattern.meaning(match, self._expected, phase)
            if text is None:
                continue
            self._counts[pattern.kind] = self._counts.get(pattern.kind, 0) + 1
            key = (pattern.kind, text)
            repeats = pattern.kind not in ("kernel_built", "preemption")
            if self._counts[pattern.kind] <= _MOST_OF_A_KIND and not (repeats and key in self._seen):
                self._seen.add(key)
                self.flags.append(ServerFlag(pattern.kind, text, self._lines, printable(line[:_QUOTED]), phase))
            return


def first_cause(path: Path, *, most_bytes: int = 1 << 20) -> str | None:
    """Return the line of a log that names why a server ended: the first exception or fatal error near its end.

    Follow-up tracebacks of the processes around the one that failed come later and say less.
    """
    for line in read_tail(path, most_bytes).split("\n"):
        text = line[:_LONGEST_LINE_BYTES].strip()
        match = _EXCEPTION.search(text) or _FATAL.search(text)
        if match is not None:
            return printable(match[1].strip()[:_QUOTED])
    return None
