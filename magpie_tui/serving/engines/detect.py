"""What is installed where: the framework of an environment or an image, found without importing it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from magpie_tui.basics.paths import expanded
from magpie_tui.machine.probe import Runner, run_tool
from magpie_tui.serving.engines.model import Engine, Installed

_PROBE = """
import importlib.metadata, importlib.util, json, sys
module, distributions, files = json.loads(sys.argv[1])
spec = importlib.util.find_spec(module)
places = [] if spec is None else list(spec.submodule_search_locations or [])
version = None
for name in distributions:
    try:
        version = importlib.metadata.version(name)
        break
    except importlib.metadata.PackageNotFoundError:
        pass
import os
there = [file for file in files if any(os.path.isfile(os.path.join(place, file)) for place in places)]
print(json.dumps({"found": spec is not None, "version": version, "files": there}))
"""
_PROBE_TIMEOUT_S = 20.0
_TAG = re.compile(r":([^:/@]+)(?:@|$)")


def detect_local(
    engine: Engine,
    python: str | None,
    *,
    environment: Mapping[str, str] | None = None,
    runner: Runner = run_tool,
) -> Installed:
    """Find the framework in an environment of this machine.

    Args:
        python: Interpreter or directory of a virtual environment; None looks for the console script on ``PATH`` and
            then at the interpreter that runs us.
    """
    environ = dict(os.environ if environment is None else environment)
    interpreter, script, reason = _places(engine, python, environ)
    if interpreter is None:
        return Installed(reason=reason)
    query = json.dumps([engine.module, engine.distributions, engine.asked_files])
    # -I: what lies in the working directory is not the framework.
    answer = runner((str(interpreter), "-I", "-c", _PROBE, query), timeout_s=_PROBE_TIMEOUT_S, environment=environ)
    facts = _facts(answer.stdout)
    if facts is None:
        why = (answer.reason or answer.stderr.strip()[-300:] or "it printed no answer").strip()
        return Installed(interpreter, reason=f"{interpreter} cannot be asked: {why}")
    if not facts["found"] and script is None:
        return Installed(interpreter, reason=f"no module {engine.module!r} in {interpreter}")
    version, files = facts["version"], facts["files"]
    return Installed(
        python=interpreter,
        script=script,
        version=version if isinstance(version, str) else None,
        source="environment",
        files=frozenset(str(item) for item in files) if isinstance(files, list) else frozenset(),
        reason=None if version else f"no installed distribution of {', '.join(engine.distributions)} tells a version",
    )


def _facts(text: str) -> dict[str, object] | None:
    for line in reversed(text.splitlines()):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and {"found", "version", "files"} <= set(value):
            return value
    return None


def _places(
    engine: Engine, python: str | None, environ: Mapping[str, str]
) -> tuple[Path | None, Path | None, str | None]:
    """Interpreter, console script beside it, or the reason why there is no interpreter."""
    if python is not None:
        given = expanded(Path(python))
        interpreter = given / "bin" / "python" if given.is_dir() else given
        found = shutil.which(str(interpreter), path=environ.get("PATH", os.defpath))
        if found is None:
            return None, None, f"python: {interpreter} is not there or not executable"
        # Not resolved: the link inside a virtual environment is what makes it that environment.
        interpreter = Path(found).absolute()
        return interpreter, _script(engine, interpreter), None
    command = shutil.which(engine.script, path=environ.get("PATH", os.defpath)) if engine.script else None
    if command is not None:
        script = Path(command).absolute()
        return _interpreter_of(script) or Path(sys.executable), script, None
    interpreter = Path(sys.executable)
    return interpreter, _script(engine, interpreter), None


def _script(engine: Engine, interpreter: Path) -> Path | None:
    if engine.script is None:
        return None
    script = interpreter.parent / engine.script
    return script if os.access(script, os.X_OK) and script.is_file() else None


def _interpreter_of(script: Path) -> Path | None:
    """Interpreter named in the first line of a console script, if it is a Python."""
    try:
        with script.open("rb") as file:
            line = file.readline(512)
    except OSError:
        return None
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    path = Path(words[0]) if words else None
    return path if path is not None and path.name.startswith("python") and os.access(path, os.X_OK) else None


def detect_image(image: str) -> Installed:
    """Take from an image's tag what it says: ``vllm/vllm-openai:v0.19.1`` is version 0.19.1."""
    match = _TAG.search(image)
    version = re.search(r"v?(\d+\.\d+(?:\.\d+)?)", match[1]) if match else None
    reason = None if version else f"the tag of {image} tells no version"
    return Installed(version=version[1] if version else None, source="image", reason=reason)
