"""Kernel configs: every form upstream knows, our own keys, snapshots, and each way to get them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpie_tui.basics.errors import UserInputError
from magpie_tui.configs.kernel import (
    KernelConfig,
    KernelEntry,
    Tolerance,
    kernel_entries_from_arguments,
    load_kernel_config,
)
from tests.configs.helpers import check_text, errors, found, places

SAMPLE = """\
kernels:
  - id: rms_base
    type: hip
    working_dir: ${REPO}/rms
    source_files: [rms_base.hip]
    env: {HIP_VISIBLE_DEVICES: "0"}
    compile_command:
      - [hipcc, -O3, rms_base.hip, -o, rms_base]
    testcase_command: ["./rms_base", "--check"]
  - id: rms_vec
    type: HIP
    working_dir: ${REPO}/rms
    source_files: [rms_vec.hip]
    compile_command: hipcc -O3 rms_vec.hip -o rms_vec
    testcase_command: ./rms_vec --check
performance:
  backend: rocprof_compute
  timeout_seconds: 900
  rocprof_compute: {roofline: false, metric_blocks: ["2", "16", "17"]}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "rms").mkdir()
    for name in ("rms_base.hip", "rms_vec.hip"):
        (tmp_path / "rms" / name).write_text("// kernel\n")
    for name in ("k.py", "ref.py", "saved.pt", "a.hip"):
        (tmp_path / name).write_text("x = 1\n")
    return tmp_path


def load(directory: Path, text: str, **settings: object) -> KernelConfig:
    path = directory / "k.yaml"
    path.write_text(text)
    return load_kernel_config(path, environment={"REPO": str(directory)}, **settings)  # type: ignore[arg-type]


def entry(directory: Path, keys: str) -> KernelEntry:
    """Load one entry with ``keys`` in flow style."""
    return load(directory, f"kernel: {{{keys}}}\n").kernels[0]


def test_the_sample_of_the_documentation(repository: Path) -> None:
    config = load(repository, SAMPLE)
    base, vec = config.kernels
    assert (base.id, base.type, vec.type) == ("rms_base", "hip", "hip")
    assert base.source_files == (repository / "rms" / "rms_base.hip",)
    assert base.working_dir == repository / "rms"
    assert base.env == {"HIP_VISIBLE_DEVICES": "0"}
    assert base.compile_commands == (("hipcc", "-O3", "rms_base.hip", "-o", "rms_base"),)
    assert base.testcase_commands == (("./rms_base", "--check"),)
    assert vec.compile_commands == (("hipcc", "-O3", "rms_vec.hip", "-o", "rms_vec"),)
    assert config.performance == {
        "backend": "rocprof_compute",
        "timeout_seconds": 900,
        "rocprof_compute": {"roofline": False, "metric_blocks": ("2", "16", "17")},
    }
    assert not config.problems
    assert base.origin["working_dir"].text.startswith(f"{repository}/k.yaml:4 (with REPO from the environment")
    assert base.origin["get_inputs_func"].text == "default"


def test_defaults(repository: Path) -> None:
    kernel = entry(repository, "source_files: a.hip")
    assert (kernel.id, kernel.type, kernel.env) == ("kernel", "hip", {})
    assert (kernel.get_inputs_func, kernel.get_init_inputs_func) == ("get_inputs", "get_init_inputs")
    assert kernel.compile_commands == kernel.testcase_commands == kernel.prof_commands == ()
    assert (kernel.in_place, kernel.deterministic, kernel.reference, kernel.python) == (False, None, None, None)


