"""A benchmark config from the options of a command line, for those who have no file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magpie_tui.basics.text import utf8_bytes
from magpie_tui.configs.benchmark import BenchmarkConfig, read_benchmark_config
from magpie_tui.configs.positions import raise_on_errors
from magpie_tui.configs.syntax import parse_document

GIVEN_NAME = "benchmark.yaml"
"""Written beside the state of a run: what the options stand for, to be used again with ``-b``."""


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Options of ``benchmark`` without ``-b``; defaults are upstream's."""

    framework: str
    model: str
    precision: str = "fp8"
    tensor_parallel: int = 1
    concurrency: int = 32
    input_len: int = 1024
    output_len: int = 512
    torch_profiler: bool = False
    system_profiler: bool = False
    run_mode: str | None = None
    run_kind: str | None = None
    docker_image: str | None = None
    inferencex_path: str = ""
    benchmark_script: str | None = None
    timeout_s: int = 3600


def config_text(options: CommandOptions) -> str:
    """Return the YAML that the options stand for."""
    import yaml

    benchmark: dict[str, object] = {
        "framework": options.framework,
        "model": options.model,
        "precision": options.precision,
        "run_mode": options.run_mode or "docker",
        "envs": {
            "TP": options.tensor_parallel,
            "CONC": options.concurrency,
            "ISL": options.input_len,
            "OSL": options.output_len,
            "RANDOM_RANGE_RATIO": 0.5,
        },
        "profiler": {
            "torch_profiler": {"enabled": options.torch_profiler},
            "system_profiler": {"enabled": options.system_profiler},
        },
        "timeout_seconds": options.timeout_s,
    }
    more = {
        "run_kind": options.run_kind,
        "docker_image": options.docker_image,
        "inferencex_path": options.inferencex_path or None,
        "benchmark_script": options.benchmark_script,
    }
    benchmark |= {name: value for name, value in more.items() if value}
    text = yaml.safe_dump({"benchmark": benchmark}, sort_keys=False, allow_unicode=True)
    return f"# Written by magpie-tui from the options of its command line.\n{text}"


def check_options(options: CommandOptions) -> BenchmarkConfig:
    """Read what the options stand for.

    Raises:
        UserInputError: They contradict each other.
    """
    config = read_benchmark_config(parse_document(utf8_bytes(config_text(options)), Path("(command line)")))
    raise_on_errors(config.problems)
    return config
