"""Find an installed upstream ``magpie`` and build its command lines.

Upstream is another program (AMD-AGI/Magpie, console script ``magpie``, module ``Magpie``). It is only ever run, never
imported. Programs of the same name exist, so what is found is asked for its help before it is believed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from magpie_tui.basics.errors import MachineError, UserInputError
from magpie_tui.basics.json_strict import loads
from magpie_tui.basics.paths import expanded
from magpie_tui.machine.probe import Runner, run_tool

UpstreamMode = Literal["analyze", "compare"]

VARIABLE = "MAGPIE_TUI_UPSTREAM"
"""Names the console script, or the Python interpreter that has the package, where neither is found by itself."""
INSTALL_HINT = (
    "install it from its source: pip install git+https://github.com/AMD-AGI/Magpie (packages of that name on PyPI are "
    f"other programs), or name its script or its Python interpreter in the variable {VARIABLE}"
)
_MODULE = "Magpie"
_HELP_TIMEOUT_S = 60.0
"""The first start of a Python program on a network file system is slow."""

# Runs in upstream's interpreter; finds the package without importing it and prints one JSON line.
_ASK_VERSION = """
import importlib.metadata as metadata, importlib.util, json
spec = importlib.util.find_spec("Magpie")
found = {"origin": spec.origin if spec else None, "distribution": None, "version": None, "direct_url": None}
# What looks through the metadata of all packages takes long, and finds nothing where there is no module.
for name in metadata.packages_distributions().get("Magpie", []) if spec else []:
    distribution = metadata.distribution(name)
    found.update(distribution=name, version=distribution.version, direct_url=distribution.read_text("direct_url.json"))
    break
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """An upstream that was found and answered.

    Attributes:
        command: What starts it: the script, or interpreter, ``-m`` and module.
        version: Of its distribution, or of its module where no distribution is installed.
        commit: Of the checkout or source that it was installed from.
        package_directory: Where its module lies.
        reason: Why the version or the commit is ``None``.
    """

    command: tuple[str, ...]
    version: str | None = None
    commit: str | None = None
    package_directory: Path | None = None
    reason: str | None = None

    @property
    def text(self) -> str:
        """``magpie 0.3.0 (commit 0123abcd)`` as far as it is known."""
        version = self.version or "of unknown version"
        return f"magpie {version}" + (f" (commit {self.commit[:12]})" if self.commit else "")


@dataclass(frozen=True, slots=True)
class UpstreamOptions:
    """Options of one call; ``None`` leaves the choice to upstream.

    Attributes:
        framework_config: Its ``--config``.
        environment: ``local``, ``container`` or ``ray``.
        workers: Scheduler workers.
        docker_image: For the container environment.
        verbose: Log at DEBUG level.
        no_perf: Skip profiling.
        baseline: Index for compare; upstream accepts it and changes nothing by it.
        more: Further options of the sub-command, as typed (those of its latency line).
    """

    framework_config: Path | None = None
    environment: str | None = None
    workers: int | None = None
    docker_image: str | None = None
    verbose: bool = False
    no_perf: bool = False
    baseline: int | None = None
    more: tuple[str, ...] = ()


def find_upstream(
    environment: Mapping[str, str] | None = None,
    *,
    python: Path | None = None,
    runner: Runner = run_tool,
    with_version: bool = True,
) -> UpstreamTool:
    """Find upstream: in the interpreter given, by the variable, on PATH, then in our own interpreter.

    Args:
        environment: Whose PATH and variables count; the process's own when ``None``.
        python: Interpreter that has upstream installed.
        with_version: Also ask for version and commit.

    Raises:
        MachineError: None is installed, or what has its name is another program or does not start.
    """
    environ = dict(os.environ if environment is None else environment)
    refused: list[str] = []
    for command in _candidates(environ, python, runner):
        why = _why_not_upstream(command, environ, runner)
        if why is None:
            return _with_version(UpstreamTool(command), environ, runner) if with_version else UpstreamTool(command)
        refused.append(f"{' '.join(command)}: {why}")
    if refused:
        raise MachineError(f"the engine magpie cannot be used: {'; '.join(refused)}", hint=INSTALL_HINT)
    raise MachineError("the engine magpie is not installed", hint=INSTALL_HINT)


def _candidates(environ: Mapping[str, str], python: Path | None, runner: Runner) -> list[tuple[str, ...]]:
    if python is not None:
        return [(str(python), "-m", _MODULE)]
    named = environ.get(VARIABLE)
    if named:
        path = expanded(Path(named))
        return [(str(path), "-m", _MODULE)] if re.match(r"^python[\d.]*$", path.name) else [(str(path),)]
    found: list[tuple[str, ...]] = []
    script = shutil.which("magpie", path=environ.get("PATH", os.defpath))
    if script:
        found.append((str(Path(script).absolute()),))
    ours = (sys.executable, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({_MODULE!r}))")
    if runner(ours, timeout_s=_HELP_TIMEOUT_S, environment=environ).exit_code == 0:
        found.append((sys.executable, "-m", _MODULE))
    return found


