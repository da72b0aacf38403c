"""Benchmark configs: every field, what upstream silently does, and each way to get them wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.benchmark import BenchmarkConfig, load_benchmark_config, warn_ignored_options
from magpie_tui.configs.check import FileCheck
from tests.configs.helpers import check_text, found, places

GOLDEN = Path(__file__).parent / "golden"

SAMPLE = """\
benchmark:
  framework: vllm
  model: Qwen/Qwen3-8B
  precision: bf16
  run_mode: docker
  envs: {TP: 1, CONC: 16, ISL: 512, OSL: 256, RANDOM_RANGE_RATIO: 1, MAX_MODEL_LEN: 4096}
  profiler:
    torch_profiler: {enabled: false}
    gpu_monitor: {enabled: true, interval_sec: 2.0}
  gpu_selection: {auto: true, min_free_memory_gb: 16, candidates: [2, 3]}
  timeout_seconds: 2400
"""


def check(keys: str, *, name: str = "bench.yaml", environment: dict[str, str] | None = None) -> FileCheck:
    """Check a benchmark with ``keys``, one a line, below ``benchmark:``."""
    lines = "".join(f"  {line}\n" for line in keys.split("\n"))
    return check_text(f"benchmark:\n{lines}", path=Path(name), environment=environment)


def config(keys: str) -> BenchmarkConfig:
    result = check(keys)
    assert not result.errors, result.errors
    assert isinstance(result.config, BenchmarkConfig)
    return result.config


CLEAN = "profiler: {torch_profiler: {enabled: false}}"


def test_the_sample_of_the_documentation(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(SAMPLE)
    benchmark = load_benchmark_config(path, environment={})
    assert (benchmark.framework, benchmark.model, benchmark.precision) == ("vllm", "Qwen/Qwen3-8B", "bf16")
    assert benchmark.envs == {
        "TP": "1",
        "CONC": "16",
        "ISL": "512",
        "OSL": "256",
        "RANDOM_RANGE_RATIO": "1",
        "MAX_MODEL_LEN": "4096",
    }
    assert (benchmark.tensor_parallel, benchmark.concurrency, benchmark.port) == (1, 16, 8888)
    assert benchmark.timeout_seconds == 2400.0
    assert benchmark.is_clean
    assert benchmark.value("gpu_selection.candidates") == (2, 3)
    assert benchmark.problems == ()


def test_defaults() -> None:
    benchmark = config("model: a/b")
    assert (benchmark.framework, benchmark.precision, benchmark.run_mode) == ("sglang", "fp8", "docker")
    assert benchmark.envs == {"TP": "1", "CONC": "32", "ISL": "1024", "OSL": "512", "RANDOM_RANGE_RATIO": "0.5"}
    assert benchmark.torch_profiler_enabled and not benchmark.tracelens_enabled and not benchmark.gap_analysis_enabled
    assert benchmark.section("gpu_selection") == {
        "auto": True,
        "min_free_memory_gb": 8.0,
        "count": None,
        "candidates": None,
    }
    assert benchmark.value("server_lifecycle.enabled") is None
    assert benchmark.value("gap_analysis.categories") == ("kernel", "gpu")


def test_every_field_is_accepted() -> None:
    benchmark = config(
        """\
framework: SGLang
model: a/b
precision: fp4
run_mode: Ray
envs: {}
profiler:
  torch_profiler: {enabled: true, num_steps: 5, capture_timeout_seconds: 1, flush_timeout_seconds: 2, num_profiles: 2,
                   interval_seconds: 3, start_seconds: 1, detailed_annotations: true}
  system_profiler: {enabled: false, profile_args: [a]}
  tracelens: {enabled: true, analysis_mode: Classic, analysis_stages: [pd, decode-only], num_steps: 3,
              cli_timeout_seconds: 10, auto_patch_runtime: false, tracelens_repo_path: /t, extension_wheel_path: /w,
              runtime_patch_image_tag: t, runtime_patch_force_rebuild: true, restore_patches: false, export_excel: true,
              perf_report_enabled: false, multi_rank_report_enabled: false, gpu_arch_config: /a.json}
  gpu_monitor: {}
  targeted_trace: {enabled: false}
gap_analysis: {enabled: true, trace_start_pct: 10, trace_end_pct: 90.5, top_k: 5, min_duration_us: 1, categories: null,
               ignore_categories: [], find_kernel_sources: true, kernel_source_repos: [/r], auto_clone_repos: false,
               repos_base_dir: /c}
