"""Options of ``benchmark`` that hold beside a config, for forms; the command line has the same (a test compares)."""

from __future__ import annotations

from magpie_tui.basics.options import OptionSpec

BENCHMARK_OPTIONS: tuple[OptionSpec, ...] = (
    OptionSpec("run_mode", ("--run-mode",), "choice", "Overrides the YAML.", choices=("docker", "local")),
    OptionSpec(
        "output_dir",
        ("--output-dir", "-o"),
        "path",
        "Where workspaces and gap analyses go.",
        default="./results",
        metavar="DIR",
    ),
)
"""With a config every other option of a run is taken from it."""