@pytest.mark.parametrize(
    ("written", "read"),
    [("torch", "pytorch"), ("py", "pytorch"), ("PyTorch", "pytorch"), ("CUDA", "cuda"), ("triton", "triton")],
)
def test_types_and_their_other_names(repository: Path, written: str, read: str) -> None:
    assert entry(repository, f"type: {written}, source_files: [k.py]").type == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("make -j 4", (("make", "-j", "4"),)),
        ("[make, -j, '4']", (("make", "-j", "4"),)),
        ("[[make, a], [make, b]]", (("make", "a"), ("make", "b"))),
        ("[]", ()),
        ("null", ()),
        ("''", ()),
        ("[bash, -lc, 'make && ./t $1']", (("bash", "-lc", "make && ./t $1"),)),
        ("'x --n \"two words\"'", (("x", "--n", "two words"),)),
        ("[x, '--n', '\"raw\" $', '&']", (("x", "--n", '"raw" $', "&"),)),
    ],
)
@pytest.mark.parametrize("key", ["compile_command", "testcase_command", "prof_command"])
def test_command_forms(repository: Path, key: str, written: str, read: object) -> None:
    kernel = entry(repository, f"source_files: [a.hip], {key}: {written}")
    assert getattr(kernel, f"{key}s") == read


def test_variables_are_filled_in_where_upstream_does(repository: Path) -> None:
    kernel = entry(
        repository,
        "id: a$REPO, source_files: ['$REPO/a.hip'], env: {P: '${REPO}/x'}, get_inputs_func: f$REPO,"
        " testcase_command: ['./t', '$REPO'], compile_command: 'cc ${REPO}/a.hip'",
    )
    assert kernel.id == "a$REPO"
    assert kernel.get_inputs_func == "f$REPO"
    assert kernel.source_files == (repository / "a.hip",)
    assert kernel.env == {"P": f"{repository}/x"}
    assert kernel.testcase_commands == (("./t", str(repository)),)
    assert kernel.compile_commands == (("cc", f"{repository}/a.hip"),)


def test_a_variable_with_blanks_stays_one_argument(repository: Path) -> None:
    path = repository / "k.yaml"
    path.write_text("kernel: {source_files: [a.hip], testcase_command: ./t $WHERE}\n")
    config = load_kernel_config(path, environment={"WHERE": "/two words/x"}, caller_directory=repository)
    assert config.kernels[0].testcase_commands == (("./t", "/two words/x"),)


def test_kernel_comes_before_kernels_and_empty_entries_are_skipped(repository: Path) -> None:
    text = "kernels:\n  - {id: b, source_files: [a.hip]}\n  -\nkernel: {id: a, source_files: [a.hip]}\n"
    config = load(repository, text)
    assert [kernel.id for kernel in config.kernels] == ["a", "b"]
    assert [problem.code for problem in config.problems] == ["empty-entry"]


