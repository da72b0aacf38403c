"""Labels that engines write around their steps: one parser a dialect, and what each says about the batch."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from magpie_tui.traces.stage_names import Dialect as Dialect
from magpie_tui.traces.stage_names import Stage

FIRST_TIER = (Dialect.vllm_detailed, Dialect.atom_detailed, Dialect.sglang_detailed)
SECOND_TIER = (Dialect.vllm_native, Dialect.sglang_native, Dialect.atom_native, Dialect.diffusion)
TIERS = (FIRST_TIER, SECOND_TIER, (Dialect.vllm_old,), (Dialect.profiler_step,))
"""Tried in this order; upstream knows the first two."""


@dataclass(frozen=True, slots=True)
class UpstreamStep:
    """A step as upstream counts it (an SGLang ``MIXED`` step counts as prefill, an unknown one as one decode)."""

    batch_size: int = 1
    context_requests: int = 0
    context_sum: int = 0
    generation_requests: int = 1
    generation_sum: int = 0

    @property
    def num_requests(self) -> int:
        """Requests in the batch."""
        return self.context_requests + self.generation_requests

    @property
    def has_context(self) -> bool:
        """True for prefill and mixed steps."""
        return self.context_requests > 0

    @property
    def kind(self) -> Stage:
        """``prefilldecode``, ``prefill``, ``decode`` or ``idle``."""
        if self.context_requests and self.generation_requests:
            return Stage.prefilldecode
        if self.context_requests:
            return Stage.prefill
        return Stage.decode if self.generation_requests else Stage.idle


@dataclass(frozen=True, slots=True)
class StepLabel:
    """What a label says.

    Attributes:
        text: The label as in the file.
        batch_tokens: Tokens that the step computes; None where the label does not say.
        context_requests, generation_requests, context_tokens, generation_tokens: None where it does not say.
        padded_to: Size that the batch was padded to.
        sums: ``c_sq``, ``c_sk``, ``c_sqsq``, ``c_sqsk`` and the same with ``g_`` (query and KV tokens, their squares
            and products, summed over the requests) where the label is detailed.
    """

    text: str
    dialect: Dialect
    stage: Stage
    batch_tokens: int | None = None
    context_requests: int | None = None
    generation_requests: int | None = None
    context_tokens: int | None = None
    generation_tokens: int | None = None
    padded_to: int | None = None
    sums: Mapping[str, int] = field(default_factory=dict)
    upstream: UpstreamStep = field(default_factory=UpstreamStep)

    @property
    def requests(self) -> int | None:
        """Requests in the batch; None where the label does not say."""
        if self.dialect is Dialect.sglang_native:
            return self.upstream.num_requests
        if self.context_requests is None or self.generation_requests is None:
            return None
        return self.context_requests + self.generation_requests


_SUMS = r"\(sq(\d+)sk(\d+)sqsq(\d+)sqsk(\d+)\)"
_VLLM_DETAILED = re.compile(rf"execute_(\d+)_context_(\d+){_SUMS}_generation_(\d+){_SUMS}")
_VLLM_NATIVE = re.compile(r"execute_context_(\d+)\((\d+)\)_generation_(\d+)\((\d+)\)")
_VLLM_OLD = re.compile(r"execute_context_(\d+)\((\d+)_(\d+)\)_generation_(\d+)\((\d+)(?:_(\d+))?\)")
_SGLANG = re.compile(r"step\[(EXTEND|DECODE|MIXED)\b([^\]]*)\]?")
_ATOM = re.compile(r"(prefill|decode)\[(bs=\d+[^\n]*)")
_DIFFUSION = re.compile(r"execute_diffusion_(\d+)_(\d+)x(\d+)")
_PROFILER_STEP = re.compile(r"ProfilerStep#(\d+)\Z")
_FIELD = re.compile(r"\b([A-Za-z_]+)=(\d+)(?:/(\d+))?")
_SUM_NAMES = ("sq", "sk", "sqsq", "sqsk")


@functools.lru_cache(maxsize=1 << 16)
def parse_label(text: str) -> StepLabel | None:
    """Read the label of a step; None for any other annotation."""
    for parser in (_vllm, _sglang, _atom, _diffusion, _profiler_step):
        label = parser(text)
        if label is not None:
            return label
    return None


def _stage(context: int, generation: int) -> Stage:
    return UpstreamStep(0, context, 0, generation, 0).kind


def _counted(
    text: str, dialect: Dialect, context: tuple[int, int], generation: tuple[int, int], sums: Mapping[str, int]
) -> StepLabel:
    """Build a label that gives requests and tokens of both parts."""
    total = context[1] + generation[1]
    return StepLabel(
        text,
        dialect,
        _stage(context[0], generation[0]),
        total,
        context[0],
        generation[0],
        context[1],
        generation[1],
        None,
        sums,
        UpstreamStep(total, context[0], context[1], generation[0], generation[1]),
    )


def _vllm(text: str) -> StepLabel | None:
    if not text.startswith("execute_"):
        return None
    match = _VLLM_DETAILED.match(text)
    if match:
        values = [int(value) for value in match.groups()]
        sums = {f"c_{name}": values[2 + index] for index, name in enumerate(_SUM_NAMES)}
        sums |= {f"g_{name}": values[7 + index] for index, name in enumerate(_SUM_NAMES)}
        return _counted(text, Dialect.vllm_detailed, (values[1], values[2]), (values[6], values[7]), sums)
    match = _VLLM_NATIVE.match(text)
    if match:
        values = [int(value) for value in match.groups()]
        return _counted(text, Dialect.vllm_native, (values[0], values[1]), (values[2], values[3]), {})
    match = _VLLM_OLD.match(text)
    if match:
        context, tokens, squares, generation, generated = (int(value) for value in match.groups()[:5])
        sums = {"c_sq": tokens, "c_sqsq": squares, "g_sq": generated}
        if match[6] is not None:
            sums["g_sqsq"] = int(match[6])
        return _counted(text, Dialect.vllm_old, (context, tokens), (generation, generated), sums)
    return None


def _fields(text: str) -> dict[str, tuple[int, int | None]]:
    """``name=value`` and ``name=value/padded`` of a label; the first of a name counts."""
    found: dict[str, tuple[int, int | None]] = {}
    for name, value, padded in _FIELD.findall(text):
        found.setdefault(name, (int(value), int(padded) if padded else None))
    return found


def _sglang(text: str) -> StepLabel | None:
    match = _SGLANG.match(text)
    if not match:
        return None
    word, fields = match[1], _fields(match[2])
    if "bs" not in fields:
        return None
    size, padded = fields["bs"]
    numbers = {name: value for name, (value, _padded) in fields.items()}
    sums = {name: value for name, value in numbers.items() if re.fullmatch(r"[cg]_(?:sq|sk|sqsq|sqsk)", name)}
    detailed = any(name.endswith("sqsq") for name in numbers)
    dialect = Dialect.sglang_detailed if detailed else Dialect.sglang_native
    context: int | None = size if word == "EXTEND" else 0
    generation: int | None = size if word == "DECODE" else 0
    if word == "MIXED":
        context, generation = numbers.get("c"), numbers.get("g")
    context_sum, generation_sum = sums.get("c_sq", 0), sums.get("g_sq", 0)
    tokens = context_sum + generation_sum or numbers.get("toks")
    if word == "DECODE" and tokens is None:
        tokens = size
    stage = {"EXTEND": Stage.prefill, "DECODE": Stage.decode, "MIXED": Stage.prefilldecode}[word]
    # Upstream takes a MIXED step without separate numbers for a prefill of all its requests.
    counted = (size, 0) if context is None or generation is None else (context, generation)
    return StepLabel(
        text,
        dialect,
        stage,
        tokens,
        context,
        generation,
        sums.get("c_sq", numbers.get("toks") if word == "EXTEND" else 0 if word == "DECODE" else None),
        sums.get("g_sq", size if word == "DECODE" else 0 if word == "EXTEND" else None),
        padded,
        sums,
        UpstreamStep(
            context_sum + generation_sum or numbers.get("toks", size),
            counted[0],
            context_sum or (numbers.get("toks", 0) if word == "EXTEND" else 0),
            counted[1],
            generation_sum or (size if word == "DECODE" else 0),
        ),
    )


def _atom(text: str) -> StepLabel | None:
    match = _ATOM.match(text)
    if not match:
        return None
    fields = _fields(match[2])
    size, padded = fields["bs"]
    tokens = fields["tok"][0] if "tok" in fields else None
    prefill = match[1] == "prefill"
    numbers = {name: fields[name][0] for name in _SUM_NAMES if name in fields}
    sums = {f"{'c' if prefill else 'g'}_{name}": value for name, value in numbers.items()}
    total = numbers.get("sq", tokens)
    return StepLabel(
        text,
        Dialect.atom_detailed if "sqsq" in numbers else Dialect.atom_native,
        Stage.prefill if prefill else Stage.decode,
        tokens,
        size if prefill else 0,
        0 if prefill else size,
        total if prefill else 0,
        0 if prefill else total,
        padded,
        sums,
        UpstreamStep(
            size if tokens is None else tokens,
            size if prefill else 0,
            (total or 0) if prefill else 0,
            0 if prefill else size,
            0 if prefill else (total or 0),
        ),
    )


def _diffusion(text: str) -> StepLabel | None:
    match = _DIFFUSION.match(text)
    if not match:
        return None
    return StepLabel(
        text,
        Dialect.diffusion,
        Stage.unknown,
        sums={"width": int(match[2]), "height": int(match[3])},
        upstream=UpstreamStep(int(match[1]), 0, 0, 0, 0),
    )


def _profiler_step(text: str) -> StepLabel | None:
    return StepLabel(text, Dialect.profiler_step, Stage.unknown) if _PROFILER_STEP.match(text) else None
