"""Write the configs of the serving demo: they name the environment and the model that `make_env.py` made.

    python examples/serving/make_configs.py ENVIRONMENT MODEL DIRECTORY

`few_slots.yaml` lets the server work on 2 requests at a time, `many_slots.yaml` on 16; the client keeps 8 in flight.
That is the one difference between them.
"""

from __future__ import annotations

import sys
from pathlib import Path

TEMPLATE = """\
# {title}
# Everything here runs on the CPU: vLLM built for it, and a model of 4 million random weights.
benchmark:
  framework: vllm
  model: {model}
  precision: bf16
  run_mode: local
  python: {environment}          # ours: the environment in which the framework is installed

  envs:
    TP: 1
    CONC: 8
    ISL: 64
    OSL: 32
    RANDOM_RANGE_RATIO: 1
    NUM_PROMPTS: {requests}
    MAX_MODEL_LEN: 2048
    PORT: {port}
    EXTRA_VLLM_ARGS: --served-model-name tiny --enforce-eager --max-num-seqs {slots}
    # No network, no reports to anybody, one thread: the client needs a core of its own.
    HF_HUB_OFFLINE: "1"
    TRANSFORMERS_OFFLINE: "1"
    VLLM_NO_USAGE_STATS: "1"
    DO_NOT_TRACK: "1"
    VLLM_CPU_KVCACHE_SPACE: "1"
    VLLM_CPU_OMP_THREADS_BIND: nobind
    OMP_NUM_THREADS: "1"

  profiler:
    torch_profiler:
      enabled: false
    tracelens:
      enabled: false

  load:                          # ours: upstream leaves it to its scripts
    warmup_requests: 8
    seed: 1

  timeout_seconds: 900
"""


def write(environment: Path, model: Path, directory: Path, *, requests: int = 64, port: int = 8131) -> list[Path]:
    """Write both configs and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, slots in (("few_slots", 2), ("many_slots", 16)):
        path = directory / f"{name}.yaml"
        text = TEMPLATE.format(
            title=f"vLLM on the CPU, {slots} requests at a time",
            environment=environment,
            model=model,
            requests=requests,
            port=port,
            slots=slots,
        )
        path.write_text(text)
        written.append(path)
    return written


if __name__ == "__main__":
    for written_path in write(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])):
        print(written_path)