def test_sources_are_looked_up_where_the_caller_is_first(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    caller = tmp_path_factory.mktemp("caller")
    text = "kernel: {source_files: [a.hip], testcase_command: ./t}\n"
    beside = load(repository, text, caller_directory=caller).kernels[0]
    assert beside.source_files == (repository / "a.hip",)
    assert beside.working_dir == repository
    assert "relative to the config's directory" in beside.origin["source_files"].text
    (caller / "a.hip").write_text("// mine\n")
    mine = load(repository, text, caller_directory=caller).kernels[0]
    assert mine.source_files == (caller / "a.hip",)
    assert mine.working_dir is None
    assert "relative to the caller's directory" in mine.origin["source_files"].text


def test_working_dir_moves_with_the_sources(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    caller = tmp_path_factory.mktemp("caller")
    text = "kernel: {source_files: [rms_base.hip], working_dir: rms, testcase_command: ./t}\n"
    kernel = load(repository, text, caller_directory=caller).kernels[0]
    assert kernel.source_files == (repository / "rms" / "rms_base.hip",)
    assert kernel.working_dir == repository / "rms"


def test_our_own_keys(repository: Path) -> None:
    config = load(
        repository,
        """\
kernels:
  - id: a
    type: pytorch
    source_files: [k.py]
    python: .venv/bin/python
    reference: ref.py:nested.function
    tolerance: {atol: 1.0e-6, float16: {atol: 1.0e-3, rtol: 0.01}, bfloat16: {rtol: 0.02}}
    shapes: {M: [1, 128], dtype: [float16]}
    in_place: true
    deterministic: false
    budget_seconds: 20
    timeout_seconds: 1.5
  - id: b
    type: hip
    source_files: [a.hip]
    reference: saved.pt
    kernel_name: add
    grid: ["(N + 255) // 256", 2]
    block: 256
    arguments:
      - {name: x, dtype: float32, shape: [N]}
      - {name: y, dtype: float32, shape: [N, 4], output: true}
      - {name: n, value: N}
      - 3
    shapes: [[4, 8], [[2, 2], [2]], 16]
  - {id: c, type: triton, source_files: [k.py], reference: a}
""",
        caller_directory=repository,
    )
    a, b, c = config.kernels
    assert a.python == str(repository / ".venv/bin/python")
    assert a.reference is not None
    assert (a.reference.kind, a.reference.path, a.reference.function) == (
        "callable",
        repository / "ref.py",
        "nested.function",
    )
    assert a.tolerance == {
        "*": Tolerance(1e-6, None),
        "float16": Tolerance(1e-3, 0.01),
        "bfloat16": Tolerance(None, 0.02),
    }
    assert a.shapes == ({"M": 1, "dtype": "float16"}, {"M": 128, "dtype": "float16"})
    assert (a.in_place, a.deterministic, a.budget_seconds, a.timeout_seconds) == (True, False, 20.0, 1.5)
    assert b.reference is not None and (b.reference.kind, b.reference.path) == ("saved", repository / "saved.pt")
    assert (b.kernel_name, b.grid, b.block) == ("add", ("(N + 255) // 256", 2), (256,))
    assert b.arguments == (
        {"name": "x", "dtype": "float32", "shape": ("N",)},
        {"name": "y", "dtype": "float32", "shape": ("N", 4), "output": True},
        {"name": "n", "value": "N"},
        3,
    )
    assert b.shapes == ((4, 8), ((2, 2), (2,)), (16,))
    assert c.reference is not None and (c.reference.kind, c.reference.entry_id) == ("entry", "a")


def test_a_snapshot_is_accepted(repository: Path) -> None:
    config = load(
        repository,
        f"""\
kernels:
- compiling_command: [[hipcc, a.hip], [strip, a.out]]
  dtype: float32
  env: {{}}
  extra: {{}}
  get_init_inputs_func: null
  get_inputs_func: get_inputs
  input_shapes: []
  kernel_id: vec
  kernel_type: HIP
  magpie_tui: {{timeout_seconds: 5, schema: 1}}
  prof_command: null
  source_file_path: [{repository}/a.hip]
  testcase_command: [./a.out, $NOT_A_VARIABLE]
  working_dir: {repository}
""",
    )
    kernel = config.kernels[0]
    assert config.is_snapshot
    assert (kernel.id, kernel.type, kernel.source_files) == ("vec", "hip", (repository / "a.hip",))
    assert kernel.compile_commands == (("hipcc", "a.hip"), ("strip", "a.out"))
    assert kernel.testcase_commands == (("./a.out", "$NOT_A_VARIABLE"),)
    assert kernel.timeout_seconds == 5.0


def test_sections(repository: Path) -> None:
    config = load(
        repository,
        """\
kernel: {source_files: [a.hip], bench_target: {module: m, callable: f}}
performance:
  metrix: {profile: quick, metrics: [a], kernel_filter: x, num_replays: 3}
  ncu: {args: [--set, full], metrics: m1}
correctness:
  backend: accordo
  accordo:
    {kernel_name: k, reference_binary: ./r, optimized_binary: ./o, atol: 0, equal_nan: true, kernel_args: "x:float*"}
  testcase_command: ./ignored
latency: {method: cuda_graph}
scheduler: {environment: container, max_workers: 4}
ray_config: {cluster_address: "ray://x", num_nodes: 2}
compare: {perf_lower_is_better: [x]}
""",
        caller_directory=repository,
    )
    assert config.performance["metrix"] == {
        "profile": "quick",
        "metrics": ("a",),
        "kernel_filter": "x",
        "num_replays": 3,
    }
    assert config.performance["ncu"] == {"args": ("--set", "full"), "metrics": ("m1",)}
    assert config.correctness["backend"] == "accordo"
    assert config.latency == {"method": "cuda_graph"}
    assert config.scheduler == {"environment": "container"}
    assert config.ray_config == {"cluster_address": "ray://x"}
    assert config.kernels[0].bench_target == {"module": "m", "callable": "f"}
    ignored = [(problem.line, problem.code) for problem in config.problems]
    assert ignored == [(line, "ignored-key") for line in (9, 11, 12, 13)]


@pytest.mark.parametrize(
    ("word", "value"), [("yes", True), ("'on'", True), ("1", True), ("'False'", False), ("0", False)]
)
def test_roofline_words(repository: Path, word: str, value: bool) -> None:
    text = f"kernel: {{source_files: [a.hip]}}\nperformance: {{rocprof_compute: {{roofline: {word}}}}}\n"
    assert load(repository, text, caller_directory=repository).performance["rocprof_compute"] == {"roofline": value}


# The place of the problem is marked.
WRONG = [
    ("testcase_command: make @&& ./t", "shell-operator"),
    ("testcase_command: @./t $UNSET_ONE", "unset-variable"),
    ("testcase_command: @./t ${A:-b}", "bad-variable"),
    ("testcase_command: ./t @\\", "trailing-backslash"),
    ("testcase_command: ./t @'x", "unbalanced-quote"),
    ("testcase_command: @cd x", "shell-builtin"),
    ("testcase_command: [a, @[b]]", "mixed-command"),
    ("testcase_command: [[a], @b]", "mixed-command"),
    ("testcase_command: [@[]]", "empty-command"),
    ("testcase_command: [a, @3]", "wrong-type"),
    ("testcase_command: @{a: b}", "wrong-type"),
    ("testcase_command: @yes", "wrong-type"),
    ("env: @[a]", "wrong-type"),
    ("env: {A: @[b]}", "wrong-type"),
    ("env: {A: @3}", "env-not-text"),
    ("env: {A: @'${UNSET_ONE}'}", "unset-variable"),
    ("env: {@a=b: c}", "bad-key"),
    ("type: @hipp", "bad-choice"),
    ("source_files: [@b.hip]", "missing-source"),
    ("source_files: [@rms]", "missing-source"),
    ("source_files: [@$UNSET_ONE/b.hip]", "unset-variable"),
    ("working_dir: @nowhere", "missing-directory"),
    ("working_dir: @a.hip", "missing-directory"),
    ("@testcase: ./t", "unknown-key"),
    ("@input_shapes: []", "unknown-key"),
    ("reference: @nothing", "missing-reference"),
    ("reference: @one", "bad-reference"),
    ("tolerance: @0.1", "wrong-type"),
    ("tolerance: {atol: @-1}", "out-of-range"),
    ("tolerance: {atol: @.nan}", "wrong-type"),
    ("tolerance: {atol: @1e-3}", "wrong-type"),
    ("tolerance: {@float61: {atol: 1}}", "unknown-key"),
    ("tolerance: @{}", "empty-value"),
    ("shapes: @3", "wrong-type"),
    ("shapes: [[@-1]]", "out-of-range"),
    ("shapes: {M: @[]}", "empty-value"),
    ("shapes: {M: [@08]}", "wrong-type"),
    ("block: @0", "out-of-range"),
    ("block: @[1, 2, 3, 4]", "wrong-type"),
    ("arguments: [@{name: x}]", "missing-key"),
    ("arguments: [@{value: 1, shape: [1], dtype: int8}]", "conflict"),
    ("arguments: [@x]", "wrong-type"),
    ("in_place: @maybe", "wrong-type"),
    ("budget_seconds: @0", "out-of-range"),
    ("timeout_seconds: @12:30", "surprising-number"),
]


@pytest.mark.parametrize(("line", "code"), WRONG, ids=[item[0] for item in WRONG])
def test_each_wrong_value_is_found_at_its_place(repository: Path, line: str, code: str) -> None:
    base = ["  - id: one", "    source_files: [a.hip]", "    testcase_command: ./ok"]
    key = line.replace("@", "").split(":")[0]
    kept = [text for text in base if not text.strip(" -").startswith(f"{key}:")]
    lines = ["kernels:", *kept, "    " + line.replace("@", "")]
    check = check_text("\n".join(lines) + "\n", path=repository / "k.yaml", caller=repository)
    assert (code, len(lines), 5 + line.index("@")) in places(check)


@pytest.mark.parametrize("keys", ["grid: 4", "block: 4", "arguments: [1]"])
def test_launch_keys_need_a_kernel_name(repository: Path, keys: str) -> None:
    text = f"kernel: {{source_files: [a.hip], testcase_command: ./t, {keys}}}\n"
    check = check_text(text, path=repository / "k.yaml", caller=repository)
    assert places(check) == {("missing-key", 1, 9)}


def test_columns_are_exact(repository: Path) -> None:
    check = check_text(
        "kernels:\n"
        "  - source_files: [a.hip]\n"
        "    compile_command: cc a && b\n"
        '    testcase_command: "./t \'x"\n'
        "    prof_command: [a, 3]\n"
        "    tolerance: {atol: 1e-3}\n"
        "    tracelense: 1\n",
        path=repository / "k.yaml",
        caller=repository,
    )
    assert places(check) == {
        ("shell-operator", 3, 27),
        ("unbalanced-quote", 4, 28),
        ("wrong-type", 5, 23),
        ("wrong-type", 6, 23),
        ("unknown-key", 7, 5),
    }


def test_all_problems_come_in_one_error(repository: Path) -> None:
    with pytest.raises(UserInputError) as raised:
        load(repository, "kernels:\n  - id: no\n    sourcefiles: [x]\n    type: hop\n")
    message = str(raised.value)
    assert "3 problems" in message
    for words in ("YAML reads no as false", "did you mean source_files?", "one of hip, cuda, pytorch, triton"):
        assert words in message
    assert (raised.value.line, raised.value.column) == (2, 9)


@pytest.mark.parametrize(
    "text",
    ["", "kernels: []\n", "kernel:\n", "performance: {}\nkernels:\n", "kernels: {a: 1}\n", "- 1\n", "kernels: [3]\n"],
)
def test_files_without_kernels(tmp_path: Path, text: str) -> None:
    check = check_text(text, path=tmp_path / "k.yaml", kind="kernel")
    assert check.errors
    assert check.config is not None


def test_a_key_that_is_only_in_another_section_is_named(repository: Path) -> None:
    check = check_text(
        "kernel: {source_files: [a.hip], rocprof_compute: {}}\n", path=repository / "k.yaml", caller=repository
    )
    assert found(check, "unknown-key")[0].hint == "did you mean performance.rocprof_compute?"


def test_a_similar_file_is_named(repository: Path) -> None:
    check = check_text("kernel: {source_files: [b.hip]}\n", path=repository / "k.yaml", caller=repository)
    problem = found(check, "missing-source")[0]
    assert problem.hint == "did you mean a.hip?"
    assert str(repository / "b.hip") in str(problem.expected)


def test_the_same_id_twice_is_a_warning_and_no_reference(repository: Path) -> None:
    check = check_text(
        "kernels:\n  - {id: a, source_files: [a.hip]}\n  - {id: a, source_files: [a.hip]}\n"
        "  - {id: b, source_files: [a.hip], reference: a}\n",
        path=repository / "k.yaml",
        caller=repository,
    )
    assert found(check, "same-id")[0].line == 3
    assert "several entries" in found(check, "bad-reference")[0].message


def test_two_names_of_one_key(repository: Path) -> None:
    check = check_text(
        "kernel: {source_files: [a.hip], source_file_path: [a.hip]}\n", path=repository / "k.yaml", caller=repository
    )
    assert found(check, "duplicate-key")


def test_modes(repository: Path) -> None:
    one = "kernel: {source_files: [a.hip]}\n"
    two = "kernels:\n  - {id: a, source_files: [a.hip]}\n  - {id: b, source_files: [a.hip], testcase_command: ./t}\n"
    path = repository / "k.yaml"
    assert [item.code for item in check_text(one, path=path, caller=repository).errors] == ["missing-check"]
    assert [item.code for item in check_text(one, path=path, caller=repository, mode="compare").errors] == [
        "too-few-kernels"
    ]
    both = check_text(two, path=path, caller=repository)
    assert not both.errors
    assert places(both) == {("missing-check", 2, 5)}
    assert [item.line for item in check_text(two, path=path, caller=repository, mode="analyze").errors] == [2]
    referenced = "kernels:\n  - {id: a, source_files: [a.hip], reference: saved.pt}\n"
    assert not check_text(referenced, path=path, caller=repository, mode="analyze").problems
    # Loading does not ask how a kernel is judged: analyze reports its correctness as unknown.
    assert load(repository, one, caller_directory=repository).kernels


def test_entries_from_arguments(repository: Path) -> None:
    paths = [repository / "a.hip", repository / "rms" / "rms_vec.hip"]
    config = kernel_entries_from_arguments(
        paths, type="HIP", testcase="./t --name 'two words'", compile_cmd="make a", mode="analyze"
    )
    first, second = config.kernels
    assert (first.id, second.id, first.type) == ("a", "rms_vec", "hip")
    assert first.working_dir == repository
    assert first.testcase_commands == (("./t", "--name", "two words"),)
    assert first.compile_commands == (("make", "a"),)
    compared = kernel_entries_from_arguments(paths, type="cuda", testcase=None, mode="compare").kernels
    assert [kernel.id for kernel in compared] == ["kernel_0_a", "kernel_1_rms_vec"]
    assert compared[0].testcase_commands == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"type": "hipp"}, "hip"),
        ({"testcase": "a && b"}, "&&"),
        ({"compile_cmd": "a 'b"}, "quote"),
        ({"paths": ["none.hip", "nowhere.hip"]}, "2 source files"),
        ({"paths": ["rms"]}, "directory"),
    ],
)
def test_wrong_arguments(repository: Path, arguments: dict[str, object], words: str) -> None:
    settings: dict[str, object] = {"type": "hip", "testcase": None, "mode": "analyze", **arguments}
    names = settings.pop("paths", ["a.hip"])
    assert isinstance(names, list)
    with pytest.raises(UserInputError, match=words):
        kernel_entries_from_arguments([repository / name for name in names], **settings)  # type: ignore[arg-type]


