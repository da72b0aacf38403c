"""Compile and JIT caches from which a server could still take the old kernel after the new one is installed.

Each tool's place is the one that its variable names, else its documented default, in the environment of the server:
ours with the ``envs`` of the config on top. Nothing else is looked at: no cache of another user, none that belongs to
an interpreter that neither config names.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from magpie_tui.basics.errors import MagpieTuiError
from magpie_tui.basics.paths import expanded, home_directory
from magpie_tui.campaigns.model import Campaign
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config
from magpie_tui.machine.probe import run_tool

_MOST_COUNTED = 20_000
"""Files whose sizes are added; a larger cache has no size here."""
_PROBE = "import importlib.util as u; s = u.find_spec('aiter'); print(s.origin if s and s.origin else '')"
_PROBE_SECONDS = 20.0
_USER_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")
ARMS = {"A": "baseline", "B": "optimized"}


@dataclass(frozen=True, slots=True)
class Cache:
    """One place of one tool.

    Attributes:
        path: Absolute; a directory, or a single built library.
        variable: What moves it, to be set under ``envs`` of a config; empty where nothing does.
        by_name: The tool takes what is there by its name, without a look at the source it was built from.
        arms: Which of A (baseline) and B (optimized) use it.
        against: Why it is not moved aside; empty where it is.
        bytes, files: None where there are too many files to count, and where it does not exist.
    """

    tool: str
    path: Path
    variable: str
    by_name: bool
    arms: tuple[str, ...]
    exists: bool
    against: str = ""
    bytes: int | None = None
    files: int | None = None

    @property
    def is_shared_by_name(self) -> bool:
        """Both sides take what the other one built."""
        return self.by_name and len(self.arms) > 1


@dataclass(frozen=True, slots=True)
class CacheList:
    """All caches of a campaign's two servers; ``notes`` say what could not be looked at, and why."""

    caches: tuple[Cache, ...]
    notes: tuple[str, ...] = ()

    @property
    def there(self) -> tuple[Cache, ...]:
        """Those that exist."""
        return tuple(cache for cache in self.caches if cache.exists)

    @property
    def to_move(self) -> tuple[Cache, ...]:
        """Those that exist and can be moved aside."""
        return tuple(cache for cache in self.there if not cache.against)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tool keeps what it built: the variable's value, or the default, and what lies below it."""

    tool: str
    variable: str
    default: str
    below: tuple[str, ...] = ("",)
    below_variable: str = ""
    by_name: bool = False
    more_variables: tuple[str, ...] = field(default=())


# {home} is the user's directory, {cache} XDG_CACHE_HOME or ~/.cache, {tmp} TMPDIR or /tmp, {user} the user's name.
_PLACES = (
    _Place("torch inductor", "TORCHINDUCTOR_CACHE_DIR", "{tmp}/torchinductor_{user}"),
    _Place("Triton", "TRITON_CACHE_DIR", "{triton_home}/.triton/cache"),
    _Place("vLLM torch.compile", "VLLM_CACHE_ROOT", "{cache}/vllm", ("torch_compile_cache", "torch_aot_compile")),
    _Place("vLLM DeepGEMM", "VLLM_CACHE_ROOT", "{cache}/vllm", ("deep_gemm",)),
    _Place("SGLang", "SGLANG_CACHE_DIR", "{cache}/sglang", more_variables=("SGLANG_CACHE_ROOT",)),
    _Place("SGLang DeepGEMM", "SGLANG_DG_CACHE_DIR", "{cache}/deep_gemm"),
    _Place("DeepGEMM", "DG_JIT_CACHE_DIR", "{home}/.deep_gemm", more_variables=("DG_CACHE_DIR",)),
    _Place("AITER modules", "AITER_JIT_DIR", "{home}/.aiter/jit", by_name=True, more_variables=("JIT_WORKSPACE_DIR",)),
    _Place("AITER templates", "AITER_ROOT_DIR", "{home}/.aiter", ("build",), by_name=True),
    _Place("FlyDSL", "FLYDSL_RUNTIME_CACHE_DIR", "{home}/.flydsl/cache"),
    _Place("FlashInfer", "FLASHINFER_WORKSPACE_BASE", "{home}", (".cache/flashinfer",), by_name=True),
    _Place("TileLang", "TILELANG_CACHE_DIR", "{home}/.tilelang/cache"),
    _Place("TVM FFI", "TVM_FFI_CACHE_DIR", "{cache}/tvm-ffi"),
    _Place("torch extensions", "TORCH_EXTENSIONS_DIR", "{cache}/torch_extensions", by_name=True),
    _Place("torch NVRTC/hipRTC", "PYTORCH_KERNEL_CACHE_PATH", "{cache}/torch/kernels"),
    _Place("AMD comgr (HIP, hipRTC)", "AMD_COMGR_CACHE_DIR", "{cache}/comgr"),
    _Place("MIOpen kernels", "MIOPEN_CUSTOM_CACHE_DIR", "{cache}/miopen"),
    _Place("CUDA driver JIT", "CUDA_CACHE_PATH", "{home}/.nv/ComputeCache"),
)


