"""Canonical names of inference stages, and every other name that they go by."""

from __future__ import annotations

from enum import Enum

from magpie_tui.basics.errors import UserInputError


class Stage(str, Enum):
    """What a step of an engine computes."""

    prefilldecode = "prefilldecode"
    """Prompts and generated tokens in one batch."""
    decode = "decode"
    """Generated tokens only."""
    prefill = "prefill"
    """Prompts only."""
    idle = "idle"
    """A step that is labelled and serves no request."""
    unknown = "unknown"
    """A step whose label does not tell (profiler steps, repetitions found in the call tree)."""


INFERENCE_STAGES = (Stage.prefilldecode, Stage.decode, Stage.prefill)
OUTPUT_LABELS = {Stage.prefilldecode: "prefilldecode", Stage.decode: "decode_only", Stage.prefill: "prefill_only"}
"""Names of the folders that upstream writes a stage's report to."""
CSV_KINDS = {Stage.prefilldecode: "PD", Stage.decode: "DECODE", Stage.prefill: "PREFILL"}
ALIASES = {
    Stage.prefilldecode: ("pd", "mixed", "prefill_decode", "prefill-decode"),
    Stage.decode: ("decode_only", "decode-only"),
    Stage.prefill: ("prefill_only", "prefill-only"),
    Stage.idle: (),
    Stage.unknown: (),
}


def stage_named(text: str) -> Stage:
    """Return the stage that ``text`` names, by its canonical name or an alias, whatever the case.

    Raises:
        UserInputError: No stage is called so.
    """
    wanted = text.strip().lower()
    for stage, aliases in ALIASES.items():
        if wanted == stage.value or wanted in aliases:
            return stage
    known = ", ".join(f"{stage.value} ({', '.join(ALIASES[stage])})" for stage in INFERENCE_STAGES)
    raise UserInputError(f"no stage is called {text!r}", key="--stage", hint=f"stages: {known}, idle, unknown")


def stages_named(text: str) -> tuple[Stage, ...]:
    """Return the stages of a comma list; ``all`` stands for the three inference stages.

    Raises:
        UserInputError: A name is unknown, or there is none.
    """
    words = [word for word in text.replace(";", ",").split(",") if word.strip()]
    if not words:
        raise UserInputError("no stage is named", key="--stage", hint="for instance: decode, or prefill,decode")
    found: dict[Stage, None] = {}
    for word in words:
        found.update(dict.fromkeys(INFERENCE_STAGES if word.strip().lower() == "all" else (stage_named(word),)))
    return tuple(found)


class Dialect(str, Enum):
    """Who wrote a label, and in which form."""

    vllm_detailed = "vllm_detailed"
    vllm_native = "vllm_native"
    vllm_old = "vllm_old"
    sglang_detailed = "sglang_detailed"
    sglang_native = "sglang_native"
    atom_detailed = "atom_detailed"
    atom_native = "atom_native"
    diffusion = "diffusion"
    profiler_step = "profiler_step"
    call_tree = "call_tree"
