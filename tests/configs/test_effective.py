"""Framework configs, kinds of files, precedence with origins, and differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.check import ConfigKind, check_file
from magpie_tui.configs.difference import compare_configs, group_of
from magpie_tui.configs.display import effective_json, safe_value, value_text
from magpie_tui.configs.effective import EffectiveConfig, Overrides, effective_config
from magpie_tui.configs.framework import load_framework_config
from magpie_tui.configs.framework_fields import FRAMEWORK_FIELDS
from magpie_tui.configs.schema import leaves
from tests.configs.helpers import check_text, places


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


KERNEL = "kernel: {id: a, source_files: [a.hip], testcase_command: ./t}\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.hip").write_text("// kernel\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("kernel: {}\n", "kernel"),
        ("kernels: []\nperformance: {}\n", "kernel"),
        ("kernals: []\n", "kernel"),
        ("benchmark: {model: x}\n", "benchmark"),
        ("benchmarks: {model: x}\n", "benchmark"),
        ("framework: vllm\nenvs: {}\n", "benchmark"),
        ("benchmark: {inferencex_path: x}\n", "framework"),
        ("benchmark: {timeout_seconds: 1}\nlogging: {}\n", "framework"),
        ("performance: {}\n", "framework"),
        ("scheduler: {}\n", "framework"),
        ("ray_config: {}\n", "kernel"),
        ("what: ever\n", None),
        ("- a\n", None),
        ("", None),
    ],
)
def test_kinds(text: str, kind: ConfigKind | None) -> None:
    check = check_text(text)
    assert check.kind == kind
    if kind is None:
        assert check.errors


def test_framework_defaults_are_those_of_the_shipped_file() -> None:
    config = load_framework_config(None)
    assert config.value("performance.timeout_seconds") == 600
    assert config.value("performance.rocprof_compute.profile_args") == ("--no-roof",)
    assert config.value("scheduler.max_workers") == 8
    weights = config.value("compare.perf_weights_rocprof")
    assert isinstance(weights, dict)
    numbers = [value for value in weights.values() if isinstance(value, float)]
    assert sum(numbers) == pytest.approx(1.95)
    assert config.below("correctness.accordo")["atol"] == 1e-6


def test_a_named_framework_file_without_a_key_means_the_fallback_in_code(directory: Path) -> None:
    path = write(
        directory, "f.yaml", "scheduler: {gpu_devices: [2]}\nperformance: {rocprof_compute: {roofline: 'yes'}}\n"
    )
    config = load_framework_config(path)
    assert config.value("performance.timeout_seconds") == 300
    assert config.value("performance.metrix.timeout_seconds") == 60
    assert config.value("scheduler.max_workers") == 1
    assert config.value("scheduler.gpu_devices") == (2,)
    assert config.value("performance.rocprof_compute.roofline") is True
    assert config.value("compare.perf_weights_ncu") == {}
    assert config.settings["scheduler.gpu_devices"].origin.text == f"framework config {path}:1"


def test_framework_problems() -> None:
    check = check_text(
        "gpu: {parallel: true, device_ids: [0]}\n"
        "scheduler: {environment: lokal}\n"
        "loging: {level: INFO}\n"
        "compare: {perf_weights_ncu: {a: x}, perf_lower_is_better: [b]}\n"
        "output: {directory: ./r}\n"
        "performance: {metrix: {profile: quik}, rocprof_compute: {metric_blocks: [2]}}\n"
        "logging: {level: ${LEVEL}}\n".replace("{level: ${LEVEL}}", "{file: x}")
    )
    assert check.kind == "framework"
    assert {(code, line) for code, line, _column in places(check)} == {
        ("ignored-key", 1),
        ("bad-choice", 2),
        ("unknown-key", 3),
        ("wrong-type", 4),
        ("ignored-key", 4),
        ("ignored-key", 5),
        ("bad-choice", 6),
        ("wrong-type", 6),
        ("ignored-key", 7),
    }


def test_every_framework_key_is_known() -> None:
    keys = [key for key, _item in leaves(FRAMEWORK_FIELDS)]
    assert len(keys) == len(set(keys))
    for key in ("gpu.parallel", "gpu.hardware.per_gpu", "output.format", "benchmark.image_config", "latency.seed"):
        assert key in keys


def show(path: Path, **settings: object) -> EffectiveConfig:
    return effective_config(path, environment={}, **settings)  # type: ignore[arg-type]


def test_precedence_of_the_environment(directory: Path) -> None:
    plain = write(directory, "k.yaml", KERNEL)
    ray = write(directory, "r.yaml", KERNEL + "ray_config: {cluster_address: x}\n")
    both = write(directory, "b.yaml", KERNEL + "ray_config: {}\nscheduler: {environment: container, max_workers: 3}\n")
    framework = write(directory, "f.yaml", "scheduler: {environment: container, max_workers: 5, docker_image: i}\n")
    key = "scheduler.environment"

    def origin(config: EffectiveConfig) -> tuple[object, str]:
        return config.settings[key].value, config.settings[key].origin.kind

    assert origin(show(plain)) == ("local", "default")
    assert origin(show(plain, framework_path=framework)) == ("container", "framework")
    assert origin(show(ray, framework_path=framework)) == ("ray", "derived")
    assert origin(show(both)) == ("container", "file")
    assert origin(show(both, overrides=Overrides(environment="local"))) == ("local", "command_line")
    workers = "scheduler.max_workers"
    assert show(both).settings[workers].value == 8
    assert show(both, framework_path=framework).settings[workers].value == 5
    assert show(both, overrides=Overrides(workers=2)).settings[workers].origin.text == "command line (--workers)"
    assert show(plain, overrides=Overrides(docker_image="j")).settings["scheduler.docker_image"].value == "j"


def test_sections_are_merged_as_upstream_does(directory: Path) -> None:
    framework = write(
        directory,
        "f.yaml",
        "performance:\n  timeout_seconds: 50\n  metrix: {extra_args: [x], num_replays: 9}\n"
        "  ncu: {args: [q], metrics: [m]}\n"
        "correctness: {accordo: {atol: 0.5, rtol: 0.25}}\n",
    )
    kernel = write(
        directory,
        "k.yaml",
        KERNEL
        + "performance: {timeout_seconds: 70, metrix: {profile: quick}, ncu: {args: [p]}}\n"
        + "correctness: {accordo: {rtol: 0.125}}\n",
    )
    settings = show(kernel, framework_path=framework).settings
    assert settings["performance.metrix.profile"].value == "quick"
    assert settings["performance.metrix.num_replays"].value == 1
    assert settings["performance.metrix.extra_args"].value == ()
    assert settings["performance.metrix.timeout_seconds"].value == 70
    assert settings["performance.backend"].value == "metrix"
    assert settings["performance.ncu.args"].value == ("p",)
    assert settings["performance.ncu.metrics"].value == ("m",)
    assert settings["correctness.accordo.atol"].value == 0.5
    assert settings["correctness.accordo.rtol"].value == 0.125
    assert settings["correctness.accordo.rtol"].origin.text == f"{kernel}:3"


def test_benchmark_settings(directory: Path) -> None:
    path = write(directory, "b.yaml", "benchmark: {model: a/b, framework: vllm}\n")
    framework = write(directory, "f.yaml", "benchmark: {inferencex_path: /ix}\n")
    config = show(path, framework_path=framework, overrides=Overrides(run_mode="local"))
    assert config.settings["run_mode"].origin.text == "command line (--run-mode)"
    assert config.settings["inferencex_path"].origin.text == f"framework config {framework}:1"
    assert config.settings["envs.TP"].origin.text == "default"


def test_show_refuses_a_config_with_errors(directory: Path) -> None:
    path = write(directory, "k.yaml", "kernel: {sources: [a.hip]}\n")
    with pytest.raises(UserInputError, match="did you mean source_files"):
        show(path)
    # What analyze would miss is no reason to hide what the config says.
    assert show(write(directory, "n.yaml", "kernel: {source_files: [a.hip]}\n")).kernel_ids == ("kernel",)


def test_values_in_one_line_and_without_secrets(directory: Path) -> None:
    path = write(
        directory,
        "b.yaml",
        "benchmark:\n  model: a/b\n  framework: vllm\n  envs:\n    HF_TOKEN: hf_abcdefghijklmnopqrst\n    A: ' x'\n"
        "    EXTRA_VLLM_ARGS: '--api-key s3cret --n \"a b\"'\n",
    )
    config = show(path)
    assert safe_value(config.settings["envs.HF_TOKEN"]) == "<redacted>"
    assert value_text(config.settings["envs.A"]) == '" x"'
    assert value_text(config.settings["envs.EXTRA_VLLM_ARGS"]) == '["--api-key", "<redacted>", "--n", "a b"]'
    assert value_text(config.settings["docker_image"]) == "null"
    assert value_text(None) == "(absent)"
    assert "s3cret" not in str(effective_json(config))


def test_secrets_do_not_appear_in_problems(directory: Path) -> None:
    path = write(directory, "b.yaml", "benchmark:\n  model: a/b\n  envs: {HF_TOKEN: 123456789, OTHER_KEY: [s3cret]}\n")
    text = " ".join(problem.text for problem in check_file(path).problems)
    assert "env-mangled" in text
    assert "123456789" not in text
    assert "s3cret" not in text


def test_differences_of_benchmarks_in_groups(directory: Path) -> None:
    first = write(directory, "a.yaml", "benchmark: {model: a/b, envs: {TP: 1, CONC: 8}, timeout_seconds: 10}\n")
    second = write(
        directory,
        "b.yaml",
        "benchmark: {model: a/c, envs: {TP: 2, CONC: 8, PORT: 1}, profiler: {torch_profiler: {enabled: false}}}\n",
    )
    difference = compare_configs(show(first), show(second))
    assert {group.name: [change.key for change in group.changes] for group in difference.groups} == {
        "workload": ["model", "envs.TP"],
        "profiler": ["profiler.torch_profiler.enabled"],
        "environment": ["timeout_seconds", "envs.PORT"],
    }
    assert compare_configs(show(first), show(first)).is_empty
    assert group_of("gap_analysis.top_k") == "profiler"
    assert group_of("envs.CUDA_VISIBLE_DEVICES") == "environment"


def test_equal_effect_in_another_form_is_no_difference(directory: Path) -> None:
    first = write(directory, "a.yaml", "benchmark: {model: a/b, framework: VLLM, envs: {tp: '1'}}\n")
    second = write(directory, "b.yaml", "x-e: &e {TP: 1}\nbenchmark:\n  framework: vllm\n  model: a/b\n  envs: *e\n")
    assert compare_configs(show(first), show(second)).is_empty


def test_differences_of_kernels_by_id(directory: Path) -> None:
    first = write(
        directory, "a.yaml", "kernels:\n  - {id: x, source_files: [a.hip]}\n  - {id: y, source_files: [a.hip]}\n"
    )
    second = write(
        directory,
        "b.yaml",
        "kernels:\n  - {id: y, source_files: [a.hip], env: {A: b}}\n  - {id: x, source_files: [a.hip]}\n"
        "performance: {backend: ncu}\n",
    )
    difference = compare_configs(show(first), show(second))
    assert [group.name for group in difference.groups] == ["kernel y", "performance"]
    assert [change.key for change in difference.groups[0].changes] == ["env", "env.A"] or [
        change.key for change in difference.groups[0].changes
    ] == ["env.A"]
    with pytest.raises(UserInputError, match="cannot be compared"):
        compare_configs(show(first), show(write(directory, "c.yaml", "benchmark: {model: a/b}\n")))