def list_caches(campaign: Campaign, environment: Mapping[str, str] | None = None) -> CacheList:
    """Find the caches of both servers of the last step.

    Args:
        environment: What a server inherits; ours by default.
    """
    environ = dict(os.environ if environment is None else environment)
    found: dict[Path, Cache] = {}
    notes: list[str] = []
    for arm, name in ARMS.items():
        path = campaign.files.get(name)
        if path is None:
            notes.append(f"{arm}: the {name} config is not named")
            continue
        try:
            config = load_benchmark_config(path)
        except MagpieTuiError as error:
            notes.append(f"{arm}: the {name} config cannot be read: {error.message}")
            continue
        if config.run_mode != "local":
            notes.append(f"{arm}: {_ELSEWHERE.get(config.run_mode, 'it runs elsewhere')}")
            continue
        for cache in _caches_of(config, environ, notes, arm):
            known = found.get(cache.path)
            found[cache.path] = cache if known is None else _merged(known, cache)
    keep = _Keep.of(campaign, environ)
    return CacheList(tuple(_examined(cache, found, keep) for cache in found.values()), tuple(dict.fromkeys(notes)))


_ELSEWHERE = {
    "docker": "the server runs in a container that is made anew for each run: its compile caches end with it",
    "ray": "the server runs on other machines, whose caches are not looked at from here",
}


def _merged(one: Cache, other: Cache) -> Cache:
    tools = one.tool if other.tool in one.tool.split(", ") else f"{one.tool}, {other.tool}"
    arms = tuple(dict.fromkeys((*one.arms, *other.arms)))
    return Cache(tools, one.path, one.variable, one.by_name or other.by_name, arms, one.exists)


def _caches_of(config: BenchmarkConfig, environ: Mapping[str, str], notes: list[str], arm: str) -> Iterator[Cache]:
    seen = {**environ, **config.envs}
    words = _words(seen)
    for place in _PLACES:
        variables = (place.variable, *place.more_variables)
        given = next((seen[name] for name in variables if seen.get(name)), None)
        base = expanded(Path(given)) if given else Path(place.default.format(**words))
        for below in place.below:
            path = Path(os.path.normpath((base / below).absolute()))
            yield Cache(place.tool, path, place.variable, place.by_name, (arm,), os.path.lexists(path))
    if not (seen.get("AITER_JIT_DIR") or seen.get("JIT_WORKSPACE_DIR")):
        yield from _built_into_aiter(config, seen, notes, arm)


def _words(environ: Mapping[str, str]) -> dict[str, str]:
    home = str(home_directory(environ))
    cache = environ.get("XDG_CACHE_HOME") or f"{home}/.cache"
    return {
        "home": home,
        "cache": cache,
        "tmp": environ.get("TMPDIR") or "/tmp",
        "user": next((environ[name] for name in _USER_VARIABLES if environ.get(name)), None) or getpass.getuser(),
        "triton_home": environ.get("TRITON_HOME") or home,
    }


