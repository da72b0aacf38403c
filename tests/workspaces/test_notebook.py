"""The notebook helpers: light to import, tables as data frames."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import magpie_tui
from tests.conftest import PROJECT_ROOT
from tests.workspaces.samples import our_benchmark, our_compare


def test_tables_become_data_frames(tmp_path: Path) -> None:
    workspace = tmp_path / "compare_20260901_101500"
    workspace.mkdir()
    our_compare().write(workspace)
    frame = magpie_tui.load_workspace(str(workspace)).to_pandas()
    assert list(frame["kernel"]) == ["naive", "fast", "wrong"]
    assert frame["median_us"].isna().sum() == 1
    report = magpie_tui.load_report(our_benchmark().write(tmp_path))
    figures = report.table().to_pandas()
    assert set(figures[figures["metric"] == "ttft"]["statistic"]) == {"mean", "median", "p99", "std"}


def test_an_experiment_is_a_table_of_metrics(tmp_path: Path) -> None:
    workspace = tmp_path / "experiment_20260901_101500"
    workspace.mkdir()
    interval = {"point": 1.03, "low": 1.01, "high": 1.05}
    primary = {"metric": "output_throughput", "state": "ok", "baseline": 100.0, "optimized": 103.0, "unit": "tok/s"}
    verdict = {"verdict": {"word": "improved"}, "primary": {**primary, "interval": interval}, "guards": []}
    (workspace / "verdict.json").write_text(json.dumps(verdict))
    frame = magpie_tui.load_workspace(workspace).to_pandas()
    assert frame.loc[0, ["metric", "ratio", "ratio_low"]].tolist() == ["output_throughput", 1.03, 1.01]


def test_pandas_is_imported_on_first_use_only() -> None:
    code = (
        "import sys, magpie_tui\n"
        "assert 'magpie_tui.notebook' not in sys.modules\n"
        "magpie_tui.load_workspace, magpie_tui.load_report\n"
        "heavy = {'pandas', 'numpy', 'pyarrow', 'yaml', 'watchfiles', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_notebook_runs() -> None:
    example = PROJECT_ROOT / "examples" / "notebook" / "look_around.py"
    done = subprocess.run([sys.executable, str(example)], check=True, capture_output=True, text=True)
    assert "of the operators' device time has a performance model" in done.stdout
