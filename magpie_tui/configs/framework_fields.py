"""Every key of the framework config, with upstream's shipped value and its fallback in code.

``default`` is the value of the file that upstream ships (used when no framework config is named); ``code_default`` is
what holds when a file is named that lacks the key.
"""

from __future__ import annotations

from magpie_tui.configs.positions import Value
from magpie_tui.configs.schema import Field, Kind

_HELPER_ONLY = "only upstream's hardware helper reads it; analyze, compare and benchmark do not"
_NOT_READ = "upstream does not read it"

METRIC_BLOCKS = ("1", "2", "5", "10", "11", "12", "14", "16", "17")
METRIX_PROFILES = ("quick", "memory", "compute")
LATENCY_METHODS = ("auto", "cuda_graph", "kernel_trace", "rocprof_timestamps", "both", "none")
PERFORMANCE_BACKENDS = ("metrix", "rocprof_compute", "ncu")
CORRECTNESS_BACKENDS = ("testcase", "accordo")
ENVIRONMENTS = ("local", "container", "ray")

_SUFFIX = ".avg.pct_of_peak_sustained_elapsed"
ROCPROF_WEIGHTS: dict[str, Value] = {
    "MFMA_FLOPs_BF16": 0.35,
    "MFMA_FLOPs_F16": 0.35,
    "MFMA_FLOPs_F32": 0.25,
    "VALU_FLOPs": 0.10,
    "LDS_BW": 0.15,
    "LDS_Conflicts": 0.10,
    "HBM_Read_BW": 0.10,
    "HBM_Write_BW": 0.10,
    "L2_BW": 0.05,
    "Wavefront_Occ": 0.05,
    "MFMA_Util": 0.10,
    "VALU_Util": 0.05,
    "duration_ns_total": 0.20,
}
NCU_WEIGHTS: dict[str, Value] = {
    f"sm__throughput{_SUFFIX}": 0.40,
    f"l1tex__throughput{_SUFFIX}": 0.10,
    f"lts__throughput{_SUFFIX}": 0.10,
    f"dram__throughput{_SUFFIX}": 0.20,
    "duration_ns_total": 0.20,
}
METRIX_WEIGHTS: dict[str, Value] = {
    "memory.hbm_bandwidth_utilization": 0.20,
    "memory.l2_hit_rate": 0.15,
    "memory.l1_hit_rate": 0.10,
    "memory.coalescing_efficiency": 0.10,
    "compute.hbm_arithmetic_intensity": 0.15,
    "duration_ns_total": 0.30,
}


def _field(key: str, kind: Kind, file: Value, code: Value, help_text: str = "", **more: object) -> Field:
    return Field(key, kind, help_text, default=file, code_default=code, has_code_default=True, **more)  # type: ignore[arg-type]


def metrix_fields(timeout_file: Value, timeout_code: Value) -> tuple[Field, ...]:
    """Keys of a ``metrix`` section."""
    return (
        _field("profile", Kind.TEXT, None, None, "Metrix profile.", nullable=True, choices=METRIX_PROFILES),
        _field("metrics", Kind.TEXT_LIST, (), (), "Metrics instead of a profile.", single=True),
        _field("kernel_filter", Kind.TEXT, None, None, "Regular expression on kernel names.", nullable=True),
        _field("num_replays", Kind.INTEGER, 1, 1, "Replays of the testcase.", minimum=1),
        _field("timeout_seconds", Kind.NUMBER, timeout_file, timeout_code, "Limit of the profiler.", above=0),
        _field("extra_args", Kind.TEXT_LIST, (), (), "More arguments of metrix."),
    )


def rocprof_fields() -> tuple[Field, ...]:
    """Keys of a ``rocprof_compute`` section."""
    blocks: Value = METRIC_BLOCKS
    return (
        _field("workload_dir", Kind.TEXT, "./workloads", "./workloads", "Replaced by the workspace's own directory."),
        _field("profile_args", Kind.TEXT_LIST, ("--no-roof",), (), "Arguments of rocprof-compute profile."),
        _field("analyze_args", Kind.TEXT_LIST, (), (), "Arguments of rocprof-compute analyze."),
        _field("metric_blocks", Kind.TEXT_LIST, blocks, blocks, "Report blocks, as text."),
        _field("output_format", Kind.TEXT, "csv", "csv", "Form of the analysis."),
        _field("roofline", Kind.NODE, None, None, "true removes --no-roof, false adds it."),
    )