docker_image: a/b:c
gpu_arch: gfx942
timeout_seconds: 10.5
inferencemax_path: /i
hf_cache_path: /h
runner_type: mi300x
benchmark_script: s.sh
gpu_selection: null
ray_config: {cluster_address: "ray://x", shared_storage_path: /s, entrypoint_num_gpus: 0, entrypoint_num_cpus: 4,
             multi_node: true, total_num_gpus: 16, num_nodes: 2, gpus_per_node: 8, pip_packages: [a], env_vars: {A: b},
             metadata: {c: d}, install_magpie: false, magpie_install_path: /m}
agentx: null
run_kind: diagnostic
lm_eval_runtime: {path: /l, sha256: x}
sweep_matrix: {cases: [{CONC: 1}]}
run_cmd: null"""
    )
    assert (benchmark.framework, benchmark.run_mode) == ("sglang", "ray")
    assert benchmark.value("profiler.tracelens.analysis_mode") == "pytorch"
    assert benchmark.value("profiler.tracelens.analysis_stages") == ("prefilldecode", "decode")
    assert benchmark.value("profiler.tracelens.export_format") == "excel"
    assert benchmark.value("profiler.gpu_monitor.interval_sec") == 2.0
    assert benchmark.value("inferencex_path") == "/i"
    assert benchmark.value("gap_analysis.categories") is None
    assert benchmark.value("ray_config.num_nodes") == 2


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("all", ("prefilldecode", "decode", "prefill")),
        ("'decode, mixed'", ("decode", "prefilldecode")),
        ("[prefill_only]", ("prefill",)),
        ("[all, decode]", ("prefilldecode", "decode", "prefill")),
    ],
)
def test_stages(written: str, read: tuple[str, ...]) -> None:
    benchmark = config(f"model: a/b\nprofiler: {{tracelens: {{enabled: true, analysis_stages: {written}}}}}")
    assert benchmark.value("profiler.tracelens.analysis_stages") == read


def test_tracelens_in_inference_mode_switches_the_profiler_on() -> None:
    result = check("model: a/b\nprofiler: {torch_profiler: {enabled: false}, tracelens: {enabled: true}}")
    assert isinstance(result.config, BenchmarkConfig)
    assert result.config.torch_profiler_enabled
    assert found(result, "overridden")
    assert result.config.settings["profiler.torch_profiler.enabled"].origin.kind == "derived"


def test_a_snapshot_is_accepted() -> None:
    result = check_text(
        """\
benchmark_script: null
docker_image: null
envs: {CONC: 16, CUDA_VISIBLE_DEVICES: '3', ISL: 8, OSL: 8, TP: 1}
framework: vllm
gap_analysis: {enabled: false, top_k: 20}
gpu_arch: null
gpu_selection: {auto: true, candidates: null, count: null, min_free_memory_gb: 8.0}
hf_cache_path: null
inferencex_path: ''
model: a/b
precision: fp8
profiler:
  gpu_monitor: {device_id: null, enabled: true, interval_sec: 2.0}
  system_profiler: {enabled: false, profile_args: []}
  torch_profiler: {enabled: false}
  tracelens: {analysis_mode: inference, analysis_stages: [prefilldecode, decode, prefill], enabled: false}