def _why_not_upstream(command: tuple[str, ...], environ: Mapping[str, str], runner: Runner) -> str | None:
    """Why a command is not upstream; ``None`` when its help has the sub-commands and the option that upstream has."""
    output = runner((*command, "--help"), timeout_s=_HELP_TIMEOUT_S, environment=environ)
    if output.reason is not None:
        return output.reason
    if all(word in output.stdout for word in ("analyze", "compare", "benchmark", "--gpu-info", "--config")):
        # Our own program lists the same words.
        return "this is magpie-tui itself" if "magpie-tui" in output.stdout else None
    return "another program of that name (its help has no analyze, compare and --gpu-info)"


def _with_version(tool: UpstreamTool, environ: Mapping[str, str], runner: Runner) -> UpstreamTool:
    interpreter = _interpreter_of(tool.command)
    if interpreter is None:
        return UpstreamTool(tool.command, reason="its script names no Python interpreter")
    output = runner((*interpreter, "-c", _ASK_VERSION), timeout_s=_HELP_TIMEOUT_S, environment=environ)
    try:
        found = loads(output.stdout.strip().splitlines()[-1]) if output.reason is None else None
    except (ValueError, IndexError):
        found = None
    if not isinstance(found, dict):
        return UpstreamTool(tool.command, reason=output.reason or "its interpreter does not find the package")
    origin = found.get("origin")
    package = Path(origin).parent if isinstance(origin, str) else None
    version = found.get("version") if isinstance(found.get("version"), str) else _version_in_source(package)
    commit = _commit_of(found.get("direct_url"), package, environ, runner)
    reason = None
    if version is None or commit is None:
        missing = " and ".join(name for name, value in (("version", version), ("commit", commit)) if value is None)
        reason = f"neither its metadata nor its directory tells the {missing}"
    return UpstreamTool(tool.command, version, commit, package, reason)


def _interpreter_of(command: tuple[str, ...]) -> tuple[str, ...] | None:
    """The interpreter of ``python -m Magpie``, or that in the first line of a console script."""
    if len(command) > 1:
        return command[:1]
    try:
        with Path(command[0]).open("rb") as file:
            first = file.readline(1000)
    except OSError:
        return None
    line = first.decode("utf-8", "replace").strip()
    if not line.startswith("#!"):
        return None
    words = line[2:].split()
    if words and Path(words[0]).name == "env" and len(words) > 1:
        words = words[1:]
    return (words[0],) if words and "python" in Path(words[0]).name else None


def _version_in_source(package: Path | None) -> str | None:
    if package is None:
        return None
    try:
        text = (package / "__init__.py").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"""^__version__\s*=\s*["']([^"'\n]{1,50})["']""", text, re.MULTILINE)
    return found.group(1) if found else None


def _commit_of(direct_url: object, package: Path | None, environ: Mapping[str, str], runner: Runner) -> str | None:
    """The commit that pip recorded, else that of the checkout in which the package lies."""
    if isinstance(direct_url, str):
        try:
            recorded = loads(direct_url)["vcs_info"]["commit_id"]
        except (ValueError, KeyError, TypeError):
            recorded = None
        if isinstance(recorded, str):
            return recorded
    if package is None or not (package.parent / ".git").exists():
        return None
    command = ("git", "-C", str(package.parent), "rev-parse", "HEAD")
    output = runner(command, timeout_s=_HELP_TIMEOUT_S, environment=environ)
    text = output.stdout.strip()
    return text if output.reason is None and re.match(r"^[0-9a-f]{40,64}$", text) else None


def upstream_command(
    tool: UpstreamTool,
    mode: UpstreamMode,
    *,
    kernel_config: Path,
    output_dir: Path,
    options: UpstreamOptions | None = None,
) -> tuple[str, ...]:
    """Return the argument vector of one call: global options, sub-command, its options.

    Args:
        kernel_config: Config in upstream's form, absolute.
        output_dir: Parent of the workspace that it will make, absolute.

    Raises:
        UserInputError: A path is not absolute.
    """
    for path in (kernel_config, output_dir):
        if not path.is_absolute():
            raise UserInputError("upstream needs absolute paths", path=path)
    chosen = options or UpstreamOptions()
    command = list(tool.command)
    if chosen.framework_config is not None:
        command += ["--config", str(chosen.framework_config.absolute())]
    command += ["--verbose"] if chosen.verbose else []
    command += _pair("--environment", chosen.environment)
    command += _pair("--workers", chosen.workers)
    command += _pair("--docker-image", chosen.docker_image)
    command += [mode, "--kernel-config", str(kernel_config), "--output-dir", str(output_dir)]
    if mode == "compare":
        command += _pair("--baseline", chosen.baseline)
    command += ["--no-perf"] if chosen.no_perf else []
    return (*command, *chosen.more)


def _pair(name: str, value: str | int | None) -> Sequence[str]:
    return [] if value is None else [name, str(value)]
