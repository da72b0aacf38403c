"""A comparison while it runs: samples are appended as they come, intervals narrow, no verdict is given."""

from __future__ import annotations

import json
from pathlib import Path

from magpie_tui.kernels.live import SamplesLog, candidates_so_far
from magpie_tui.kernels.measurement import Measurement
from magpie_tui.kernels.model import Replicate, Series, Window
from magpie_tui.kernels.narrowing import so_far, steps_at
from magpie_tui.workspaces.samples import read_samples

CONFIG = {
    "magpie_tui": {"baseline": 0},
    "kernels": [
        {
            "kernel_id": "base",
            "magpie_tui": {"shapes": [{"m": 2, "n": 4, "weight": 1}, {"m": 1, "n": 8, "guard": True}]},
        },
        {"kernel_id": "new", "env": {"TILE": "8"}, "magpie_tui": {}},
    ],
}


def replicate(arm: int, number: int, time_us: float, shape: str, *, control: bool = False) -> Replicate:
    start = number * 1_000_000_000 + arm * 1000
    length = int(time_us * 1000)
    windows = tuple(Window(start + i, start + i + length, start, start + length, 1) for i in range(5))
    series = Series("call_time", "perf_counter_ns", "warm", windows)
    return Replicate(arm, control, number, 0, "choose", (), series, shape=shape)


def add(log: SamplesLog, measurement: Measurement, number: int, shape: str, new_us: float) -> None:
    measurement.replicates += [
        replicate(0, number, 100.0 + number % 2, shape),
        replicate(0, number, 100.0, shape, control=True),
        replicate(1, number, new_us, shape),
    ]
    log.add(measurement)


def test_samples_come_one_replicate_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    measurement, log = Measurement(), SamplesLog(path, {0: "base", 1: "new"})
    before = candidates_so_far(CONFIG, read_samples(tmp_path))
    assert [row.word for row in before.rows] == ["judging", "judging"]
    assert before.rows[1].change == "environment: TILE=8"
    widths = []
    for number in range(4):
        add(log, measurement, number, "m=2 n=4", 50.0)
        log.add(measurement)  # nothing new: nothing is written twice
        samples = read_samples(tmp_path)
        assert len(samples.kernels["base"].used_us) == 5 * (number + 1)
        row = candidates_so_far(CONFIG, samples).rows[1]
        assert row.word == f"block {number + 1}" and row.rank is None and row.state == "running"
        if number:
            assert row.ratio is not None and row.ratio_low is not None and row.ratio_high is not None
            assert 1.99 < row.ratio < 2.03
            widths.append(row.ratio_high - row.ratio_low)
    assert widths[-1] < widths[0]
    steps = steps_at(samples, "base", "new", "m=2 n=4")
    assert [step.replicates for step in steps] == [2, 3, 4]
    assert "no verdict before the end" in candidates_so_far(CONFIG, samples).sentence
    assert all(json.loads(line)["per_call_ns"] for line in path.read_text().splitlines())


def test_guards_do_not_count_while_it_runs_either(tmp_path: Path) -> None:
    measurement, log = Measurement(), SamplesLog(tmp_path / "samples.jsonl", {0: "base", 1: "new"})
    for number in range(3):
        add(log, measurement, number, "m=2 n=4", 50.0)
        add(log, measurement, number, "m=1 n=8", 400.0)
    samples = read_samples(tmp_path)
    assert samples.shapes == ("m=2 n=4", "m=1 n=8")
    row = candidates_so_far(CONFIG, samples).rows[1]
    assert row.ratio is not None and row.ratio > 1.9
    everything = so_far(samples, "base", "new", {})
    assert everything is not None and everything.interval.point < 1.0
