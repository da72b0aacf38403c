"""Turns of processes that live together: who is stopped, what is taken away, who is blamed, what a ratio is."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.configs.kernel_model import KernelEntry
from magpie_tui.kernels.blocks import Block, BlockRunner, Keep, KeptOutputs, WrongWhenTimedError
from magpie_tui.kernels.gate import Candidate
from magpie_tui.kernels.judges import Judge, JudgeFailedError, reference_of_entry
from magpie_tui.kernels.live import SamplesLog
from magpie_tui.kernels.measurement import Measurement, paired, sample_rows
from magpie_tui.kernels.model import Replicate, Series, Window
from magpie_tui.kernels.narrowing import log_ratios_at
from magpie_tui.kernels.recomputing import measurement_of_rows
from magpie_tui.kernels.rights import rights_for
from magpie_tui.kernels.rotation import Rotation
from magpie_tui.kernels.sessions import Harness, Session
from magpie_tui.kernels.settings import TimingSettings
from magpie_tui.kernels.timing import IN_TURNS, CallableBlocks, Schedule
from magpie_tui.kernels.turns import _taken_away, orders, plan_turns
from magpie_tui.processes import pausing
from magpie_tui.processes.identity import ProcessIdentity, identify
from magpie_tui.workspaces.samples import read_samples
from tests.kernels.conftest import REFERENCE

HONEST = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x, w):\n        return x * w + 1\n"
SETTINGS = TimingSettings(
    budget_s=30.0,
    fresh_interpreter=False,
    fewest_replicates=2,
    warm_up_s=0.05,
    turns=4,
    turn_windows=3,
    input_sets=2,
    clock_slack_s=0.5,
)


class Place:
    """A directory with a reference, kernels, a judge and a schedule."""

    def __init__(self, harness: Harness, directory: Path) -> None:
        self.directory, self.harness = directory, harness
        source = directory / "reference.py"
        source.write_text(REFERENCE)
        task = reference_of_entry(KernelEntry("reference", "pytorch", (source,)))
        assert task is not None
        self.task, self.exchange = task, directory / "exchange"
        self.judge = Judge(task, harness, self.exchange, directory / "judge", 60, 1, None, 7)
        self.judge.load()

    def candidate(self, index: int, text: str) -> Candidate:
        """Return a kernel made of ``text``."""
        path = self.directory / f"kernel_{index}.py"
        path.write_text(text)
        rights = rights_for(
            place=self.exchange / "kernels" / str(index),
            source=path,
            references=[self.task.source],
            secrets=[self.directory / "results"],
            others=[],
            exchange=self.exchange,
            environment={},
        )
        logs = self.directory / f"logs_{index}"
        logs.mkdir(exist_ok=True)
        entry = KernelEntry(f"k{index}", "pytorch", (path,))
        return Candidate(index, entry, path, self.harness, logs, 1, 4 << 30, 7, 60, rights=rights)

    def run(self, texts: Sequence[str], settings: TimingSettings = SETTINGS, count: int = 2) -> Measurement:
        """Time kernels against the first of them."""
        rng = random.Random(3)
        schedule = Schedule(
            settings,
            CallableBlocks(settings, self.judge, rng, timeout_s=60),
            baseline=0,
            rng=rng,
            on_gpu=False,
            progress=lambda step, done, total: None,
        )
        found = Measurement()
        schedule.run([self.candidate(index, text) for index, text in enumerate(texts)], found, count=count)
        return found


@pytest.fixture
def place(harness: Harness, tmp_path: Path) -> Iterator[Place]:
    made = Place(harness, tmp_path)
    yield made
    made.judge.close()


def test_processes_of_all_arms_take_turns(place: Place) -> None:
    found = place.run([HONEST, HONEST])
    assert found.facts["order"] == IN_TURNS
    assert not found.failed and not found.untimed
    for number in range(2):
        blocks = sorted((item for item in found.replicates if item.number == number), key=lambda item: item.position)
        assert sorted((item.arm, item.control) for item in blocks) == [(0, False), (0, True), (1, False)]
        windows = [(window.started, window.turn, item.position) for item in blocks for window in item.main.windows]
        assert len(windows) == 3 * 4 * 3
        order = list(dict.fromkeys((turn, position) for _started, turn, position in sorted(windows)))
        assert [turn for turn, _position in order] == [turn for turn in range(4) for _ in range(3)]
        assert all(first[1] != then[1] for first, then in pairwise(order)), "nobody goes on twice in a row"
        # One window in front of each turn is kept with the warm-up, and none of these has a turn.
        assert all(window.turn is None for item in blocks for window in item.warm_up)
        assert all(len(item.warm_up) >= 4 for item in blocks)
    assert paired(found, 0, 1, phase="choose").keys() == {0, 1}


def test_what_cannot_be_together_follows_each_other(place: Place) -> None:
    for settings in (replace(SETTINGS, most_together=2), replace(SETTINGS, memory_together=0.0)):
        found = place.run([HONEST, HONEST], settings, count=1)
        assert "order" not in found.facts and len(found.replicates) == 3
        assert all(window.turn is None for item in found.replicates for window in item.main.windows)


WRONG_LATER = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x, w):
        self.calls += 1
        return x * w + (1 if self.calls < 10 else 2)
"""
ENDS_LATER = (
    WRONG_LATER.replace("return x * w + (1 if self.calls < 10 else 2)", "return self.end(x, w)")
    + """
    def end(self, x, w):
        if self.calls > 10:
            import os
            os.abort()
        return x * w + 1
"""
)


