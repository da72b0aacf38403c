"""Atom: ``python -m atom.entrypoints.openai.api_server`` (earlier ``atom.entrypoints.openai_server``).

Source: the argument parsers of the public repository ROCm/ATOM. Not run here: it needs an AMD GPU.
"""

from __future__ import annotations

from magpie_tui.serving.engines.model import (
    Engine,
    Installed,
    ProfilerControl,
    ServePlan,
    ServerCommand,
    option_of,
    with_options,
)

NEW_ENTRY = "entrypoints/openai/api_server.py"
OLD_ENTRY = "entrypoints/openai_server.py"


def _served_name(plan: ServePlan) -> str:
    return option_of(plan.extra, "--served-model-name") or plan.model


def _module(installed: Installed) -> tuple[str, tuple[str, ...]]:
    """Module to run, and what was assumed in choosing it."""
    if NEW_ENTRY in installed.files:
        return "atom.entrypoints.openai.api_server", ()
    if OLD_ENTRY in installed.files:
        return "atom.entrypoints.openai_server", ()
    # The early name is kept as an alias by releases that have both.
    return "atom.entrypoints.openai_server", ("the version of Atom is not known: its early entry point is used",)


def _command(plan: ServePlan, installed: Installed) -> ServerCommand:
    python = "python3" if installed.python is None else str(installed.python)
    module, assumptions = _module(installed)
    options = with_options(
        plan.extra,
        (
            (("--host",), plan.host),
            (("--server-port",), str(plan.port)),
            (("--tensor-parallel-size", "-tp"), str(plan.tensor_parallel)),
            (("--max-model-len",), None if plan.max_model_len is None else str(plan.max_model_len)),
            (("--gpu-memory-utilization",), None if plan.memory_fraction is None else f"{plan.memory_fraction:g}"),
            (("--torch-profiler-dir",), None if plan.profile is None else plan.profile.directory),
        ),
    )
    environment = {} if plan.profile is None else {"ATOM_TORCH_PROFILER_DIR": plan.profile.directory}
    if plan.dtype is not None:
        assumptions = (*assumptions, f"Atom takes the data type of the checkpoint; {plan.dtype} is not passed on")
    if plan.revision is not None:
        assumptions = (*assumptions, f"Atom has no option for the revision {plan.revision}")
    return ServerCommand((python, "-m", module, "--model", plan.model, *options), environment, assumptions)


def _profiler(_plan: ServePlan, _installed: Installed) -> ProfilerControl:
    return ProfilerControl(ends_itself=False, bounded=False)


ATOM = Engine(
    name="atom",
    module="atom",
    distributions=("atom", "atom-rocm"),
    script=None,
    asked_files=(NEW_ENTRY, OLD_ENTRY),
    command=_command,
    profiler=_profiler,
    served_name=_served_name,
)
