"""``magpie-tui config new|check|add|show|review|twin|diff``."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from magpie_tui.basics.errors import ExitCode, UserInputError
from magpie_tui.basics.text import plural, printable
from magpie_tui.cli import config_add
from magpie_tui.cli.context import global_options
from magpie_tui.cli.group import Command, group_app
from magpie_tui.cli.output import (
    Column,
    ListFormat,
    format_table,
    print_listing,
    terminal_width,
    wants_json,
    write,
    write_json,
)

if TYPE_CHECKING:
    from magpie_tui.configs.check import ConfigKind, Mode
    from magpie_tui.configs.effective import EffectiveConfig, Overrides
    from magpie_tui.configs.positions import Problem

app = group_app("Check, show, compare and copy configs.")


class Kind(str, Enum):
    """What a file is meant to be, where its keys do not tell."""

    kernel = "kernel"
    benchmark = "benchmark"
    framework = "framework"


class Purpose(str, Enum):
    """What a kernel config is meant for."""

    analyze = "analyze"
    compare = "compare"


KindOption = Annotated[Kind | None, typer.Option("--kind", help="What the file is meant to be; else its keys tell.")]
PurposeOption = Annotated[Purpose | None, typer.Option("--mode", help="What a kernel config is meant for.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]


def _kind(kind: Kind | None) -> ConfigKind | None:
    return None if kind is None else kind.value


def _mode(mode: Purpose | None) -> Mode | None:
    return None if mode is None else mode.value


def _note(text: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"magpie-tui: {printable(text)}\n")


def _note_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems:
        sys.stderr.write(f"{problem.text}\n")


def _overrides() -> Overrides:
    from magpie_tui.configs.effective import Overrides

    options = global_options()
    return Overrides(environment=options.environment, workers=options.workers, docker_image=options.docker_image)


def _effective(path: Path, kind: Kind | None) -> EffectiveConfig:
    from magpie_tui.configs.effective import effective_config

    return effective_config(path, framework_path=global_options().config, kind=_kind(kind), overrides=_overrides())


@app.command("new", cls=Command)
def new_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Config to copy; without it all are listed.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to, else its own name here.")
    ] = None,
    force: ForceOption = False,
    list_format: Annotated[ListFormat, typer.Option("--format", help="How to print the list.")] = ListFormat.table,
) -> None:
    """List the shipped configs, or copy one together with the sources that it names.

    Example: magpie-tui config new kernels/hip_analyze -o rms/analyze.yaml
    """
    from magpie_tui.configs.shipped import copy_shipped, find_shipped, list_shipped

    configs = list_shipped()
    if name is None:
        if output is not None:
            raise UserInputError("which config shall be copied?", hint="magpie-tui config new lists them", key="NAME")
        print_listing(
            [Column("name"), Column("kind"), Column("what for", shrink=True)],
            [(config.name, config.kind, config.description) for config in configs],
            list_format=list_format,
            json_value={
                "configs": [
                    {"name": config.name, "kind": config.kind, "description": config.description, "path": config.path}
                    for config in configs
                ]
            },
            empty="no configs are shipped with this installation",
        )
        return
    config = find_shipped(name, configs)
    written = copy_shipped(config, output or Path(config.path.name), force=force)
    if wants_json():
        write_json({"name": config.name, "written": list(written)})
        return
    for path in written:
        write(printable(path))
    _note(f"next: magpie-tui config check {written[0]}")


@app.command("check", cls=Command)
def check_command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Kernel, benchmark or framework configs.")],
    kind: KindOption = None,
    mode: PurposeOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
) -> None:
    """Find everything that is wrong, with file:line:column. Exit status 2 when there is an error.

    Example: magpie-tui config check configs/kernels/*.yaml
    """
    from magpie_tui.configs.check import check_file
    from magpie_tui.configs.display import check_summary, checks_json

    checks = [check_file(path, kind=_kind(kind), mode=_mode(mode)) for path in files]
    if wants_json():
        write_json(checks_json(checks))
    else:
        for check in checks:
            for problem in check.problems:
                write(problem.text)
            write(f"{printable(check.path)}: {check_summary(check)}")
    bad = [check for check in checks if check.errors or (strict and check.problems)]
    if bad:
        raise typer.Exit(ExitCode.USER_INPUT)


app.command("add", cls=config_add.COMMAND)(config_add.add)


@app.command("show", cls=Command)
def show_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A config.")],
    kind: KindOption = None,
    changed: Annotated[bool, typer.Option("--changed", help="Leave defaults out.")] = False,
    list_format: Annotated[ListFormat, typer.Option("--format", help="How to print.")] = ListFormat.table,
) -> None:
    """Print the effective config: every value, and where it comes from. Commands are shown as they would be run.

    Example: magpie-tui config show kernels.yaml --config framework.yaml --workers 2
    """
    from magpie_tui.configs.display import effective_json, value_text

    config = _effective(file, kind)
    settings = [item for item in config.settings.values() if not (changed and item.origin.kind == "default")]
    _note_problems(config.problems)
    json_value = effective_json(config)
    if changed:
        kept = {item.key for item in settings}
        json_value["settings"] = [
            item for item in cast("list[dict[str, object]]", json_value["settings"]) if item["key"] in kept
        ]
    if list_format is ListFormat.table and not wants_json():
        rows = [(item.key, value_text(item), item.origin.text) for item in settings]
        write(format_table([Column("key"), Column("value"), Column("from")], rows))
        return
    print_listing(
        [Column("key"), Column("value"), Column("from")],
        [(item.key, value_text(item), item.origin.text) for item in settings],
        list_format=list_format,
        json_value=json_value,
        empty="",
    )


@app.command("review", cls=Command)
def review_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A config.")],
    kind: KindOption = None,
    mode: PurposeOption = None,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", "-o", metavar="DIR", help="Where results will go.")
    ] = Path("results"),
) -> None:
    """Check a config, and whether this machine has what it needs. Exit status 3 when something blocks it.

    Example: magpie-tui config review configs/benchmarks/vllm_h200_clean.yaml
    """
    from magpie_tui.configs.display import review_json
    from magpie_tui.serving.preflight import review as review_config

    review = review_config(
        file,
        kind=_kind(kind),
        mode=_mode(mode),
        framework_path=global_options().config,
        overrides=_overrides(),
        output_dir=output_dir,
    )
    if wants_json():
        write_json(review_json(review))
    else:
        for problem in review.problems:
            write(problem.text)
        if review.items:
            rows = [(item.status, item.name, item.evidence, item.hint or "") for item in review.items]
            columns = [
                Column("status"),
                Column("item"),
                Column("evidence", shrink=True, wrap=True),
                Column("what to do", shrink=True, wrap=True),
            ]
            write(format_table(columns, rows, width=terminal_width(160)))
        blockers = len(review.blockers)
        write(
            f"{plural(blockers, 'blocker')}"
            if blockers
            else ("errors in the config" if review.has_errors else "no blocker")
        )
    if review.has_errors:
        raise typer.Exit(ExitCode.USER_INPUT)
    if review.blockers:
        raise typer.Exit(ExitCode.MACHINE)


@app.command("twin", cls=Command)
def twin_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A benchmark config, clean or profiled.")],
    directory: Annotated[
        Path | None, typer.Option("--output-dir", "-o", metavar="DIR", help="Where to write, else beside FILE.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a clean and a profiled config that differ in the profiler block only, and prove it.

    Example: magpie-tui config twin bench.yaml -o configs/
    """
    from magpie_tui.configs.display import change_json, value_text
    from magpie_tui.configs.twin import make_twins, write_twins

    twins = make_twins(file, directory=directory)
    clean, profiled = write_twins(twins, force=force)
    if wants_json():
        write_json(
            {
                "clean": clean,
                "profiled": profiled,
                "keeps_comments": twins.keeps_comments,
                "changes": [change_json(change) for change in twins.changes],
            }
        )
        return
    write(f"clean     {printable(clean)}")
    write(f"profiled  {printable(profiled)}")
    if not twins.keeps_comments:
        _note("the files were written anew: comments and anchors of the original are not in them")
    rows = [(change.key, value_text(change.first), value_text(change.second)) for change in twins.changes]
    write(format_table([Column("differs"), Column("clean"), Column("profiled")], rows))
    write("nothing else differs")


@app.command("diff", cls=Command)
def diff_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="A config.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another config of the same kind.")],
    kind: KindOption = None,
) -> None:
    """Print the differences of two effective configs: workload, profiler, environment, or by kernel.

    Example: magpie-tui config diff clean.yaml profiled.yaml
    """
    from magpie_tui.configs.difference import compare_configs
    from magpie_tui.configs.display import difference_json, value_text

    left, right = _effective(first, kind), _effective(second, kind)
    difference = compare_configs(left, right)
    if wants_json():
        write_json(difference_json(difference, left, right))
        return
    if difference.is_empty:
        write("no effective difference")
    for group in difference.groups:
        rows = [(change.key, value_text(change.first), value_text(change.second)) for change in group.changes]
        columns = [Column(group.name), Column("A", shrink=True), Column("B", shrink=True)]
        write(format_table(columns, rows, width=terminal_width(160)))
        if group is not difference.groups[-1]:
            write()