@pytest.mark.parametrize(
    ("text", "word", "reason"),
    [(WRONG_LATER, "incorrect", "right when checked, wrong when timed"), (ENDS_LATER, "crashed", "SIGABRT")],
    ids=["wrong", "ends"],
)
def test_who_goes_wrong_is_blamed_and_nobody_else(place: Place, text: str, word: str, reason: str) -> None:
    found = place.run([HONEST, text, HONEST])
    assert found.failed.keys() == {1}
    assert found.failed[1][0] == word and reason in found.failed[1][1]
    assert found.facts["order"] == IN_TURNS, "the others go on together"
    assert paired(found, 0, 2, phase="choose").keys() == {0, 1}


def test_a_process_that_is_killed_by_another_is_not_to_blame(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Landlock does not scope signals, native code of one kernel can end the process of another."""
    real = pausing.go_on
    killed: list[int] = []

    def go_on(stopped: list[ProcessIdentity]) -> None:
        victims = alive - {stopped[0].pid}
        if len(alive) == 3 and not killed:
            killed.append(victims.pop())
            os.kill(killed[0], signal.SIGKILL)
        real(stopped)

    alive: set[int] = set()
    real_pause = pausing.pause

    def pause(pid: int) -> list[ProcessIdentity]:
        alive.add(pid)
        return real_pause(pid)

    monkeypatch.setattr(pausing, "go_on", go_on)
    monkeypatch.setattr(pausing, "pause", pause)
    found = place.run([HONEST, HONEST], count=2)
    assert killed and not found.failed and not found.untimed
    assert len(found.medians(0, phase="choose")) == 2
    with_turns = {item.number for item in found.replicates if item.main.windows[0].turn is not None}
    assert with_turns == {1}, "the first replicate was thrown away and run one block after another"


class OnDevice:
    """Times as a GPU's windows do, on this CPU, and says with what it was called."""

    def __init__(self) -> None:
        self.seen: tuple[Sequence[Window], float] | None = None

    def run(
        self,
        session: Session,
        candidate: Candidate,
        warm_up: Sequence[Window],
        plan: Rotation,
        keep: Keep,
        *,
        share_s: float,
    ) -> tuple[Block, KeptOutputs]:
        """Run five windows of one call."""
        self.seen = warm_up, share_s
        files = keep(candidate, 5, 1)
        windows, sets = session.run_windows(count=5, repeats=1, keep=files, timeout_s=60)
        series = Series("device_time", "device_stamps", plan.state(1), tuple(windows))
        return Block(tuple(warm_up), series, kernels=("mine",)), KeptOutputs(files, sets, 1)


@pytest.mark.parametrize("text", [HONEST, HONEST.replace("+ 1", "+ 2")], ids=["right", "wrong"])
def test_windows_of_a_gpu_are_run_in_a_warm_process_and_checked(place: Place, text: str) -> None:
    device = OnDevice()
    runner = BlockRunner(SETTINGS, place.judge, random.Random(1), timeout_s=60, gpu=device)
    sets = [place.judge.make_inputs(seed) for seed in (1, 2)]
    candidate = place.candidate(1, text)
    if text != HONEST:
        with pytest.raises(WrongWhenTimedError, match="right when checked, wrong when timed"):
            runner.run(candidate, sets, share_s=0.5, control=False)
        return
    block = runner.run(candidate, sets, share_s=0.5, control=False)
    assert device.seen == (block.warm_up, 0.5) and len(block.warm_up) >= 3
    assert block.kernels == ("mine",) and len(block.main.windows) == 5
    assert block.output_bytes == 8 * 16 * 4


def test_an_interruption_arrives_though_the_processes_are_gone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop ends all processes at once; what is asked while the interruption is on its way finds nobody."""

    def go_on(stopped: list[ProcessIdentity]) -> None:
        assert place.judge.session is not None
        os.kill(place.judge.session.pid, signal.SIGKILL)
        raise KeyboardInterrupt

    monkeypatch.setattr(pausing, "go_on", go_on)
    with pytest.raises(KeyboardInterrupt):
        place.run([HONEST, HONEST])
    with pytest.raises(JudgeFailedError, match="SIGKILL"):
        place.judge.make_inputs(1)


DETACHES = """
import os, time, torch

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(os.path.join(os.environ["TMPDIR"], "detached"), "w") as file:
            file.write(str(os.getpid()))
        ends = time.time() + 30
        while time.time() < ends:
            pass
    os._exit(0)

class Model(torch.nn.Module):
    def forward(self, x, w):
        return x * w + 1
"""


def test_a_detached_process_is_stopped_and_ended_with_its_kernel(place: Place) -> None:
    candidate = place.candidate(1, DETACHES)
    told = place.exchange / "kernels" / "1" / "tmp" / "detached"
    with candidate.open(place.judge, log="look") as session:
        ends = time.monotonic() + 10
        while not (told.exists() and told.read_text()) and time.monotonic() < ends:
            time.sleep(0.01)
        detached = int(told.read_text())
        assert detached in {item.pid for item in pausing.pause(session.pid)}
    assert identify(detached) is None


LISTS = """
import os, torch

OUTPUTS = {outputs!r}

class Model(torch.nn.Module):
    def forward(self, x, w):
        with open(os.path.join(os.environ["TMPDIR"], "seen"), "a") as file:
            print(*os.listdir(OUTPUTS), file=file)
        return x * w + 1
"""


def test_no_output_of_another_kernel_can_be_found(place: Place) -> None:
    text = LISTS.format(outputs=str(place.exchange / "outputs"))
    found = place.run([HONEST, text], replace(SETTINGS, turns=8, turn_windows=1))
    assert not found.failed and found.facts["order"] == IN_TURNS
    seen = (place.exchange / "kernels" / "1" / "tmp" / "seen").read_text()
    assert seen.count("\n") > 20
    # Its own last output lies there until its turn ends.
    assert all(len(line.split()) <= 2 for line in seen.splitlines())


ALLOCATES = """
import os, resource, torch

class Model(torch.nn.Module):
    def forward(self, x, w):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        large = [torch.zeros(1 << 20) for _ in range(3)]
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        with open(os.path.join(os.environ["TMPDIR"], "faults"), "a") as file:
            print(faults, file=file)
        return x * w + 1
"""


def test_no_process_pays_for_memory_at_every_call(place: Place) -> None:
    """Else it would be chance whether freed blocks of 4 MB go back to the system, and equal processes would differ."""
    candidate = place.candidate(1, ALLOCATES)
    candidate.open(place.judge, log="look").close()
    if not str(candidate.loaded["allocator"]).startswith("keeps"):
        pytest.skip(str(candidate.loaded["allocator"]))
    found = place.run([HONEST, ALLOCATES])
    assert not found.failed
    faults = [int(line) for line in (place.exchange / "kernels" / "1" / "tmp" / "faults").read_text().split()]
    assert len(faults) >= 24 and sorted(faults)[len(faults) // 2] == 0


SPINS = """
import threading, torch

def spin():
    while True:
        pass

threading.Thread(target=spin, daemon=True).start()

class Model(torch.nn.Module):
    def forward(self, x, w):
        return x * w + 1
"""


def test_who_is_not_on_turn_takes_no_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of a stopped process would otherwise take from the CPU of the others."""

    def cpu_ticks(pid: int) -> int:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))

    pauses: dict[int, int] = {}
    real_pause, real_go_on = pausing.pause, pausing.go_on

    def pause(pid: int) -> list[ProcessIdentity]:
        stopped = real_pause(pid)
        pauses[pid] = cpu_ticks(pid)
        time.sleep(0.05)
        return stopped

    moved: list[int] = []

    def go_on(stopped: list[ProcessIdentity]) -> None:
        moved.append(cpu_ticks(stopped[0].pid) - pauses[stopped[0].pid])
        real_go_on(stopped)

    monkeypatch.setattr(pausing, "pause", pause)
    monkeypatch.setattr(pausing, "go_on", go_on)
    found = place.run([HONEST, SPINS], count=1)
    assert found.facts["order"] == IN_TURNS and len(moved) == 12
    assert max(moved) <= 1, "a tick of 10 ms at most, where it would have been five"


