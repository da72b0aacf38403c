"""Campaigns: what is written, what is derived from it, and that a changed input makes exactly its dependents stale."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpie_tui.basics.errors import UserInputError
from magpie_tui.campaigns import edit
from magpie_tui.campaigns.advance import Outcome, advance, next_step
from magpie_tui.campaigns.file import load_campaign
from magpie_tui.campaigns.model import Action, Campaign, StepState
from magpie_tui.campaigns.state import view_campaign
from magpie_tui.campaigns.steps import BY_KEY, STEPS, dependents
from tests.campaigns.workspaces import analyzed, benchmarked, compared


@pytest.fixture
def walked(tmp_path: Path) -> Campaign:
    """A campaign of which the first seven steps are done."""
    files = {}
    for name in ("baseline", "profiled", "analyze", "compare", "candidate"):
        path = tmp_path / f"{name}.yaml"
        path.write_text(f"# {name}\n")
        files[name] = path
    candidate = files.pop("candidate")
    campaign = edit.new_campaign(tmp_path / "c", template="full", files=files)
    campaign = edit.set_candidate(campaign, "a", candidate)
    campaign = edit.link(campaign, BY_KEY["baseline"], benchmarked(tmp_path / "r1", 1))
    twin = benchmarked(tmp_path / "r2", 2)
    (twin / "tracelens").mkdir()
    table = "name,kernel_time_ms_sum\naten::mm,2.5\naten::add,0.5\n"
    (twin / "tracelens" / "decode_only_kernel_roofline_simple.csv").write_text(table)
    campaign = edit.link(campaign, BY_KEY["twin"], twin)
    campaign = edit.decide(campaign, BY_KEY["kernels"], {"kernel": "mm_kernel", "share_pct": 21.75})
    campaign = edit.link(campaign, BY_KEY["analyze"], analyzed(tmp_path / "r5", "base"))
    campaign = edit.link(campaign, BY_KEY["candidates"], analyzed(tmp_path / "r6", "a"), label="a")
    return edit.link(campaign, BY_KEY["compare"], compared(tmp_path / "r7"))


def states(campaign: Campaign) -> list[str]:
    return [view.state.value for view in view_campaign(campaign)]


def test_what_is_written_is_read_again(walked: Campaign) -> None:
    walked = edit.add_note(walked, BY_KEY["candidates"], 'B: "fewer waves", spills: drop it')
    walked = edit.skip(walked, BY_KEY["integrate"], "später")
    assert load_campaign(walked.directory) == walked
    assert load_campaign(walked.path) == walked


def test_states_and_findings(walked: Campaign) -> None:
    assert states(walked) == ["done"] * 7 + ["not started", "blocked"]
    views = {view.key: view for view in view_campaign(walked)}
    assert views["judge"].because == "by 8"
    assert views["kernels"].finding == "pick mm_kernel 21.8 % of the device time"
    assert views["stages"].finding == "decode_only one step of it 3.00 ms, most in aten::mm"
    action = views["integrate"].action
    assert action is not None
    assert action.person


def test_stages_are_weighed_by_all_steps_of_the_trace(walked: Campaign) -> None:
    twin = walked.step("twin").links[-1].path
    (twin / "tracelens" / "prefilldecode_kernel_roofline_simple.csv").write_text("name,kernel_time_ms_sum\nmm,9\n")
    split = twin / "torch_trace" / "trace_split"
    split.mkdir(parents=True)
    head = "output_path,gpu_busy_duration,phase_num_prefill,phase_num_prefilldecode,phase_num_decode,num_steps\n"
    steps = ["pd.json,9000.00,0,1,0,1", "d1.json,18000,0,0,1,1", "d2.json,9000,0,0,1,1"]
    windows = ["mixed_steady_state_0.json,99,0,1,0,1", "decode_only_steady_state_0.json,999,0,0,2,2"]
    (split / "execution_details.csv").write_text(head + "\n".join(steps + windows))
    finding = next(view for view in view_campaign(walked) if view.key == "stages").finding
    assert finding == (
        "decode_only 75.0 % of the kernel time of all steps, one step of it 3.00 ms, most in aten::mm; "
        "prefilldecode 25.0 % of the kernel time of all steps, one step of it 9.00 ms, most in mm"
    )


@pytest.mark.parametrize("skipped", ["before", "after"])
def test_skipping_what_has_no_result_makes_nothing_stale(tmp_path: Path, skipped: str) -> None:
    files = {name: tmp_path / f"{name}.yaml" for name in ("baseline", "profiled", "analyze", "compare")}
    for path in files.values():
        path.write_text("#\n")
    campaign = edit.new_campaign(tmp_path / "c", template="full", files=files)
    if skipped == "before":
        campaign = edit.skip(campaign, BY_KEY["baseline"], "known")
    campaign = edit.link(campaign, BY_KEY["twin"], benchmarked(tmp_path / "r", 1), adopted=True)
    if skipped == "before":
        campaign = edit.unskip(campaign, BY_KEY["baseline"])
    else:
        campaign = edit.skip(campaign, BY_KEY["baseline"], "known")
    assert states(campaign)[1] == "adopted"
    campaign = edit.link(campaign, BY_KEY["baseline"], benchmarked(tmp_path / "b", 2))
    assert states(campaign)[1] == "stale", "a result that is there now is news"


@pytest.mark.parametrize("name", ["baseline", "profiled", "analyze", "compare", "candidate"])
def test_a_changed_input_makes_exactly_the_dependents_stale(walked: Campaign, tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.yaml").write_text("# other\n")
    own = {"baseline": "baseline", "profiled": "twin", "candidate": "candidates"}.get(name, name)
    stale = {own, *dependents(own)} & {step.key for step in STEPS[:7]}
    # The stages' tables lie in the twin's workspace: they are about that run, whatever becomes of its config.
    found = {view.key for view in view_campaign(walked) if view.state is StepState.STALE}
    assert found == stale


def test_a_new_result_makes_what_rests_on_it_stale(walked: Campaign, tmp_path: Path) -> None:
    walked = edit.link(walked, BY_KEY["analyze"], analyzed(tmp_path / "again", "base"))
    views = {view.key: view for view in view_campaign(walked)}
    assert views["analyze"].state is StepState.DONE
    assert views["candidates"].state is StepState.STALE
    assert "5 Baseline kernel" in views["candidates"].because
    assert views["compare"].state is StepState.STALE
    report = next(view for view in view_campaign(walked) if view.key == "twin")
    assert report.state is StepState.DONE


def test_an_incorrect_kernel_is_a_failed_step(walked: Campaign, tmp_path: Path) -> None:
    walked = edit.link(walked, BY_KEY["analyze"], analyzed(tmp_path / "wrong", "base", correct=False))
    view = next(view for view in view_campaign(walked) if view.key == "analyze")
    assert view.state is StepState.FAILED
    # One candidate may fail while another one is right.
    walked = edit.link(walked, BY_KEY["candidates"], analyzed(tmp_path / "wrong", "b", correct=False), label="b")
    view = next(view for view in view_campaign(walked) if view.key == "candidates")
    assert view.state is not StepState.FAILED


def test_skipped_steps_block_nothing_and_can_be_taken_in_again(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="kernels")
    assert states(campaign) == ["skipped"] * 4 + ["not started", "blocked", "blocked", "skipped", "skipped"]
    campaign = edit.unskip(campaign, BY_KEY["twin"])
    assert states(campaign)[1] == "not started"


def test_smoke_campaign_has_all_its_files(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="smoke")
    for path in (*campaign.files.values(), *campaign.candidates.values()):
        assert path.is_file()
    text = campaign.candidates["o3"].read_text()
    assert "-O3" in text
    assert "-O2" not in text
    hip = edit.new_campaign(tmp_path / "h", template="smoke", hip=True)
    assert "hipcc" in hip.files["analyze"].read_text()


def test_advancing_runs_links_and_stops_at_a_person(tmp_path: Path) -> None:
    campaign = edit.new_campaign(tmp_path / "c", template="smoke")
    commands: list[tuple[str, ...]] = []

    def run(action: Action, output_dir: Path) -> Outcome:
        commands.append(action.command)
        kind = action.command[1]
        place = tmp_path / f"run{len(commands)}"
        return Outcome(0, compared(place) if kind == "compare" else analyzed(place, f"k{len(commands)}"))

    for _ in range(5):
        view = next_step(campaign)
        if view is not None:
            campaign = advance(campaign, view, run)
    assert [command[1] for command in commands] == ["analyze", "analyze", "compare"]
    assert commands[1][-1].endswith("results/walkthrough-candidate-o3")
    assert next_step(campaign) is None
    assert load_campaign(campaign.directory).steps["candidates"].links[0].label == "o3"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version: 1\nname: [\n", "not YAML"),
        ("- &a [*a]\n", "aliases expand|nested"),
        pytest.param("version: " + "9" * 5000, "cannot be read", id="digits"),
        pytest.param("[" * 3000, "nest", id="deep"),
        ('version: 1\nname: x\ntemplate: full\ncreated: x\noutput_dir: "a\\0b"\n', "no path"),
        ("version: 7\n", "this program reads 1"),
        ("- a\n", "expected keys and values"),
        ("version: 1\nname: x\ntemplate: full\ncreated: x\noutput_dir: r\nsteps: {dance: {}}\n", "no such step"),
        ("version: 1\nname: x\ntemplate: full\ncreated: x\noutput_dir: r\nwords: 1\n", "unknown key"),
        ("version: 1\nname: x\ntemplate: waltz\ncreated: x\noutput_dir: r\n", "no template"),
    ],
)
def test_a_damaged_file_says_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "campaign.yaml").write_text(text)
    with pytest.raises(UserInputError, match=words):
        load_campaign(tmp_path)


def test_times_without_quotes_are_read_as_they_are_written(walked: Campaign) -> None:
    text = walked.path.read_text()
    assert "created: '" in text
    walked.path.write_text(text.replace("'", ""))
    assert load_campaign(walked.directory).created == walked.created


def test_wrong_requests_are_refused(walked: Campaign, tmp_path: Path) -> None:
    with pytest.raises(UserInputError, match="here already"):
        edit.new_campaign(walked.directory, template="full")
    with pytest.raises(UserInputError, match="no campaign is here"):
        load_campaign(tmp_path / "nowhere")
    with pytest.raises(UserInputError, match="takes analyze"):
        edit.link(walked, BY_KEY["analyze"], benchmarked(tmp_path / "x", 9))
    with pytest.raises(UserInputError, match="no workspace"):
        edit.link(walked, BY_KEY["analyze"], tmp_path)
    with pytest.raises(UserInputError, match="no way of integration"):
        edit.set_integration(walked, "prayer", "")
    with pytest.raises(UserInputError, match="there is no step"):
        edit.find_step("12")
    trace = tmp_path / "trace.json"
    trace.write_text('{"traceEvents": [{"ph": "X"')
    with pytest.raises(UserInputError, match="no kernel config"):
        edit.set_candidate(walked, "a", trace)
    with pytest.raises(UserInputError, match="no benchmark config"):
        edit.new_campaign(tmp_path / "new", template="full", files={"baseline": trace})
    assert not (tmp_path / "new").exists()


@settings(max_examples=25)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_survives(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        campaign = edit.new_campaign(Path(directory) / "c", template="full", name=name)
        campaign = edit.skip(campaign, BY_KEY["twin"], text)
        assert load_campaign(campaign.directory) == campaign


def test_times_are_listed_in_the_zone_of_the_machine(walked: Campaign) -> None:
    link = walked.step("twin").links[-1]
    walked.path.write_text(walked.path.read_text().replace(link.time, "2026-11-30T12:00:00Z"))
    environment = {**os.environ, "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "magpie_tui", "campaign", "show", str(walked.directory)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "2026-11-30 21:00:00" in done.stdout
    assert "12:00:00Z" not in done.stdout
