"""A stand-in for upstream, written from the description of its command line, output and exit codes.

It parses the command line as upstream's argparse does (global options before the sub-command only), reads the config,
makes a workspace of upstream's name and prints upstream's lines. The variable STAND_IN chooses what happens. It
measures nothing.
"""

from __future__ import annotations

from pathlib import Path

_MAIN = """
import argparse, datetime, json, os, pathlib, sys, time
import yaml


def main():
    parser = argparse.ArgumentParser(prog="magpie")
    for name in ("--config", "--environment", "--docker-image"):
        parser.add_argument(name)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--verbose", "-v", action="store_true")
    parser.add_argument("--gpu-info", action="store_true")
    modes = parser.add_subparsers(dest="mode")
    for mode in ("analyze", "compare", "benchmark"):
        sub = modes.add_parser(mode)
        sub.add_argument("--kernel-config", "-k")
        sub.add_argument("--output-dir", "-o", default="./results")
        sub.add_argument("--no-perf", action="store_true")
        if mode == "compare":
            sub.add_argument("--baseline", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.mode is None:
        parser.print_help()
        return 0
    what = os.environ.get("STAND_IN", "ok")
    kernels = yaml.safe_load(open(arguments.kernel_config))["kernels"]
    label = "_" + kernels[0]["id"] if arguments.mode == "analyze" else ""
    stamp = datetime.datetime.now().strftime("%Y%m%d_%H%M%S")
    workspace = pathlib.Path(arguments.output_dir).absolute() / f"{arguments.mode}{label}_{stamp}"
    if what == "early":
        print("Error: no kernels")
        return 1
    (workspace / "performance").mkdir(parents=True, exist_ok=True)
    print(f"INFO - Created {arguments.mode} workspace: {workspace}", file=sys.stderr)
    if what == "no_gpu":
        raise RuntimeError("GPU check failed: No GPU detected")
    if what == "hang":
        time.sleep(300)
    if what == "wait":
        while not pathlib.Path(os.environ["STAND_IN_GO"]).exists():
            time.sleep(0.01)
    done = {"success": True, "errors": []}
    states = []
    for kernel in kernels:
        bad = kernel["id"].startswith("bad")
        states.append({
            "compiling_state": "FAILED" if bad else "SUCCESS", "correctness_state": "SUCCESS",
            "performance_state": "SUCCESS", "errors": ["Compile command 1/1 failed: no"] if bad else [],
            "score": 0.0 if bad else 1.0,
            "compiling_result": {"success": False, "errors": ["no"]} if bad else done,
            "correctness_result": None if bad else done, "performance_result": None,
            "extra": {"kernel_id": kernel["id"], "kernel_type": kernel["type"].upper()},
        })
    if arguments.mode == "analyze":
        report = {"mode": "analyze", "timestamp": stamp, "results": states}
    else:
        report = {"mode": "compare", "timestamp": stamp, "results": {
            "kernel_results": states, "comparison_metrics": {"correctness": [True] * len(states)},
            "winner": 0, "rankings": [], "summary": "s"}}
    text = json.dumps(report, indent=2)
    (workspace / f"{arguments.mode}_report.json").write_text(text[:40] if what == "torn" else text)
    (workspace / "given.json").write_text(json.dumps({"arguments": vars(arguments), "kernels": kernels}))
    print("\\n" + "=" * 60)
    print("Workspace: /nowhere/analyze_x_20260101_000000" if what == "lies" else f"\\nWorkspace: {workspace}")
    return 0
"""


def install(directory: Path) -> Path:
    """Write the module ``Magpie`` into ``directory`` and return the console script beside it, for this interpreter."""
    import sys

    package = directory / _PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__version__ = "9.8.7"\n', encoding="utf-8")
    (package / "main.py").write_text(_MAIN, encoding="utf-8")
    (package / "__main__.py").write_text("import sys\nfrom .main import main\nsys.exit(main())\n", encoding="utf-8")
    script = directory / "magpie"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(directory)!r})\n"
        f"from {_PACKAGE}.main import main\nsys.exit(main())\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return script


_PACKAGE = "Magpie"