@given(st.floats(1e-6, 100.0), st.floats(0.01, 10.0))
def test_a_plan_has_enough_windows_and_keeps_to_its_share(window_s: float, share_s: float) -> None:
    settings = TimingSettings()
    plan = plan_turns(window_s, share_s, settings)
    assert 1 <= plan.turns <= settings.turns and 1 <= plan.windows <= settings.turn_windows
    assert plan.turns * plan.windows >= 5
    taken = plan.turns * (plan.windows + plan.lead) * window_s
    assert taken <= max(share_s, 10 * window_s) + 1e-9
    if share_s / window_s > settings.turns * (settings.turn_windows + 1):
        assert (plan.turns, plan.windows, plan.lead) == (settings.turns, settings.turn_windows, 1)


@given(st.integers(1, 8), st.integers(1, 30), st.integers())
def test_orders_are_drawn_and_nobody_comes_twice_in_a_row(arms: int, turns: int, seed: int) -> None:
    found = orders(arms, turns, random.Random(seed))
    assert [sorted(order) for order in found] == [list(range(arms))] * turns
    flat = [arm for order in found for arm in order]
    assert arms == 1 or all(first != then for first, then in pairwise(flat))


def test_every_arm_follows_every_other_equally_often() -> None:
    flat = [arm for order in orders(4, 6000, random.Random(1)) for arm in order]
    pairs = Counter(pairwise(flat))
    assert len(pairs) == 12
    assert max(pairs.values()) < 1.1 * min(pairs.values())


