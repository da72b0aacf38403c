"""The notebook helpers: light to import, tables as data frames."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import magpie_tui
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


def test_pandas_is_imported_on_first_use_only() -> None:
    code = (
        "import sys, magpie_tui\n"
        "assert 'magpie_tui.notebook' not in sys.modules\n"
        "magpie_tui.load_workspace, magpie_tui.load_report\n"
        "heavy = {'pandas', 'numpy', 'pyarrow', 'yaml', 'watchfiles', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
