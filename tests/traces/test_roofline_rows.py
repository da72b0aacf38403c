"""Rows put together, and their shapes as a list to tune."""

from __future__ import annotations

import csv
import io

import pytest

from magpie_tui.traces.roofline.folding import Fold, folded
from magpie_tui.traces.roofline.rows import Bound, RooflineKernel, RooflineRow
from magpie_tui.traces.roofline.tuning import tuning_csv, tuning_list


def row(name: str, count: int, time_us: float, ceiling_us: float | None, **more: object) -> RooflineRow:
    """A row that is bound by memory where it has a ceiling."""
    bound = None if ceiling_us is None else Bound.memory
    win = None if ceiling_us is None else time_us - count * ceiling_us
    percent = None if ceiling_us is None else 100 * ceiling_us * count / time_us
    values: dict[str, object] = {"kernels": (RooflineKernel(f"k_{name}", count, time_us),), "library": "A"} | more
    return RooflineRow(
        name, "GEMM", "2x4 4x3", "bf16", count, time_us, time_us / 1000, bound=bound, ceiling="1 TB/s (X)",
        ceiling_us=ceiling_us, percent=percent, win_us=win, **values,  # type: ignore[arg-type]
    )  # fmt: skip


ROWS = [
    row("a", 2, 600.0, 100.0),
    row("b", 10, 50.0, 1.0),
    row("c", 10, 50.0, None, library="B"),
    row("a", 1, 300.0, 50.0),
]


@pytest.mark.parametrize("by", list(Fold))
def test_time_calls_and_shares_stay_the_same(by: Fold) -> None:
    found = folded(ROWS, by)
    assert sum(item.time_us for item in found) == 1000
    assert sum(item.count for item in found) == 23
    assert sum(item.share for item in found) == pytest.approx(1)
    assert sum(kernel.time_us for item in found for kernel in item.kernels) == 1000


def test_short_rows_have_nothing_to_be_won() -> None:
    *rest, short = folded(ROWS, Fold.short)
    assert [item.name for item in rest] == ["a", "a"]
    assert (short.name, short.count, short.win_us, short.percent) == ("+ 2 short ops", 20, None, None)
    assert short.reason == "fuse, not tune" and short.library == "2 libraries"
    assert folded(ROWS[:2], Fold.short) == ROWS[:2], "a single one stands by itself"


def test_a_group_is_compared_with_the_ceilings_of_its_rows() -> None:
    found = {item.name: item for item in folded(ROWS, Fold.op)}
    # 2*100 + 1*50 µs at the ceiling of 900 µs.
    assert found["a"].percent == pytest.approx(100 * 250 / 900)
    assert found["a"].win_us == pytest.approx(650)
    libraries = {item.name: item for item in folded(ROWS, Fold.library)}
    assert libraries["B"].win_us is None and libraries["B"].reason == "1 of 1 without a ceiling"


def test_shapes_of_products_and_mixtures_are_listed() -> None:
    product = row(
        "aten::mm", 2, 600.0, 100.0, input_dims="((2, 4), (4, 3))", input_types="('c10::BFloat16', 'c10::BFloat16')",
        input_strides="((4, 1), (1, 4))", concrete_inputs="('', '')",
        kernels=(RooflineKernel("Cijk_Alik_Bljk_X", 2, 600.0),),
    )  # fmt: skip
    mixture = row(
        "pseudo_op::moe_triton_unfused_up", 1, 300.0, None, input_dims="((8, 4), (8, 2))",
        input_types="('c10::BFloat16', 'c10::BFloat16')", input_strides="()", concrete_inputs="('', '')",
    )  # fmt: skip
    entries = tuning_list([product, row("_C::rms_norm", 1, 50.0, None), mixture])
    assert [(entry.kind, entry.op) for entry in entries] == [("gemm", product.name), ("moe", mixture.name)]
    assert (entries[0].m, entries[0].n, entries[0].k, entries[0].transposed) == (2, 3, 4, "TN")
    assert (entries[1].tokens, entries[1].hidden, entries[1].experts, entries[1].topk) == (8, 4, 2, 4)
    first, second = csv.DictReader(io.StringIO(tuning_csv(entries)))
    assert (first["m"], first["win_us"], second["m"], second["win_us"]) == ("2", "400.0", "", "")
