"""Which checkouts and installed packages can be searched, and what they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.sources.model import Repository

_MARKS = (
    ("vllm", ("vllm/model_executor", "csrc/attention")),
    ("vllm", ("vllm/model_executor", "vllm/version.py")),
    ("sglang", ("python/sglang/srt",)),
    ("aiter", ("aiter/ops", "csrc")),
    ("aiter", ("op_tests", "csrc/kernels")),
    ("pytorch", ("aten/src/ATen",)),
    ("triton", ("python/triton_kernels",)),
    ("triton", ("python/triton", "lib/Dialect")),
    ("rocm-libraries", ("projects/composablekernel",)),
    ("rocm-libraries", ("projects/hipblaslt",)),
    ("rocm-libraries", ("include/ck_tile",)),
    ("rocm-systems", ("projects/clr",)),
    ("flashinfer", ("include/flashinfer", "csrc")),
    ("flash-attention", ("csrc/flash_attn",)),
    ("cutlass", ("include/cutlass", "tools/library")),
    ("tensorrt-llm", ("cpp/tensorrt_llm",)),
)
_PACKAGES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "aiter": "aiter",
    "aiter_meta": "aiter",
    "flashinfer": "flashinfer",
    "triton_kernels": "triton",
    "triton": "triton",
    "flash_attn": "flash-attention",
    "atom": "atom",
    "deep_gemm": "deep-gemm",
}
_URLS = {
    "vllm": "https://github.com/vllm-project/vllm/blob/main/",
    "sglang": "https://github.com/sgl-project/sglang/blob/main/",
    "aiter": "https://github.com/ROCm/aiter/blob/main/",
    "pytorch": "https://github.com/pytorch/pytorch/blob/main/",
    "triton": "https://github.com/triton-lang/triton/blob/main/",
    "rocm-libraries": "https://github.com/ROCm/rocm-libraries/blob/develop/",
    "rocm-systems": "https://github.com/ROCm/rocm-systems/blob/develop/",
    "flashinfer": "https://github.com/flashinfer-ai/flashinfer/blob/main/",
    "flash-attention": "https://github.com/Dao-AILab/flash-attention/blob/main/",
    "cutlass": "https://github.com/NVIDIA/cutlass/blob/main/",
    "tensorrt-llm": "https://github.com/NVIDIA/TensorRT-LLM/blob/main/",
}
_SITE = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
_SITE_SECONDS = 20


def identify(directory: Path) -> Repository:
    """Say what a directory is, by its layout; otherwise its name is its key.

    Raises:
        UserInputError: It is no directory.
    """
    if not directory.is_dir():
        raise UserInputError(
            "not a directory", path=directory, hint="give the directory of a checkout or of an installed package"
        )
    root = directory.absolute()
    for key, marks in _MARKS:
        if all((root / mark).exists() for mark in marks):
            return Repository(key, root)
    return Repository(root.name or str(root), root)


def installed_packages(python: str | None = None) -> tuple[Repository, ...]:
    """Return the packages of a Python environment in which kernels are known to lie.

    Args:
        python: Its interpreter; None for the one that runs this program.

    Raises:
        MachineError: The interpreter does not run.
    """
    site = Path(_site_directory(python))
    found = []
    for name, key in _PACKAGES.items():
        root = site / name
        if root.is_dir():
            found.append(Repository(key, root, installed=True))
    return tuple(found)


def _site_directory(python: str | None) -> str:
    if python is None:
        import sysconfig

        return sysconfig.get_paths()["purelib"]
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _SITE], capture_output=True, text=True, timeout=_SITE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MachineError(
            f"the interpreter does not run: {error}", path=python, hint="give the python of the serving environment"
        ) from None
    return answer.stdout.strip()


def public_url(repository: str, path: str) -> str | None:
    """Return where a file of a known repository lies publicly."""
    base = _URLS.get(repository)
    return f"{base}{path}" if base else None


def interpreter_of(repository: Repository) -> str:
    """Return an interpreter in whose environment a package's tests can run."""
    if repository.installed:
        for parent in repository.root.parents:
            candidate = parent / "bin" / "python"
            if candidate.exists():
                return str(candidate)
    return sys.executable if not repository.installed else "python"


def gather(repos: Sequence[Path], *, python: str | None = None, packages: bool = True) -> tuple[Repository, ...]:
    """Return the given checkouts, then the packages of an environment that no checkout of the same project replaces."""
    given = tuple(identify(repo) for repo in repos)
    if not packages:
        return given
    keys = {repository.key for repository in given}
    return given + tuple(package for package in installed_packages(python) if package.key not in keys)
