"""The label of the step around a call: the one that upstream takes, or the innermost one that parses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magpie_tui.traces.decimals import MISSING, microseconds
from magpie_tui.traces.labels import parse_label
from magpie_tui.traces.operators.instances import Instances
from magpie_tui.traces.stages import steps_at
from magpie_tui.traces.steps import Steps

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


PLAIN_PREFIXES = ("vllm::unified_attention_with_output",)
"""Ops that upstream's plain report looks for a label around."""
INFERENCE_PREFIXES = (
    *PLAIN_PREFIXES,
    "aiter::mha_varlen_fwd",
    "pseudo_mla_decode_fwd",
    "pseudo_mla_prefill_fwd",
    "vllm::gdn_attention_core",
    "aiter::fmha_v3_varlen_fwd",
    "sglang_profiler::tilelang_kernel_tilelang_sparse_fwd",
    "sglang_profiler::attention_paged_attention_ragged",
    "aiter::mha_batch_prefill",
    "aiter::pa_decode_gluon",
    "aiter::v4_attention_with_output",
    "pseudo_v4_paged_decode_",
)
"""The same of its inference report."""


class UpstreamLabels:
    """Labels as upstream's reports attach them, for ops whose names begin so."""

    def __init__(self, *, inference: bool) -> None:
        self._prefixes = INFERENCE_PREFIXES if inference else PLAIN_PREFIXES

    def __call__(
        self, instances: Instances, places: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], Sequence[str]]:
        """Code of the label around each of these instances, -1 for none; the labels."""
        import numpy as np

        codes, labels = _first_around(instances, places)
        named = [name.startswith(self._prefixes) for name in instances.names_of(places)]
        return np.where(np.array(named, np.bool_), codes, -1), labels


def _first_around(instances: Instances, places: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Sequence[str]]:
    """Take the first annotation by start that holds the call, host and device ones alike, if it is a step's label."""
    import numpy as np

    columns = instances.forest.columns
    rows = columns.rows_of("user_annotation", "gpu_user_annotation")
    rows = rows[(columns.ts_ns[rows] != MISSING) & (columns.dur_ns[rows] != MISSING)]
    rows = rows[np.argsort(columns.ts_ns[rows], kind="stable")]
    begin = microseconds(columns.ts_ns[rows])
    reached = np.maximum.accumulate(begin + microseconds(columns.dur_ns[rows])) if len(rows) else begin
    start, finish = instances.host_us()
    # The first range that ends behind the call is where the running maximum of the ends passes the call's end.
    first = np.searchsorted(reached, finish[places], "right")
    found = first < np.searchsorted(begin, start[places], "right")
    names = columns.name[rows[first[found]]].astype(np.int64)
    codes = np.full(len(places), -1, np.int64)
    parses = np.array([parse_label(columns.names[name]) is not None for name in names.tolist()], np.bool_)
    codes[found] = np.where(parses, names, -1) if len(names) else names
    return codes, columns.names


def step_labels(steps: Steps) -> _StepLabels:
    """Make a function that gives the label of the step in which each call began."""
    return _StepLabels(steps)


class _StepLabels:
    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._texts = [label.text for label in steps.labels]

    def __call__(
        self, instances: Instances, places: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], Sequence[str]]:
        import numpy as np

        if not len(self._steps):
            return np.full(len(places), -1, np.int64), ()
        return steps_at(instances.forest.columns, self._steps, instances.host_rows()[places]), self._texts