run_mode: docker
runner_type: null
timeout_seconds: 3600.0
"""
    )
    assert isinstance(result.config, BenchmarkConfig)
    assert result.config.is_snapshot and not result.errors
    assert [problem.code for problem in result.problems] == ["flat-benchmark", "snapshot-devices"]
    assert result.config.envs["CUDA_VISIBLE_DEVICES"] == "3"


# The place of the problem is marked.
WRONG = [
    ("framework: @vlm", "bad-choice"),
    ("framework: xdit\nrun_mode: @docker", "conflict"),
    ("run_mode: @remote", "bad-choice"),
    ("precision: @no", "wrong-type"),
    ("precision: @9", "wrong-type"),
    ("model: @8", "wrong-type"),
    ("model: @[a]", "wrong-type"),
    ("timeout_seconds: @0", "out-of-range"),
    ("timeout_seconds: @1e3", "wrong-type"),
    ("timeout_seconds: @12:30", "surprising-number"),
    ("@tracelense: true", "unknown-key"),
    ("@Model: x", "unknown-key"),
    ("@output_dir: x", "ignored-key"),
    ("model: @${MODEL_DIR}", "unset-variable"),
    ("model: @$SET/x", "variable-not-expanded"),
    ("envs: @[a]", "wrong-type"),
    ("envs: {TP: @eight}", "wrong-type"),
    ("envs: {TP: @08}", "wrong-type"),
    ("envs: {TP: @'08'}", "wrong-type"),
    ("envs: {TP: @0}", "out-of-range"),
    ("envs: {TP: @null}", "wrong-type"),
    ("envs: {TP: @1.0}", "wrong-type"),
    ("envs: {TP: @010}", "surprising-number"),
    ("envs: {CONC: 1, @conc: 2}", "duplicate-key"),
    ("envs: {CONC: 1, @CONC: 2}", "duplicate-key"),
    ("envs: {PORT: @70000}", "out-of-range"),
    ("envs: {RANDOM_RANGE_RATIO: @1.5}", "out-of-range"),
    ("envs: {FLAG: @true}", "env-mangled"),
    ("envs: {FLAG: @null}", "env-mangled"),
    ("envs: {FLAG: @[a]}", "env-mangled"),
    ("envs: {FLAG: @010}", "env-mangled"),
    ("envs: {FLAG: @2024-01-01}", "env-mangled"),
    ("envs: {A: @'${MODEL_DIR}'}", "unset-variable"),
    ("envs: {A: @'${SET}'}", "variable-not-expanded"),
    ("envs: {@A-B: x}", "bad-key"),
    ("envs: {@MAX_MODL_LEN: 3}", "unusual-variable"),
    ("envs: @{CONC: 3}", "envs-not-merged"),
    ("envs: {EXTRA_VLLM_ARGS: a @&& b}", "shell-operator"),
    ("envs: {EXTRA_VLLM_ARGS: a @\\}", "trailing-backslash"),
    ("envs: {EXTRA_VLLM_ARGS: @a $SET}", "variable-not-expanded"),
    ("envs: {EXTRA_VLLM_ARGS: a @'b}\nx: '", "unbalanced-quote"),
    ("envs: {EXTRA_VLLM_ARGS: @/a/b c/d}", "stray-argument"),
    ("envs: {EXTRA_VLLM_ARGS: @true}", "wrong-type"),
    ("envs: {EXTRA_VLLM_ARGS: @null}", "env-mangled"),
    ("envs: {EXTRA_VLLM_ARGS: @[a]}", "list-arguments"),
    ("envs: {EXTRA_VLLM_ARGS: [@{a: b}]}", "wrong-type"),
    ("envs: @{EXTRA_ATOM_ARGS: a, TP: 1, CONC: 1, ISL: 1, OSL: 1}", "ignored-key"),
    ("gap_analysis: {trace_start_pct: @60, trace_end_pct: 40}", "out-of-range"),
    ("gap_analysis: {trace_end_pct: @101}", "out-of-range"),
    ("gap_analysis: {enabled: @'yes'}", "wrong-type"),
    ("profiler: {tracelens: {analysis_mode: @fast}}", "bad-choice"),
    ("profiler: {tracelens: {analysis_stages: @warmup}}", "bad-choice"),
    ("profiler: {tracelens: {num_steps: @0}}", "out-of-range"),
    ("profiler: {tracelens: {export_format: @pdf}}", "bad-choice"),
    ("profiler: {gpu_monitor: {interval_sec: @0.1}}", "out-of-range"),
    ("profiler: {system_profiler: {enabled: @true}}", "ignored-key"),
    ("profiler: @3", "wrong-type"),
    ("run_kind: @measurement\nprofiler: {torch_profiler: {enabled: true}}", "conflict"),
    ("server_lifecycle: @{enabled: true}", "conflict"),
    ("run_mode: local\ndocker_image: @x", "ignored-key"),
    ("gpu_selection: {candidates: [@a]}", "wrong-type"),
    ("agentx: true\nrun_mode: ray\ngap_analysis: {enabled: @true}", "conflict"),
    ("precision: @fp17", "unusual-precision"),
]


@pytest.mark.parametrize(("keys", "code"), WRONG, ids=[item[0] for item in WRONG])
def test_each_wrong_value_is_found_at_its_place(keys: str, code: str) -> None:
    lines = keys.split("\n")
    line = next(index for index, text in enumerate(lines) if "@" in text)
    column = lines[line].index("@")
    given = {text.split(":")[0] for text in lines}
    before = [text for text in ("model: a/b", "framework: vllm") if text.split(":")[0] not in given]
    text = "\n".join([*before, keys.replace("@", "")])
    if "x: '" in keys:
        text = text.replace("{EXTRA_VLLM_ARGS: a 'b}\nx: '", "\n  EXTRA_VLLM_ARGS: a 'b")
        assert [item.code for item in check(text).errors] == [code]
        return
    result = check(text, environment={"SET": "set"})
    assert (code, 2 + len(before) + line, 3 + column) in places(result)


def test_what_is_not_wrong() -> None:
    result = check(
        "model: a/b\nframework: vllm\n"
        "envs: {TP: '8', CONC: 1, ISL: 1, OSL: 1, RANDOM_RANGE_RATIO: '0.5', GPU_MEM_UTIL: 0.90,\n"
        "       PW: 'a$b', MY_OWN: x, N: 7}\n" + CLEAN
    )
    assert result.problems == ()
    assert isinstance(result.config, BenchmarkConfig)
    assert result.config.envs["TP"] == "8"
    assert result.config.envs["GPU_MEM_UTIL"] == "0.9"


def test_the_model_may_come_from_elsewhere() -> None:
    assert [item.code for item in check(f"framework: vllm\n{CLEAN}").errors] == ["missing-key"]
    assert not check(f"envs: {{MODEL_PATH: /m, TP: 1, CONC: 1, ISL: 1, OSL: 1}}\n{CLEAN}").errors


def test_the_wrong_file_of_the_documentation_in_one_go() -> None:
    path = GOLDEN / "wrong_benchmark.yaml"
    result = check_text(path.read_text(), path=Path("wrong_benchmark.yaml"))
    text = "".join(f"{problem.text}\n" for problem in result.problems)
    assert text == (GOLDEN / "wrong_benchmark.txt").read_text()
    assert isinstance(result.config, BenchmarkConfig)
    assert result.config.envs["ISL"] == "2048"
    assert result.config.envs["OSL"] == "512"


@pytest.mark.parametrize("name", ["vllm_clean", "baseline", "x-unprofiled"])
def test_a_profiler_left_on_in_a_clean_config(name: str) -> None:
    by_default = check("model: a/b\nframework: vllm", name=f"{name}.yaml")
    assert "sounds like a clean measurement" in found(by_default, "profiler-by-default")[0].message
    explicit = check("model: a/b\nprofiler: {torch_profiler: {enabled: true}}", name=f"{name}.yaml")
    assert found(explicit, "profiler-in-clean")
    assert not check(f"model: a/b\n{CLEAN}", name=f"{name}.yaml").problems


def test_a_profiler_that_is_meant_is_no_problem() -> None:
    result = check("model: a/b\nprofiler: {torch_profiler: {enabled: true}}", name="vllm_profiled.yaml")
    assert result.problems == ()


EXTRA = """--override '{"a": "b c", "n": [1, 2]}' --name "my model" --path '/data/with space/x'"""
VECTOR = ("--override", '{"a": "b c", "n": [1, 2]}', "--name", "my model", "--path", "/data/with space/x")


@pytest.mark.parametrize(("framework", "name"), [("vllm", "VLLM"), ("sglang", "SGLANG"), ("atom", "ATOM")])
def test_extra_arguments_are_exact(framework: str, name: str) -> None:
    as_text = config(f"framework: {framework}\nmodel: a/b\nenvs:\n  EXTRA_{name}_ARGS: >-\n    {EXTRA}")
    assert as_text.server_arguments == VECTOR
    assert as_text.envs[f"EXTRA_{name}_ARGS"] == EXTRA
    items = ", ".join(f'"{item}"' if "'" in item else f"'{item}'" for item in VECTOR)
    as_list = config(f"framework: {framework}\nmodel: a/b\nenvs:\n  EXTRA_{name}_ARGS: [{items}]")
    assert as_list.server_arguments == VECTOR
    assert as_list.value(f"envs.EXTRA_{name}_ARGS") == VECTOR


def test_a_list_is_passed_on_untouched() -> None:
    benchmark = config("framework: vllm\nmodel: a/b\nenvs: {EXTRA_VLLM_ARGS: [--n, 8192, '&&', 'a  b', '*']}")
    assert benchmark.server_arguments == ("--n", "8192", "&&", "a  b", "*")


def test_plain_text_with_a_colon_gets_a_hint() -> None:
    result = check("model: a/b\nenvs:\n  EXTRA_VLLM_ARGS: --x '{\"a\": 1}'")
    problem = found(result, "yaml-syntax")[0]
    assert (problem.line, problem.hint) == (4, "put text that holds ': ' in quotes, or check the indentation")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty-file"),
        ("benchmark:\n", "wrong-type"),
        ("benchmark: [1]\n", "wrong-type"),
        ("benchmark: {}\n", "wrong-type"),
    ],
)
def test_files_without_a_benchmark(text: str, code: str) -> None:
    assert [item.code for item in check_text(text, kind="benchmark").errors] == [code]


def test_loading_raises_with_every_error(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text("benchmark: {framework: vlm, precision: no}\n")
    with pytest.raises(UserInputError, match=re.compile(r"3 problems.*vllm.*reads no as false", re.DOTALL)):
        load_benchmark_config(path, environment={})


def test_options_beside_a_file_have_no_effect() -> None:
    problems = warn_ignored_options(config("model: a/b"), {"tp": "8", "run-mode": "local", "output-dir": "x"})
    assert [problem.message for problem in problems] == [
        "--tp 8 has no effect beside --benchmark-config: the file decides"
    ]