def test_terminal_controls_in_a_config_stay_harmless(repository: Path) -> None:
    check = check_text(
        'kernel: {source_files: ["\\e[31m[/x].hip"], "a\\eb": 1}\n', path=repository / "k.yaml", caller=repository
    )
    assert errors(check)
    assert not any("\x1b" in text for text in errors(check))


RAW = """\
kernel:
  id: one
  type: cuda
  source_files: [a.hip]
  testcase_command: ./ok
  kernel_name: add
  arguments: {arguments}
  grid: ["ceil_div(n, 256)"]
  block: 256
  shapes: {{n: [4, 8]}}
  {more}
"""
X, OUT = "{name: x, dtype: float32, shape: [n]}", "{name: y, dtype: float32, shape: [n], role: out}"


@pytest.mark.parametrize(
    ("arguments", "more", "code"),
    [
        (f"[{X}, {OUT}]", "in_place: false", None),
        (f"[{X}, {OUT}, {{value: rows}}]", "", "unknown-name"),
        (f"[{X}, {{name: y, dtype: float32, shape: ['n + '], role: out}}]", "", "bad-expression"),
        (f"[{X}]", "", "no-output"),
        ("[{name: x, dtype: float32, shape: [n], role: inout}]", "", "conflict"),
        ("[{name: x, dtype: float32, shape: [n], role: inout}]", "in_place: true", None),
        (f"[{X}, {OUT}]", "flops: 2 * m", "unknown-name"),
        (f"[{X}, {OUT}]", "flops: 2 * n", None),
        (f"[{X}, {OUT}]", "config_files: [none.json]", "missing-file"),
        (f"[{X}, {OUT}]", "shared_memory: -1", "out-of-range"),
    ],
)
def test_kernels_without_a_main_are_checked(repository: Path, arguments: str, more: str, code: str | None) -> None:
    check = check_text(RAW.format(arguments=arguments, more=more), path=repository / "k.yaml", caller=repository)
    assert {found_code for found_code, _line, _column in places(check)} == (set() if code is None else {code})
