"""Kernel totals, and counts against the tables that TraceLens printed for real traces."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from magpie_tui.traces.reader import read_columns

CASES = [
    ("mi300_resnet_ddp/resnet_act_checkpoint.json.gz", "ref_mi300x"),
    ("b200_vllm_eager/eager_trace.json.gz", "ref_b200"),
    ("mi300_qwen1.5_0.5b/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "ref_mi300x"),
    ("h200x2_nccl/open_h200x2-rank-0.pt.trace.json.gz", "ref_rank0_h100_sxm"),
    ("h200x2_nccl/open_h200x2-rank-1.pt.trace.json.gz", "ref_rank1_h100_sxm"),
    ("mi300_normalization_layers/normalization_layer_test.json.gz", "ref_mi300x"),
    ("mi210_gpu_only/gpu_only_trace.json.gz", "ref_noarch"),
    ("mi300_falconsai_vit/Falconsai_nsfw_image_detection__1016002.json.gz", "ref_mi300x"),
    ("vllm_prefilldecode_piecewise/graph_execution.json.gz", "ref_nocapture_mi300x"),
    ("sglang_decode/sglang_Qwen3-8B_decode.json.gz", "ref_nocapture_mi300x"),
    ("h100_bert_small/gaunernst_bert-small-uncased__1016001.json.gz", "ref_h100_sxm"),
    ("mi300_bert_small/gaunernst_bert-small-uncased__1016001.json.gz", "ref_mi300x"),
    ("mi300_torch_compile_triton/trace.json.gz", "ref_mi300x"),
]


@pytest.mark.data
@pytest.mark.parametrize(("trace", "reference"), CASES, ids=[trace.split("/")[0] for trace, _reference in CASES])
def test_totals_and_counts_by_kernel_and_stream(reference_data: Path, trace: str, reference: str) -> None:
    path = reference_data / "traces" / trace
    columns = read_columns(path)
    expected: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    with (path.parent / reference / "kernel_summary.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            entry = expected[row["Kernel name"], str(int(float(row["Kernel stream"])))]
            entry[0] += float(row["Kernel duration (µs)_sum"])
            entry[1] += float(row["Kernel duration (µs)_count"])
    found: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for index in columns.rows_of("kernel").tolist():
        entry = found[columns.name_of(index), columns.streams[columns.stream[index]]]
        entry[0] += columns.dur_ns[index] / 1000
        entry[1] += 1
    assert {key: count for key, (_total, count) in found.items()} == {
        key: count for key, (_total, count) in expected.items()
    }
    for key, (total, _count) in expected.items():
        assert found[key][0] == pytest.approx(total, rel=1e-6)
