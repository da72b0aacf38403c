"""Words that commands take; light, so that help needs nothing else."""

from __future__ import annotations

from enum import Enum


class ReportKind(str, Enum):
    """Which of upstream's two reports is written; ``auto`` takes that of inference for traces with labelled steps."""

    auto = "auto"
    pytorch = "pytorch"
    inference = "inference"


class SortBy(str, Enum):
    """What the rows of a roofline are ordered by."""

    time = "time"
    win = "win"
    percent = "percent"
    mean = "mean"
    calls = "calls"
    name = "name"
