"""Names of result directories."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.workspaces.names import create_workspace, parse_workspace_name, sanitize_label, workspace_name

UPSTREAM_PATTERNS = {
    "analyze": r"^analyze(_.+)?_\d{8}_\d{6}$",
    "compare": r"^compare_\d{8}_\d{6}$",
    "benchmark": r"^benchmark_(vllm|sglang|atom|xdit|custom)_\d{8}_\d{6}$",
}


def test_three_runs_in_one_second_get_three_directories(tmp_path: Path) -> None:
    now = datetime(2026, 9, 1, 10, 15, 58).timestamp()
    made = [create_workspace(tmp_path / "out", "compare", clock=lambda: now) for _ in range(3)]
    assert [path.name for path in made] == [
        "compare_20260901_101558",
        "compare_20260901_101559",
        "compare_20260901_101600",
    ]
    assert all((path / "performance").is_dir() for path in made)


def test_a_benchmark_has_no_performance_directory(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path, "benchmark", "vllm")
    assert workspace.is_absolute()
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("rms/base v2.1", "analyze_rms_base_v2_1_20260901_101500"),
        ("Größe", "analyze_Gr__e_20260901_101500"),
        ("", "analyze_20260901_101500"),
        (None, "analyze_20260901_101500"),
    ],
)
def test_labels_are_cleaned_as_upstream_does(label: str | None, name: str) -> None:
    assert workspace_name("analyze", label, "20260901_101500") == name


@pytest.mark.parametrize(
    ("name", "kind", "label"),
    [
        ("analyze_20260901_101500", "analyze", None),
        ("analyze_20260901_101500_20260901_101501", "analyze", "20260901_101500"),
        ("analyze_a_b_20260901_101500", "analyze", "a_b"),
        ("compare_20260901_101500", "compare", None),
        ("benchmark_custom_20260901_101500", "benchmark", "custom"),
        ("benchmark_xdit_20260901_101500", "benchmark", "xdit"),
        ("experiment_20261202_180411", "experiment", None),
    ],
)
def test_known_names_are_read(name: str, kind: str, label: str | None) -> None:
    parsed = parse_workspace_name(name)
    assert parsed is not None
    assert (parsed.kind, parsed.label) == (kind, label)


@pytest.mark.parametrize(
    "name",
    [
        "compare_x_20260901_101500",
        "benchmark_20260901_101500",
        "benchmark_vllm_2026_1",
        "compare_20261301_101500",
        "compare_20260901_256199",
        "compare_２０２６０９０１_101500",
        "gap_analysis",
        "xcompare_20260901_101500",
        "compare_20260901_101500\n",
        "",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert parse_workspace_name(name) is None


@given(st.sampled_from(["analyze", "compare", "benchmark"]), st.text(max_size=300))
def test_every_name_made_is_one_that_upstream_finds(kind: str, label: str) -> None:
    name = workspace_name(kind, label, "20260901_101500")  # type: ignore[arg-type]
    if kind != "benchmark":
        assert re.match(UPSTREAM_PATTERNS[kind], name)
    assert len(name.encode()) <= 255
    if kind != "benchmark" or sanitize_label(label):
        parsed = parse_workspace_name(name)
        assert parsed is not None and parsed.kind == kind


@given(st.text())
def test_no_text_upsets_the_parser(name: str) -> None:
    parse_workspace_name(name)
