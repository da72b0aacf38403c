"""Fake programs on a PATH of their own, and fixture texts."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


def fixture(name: str) -> str:
    """Text of a file under ``fixtures``."""
    return (FIXTURES / name).read_text(encoding="utf-8")


def fake_tool(directory: Path, name: str, script: str) -> Path:
    """Write an executable shell script; it must call programs by absolute path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def printing(name: str) -> str:
    """A script line that prints a fixture."""
    return f"/bin/cat '{FIXTURES / name}'"


def fake_nvidia_smi(directory: Path, *, xml: str, query: str, apps: str) -> Path:
    """An nvidia-smi whose three uses run the script lines given."""
    script = f"""case "$1" in
  -q) {xml} ;;
  --query-gpu=*) {query} ;;
  --query-compute-apps=*) {apps} ;;
  *) echo "unexpected: $*" >&2; exit 9 ;;
esac"""
    return fake_tool(directory, "nvidia-smi", script)


def fake_amd_smi(directory: Path, **scripts: str) -> Path:
    """An amd-smi whose sub-commands run the script lines given; without one, the fixture of that name is printed."""
    cases = []
    for command in ("static", "metric", "process", "list", "version"):
        line = scripts.get(command, printing(f"amd/amd_smi_{command}.json"))
        cases.append(f"  {command}) {line} ;;")
    body = "\n".join(cases)
    return fake_tool(directory, "amd-smi", f'case "$1" in\n{body}\n  *) exit 9 ;;\nesac')
