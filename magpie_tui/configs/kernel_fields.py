"""Every key of a kernel config: upstream's, and ours in an entry."""

from __future__ import annotations

from magpie_tui.configs.framework_fields import (
    CORRECTNESS_BACKENDS,
    ENVIRONMENTS,
    PERFORMANCE_BACKENDS,
    accordo_fields,
    latency_fields,
    metrix_fields,
    ncu_fields,
    rocprof_fields,
)
from magpie_tui.configs.kernel_model import KERNEL_TYPES
from magpie_tui.configs.schema import Field, Kind

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float4_e2m1fn_x2",
    "complex64",
    "complex128",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)

ENTRY_FIELDS: tuple[Field, ...] = (
    Field("id", Kind.TEXT, "Name in reports.", default="kernel", aliases=("kernel_id",), literal=True),
    Field(
        "type",
        Kind.TEXT,
        "Kind of kernel.",
        default="hip",
        choices=KERNEL_TYPES,
        choice_aliases={"torch": "pytorch", "py": "pytorch"},
        fold_case=True,
        aliases=("kernel_type",),
    ),
    Field(
        "source_files",
        Kind.TEXT_LIST,
        "Sources, the kernel first.",
        default=(),
        single=True,
        aliases=("source_file_path",),
    ),
    Field("working_dir", Kind.TEXT, "Directory of every command.", nullable=True),
    Field("env", Kind.NODE, "Added to the environment."),
    Field("compile_command", Kind.NODE, "How to build.", aliases=("compiling_command",)),
    Field("testcase_command", Kind.NODE, "How to test; exit status 0 is a pass."),
    Field("prof_command", Kind.NODE, "Replaces the profiler run."),
    Field(
        "get_inputs_func",
        Kind.TEXT,
        "Makes the inputs of a PyTorch kernel.",
        default="get_inputs",
        literal=True,
        null_is_default=True,
    ),
    Field(
        "get_init_inputs_func",
        Kind.TEXT,
        "Makes the arguments of its constructor.",
        default="get_init_inputs",
        literal=True,
        null_is_default=True,
    ),
    Field(
        "bench_target",
        Kind.SECTION,
        "Latency harness of upstream's latency line.",
        fields=(
            Field("module", Kind.TEXT, "Python module."),
            Field("callable", Kind.TEXT, "Function in it."),
            Field("get_inputs", Kind.TEXT, "Makes its inputs.", default="get_inputs", literal=True),
        ),
    ),
    # Ours.
    Field("python", Kind.TEXT, "Interpreter of the child that runs the kernel.", nullable=True),
    Field(
        "reference",
        Kind.TEXT,
        "What the output is compared with: entry id, file.py:function, or saved output.",
        nullable=True,
    ),
    Field("tolerance", Kind.NODE, "{atol, rtol}, or one of them for each dtype."),
    Field("shapes", Kind.NODE, "Shape grid."),
    Field("arguments", Kind.NODE, "Launch arguments of a kernel without a host program."),
    Field("kernel_name", Kind.TEXT, "Function to launch.", nullable=True, literal=True),
    Field("grid", Kind.NODE, "Blocks to launch, one to three numbers or expressions."),
    Field("block", Kind.NODE, "Threads of a block, one to three numbers or expressions."),
    Field("shared_memory", Kind.NODE, "Dynamic shared memory of a block in bytes, a number or an expression."),
    Field(
        "compile_options",
        Kind.TEXT_LIST,
        "Options of the compiler for a kernel without a host program.",
        default=(),
        single=True,
    ),
    Field("flops", Kind.NODE, "Operations of one call: a number, or an expression in the names of the shape grid."),
    Field("bytes", Kind.NODE, "Bytes that one call has to move; by default its inputs and outputs once each."),
    Field("config_files", Kind.TEXT_LIST, "Files besides the sources that tune the kernel.", default=(), single=True),
    Field("change", Kind.TEXT, "What this candidate changes against the baseline, one line.", nullable=True),
    Field("in_place", Kind.BOOLEAN, "The kernel may write to its inputs.", default=False),
    Field("deterministic", Kind.BOOLEAN, "Equal inputs give equal bits.", nullable=True),
    Field("budget_seconds", Kind.NUMBER, "Measuring time of one arm and shape.", nullable=True, above=0),
    Field("timeout_seconds", Kind.NUMBER, "Limit of each command.", nullable=True, above=0),
    # Snapshots only.
    Field("input_shapes", Kind.ANY, "Snapshot.", hidden=True),
    Field("dtype", Kind.ANY, "Snapshot.", hidden=True),
    Field("extra", Kind.ANY, "Snapshot.", hidden=True),
    Field("magpie_tui", Kind.ANY, "Our part of a snapshot.", hidden=True),
)

