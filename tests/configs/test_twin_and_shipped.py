"""Clean and profiled twins, and the configs that come with the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.check import check_file
from magpie_tui.configs.difference import compare_configs
from magpie_tui.configs.effective import effective_config
from magpie_tui.configs.framework_fields import FRAMEWORK_FIELDS
from magpie_tui.configs.positions import Setting
from magpie_tui.configs.schema import Kind, leaves
from magpie_tui.configs.shipped import copy_shipped, find_shipped, list_shipped, shipped_directory
from magpie_tui.configs.twin import make_twins, write_twins
from tests.conftest import PROJECT_ROOT

CONFIGS = PROJECT_ROOT / "configs"
ALL = sorted(CONFIGS.rglob("*.yaml"))
CLEAN = sorted((CONFIGS / "benchmarks").glob("*_clean.yaml"))


@pytest.mark.parametrize("path", ALL, ids=[path.stem for path in ALL])
def test_every_shipped_config_is_without_problems(path: Path, tmp_path: Path) -> None:
    check = check_file(path, environment={}, caller_directory=tmp_path)
    assert [problem.text for problem in check.problems] == []
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("clean", CLEAN, ids=[path.stem for path in CLEAN])
def test_shipped_pairs_are_twins(clean: Path) -> None:
    profiled = clean.with_name(clean.name.replace("_clean", "_profiled"))
    pair = [effective_config(path, environment={}) for path in (clean, profiled)]
    difference = compare_configs(*pair)
    assert [group.name for group in difference.groups] == ["profiler"]
    assert [change.key for change in difference.groups[0].changes] == [
        "profiler.torch_profiler.enabled",
        "profiler.tracelens.enabled",
    ]


def test_shipped_benchmarks_cover_the_usual_machines() -> None:
    names = {path.stem.removesuffix("_clean") for path in CLEAN}
    assert {"vllm_mi300x", "vllm_mi355x", "vllm_h100", "vllm_h200", "vllm_b200"} <= names
    assert {"sglang_mi300x", "sglang_mi355x", "sglang_h200", "sglang_b200", "atom_mi300x", "atom_mi355x"} <= names
    assert not {name for name in names if name.startswith("atom") and "mi3" not in name}


def test_the_framework_config_names_every_key_and_is_the_default() -> None:
    path = CONFIGS / "framework.yaml"
    text = path.read_text()
    for key, _item in leaves(FRAMEWORK_FIELDS):
        assert f"{key.rsplit('.', 1)[-1]}:" in text, key
    shipped = effective_config(path, environment={})
    from magpie_tui.configs.framework import load_framework_config

    default = load_framework_config(None)
    plain = {key: setting.value for key, setting in default.settings.items()}
    assert {key: setting.value for key, setting in shipped.settings.items()} == plain


def test_shipped_configs_are_listed_and_found() -> None:
    configs = list_shipped()
    assert shipped_directory() == CONFIGS
    assert {config.path for config in configs} == set(ALL)
    assert all(config.description and config.kind for config in configs)
    for name in ("kernels/hip_analyze", "hip_analyze", "configs/kernels/hip_analyze.yaml"):
        assert find_shipped(name, configs).name == "kernels/hip_analyze"
    with pytest.raises(UserInputError) as raised:
        find_shipped("hip_analyse", configs)
    assert raised.value.hint == "did you mean kernels/hip_analyze?"


def test_a_copy_is_complete_and_overwrites_nothing(tmp_path: Path) -> None:
    config = find_shipped("pytorch_compare", list_shipped())
    written = copy_shipped(config, tmp_path / "new" / "mine.yaml")
    assert [path.name for path in written] == ["mine.yaml", "gelu_base.py", "gelu_fused.py"]
    assert not check_file(written[0], caller_directory=tmp_path).problems
    written[0].write_text("mine")
    with pytest.raises(UserInputError, match="such a file already"):
        copy_shipped(config, tmp_path / "new" / "mine.yaml")
    assert written[0].read_text() == "mine"
    written[1].write_text("mine")
    with pytest.raises(UserInputError, match="such a file already"):
        copy_shipped(config, tmp_path / "new" / "other.yaml")
    assert not (tmp_path / "new" / "other.yaml").exists()
    copy_shipped(config, tmp_path / "new" / "mine.yaml", force=True)
    assert written[0].read_bytes() == config.path.read_bytes()
    assert copy_shipped(config, tmp_path)[0] == tmp_path / "pytorch_compare.yaml"


def profiler(settings: tuple[Setting | None, Setting | None]) -> tuple[object, object]:
    first, second = settings
    return (first.value if first else None), (second.value if second else None)


FORMS = {
    "nothing said": "benchmark:\n  model: a/b   # mine\n  envs: {TP: 2}\n",
    "clean block": "benchmark:\n  profiler:\n    torch_profiler:\n      enabled: false\n\n  # after\n  model: a/b\n",
    "profiled block": (
        "benchmark:\n    model: a/b\n    profiler:\n        torch_profiler: {enabled: true}\n"
        "        tracelens: {enabled: true, num_steps: 7}\n        gpu_monitor: {interval_sec: 5}\n"
    ),
    "flow": (
        "benchmark: {model: a/b, envs: {TP: 1, EXTRA_SGLANG_ARGS: '--x \"a b\"'},\n"
        "            profiler: {torch_profiler: {enabled: true}}}\n"
    ),
    "flow profiler": "benchmark:\n  profiler: {torch_profiler: {enabled: true}}\n  model: a/b\n  precision: fp8\n",
    "anchor": "x-p: &p {torch_profiler: {enabled: true}}\nbenchmark:\n  profiler: *p\n  model: a/b\n",
    "merge": (
        "x-b: &b {model: a/b, profiler: {torch_profiler: {enabled: false}}}\nbenchmark:\n  <<: *b\n  precision: bf16\n"
    ),
    "snapshot": (
        "framework: vllm\nmodel: a/b\nprofiler: {torch_profiler: {enabled: false}, tracelens: {enabled: false}}\n"
    ),
    "block text": (
        "benchmark:\n  model: a/b\n  envs:\n    EXTRA_SGLANG_ARGS: |\n      --a\n"
        "  profiler:\n    tracelens:\n      enabled: false\n"
    ),
    "windows": "benchmark:\r\n  model: a/b\r\n  profiler:\r\n    torch_profiler:\r\n      enabled: true\r\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_twins_differ_in_the_profiler_only(form: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_bytes(FORMS[form].encode())
    twins = make_twins(path, environment={})
    clean, profiled = write_twins(twins)
    assert (clean.name, profiled.name) == ("bench_clean.yaml", "bench_profiled.yaml")
    effective = [effective_config(item, environment={}) for item in (path, clean, profiled)]
    for first, second in ((0, 1), (0, 2), (1, 2)):
        difference = compare_configs(effective[first], effective[second])
        assert all(change.key.startswith("profiler.") for group in difference.groups for change in group.changes)
    values = {change.key: profiler((change.first, change.second)) for change in twins.changes}
    assert values["profiler.torch_profiler.enabled"] == (False, True)
    assert values["profiler.tracelens.enabled"] == (False, True)
    for item in (clean, profiled):
        assert not check_file(item, environment={}).errors
    if form == "nothing said":
        assert twins.keeps_comments and "# mine" in clean.read_text()
    if form == "profiled block":
        assert effective[2].settings["profiler.tracelens.num_steps"].value == 7
        assert effective[1].settings["profiler.gpu_monitor.interval_sec"].value == 5


def test_twins_of_a_twin_keep_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "x_clean.yaml"
    text = "# my clean config\nbenchmark:\n  model: a/b\n  profiler: {torch_profiler: {enabled: false}}\n"
    path.write_text(text)
    clean, profiled = write_twins(make_twins(path, environment={}))
    assert clean == path and path.read_text() == text
    assert profiled.name == "x_profiled.yaml"
    assert write_twins(make_twins(path, environment={})) == (clean, profiled)


def test_twins_overwrite_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(FORMS["flow"])
    (tmp_path / "b_profiled.yaml").write_text("mine")
    twins = make_twins(path, environment={})
    with pytest.raises(UserInputError, match="such a file already"):
        write_twins(twins)
    assert not (tmp_path / "b_clean.yaml").exists()
    assert write_twins(twins, force=True)
    elsewhere = make_twins(path, directory=tmp_path / "new", environment={})
    assert write_twins(elsewhere)[0] == tmp_path / "new" / "b_clean.yaml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kernel: {source_files: [b.hip]}\n", "not there"),
        ("logging: {level: INFO}\n", "only a benchmark config"),
        ("benchmark: {model: a/b, run_kind: measurement, profiler: {torch_profiler: {enabled: false}}}\n", "run_kind"),
        (
            "benchmark:\n  model: a/b\n  server_lifecycle: {enabled: true}\n"
            "  profiler: {torch_profiler: {enabled: false}}\n",
            "kept server",
        ),
    ],
)
def test_configs_without_twins(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UserInputError, match=words):
        make_twins(path, environment={})


def test_kinds_of_framework_leaves() -> None:
    assert all(item.kind is not Kind.SECTION for _key, item in leaves(FRAMEWORK_FIELDS))