def ncu_fields() -> tuple[Field, ...]:
    """Keys of an ``ncu`` section."""
    return (
        _field("args", Kind.TEXT_LIST, ("--target-processes", "all"), (), "Arguments of ncu."),
        _field("metrics", Kind.TEXT_LIST, (), (), "Metrics to collect.", single=True),
    )


def accordo_fields(*, framework: bool) -> tuple[Field, ...]:
    """Keys of an ``accordo`` section; a framework config holds the limits only."""
    limits = (
        _field("atol", Kind.NUMBER, 1e-6, 1e-6, "Absolute tolerance.", minimum=0),
        _field("rtol", Kind.NUMBER, 1e-5, 1e-5, "Relative tolerance.", minimum=0),
        _field("equal_nan", Kind.BOOLEAN, False, False, "NaN equals NaN."),
        _field("timeout_seconds", Kind.NUMBER, 30, 30, "Limit of one validation.", above=0),
    )
    if framework:
        return limits
    return (
        Field("kernel_name", Kind.TEXT, "Kernel to compare."),
        Field("reference_binary", Kind.ANY, "Program with the reference kernel."),
        Field("optimized_binary", Kind.ANY, "Program with the candidate."),
        Field("kernel_args", Kind.ANY, "Names and types of the arguments."),
        Field("working_directory", Kind.TEXT, "Where both programs run.", nullable=True),
        Field("tolerance", Kind.NUMBER, "The single tolerance of earlier releases.", minimum=0),
        *limits,
    )


def latency_fields() -> tuple[Field, ...]:
    """Keys of ``latency`` (upstream's latency line)."""
    return (
        _field("enabled", Kind.BOOLEAN, True, True, "Measure latency."),
        _field("method", Kind.TEXT, "auto", "auto", "How.", choices=LATENCY_METHODS),
        _field("primary_metric", Kind.TEXT, "wall_median_ms", "wall_median_ms", "Number reported first."),
        _field("rep_ms", Kind.NUMBER, 20, 20, "Length of a window.", above=0),
        _field("n_retries", Kind.INTEGER, 5, 5, "Windows.", minimum=1),
        _field("estimate_reps", Kind.INTEGER, 5, 5, "Calls of the estimate.", minimum=1),
        _field("warmup_iters", Kind.INTEGER, 5, 5, "Calls before the estimate.", minimum=0),
        _field("seed", Kind.INTEGER, 42, 42, "Seed of the inputs."),
        _field("kernel_filter", Kind.TEXT, None, None, "Regular expression on kernel names.", nullable=True),
        _field("timeout_seconds", Kind.NUMBER, 120, 120, "Limit of one measurement.", above=0),
    )


def _hardware_leaves() -> tuple[Field, ...]:
    limit = Field("limit_watts", Kind.NUMBER, "Power limit.", nullable=True, above=0, ignored=_HELPER_ONLY)
    frequency = (
        Field("gpu_clock_mhz", Kind.INTEGER_LIST, "[min, max].", ignored=_HELPER_ONLY, nullable=True, minimum=0),
        Field("mem_clock_mhz", Kind.INTEGER_LIST, "[min, max].", ignored=_HELPER_ONLY, nullable=True, minimum=0),
        Field("gpu_clock_level", Kind.INTEGER, "0-7.", ignored=_HELPER_ONLY, nullable=True, minimum=0, maximum=7),
        Field("mem_clock_level", Kind.INTEGER, "0-7.", ignored=_HELPER_ONLY, nullable=True, minimum=0, maximum=7),
    )
    return (
        Field("power", Kind.SECTION, "Power.", fields=(limit,)),
        Field("frequency", Kind.SECTION, "Clocks.", fields=frequency),
    )


