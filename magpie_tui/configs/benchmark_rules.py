"""Rules between the values of a benchmark config: conflicts that upstream refuses, and what it silently does."""

from __future__ import annotations

import re
from collections.abc import Mapping

from magpie_tui.configs.benchmark_envs import Envs
from magpie_tui.configs.benchmark_fields import EXTRA_ARGUMENTS, PRECISIONS, VISIBLE_DEVICES
from magpie_tui.configs.positions import MapNode, Node, Setting, Value
from magpie_tui.configs.schema import Reader

_CLEAN_NAME = re.compile(
    r"(?:^|[^a-z])(?:clean|baseline|measure(?:ment)?|noprof\w*|unprofiled)(?:[^a-z]|$)", re.IGNORECASE
)


class _Rules:
    """All rules over one config."""

    def __init__(self, reader: Reader, node: MapNode, settings: Mapping[str, Setting], envs: Envs) -> None:
        self.reader = reader
        self.problems = reader.problems
        self.node = node
        self.settings = settings
        self.envs = envs

    def value(self, key: str) -> Value:
        setting = self.settings.get(key)
        return None if setting is None else setting.value

    def given(self, key: str) -> Node | None:
        """Return the node of a dotted key, or None when the file does not give it."""
        place: Node = self.node
        for part in key.split("."):
            entry = place.get(part) if isinstance(place, MapNode) else None
            if entry is None:
                return None
            place = entry.value
        return place

    def at(self, key: str) -> Node:
        """Return the node of a key, or of the nearest section around it."""
        parts = key.split(".")
        for length in range(len(parts), 0, -1):
            node = self.given(".".join(parts[:length]))
            if node is not None:
                return node
        return self.node

    def model(self) -> None:
        has_other = self.value("run_cmd") or any(
            name in self.envs.values for name in ("MODEL_PATH", "BENCHMARK_BASE_URL")
        )
        wrong = self.given("model") is not None and "model" not in self.reader.settings
        if not self.value("model") and not has_other and not wrong:
            self.problems.error(
                self.at("model"), "missing-key", "there is no model", expected="model, a Hugging Face id or a path"
            )

    def framework(self) -> None:
        framework, run_mode = self.value("framework"), self.value("run_mode")
        if framework == "xdit" and run_mode != "local":
            self.problems.error(
                self.at("run_mode"),
                "conflict",
                "xdit runs locally only",
                expected="run_mode: local",
                found=f"run_mode {run_mode}",
            )
        if self.value("docker_image") and run_mode == "local":
            self.problems.warning(
                self.at("docker_image"), "ignored-key", "docker_image has no effect: run_mode is local"
            )
        own = EXTRA_ARGUMENTS.get(str(framework))
        for name, arguments in self.envs.arguments.items():
            if name != own and arguments:
                self.problems.warning(
                    self.at("envs"), "ignored-key", f"envs.{name} has no effect: the framework is {framework}"
                )

    def precision(self) -> None:
        precision = self.value("precision")
        if isinstance(precision, str) and precision.lower() not in PRECISIONS:
            self.problems.warning(
                self.at("precision"),
                "unusual-precision",
                f"the precision {precision} is not a usual one; it becomes part of a script name",
                expected="for instance fp8, bf16, fp16 or fp4",
            )

    def window(self) -> None:
        start, end = self.value("gap_analysis.trace_start_pct"), self.value("gap_analysis.trace_end_pct")
        if isinstance(start, (int, float)) and isinstance(end, (int, float)) and start >= end:
            self.problems.error(
                self.at("gap_analysis.trace_start_pct"),
                "out-of-range",
                "the window of gap_analysis is empty",
                expected="trace_start_pct below trace_end_pct",
                found=f"{start:g} and {end:g}",
            )

    def profilers(self) -> None:
        key = "profiler.torch_profiler.enabled"
        enabled = self.value(key) is True
        name = self.problems.path.name
        looks_clean = _CLEAN_NAME.search(self.problems.path.stem) is not None
        measures = self.value("run_kind") == "measurement"
        if enabled and self.given(key) is None and not self.tracelens:
            self.problems.warning(
                self.at(key),
                "profiler-by-default",
                "the torch profiler is on, because that is upstream's default; it slows the server down"
                + (f", although {name} sounds like a clean measurement" if looks_clean else ""),
                hint="write profiler: {torch_profiler: {enabled: false}} for numbers, or true to say that it is meant",
            )
        elif enabled and looks_clean:
            self.problems.warning(
                self.at(key),
                "profiler-in-clean",
                f"the torch profiler is on, although {name} sounds like a clean measurement",
            )
        if measures and (enabled or self.tracelens or self.value("gap_analysis.enabled") is True):
            self.problems.error(
                self.at("run_kind"),
                "conflict",
                "run_kind measurement allows no profiler",
                expected="torch_profiler, tracelens and gap_analysis off",
                found="torch_profiler on" if enabled else "tracelens or gap_analysis on",
            )
        if self.value("profiler.system_profiler.enabled") is True:
            self.problems.warning(
                self.at("profiler.system_profiler.enabled"),
                "ignored-key",
                "system_profiler has no effect: no code runs it",
            )
        self._needs_traces(enabled)

    @property
    def tracelens(self) -> bool:
        return self.value("profiler.tracelens.enabled") is True

    def _needs_traces(self, enabled: bool) -> None:
        given = self.reader.settings.get("profiler.torch_profiler.enabled")
        if given is not None and given.value is False and enabled:
            self.problems.warning(
                self.at("profiler.torch_profiler.enabled"),
                "overridden",
                "the torch profiler is switched on all the same: tracelens in inference mode needs its traces",
            )
        for key, name in (("gap_analysis.enabled", "gap_analysis"), ("profiler.tracelens.enabled", "tracelens")):
            if self.value(key) is True and not enabled:
                self.problems.warning(
                    self.at(key), "no-traces", f"{name} finds nothing: the torch profiler is off", hint="switch it on"
                )

    def lifecycle(self) -> None:
        if self.value("server_lifecycle.enabled") is not True:
            return
        place = self.at("server_lifecycle")
        if self.value("run_mode") not in ("local", "docker"):
            self.problems.error(place, "conflict", "a server can be kept with run_mode local or docker only")
        if "BENCHMARK_BASE_URL" in self.envs.values:
            self.problems.error(place, "conflict", "server_lifecycle and envs.BENCHMARK_BASE_URL exclude each other")
        if self.value("profiler.torch_profiler.enabled") is True and self.value("server_lifecycle.cleanup") is not True:
            self.problems.error(
                place,
                "conflict",
                "with the torch profiler on, a kept server must be stopped after the run",
                expected="server_lifecycle.cleanup: true, or the torch profiler off",
            )
        if self.value("sweep_matrix"):
            self.problems.error(
                self.at("sweep_matrix"), "conflict", "sweep_matrix and server_lifecycle exclude each other"
            )
        self.problems.warning(
            place,
            "warm-cache",
            "runs that share a server may find their prompts in its prefix cache",
            hint="use another seed for each run, or restart or reset the server",
        )

    def agentx(self) -> None:
        agentx = self.value("agentx")
        words = ("enable", "enabled", "true", "yes", "1")
        on = agentx is True or (isinstance(agentx, str) and agentx.lower() in words)
        if isinstance(agentx, dict):
            on = agentx.get("enabled", True) is True
        if not on:
            return
        place = self.at("agentx")
        if self.value("run_mode") == "ray":
            self.problems.error(place, "conflict", "agentx does not run on Ray")
        for key in ("profiler.system_profiler.enabled", "gap_analysis.enabled"):
            if self.value(key) is True:
                self.problems.error(self.at(key), "conflict", f"agentx excludes {key.rsplit('.', 1)[0]}")
        if self.tracelens and self.value("profiler.tracelens.analysis_mode") == "inference":
            self.problems.error(
                self.at("profiler.tracelens"), "conflict", "agentx excludes tracelens in inference mode"
            )

    def devices(self, *, is_snapshot: bool) -> None:
        visible = [name for name in VISIBLE_DEVICES if name in self.envs.values]
        if not visible:
            return
        if is_snapshot:
            self.problems.warning(
                self.at("envs"),
                "snapshot-devices",
                f"envs.{visible[0]} may have been filled in by the run that wrote this snapshot; it fixes the GPUs",
                hint="remove it to have idle GPUs chosen again",
            )
        elif self.given("gpu_selection.auto") is not None and self.value("gpu_selection.auto") is True:
            self.problems.warning(
                self.at("gpu_selection.auto"),
                "ignored-key",
                f"gpu_selection has no effect: envs.{visible[0]} fixes the GPUs",
            )


def check_benchmark(
    reader: Reader,
    node: MapNode,
    settings: Mapping[str, Setting],
    envs: Envs,
    *,
    recovered: bool,
    is_snapshot: bool,
) -> None:
    """Report conflicts between values.

    Args:
        node: The benchmark's mapping.
        settings: Effective values.
        recovered: Parts of the file were left out, so what is missing proves nothing.
    """
    rules = _Rules(reader, node, settings, envs)
    if not recovered:
        rules.model()
    rules.framework()
    rules.precision()
    rules.window()
    rules.profilers()
    rules.lifecycle()
    rules.agentx()
    rules.devices(is_snapshot=is_snapshot)
