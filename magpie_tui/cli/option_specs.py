"""Command-line options from the declarations that forms use too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from typer.core import TyperArgument, TyperOption

from magpie_tui.basics.options import OptionSpec


def _type(spec: OptionSpec) -> click.ParamType[Any] | None:
    if spec.kind == "integer":
        low = None if spec.minimum is None else int(spec.minimum)
        high = None if spec.maximum is None else int(spec.maximum)
        return click.IntRange(low, high)
    if spec.kind == "number":
        return click.FloatRange(spec.minimum, spec.maximum)
    if spec.kind == "choice":
        return click.Choice(list(spec.choices))
    if spec.kind in ("path", "paths"):
        return click.Path(path_type=Path)
    return None if spec.kind == "flag" else click.STRING


def click_parameter(spec: OptionSpec) -> click.Parameter:
    """Return the click option, or argument, that a declaration stands for."""
    settings: dict[str, Any] = {"type": _type(spec), "required": spec.required, "default": spec.default}
    if spec.metavar:
        settings["metavar"] = spec.metavar
    if not spec.flags:
        return TyperArgument(param_decls=[spec.name], nargs=-1 if spec.several else 1, help=spec.help, **settings)
    names = list(spec.flags)
    if spec.kind == "flag":
        if spec.negative_flag:
            names[0] = f"{names[0]}/{spec.negative_flag}"
        settings |= {"is_flag": True, "default": bool(spec.default)}
    if spec.several:
        settings |= {"multiple": True, "default": spec.default or ()}
    return TyperOption(param_decls=[*names, spec.name], help=spec.help, **settings)


def click_parameters(specs: Sequence[OptionSpec]) -> list[click.Parameter]:
    """Return the click parameters of a whole command."""
    return [click_parameter(spec) for spec in specs]
