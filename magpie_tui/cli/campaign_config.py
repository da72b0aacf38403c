"""``magpie-tui campaign config`` and ``campaign diff``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError, UserInputError
from magpie_tui.basics.text import printable
from magpie_tui.cli.output import wants_json, write, write_json
from magpie_tui.cli.trace_common import Salvage, StageOption, reading, stages_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from magpie_tui.campaigns.configure import Configured

SCHEMA = "magpie-tui/campaign_config/1"
DIFF_SCHEMA = "magpie-tui/campaign_diff/1"

TestSeconds = Annotated[
    float, typer.Option("--test-seconds", metavar="S", min=0, help="Limit of the existing test; 0 leaves it out.")
]


def config(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the campaign.")],
    kernel: Annotated[
        str | None,
        typer.Option("--kernel", metavar="NAME", help="A kernel, or a part that only one has; else the recommended."),
    ] = None,
    repos: Annotated[
        list[Path] | None,
        typer.Option("--repos", "--kernel-source-repos", metavar="DIR...", help="Checkouts to search for sources."),
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="PYTHON", help="Interpreter of the serving environment.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", metavar="TRACE|WORKSPACE", help="Trace to choose from (step 2's).")
    ] = None,
    stage: StageOption = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="FILE|NAME", help="Ceilings: a device, or a file of them.")
    ] = None,
    capture_folder: Annotated[
        Path | None, typer.Option("--capture-folder", metavar="DIR", help="Traces of the graph capture.")
    ] = None,
    test_seconds: TestSeconds = 600.0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there, the candidate included.")
    ] = False,
    salvage: Salvage = False,
) -> None:
    """Choose a kernel, run its existing test, and write its configs and a first candidate.

    The candidate is an untouched copy of the source; the original is never changed. What the trace and the sources do
    not tell is marked for a person, and config check lists it. Exit 1 when the existing test fails.

    Example: magpie-tui campaign config ./campaigns/one --repos ~/src/vllm
    """
    from magpie_tui.campaigns.choosing import ChoiceRequest
    from magpie_tui.campaigns.configure import ConfigureRequest, configure
    from magpie_tui.campaigns.file import load_campaign

    choice = ChoiceRequest(stages_from(stage), arch, tuple(repos or ()), python, capture_folder)
    request = ConfigureRequest(kernel, trace, choice, test_seconds, force)
    found = configure(load_campaign(directory), request, reading(salvage=salvage))
    if wants_json():
        write_json({"schema": SCHEMA, **_json(found)})
    else:
        for line in _lines(found):
            write(printable(line))
    if found.test.word == "failed":
        raise AnswerIsNoError(f"the existing test of this kernel fails: {found.test.detail}")


def _json(found: Configured) -> dict[str, object]:
    files = found.files
    return {
        "kernel": found.chosen.choice.evidence.name,
        "against": found.chosen.against or None,
        "analyze": files.analyze,
        "compare": files.compare,
        "candidate": files.candidate,
        "source": files.source,
        "copy": files.copy,
        "existing_test": {"outcome": found.test.word, "detail": found.test.detail},
        "gaps": list(files.gaps),
        "notes": list(files.notes),
    }


def _lines(found: Configured) -> Iterator[str]:
    item, files = found.chosen.choice.evidence, found.files
    yield f"kernel: {item.name}"
    yield f"  {item.share_of_stage_pct:.1f} % of the device time of stage {found.chosen.stage}, {item.calls} calls"
    if found.chosen.against:
        yield f"  against it: {found.chosen.against}"
    yield f"source, not to be changed: {files.source}"
    yield f"candidate a, to be changed: {files.copy}"
    for path in (files.analyze, files.candidate, files.compare):
        yield f"written: {path}"
    yield from files.notes
    yield f"existing test: {found.test.word}, {found.test.detail}"
    for text in files.gaps:
        yield f"for a person: {text}"


def diff(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of the campaign.")],
    label: Annotated[str | None, typer.Argument(metavar="LABEL", help="Which candidate; all without it.")] = None,
) -> None:
    """Print what candidates change against the baseline kernel: configs first, then sources.

    Example: magpie-tui campaign diff ./campaigns/one a
    """
    from magpie_tui.campaigns.difference import candidate_difference
    from magpie_tui.campaigns.file import load_campaign

    campaign = load_campaign(directory)
    labels = [label] if label is not None else list(campaign.candidates)
    if not labels:
        raise UserInputError("this campaign has no candidates", path=campaign.path, hint="campaign set --candidate")
    found = {name: candidate_difference(campaign, name) for name in labels}
    if wants_json():
        write_json({"schema": DIFF_SCHEMA, "candidates": {name: list(lines) for name, lines in found.items()}})
        return
    for name, lines in found.items():
        if len(found) > 1:
            write(f"candidate {printable(name)}")
        for line in lines:
            write(printable(line))
