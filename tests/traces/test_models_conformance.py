"""Every model against the rows that TraceLens printed for real traces."""

from __future__ import annotations

import ast
import csv
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from magpie_tui.traces.models import registry
from magpie_tui.traces.models.arguments import OperatorArguments

csv.field_size_limit(sys.maxsize)
STEPS = {
    "vllm_prefilldecode_piecewise": "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
    "_generation_37(sq37sk34489sqsq37sqsk34489)",
    "sglang_decode": "step[DECODE bs=32 toks=32 g_sq=32 g_sqsq=32 g_sqsk=32785 g_sk=32785]",
}
"""The step labels around the attention of two traces; the other traces' labels tell nothing to the reference."""


def _frozen(value: object) -> object:
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def _literal(text: str) -> tuple[object, ...]:
    value = _frozen(ast.literal_eval(text)) if text else ()
    return value if isinstance(value, tuple) else ()


def _texts(text: str) -> tuple[str, ...]:
    return tuple(str(item) for item in _literal(text))


def _tables(root: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    for path in sorted(root.glob("*/ref*/unified_perf_summary.csv")):
        if path.parent.name.startswith(("ref_stored", "ref_nocapture")):
            continue
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield path.parent.parent.name, row


@pytest.mark.data
def test_rows_of_the_reference(reference_data: Path) -> None:
    modelled = agreeing = 0.0
    wrong = []
    for trace, row in _tables(reference_data / "traces"):
        arguments = OperatorArguments(
            row["name"],
            _literal(row["Input Dims"]),
            _texts(row["Input type"]),
            _literal(row["Input Strides"]),
            _texts(row["Concrete Inputs"]),
            {},
            STEPS.get(trace),
            tuple(re.findall(r"'name': '([^']*)'", row["kernel_details_summary"])),
        )
        has_model = row["has_perf_model"] == "True"
        assert registry.reference_models_call(arguments) is has_model, row["name"]
        if not has_model:
            continue
        model = registry.find_model(arguments)
        assert model is not None
        work = model.evaluate(arguments)
        time = float(row["Kernel Time (µs)_sum"])
        modelled += time
        pairs = (
            (row["GFLOPS"], None if work.flops is None else work.flops / 1e9),
            (row["Data Moved (MB)"], None if work.bytes is None else work.bytes / 2**20),
        )
        good = all(
            value is None if not text else value is not None and value == pytest.approx(float(text), rel=0.005)
            for text, value in pairs
        )
        if row["GFLOPS"]:
            good = good and (work.compute_spec or "") == row["Compute Spec"]
            if row["perf_params"]:
                shown = ast.literal_eval(row["perf_params"])
                good = good and shown == dict(work.parameters) and list(shown) == list(work.parameters)
        if good:
            agreeing += time
        else:
            wrong.append((trace, row["name"], work.reason))
    assert modelled > 0 and agreeing / modelled >= 0.999, wrong
    assert not wrong