def _built_into_aiter(
    config: BenchmarkConfig, environ: Mapping[str, str], notes: list[str], arm: str
) -> Iterator[Cache]:
    """What AITER built beside its own sources, which it does where its package can be written."""
    package = _aiter_package(config, environ, notes, arm)
    if package is None:
        return
    jit = package / "jit"
    for path in (jit / "build", *sorted(jit.glob("*.so"))):
        yield Cache("AITER package", path, "AITER_JIT_DIR", True, (arm,), os.path.lexists(path))


def _aiter_package(config: BenchmarkConfig, environ: Mapping[str, str], notes: list[str], arm: str) -> Path | None:
    for entry in (environ.get("PYTHONPATH") or "").split(os.pathsep):
        if entry and (Path(entry) / "aiter" / "jit").is_dir():
            return Path(entry, "aiter").absolute()
    python = config.value("python")
    if not isinstance(python, str):
        notes.append(f"{arm}: its config names no `python:`, so that libraries built inside the package AITER are not "
                     "looked for")  # fmt: skip
        return None
    place = expanded(Path(python))
    interpreter = place / "bin" / "python" if place.is_dir() else place
    answer = run_tool((str(interpreter), "-I", "-c", _PROBE), timeout_s=_PROBE_SECONDS, environment=dict(environ))
    if answer.reason is not None:
        notes.append(f"{arm}: {interpreter} does not say where AITER is: {answer.reason}")
        return None
    origin = answer.stdout.strip()
    return Path(origin).parent if origin else None


@dataclass(frozen=True, slots=True)
class _Keep:
    """Places that must stay where they are, with all that is above them."""

    places: Mapping[Path, str]

    @classmethod
    def of(cls, campaign: Campaign, environ: Mapping[str, str]) -> _Keep:
        named = {
            home_directory(environ): "the home directory",
            Path(environ.get("TMPDIR") or "/tmp"): "the directory of temporary files",
            Path.cwd(): "the current directory",
            campaign.directory: "the campaign",
            campaign.output_dir: "the campaign's results",
            **dict.fromkeys(campaign.files.values(), "a config"),
        }
        return cls({Path(os.path.realpath(path)): what for path, what in named.items()})

    def above(self, path: Path) -> str:
        """Return what a place holds that must stay; empty where it holds nothing of the kind."""
        real = Path(os.path.realpath(path))
        return next((what for place, what in self.places.items() if place == real or real in place.parents), "")


def _examined(cache: Cache, all_of_them: Mapping[Path, Cache], keep: _Keep) -> Cache:
    """Add size and the reason why it stays, for one that exists."""
    if not cache.exists:
        return cache
    size, files = _size(cache.path)
    return Cache(
        cache.tool, cache.path, cache.variable, cache.by_name, cache.arms, True,
        _against(cache, all_of_them, keep), size, files,
    )  # fmt: skip


def _against(cache: Cache, all_of_them: Mapping[Path, Cache], keep: _Keep) -> str:
    path = cache.path
    held = keep.above(path)
    if held:
        return f"it holds {held}: give the tool a directory of its own by {cache.variable}"
    outer = next((other for other in all_of_them.values() if other.exists and other.path in path.parents), None)
    if outer is not None:
        return f"it goes with {outer.path}"
    try:
        owner = path.lstat().st_uid
    except OSError as error:
        return f"it cannot be looked at: {error.strerror or error}"
    if owner != os.geteuid():
        return f"it belongs to another user (uid {owner})"
    if path.is_mount():
        return "it is a mount point, which cannot be renamed"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"{path.parent} cannot be written"
    return ""


def _size(path: Path) -> tuple[int | None, int | None]:
    """Bytes and number of files; None for both where there are too many to count."""
    try:
        if not path.is_dir():
            return path.lstat().st_size, 1
        total = files = 0
        for directory, _, names in os.walk(path):
            for name in names:
                files += 1
                if files > _MOST_COUNTED:
                    return None, None
                total += Path(directory, name).lstat().st_size
    except OSError:
        return None, None
    return total, files