OWN_KEYS = frozenset(
    {
        "python",
        "reference",
        "tolerance",
        "shapes",
        "arguments",
        "kernel_name",
        "grid",
        "block",
        "shared_memory",
        "compile_options",
        "flops",
        "bytes",
        "config_files",
        "change",
        "in_place",
        "deterministic",
        "budget_seconds",
        "timeout_seconds",
    }
)
"""Keys that upstream does not know; in a snapshot they stand under ``magpie_tui``."""
SNAPSHOT_KEYS = frozenset({"kernel_id", "kernel_type", "source_file_path", "compiling_command"})
SNAPSHOT_ONLY = frozenset({"input_shapes", "dtype", "extra", "magpie_tui"})

_UNREAD = "upstream reads it from the framework config only"
_RAY_UNREAD = "for kernels upstream reads cluster_address and shared_storage_path only"

PERFORMANCE_FIELDS: tuple[Field, ...] = (
    Field("backend", Kind.TEXT, "Profiler.", nullable=True, choices=PERFORMANCE_BACKENDS),
    Field("timeout_seconds", Kind.NUMBER, "Limit of a profiler.", above=0),
    Field("metrix", Kind.SECTION, "Replaces the framework config's metrix section.", fields=metrix_fields(None, None)),
    Field("rocprof_compute", Kind.SECTION, "Merged key by key.", fields=rocprof_fields()),
    Field("ncu", Kind.SECTION, "Merged key by key.", fields=ncu_fields()),
)
CORRECTNESS_FIELDS: tuple[Field, ...] = (
    Field("backend", Kind.TEXT, "How.", nullable=True, choices=CORRECTNESS_BACKENDS),
    Field("accordo", Kind.SECTION, "Merged key by key.", fields=accordo_fields(framework=False)),
    Field(
        "testcase_command",
        Kind.ANY,
        "Not read.",
        ignored="upstream does not read it here; put testcase_command into the kernel's entry",
    ),
)
LATENCY_FIELDS: tuple[Field, ...] = latency_fields()
SCHEDULER_FIELDS: tuple[Field, ...] = (
    Field("environment", Kind.TEXT, "Where.", choices=ENVIRONMENTS),
    Field("max_workers", Kind.ANY, "Not read.", ignored=f"{_UNREAD}; use --workers"),
    Field("docker_image", Kind.ANY, "Not read.", ignored=f"{_UNREAD}; use --docker-image"),
    Field("gpu_devices", Kind.ANY, "Not read.", ignored=_UNREAD),
)
RAY_FIELDS: tuple[Field, ...] = (
    Field("cluster_address", Kind.TEXT, "Ray cluster.", default="auto"),
    Field("shared_storage_path", Kind.TEXT, "Directory that all nodes see.", default="/shared_nfs/magpie"),
    *(
        Field(key, Kind.ANY, "Not read.", ignored=_RAY_UNREAD)
        for key in (
            "entrypoint_num_gpus",
            "entrypoint_num_cpus",
            "multi_node",
            "total_num_gpus",
            "num_nodes",
            "gpus_per_node",
            "pip_packages",
            "env_vars",
            "metadata",
            "install_magpie",
            "magpie_install_path",
        )
    ),
)
FRAMEWORK_ONLY = ("gpu", "output", "logging", "compiling", "compare", "benchmark")
TOP_FIELDS: tuple[Field, ...] = (
    *(
        Field(key, Kind.NODE, "")
        for key in ("kernel", "kernels", "performance", "correctness", "latency", "scheduler", "ray_config")
    ),
    Field("magpie_tui", Kind.NODE, "Our part of a snapshot.", hidden=True),
    *(
        Field(
            key,
            Kind.NODE,
            "",
            hidden=True,
            ignored="upstream reads this section from the framework config (--config) only",
        )
        for key in FRAMEWORK_ONLY
    ),
)
