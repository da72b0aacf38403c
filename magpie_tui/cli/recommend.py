"""``magpie-tui recommend``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from magpie_tui.basics.errors import AnswerIsNoError
from magpie_tui.cli.group import Command, command_app
from magpie_tui.cli.output import wants_json, write, write_json
from magpie_tui.cli.trace_common import Salvage, StageOption, TracePath, reading, say, stages_from

SCHEMA = "magpie-tui/recommend/1"

app = command_app("Name one kernel to work on, with the evidence.")


@app.command(cls=Command)
def recommend(
    workspace: TracePath,
    stage: StageOption = None,
    arch: Annotated[
        str | None, typer.Option("--arch", metavar="FILE|NAME", help="Ceilings: a device, or a file of them.")
    ] = None,
    repos: Annotated[
        list[Path] | None,
        typer.Option("--repos", "--kernel-source-repos", metavar="DIR...", help="Checkouts to search for sources."),
    ] = None,
    python: Annotated[
        str | None, typer.Option("--python", metavar="PYTHON", help="Interpreter of the serving environment.")
    ] = None,
    capture_folder: Annotated[
        Path | None, typer.Option("--capture-folder", metavar="DIR", help="Traces of the graph capture.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write Markdown (.md) or JSON (.json) to FILE too.")
    ] = None,
    salvage: Salvage = False,
) -> None:
    """Name one kernel to work on and up to four more, measured evidence apart from assumptions.

    Every kernel with more time that is passed over is listed with the reason. Exit 1 when none can be worked on safely.

    Example: magpie-tui recommend results/benchmark_vllm_20261130_101500 --repos ~/src/vllm
    """
    from magpie_tui.basics.files import write_json as write_json_file
    from magpie_tui.basics.files import write_text
    from magpie_tui.campaigns.choosing import ChoiceRequest, recommend_from_trace
    from magpie_tui.campaigns.recommend_text import recommendation_json, recommendation_lines

    request = ChoiceRequest(stages_from(stage), arch, tuple(repos or ()), python, capture_folder)
    found, path = recommend_from_trace(workspace, request, reading(salvage=salvage))
    say("note", f"trace: {path}")
    value = {"schema": SCHEMA, "trace": path, **recommendation_json(found)}
    text = "\n".join(recommendation_lines(found)) + "\n"
    if output is not None:
        if output.suffix == ".json":
            write_json_file(output, value)
        else:
            write_text(output, text)
    if wants_json():
        write_json(value)
    else:
        write(text.rstrip("\n"))
    if found.chosen is None:
        raise AnswerIsNoError(
            "no kernel can be worked on safely", hint="give checkouts with --repos, or an environment with --python"
        )
