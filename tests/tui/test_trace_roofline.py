"""The plots and words of the pane Roofline."""

from __future__ import annotations

import pytest

from magpie_tui.traces.roofline.ceilings import Ceilings
from magpie_tui.traces.roofline.rows import Bound, RooflineKernel, RooflineRow, RooflineStage
from magpie_tui.tui.screens.trace_roofline import (
    draw_roof,
    draw_share,
    plot_series,
    roofline_lines,
    roofline_note,
)

X = Ceilings("X", "theoretical", "test", 1e12, None, None, {"matrix_bf16": 1e14})


def row(name: str, flops: float, percent: float | None) -> RooflineRow:
    """A row of one call of 10 µs that moves a megabyte."""
    return RooflineRow(
        name, "GEMM", "2x4", "bf16", 1, 20.0, 0.5, flops=flops, bytes=1e6, compute_spec="matrix_bf16",
        bound=Bound.memory, ceiling="1.00 TB/s (X theoretical)", ceiling_us=None if percent is None else percent / 5,
        percent=percent, win_us=10.0, formula="FLOP 2*M = 2*3", caveats=("a guess",),
        kernels=(RooflineKernel("kernel[m=16] <x>", 1, 20.0),),
    )  # fmt: skip


ROWS = (row("low", 1e6, 20.0), row("high", 1e8, 90.0), row("none", 1e7, None))


def test_letters_stand_at_their_share_and_intensity() -> None:
    lines = draw_share(plot_series(ROWS, 1, X, logarithmic=False), 60, 12)
    assert all(len(line) == 60 for line in lines) and len(lines) == 12
    low, high = (next(index for index, line in enumerate(lines) if mark in line[7:]) for mark in ("a", "(b)"))
    assert high < low, "90 % is above 20 %"
    assert lines[low].index("a") < lines[high].index("(b)"), "1 FLOP/byte is left of 100"
    assert "100 %" in lines[0] and ":" in lines[0] and not any("c" in line[7:] for line in lines[:10])
    assert "FLOP/byte" in lines[-1]


def test_the_classical_form_has_a_roof() -> None:
    lines = draw_roof(plot_series(ROWS, 0, X, logarithmic=True), 60, 12)
    text = "\n".join(lines)
    assert all(len(line) == 60 for line in lines)
    assert "/" in text and "-" in text and "(a)" in text and "100 TFLOP/s" in lines[0]


@pytest.mark.parametrize("size", [(1, 1), (10, 3), (24, 5), (200, 60)])
def test_every_size_is_filled_exactly(size: tuple[int, int]) -> None:
    for draw, logarithmic in ((draw_share, False), (draw_roof, True)):
        for rows in (ROWS, ()):
            lines = draw(plot_series(rows, 0, X, logarithmic=logarithmic), *size)
            assert len(lines) == size[1] and all(len(line) == size[0] for line in lines)


def test_a_row_is_explained_with_its_numbers() -> None:
    stage = RooflineStage("decode", ROWS, 2, 100.0, "X theoretical", 0.9, 1.0, 0.97, "merged", 0.0, ("slow",))
    text = "\n".join(str(line) for line in roofline_lines(ROWS[1], stage, 100, whole=True))
    for words in ("kernel[m=16] <x>", "90.0 % of it", "5.00 µs a step, 10.0%, at most", "2*M = 2*3", "a guess", "97%"):
        assert words in text
    assert roofline_note(stage) == "win 0.030 of 0.100 ms, X theoretical for 90%"
    assert "no ceilings known" in roofline_note(RooflineStage("all", (), 0, 0.0, None, 0.0, 0.0))