def in_turns(arm: int, times_us: Sequence[float], *, number: int = 0, control: bool = False) -> Replicate:
    """Return a block with one window a turn."""
    windows = tuple(
        Window(turn * 10**9, turn * 10**9 + round(1000 * time_us), 0, round(1000 * time_us) + 50_000, 1, turn=turn)
        for turn, time_us in enumerate(times_us)
    )
    return Replicate(arm, control, number, arm, "choose", (), Series("call_time", "perf_counter_ns", "warm", windows))


def test_a_ratio_is_that_of_turns_and_survives_being_written(tmp_path: Path) -> None:
    weather = [100, 180, 100, 180, 180, 100, 180, 100]
    measurement = Measurement()
    for number in range(3):
        shifted = [*weather[number:], *weather[:number]]
        # The candidate takes 5 % less whatever the weather; half of its windows of one turn met another one.
        theirs = [0.95 * value for value in shifted]
        theirs[2], theirs[5] = theirs[2] * 1.8, theirs[5] / 1.8
        measurement.replicates += [in_turns(0, shifted, number=number), in_turns(1, theirs, number=number)]
    ratios = paired(measurement, 0, 1, phase="choose")
    assert list(ratios.values()) == pytest.approx([math.log(1 / 0.95)] * 3, rel=1e-3)
    again = measurement_of_rows(sample_rows(measurement, {0: "base", 1: "new"}))
    assert paired(again, 0, 1, phase="choose") == ratios
    SamplesLog(tmp_path / "samples.jsonl", {0: "base", 1: "new"}).add(measurement)
    assert log_ratios_at(read_samples(tmp_path), "base", "new", "") == pytest.approx(list(ratios.values()))
    seen = paired(measurement, 0, 1, phase="choose", second=True)
    assert all(0 < value < math.log(1 / 0.95) for value in seen.values()), "the parent's clock saw 50 us more of both"


def test_blocks_with_and_without_turns_meet_by_their_medians() -> None:
    measurement = Measurement()
    plain = in_turns(1, [50.0] * 5)
    windows = tuple(replace(window, turn=None) for window in plain.main.windows)
    measurement.replicates = [in_turns(0, [100.0] * 5), replace(plain, main=replace(plain.main, windows=windows))]
    assert paired(measurement, 0, 1, phase="choose")[0] == pytest.approx(math.log(2))


def test_what_is_no_file_is_not_taken(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the reference")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    for name in ("missing", "link", "pipe"):
        with pytest.raises(WrongWhenTimedError):
            _taken_away(tmp_path / name)
    with _taken_away(secret) as file:
        assert not secret.exists() and file.read() == b"of the reference"