FRAMEWORK_FIELDS: tuple[Field, ...] = (
    Field(
        "gpu",
        Kind.SECTION,
        "GPUs.",
        fields=(
            Field("device_ids", Kind.INTEGER_LIST, "GPUs of the hardware helper.", nullable=True, ignored=_HELPER_ONLY),
            _field("parallel", Kind.BOOLEAN, True, None, "Not read.", ignored=_NOT_READ),
            Field(
                "hardware",
                Kind.SECTION,
                "Power and clocks.",
                fields=(
                    _field("enabled", Kind.BOOLEAN, True, False, "Set power and clocks.", ignored=_HELPER_ONLY),
                    _field("reset_after_benchmark", Kind.BOOLEAN, True, True, "Undo it.", ignored=_HELPER_ONLY),
                    Field("default", Kind.SECTION, "For every GPU.", fields=_hardware_leaves()),
                    Field("per_gpu", Kind.MAP, "By GPU id.", default={}, null_is_default=True, ignored=_HELPER_ONLY),
                ),
            ),
        ),
    ),
    Field(
        "scheduler",
        Kind.SECTION,
        "Where kernel tasks run.",
        fields=(
            _field("max_workers", Kind.INTEGER, 8, 1, "Workers.", minimum=1),
            _field("environment", Kind.TEXT, "local", "local", "Where.", choices=ENVIRONMENTS),
            _field("docker_image", Kind.TEXT, None, None, "Image of the container environment.", nullable=True),
            _field("gpu_devices", Kind.INTEGER_LIST, (0,), (0,), "GPUs to use.", minimum=0),
        ),
    ),
    Field(
        "output",
        Kind.SECTION,
        "Output.",
        fields=(
            _field(
                "directory", Kind.TEXT, "./results", None, "Use --output-dir.", ignored=f"{_NOT_READ}; use --output-dir"
            ),
            _field("format", Kind.TEXT, "json", None, "Not read.", ignored=_NOT_READ),
        ),
    ),
    Field(
        "logging",
        Kind.SECTION,
        "Logs.",
        fields=(
            _field(
                "level",
                Kind.TEXT,
                "INFO",
                "INFO",
                "Least level shown.",
                choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
            ),
            Field("file", Kind.TEXT, "Not read.", nullable=True, ignored=_NOT_READ),
        ),
    ),
    Field(
        "correctness",
        Kind.SECTION,
        "How correctness is checked.",
        fields=(
            _field("backend", Kind.TEXT, None, None, "How.", nullable=True, choices=CORRECTNESS_BACKENDS),
            Field("accordo", Kind.SECTION, "Limits of Accordo.", fields=accordo_fields(framework=True)),
        ),
    ),
    Field(
        "compiling",
        Kind.SECTION,
        "Building.",
        fields=(
            _field("enable_default_compile", Kind.BOOLEAN, False, False, "Build sources that have no compile_command."),
        ),
    ),
    Field(
        "performance",
        Kind.SECTION,
        "Profilers.",
        fields=(
            _field("timeout_seconds", Kind.NUMBER, 600, 300, "Limit of a profiler.", above=0),
            _field("backend", Kind.TEXT, None, None, "Profiler.", nullable=True, choices=PERFORMANCE_BACKENDS),
            Field("rocprof_compute", Kind.SECTION, "rocprof-compute.", fields=rocprof_fields()),
            Field("ncu", Kind.SECTION, "Nsight Compute.", fields=ncu_fields()),
            Field("metrix", Kind.SECTION, "Metrix.", fields=metrix_fields(600, 60)),
        ),
    ),
    Field("latency", Kind.SECTION, "Latency.", fields=latency_fields()),
    Field(
        "compare",
        Kind.SECTION,
        "Upstream's ranking.",
        fields=(
            _field(
                "winner_strategy",
                Kind.TEXT,
                "perf_score",
                "perf_score",
                "How.",
                choices=("perf_score", "correctness_first"),
            ),
            Field(
                "perf_lower_is_better",
                Kind.ANY,
                "Not read.",
                ignored="upstream uses a fixed set, duration_ns_total and LDS_Conflicts",
            ),
            _field("perf_weights_rocprof", Kind.NUMBER_MAP, ROCPROF_WEIGHTS, {}, "Weights of the score."),
            _field("perf_weights_ncu", Kind.NUMBER_MAP, NCU_WEIGHTS, {}, "Weights of the score."),
            _field("perf_weights_metrix", Kind.NUMBER_MAP, METRIX_WEIGHTS, {}, "Weights of the score."),
        ),
    ),
    Field(
        "benchmark",
        Kind.SECTION,
        "Served models.",
        fields=(
            _field("image_config", Kind.TEXT, "./benchmark_images.yaml", None, "Not read.", ignored=_NOT_READ),
            _field("inferencex_path", Kind.TEXT, "", "", "InferenceX checkout; empty is searched for."),
            _field("timeout_seconds", Kind.NUMBER, 3600, None, "Not read.", ignored=_NOT_READ, above=0),
            Field("profiler", Kind.MAP, "Not read.", default={}, null_is_default=True, ignored=_NOT_READ),
        ),
    ),
)
