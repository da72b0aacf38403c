"""Events: written line by line, read whatever is torn."""

from __future__ import annotations

import json
from multiprocessing import get_context
from pathlib import Path

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.runs.events import EventWriter, parse_event, read_events
from magpie_tui.runs.layout import EVENTS

ROOT = Path(__file__).parent.parent.parent


def writer(directory: Path) -> EventWriter:
    return EventWriter.from_environment({"MAGPIE_TUI_RUN_DIR": str(directory)})


def test_outside_a_run_nothing_is_written(tmp_path: Path) -> None:
    EventWriter.from_environment({}).progress("step", done=1, total=2)
    assert list(tmp_path.iterdir()) == []


def test_events_match_their_schema_and_come_back(tmp_path: Path) -> None:
    events = writer(tmp_path)
    events.progress("build", message="two\nlines \x1b")
    events.workspace(tmp_path / "compare_x")
    events.progress("block", done=3, total=10)
    events.progress("load", done=float("nan"), total=float("inf"), unit="requests")
    events.progress("measure", done=706, total=1280, unit="requests", message="ä" * 10_000)
    schema = json.loads((ROOT / "docs" / "schemas" / "run_event.schema.json").read_text())
    lines = (tmp_path / EVENTS).read_text().splitlines()
    assert len(lines) == 5
    for line in lines:
        jsonschema.validate(json.loads(line), schema)
    progress, workspace = read_events(tmp_path / EVENTS)
    assert progress is not None
    assert progress.text == "measure: 706 of 1,280 requests"
    assert len(progress.message) == 2000
    assert progress.time is not None
    assert workspace == tmp_path / "compare_x"


def test_the_last_event_and_the_workspace_of_a_long_file(tmp_path: Path) -> None:
    events = writer(tmp_path)
    events.workspace(tmp_path / "w")
    with (tmp_path / EVENTS).open("a") as file:
        for number in range(20_000):
            file.write(json.dumps({"step": "block", "done": number, "total": 20_000}) + "\n")
        file.write('{"step": "torn", "do')
    progress, workspace = read_events(tmp_path / EVENTS)
    assert progress is not None
    assert (progress.text, workspace) == ("block 19,999 of 20,000", tmp_path / "w")


@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: json.dumps({"step": text}).encode()[:-1]))
def test_no_line_breaks_the_reader(line: bytes) -> None:
    event = parse_event(line)
    assert event is None or isinstance(event[0].step, str)


def test_odd_values_are_unknown() -> None:
    event = parse_event(b'{"step": "s", "done": "3", "total": true, "time": "noon", "unit": null, "workspace": 4}')
    assert event is not None
    progress, workspace = event
    assert (progress.done, progress.total, progress.time, progress.unit, workspace) == (None, None, None, "", None)


def write_many(directory: str) -> None:
    events = writer(Path(directory))
    for number in range(200):
        events.progress("step", done=number, message="m" * 1500)


def test_several_processes_of_a_run_do_not_mix_their_lines(tmp_path: Path) -> None:
    context = get_context("spawn")
    workers = [context.Process(target=write_many, args=(str(tmp_path),)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        worker.close()
    lines = (tmp_path / EVENTS).read_bytes().splitlines()
    assert len(lines) == 600
    assert all(parse_event(line) is not None for line in lines)


def test_a_place_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    writer(tmp_path / "gone").progress("step")
    (tmp_path / EVENTS).mkdir()
    writer(tmp_path).progress("step")
    assert read_events(tmp_path / EVENTS) == (None, None)
