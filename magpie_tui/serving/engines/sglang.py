"""SGLang: ``python -m sglang.launch_server``.

Sources: SGLang's documentation of server arguments, of production metrics and of profiling. Not run here: its wheels
need a GPU.
"""

from __future__ import annotations

from magpie_tui.serving.engines.model import (
    Engine,
    Installed,
    ProfilerControl,
    ServePlan,
    ServerCommand,
    is_given,
    option_of,
    with_options,
)


def _served_name(plan: ServePlan) -> str:
    return option_of(plan.extra, "--served-model-name") or plan.model


def _command(plan: ServePlan, installed: Installed) -> ServerCommand:
    python = "python3" if installed.python is None else str(installed.python)
    options = with_options(
        plan.extra,
        (
            (("--host",), plan.host),
            (("--port",), str(plan.port)),
            (("--tp-size", "--tensor-parallel-size", "--tp"), str(plan.tensor_parallel)),
            (("--revision",), plan.revision),
            (("--context-length",), None if plan.max_model_len is None else str(plan.max_model_len)),
            (("--mem-fraction-static",), None if plan.memory_fraction is None else f"{plan.memory_fraction:g}"),
            (("--dtype",), plan.dtype),
        ),
    )
    metrics = () if is_given(plan.extra, "--enable-metrics") else ("--enable-metrics",)
    environment: dict[str, str] = {}
    if plan.profile is not None:
        environment = {
            "SGLANG_TORCH_PROFILER_DIR": plan.profile.directory,
            "SGLANG_PROFILE_WITH_STACK": "False",
            "SGLANG_PROFILE_RECORD_SHAPES": "True",
        }
    argv = (python, "-m", "sglang.launch_server", "--model-path", plan.model, *options, *metrics)
    return ServerCommand(argv, environment, ("its command and profiler are those of SGLang's documentation",))


def _profiler(plan: ServePlan, _installed: Installed) -> ProfilerControl:
    profile = plan.profile
    if profile is None:
        return ProfilerControl()
    body = {
        "output_dir": profile.directory,
        "num_steps": profile.steps,
        "activities": ["CPU", "GPU"],
        "with_stack": False,
        "record_shapes": True,
    }
    return ProfilerControl(start_body=body, ends_itself=True)


SGLANG = Engine(
    name="sglang",
    module="sglang",
    distributions=("sglang",),
    script=None,
    asked_files=(),
    command=_command,
    profiler=_profiler,
    served_name=_served_name,
    reset_cache_path="/flush_cache",
)
