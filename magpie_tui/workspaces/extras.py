"""What we add to upstream's reports: one key, ``magpie_tui``, at the top level and in each kernel's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from magpie_tui.workspaces.values import as_count, as_mapping, as_number, as_text, mapping_or_none, without

EXTRAS_KEY = "magpie_tui"
SCHEMA_VERSION = 1

_VERDICT_KEYS = ("word", "ratio", "ratio_low", "ratio_high", "confidence", "replicates", "reason")
_EXTRAS_KEYS = (
    "schema_version",
    "record",
    "state",
    "reason",
    "timing",
    "gate",
    "verdict",
    "quality",
    "upstream_score",
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a comparison against the baseline.

    Attributes:
        word: ``faster``, ``slower``, ``equivalent``, ``inconclusive``, ``mixed``, ``suspect`` or ``invalid``; for
            serving the words of the end-to-end verdict.
        ratio: Baseline's time divided by this one's, so above 1 is faster; None when there is no valid time.
        ratio_low, ratio_high: Interval of ``ratio``.
        confidence: Of the interval, for example 0.95.
        replicates: Number of paired replicates behind it.
        reason: Why there is no number, or what limits the verdict.
        more: Further keys, kept as they are.
    """

    word: str
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    confidence: float | None = None
    replicates: int | None = None
    reason: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object."""
        return {**self.more, **{key: getattr(self, key) for key in _VERDICT_KEYS}}

    @classmethod
    def from_json(cls, value: object) -> Verdict | None:
        """Read a verdict; a bare word is one too. None when there is no word."""
        if isinstance(value, str):
            return cls(word=value)
        keys = as_mapping(value)
        word = as_text(keys.get("word"))
        if word is None:
            return None
        return cls(
            word=word,
            ratio=as_number(keys.get("ratio")),
            ratio_low=as_number(keys.get("ratio_low")),
            ratio_high=as_number(keys.get("ratio_high")),
            confidence=as_number(keys.get("confidence")),
            replicates=as_count(keys.get("replicates")),
            reason=as_text(keys.get("reason")),
            more=without(keys, _VERDICT_KEYS),
        )


@dataclass(frozen=True, slots=True)
class Extras:
    """The ``magpie_tui`` object.

    Attributes:
        schema_version: Of this object.
        record: File name of the reproducibility record, relative to the workspace (top level).
        state: Word for what became of the kernel or the run: ``correct``, ``incorrect``, ``crashed``, ``timeout``,
            ``resource``, ``invalid`` or ``skipped``.
        reason: Why the state is not ``correct``, or why there is no winner (``no_performance_data``).
        timing: How it was timed and what came out. ``median_us`` and ``interval_us`` (low, high) are shown in lists.
        gate: What the correctness gate did and found.
        verdict: Against the baseline.
        quality: Counts of what was dropped, repaired or not observed.
        upstream_score: The score that upstream would have given, for reference only.
        more: Further keys, kept as they are.
    """

    schema_version: int = SCHEMA_VERSION
    record: str | None = None
    state: str | None = None
    reason: str | None = None
    timing: Mapping[str, object] | None = None
    gate: Mapping[str, object] | None = None
    verdict: Verdict | None = None
    quality: Mapping[str, object] | None = None
    upstream_score: float | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the JSON object; what is not set is left out, except the schema version."""
        values: dict[str, object] = {**self.more, "schema_version": self.schema_version}
        for key in ("record", "state", "reason", "timing", "gate", "quality", "upstream_score"):
            value = getattr(self, key)
            if value is not None:
                values[key] = dict(value) if isinstance(value, Mapping) else value
        if self.verdict is not None:
            values["verdict"] = self.verdict.to_json()
        return values

    @classmethod
    def from_json(cls, value: object) -> Extras | None:
        """Read the object; None when it is not there, that is, when another program wrote the report."""
        keys = mapping_or_none(value)
        if keys is None:
            return None
        version = as_count(keys.get("schema_version"))
        return cls(
            schema_version=SCHEMA_VERSION if version is None else version,
            record=as_text(keys.get("record")),
            state=as_text(keys.get("state")),
            reason=as_text(keys.get("reason")),
            timing=mapping_or_none(keys.get("timing")),
            gate=mapping_or_none(keys.get("gate")),
            verdict=Verdict.from_json(keys.get("verdict")),
            quality=mapping_or_none(keys.get("quality")),
            upstream_score=as_number(keys.get("upstream_score")),
            more=without(keys, _EXTRAS_KEYS),
        )
