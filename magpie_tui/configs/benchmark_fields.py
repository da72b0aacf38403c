"""Every key of a benchmark config, those of upstream's side lines included."""

from __future__ import annotations

from magpie_tui.configs.schema import Field, Kind

FRAMEWORKS = ("vllm", "sglang", "atom", "xdit")
RUN_MODES = ("docker", "local", "ray")
PRECISIONS = ("fp8", "fp16", "bf16", "fp4", "fp32", "int8", "int4", "mxfp4", "nvfp4", "w8a8", "w4a16", "auto")
STAGES = ("prefilldecode", "decode", "prefill")
STAGE_ALIASES = {
    "pd": "prefilldecode",
    "mixed": "prefilldecode",
    "prefill_decode": "prefilldecode",
    "prefill-decode": "prefilldecode",
    "decode_only": "decode",
    "decode-only": "decode",
    "prefill_only": "prefill",
    "prefill-only": "prefill",
}
VISIBLE_DEVICES = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
EXTRA_ARGUMENTS = {"vllm": "EXTRA_VLLM_ARGS", "sglang": "EXTRA_SGLANG_ARGS", "atom": "EXTRA_ATOM_ARGS"}

DEFAULT_ENVS = {"TP": "1", "CONC": "32", "ISL": "1024", "OSL": "512", "RANDOM_RANGE_RATIO": "0.5"}
"""Used only when ``envs`` is absent or empty; there is no merge key by key."""


def _limits(*names: str) -> dict[str, Field]:
    return {name: Field(name, Kind.INTEGER, minimum=1) for name in names}


ENV_FIELDS: dict[str, Field] = {
    **_limits(
        "TP", "CONC", "ISL", "OSL", "NUM_PROMPTS", "MAX_MODEL_LEN", "PP_SIZE", "PCP_SIZE", "EVAL_CONCURRENT_REQUESTS"
    ),
    "PORT": Field("PORT", Kind.INTEGER, minimum=1, maximum=65535),
    "RANDOM_RANGE_RATIO": Field("RANDOM_RANGE_RATIO", Kind.NUMBER, minimum=0, maximum=1),
    "GPU_MEM_UTIL": Field("GPU_MEM_UTIL", Kind.NUMBER, above=0, maximum=1),
    "GPU_MEMORY_UTILIZATION": Field("GPU_MEMORY_UTILIZATION", Kind.NUMBER, above=0, maximum=1),
}
ENV_FLAGS = frozenset({"ENABLE_PROFILE", "RUN_EVAL", "EVAL_ONLY"})
ENV_TEXTS = frozenset(
    {
        "MODEL_PATH",
        "MODEL_REVISION",
        "REQUEST_RATE",
        "BENCHMARK_BASE_URL",
        "MAGPIE_BENCHMARK_BACKEND",
        "MAGPIE_BENCHMARK_ENDPOINT",
        "TL_EXTENSION",
        "HF_TOKEN",
        "HF_HOME",
        *VISIBLE_DEVICES,
        *EXTRA_ARGUMENTS.values(),
    }
)
KNOWN_ENVS = frozenset({*ENV_FIELDS, *ENV_FLAGS, *ENV_TEXTS})

PROFILER_FIELDS: tuple[Field, ...] = (
    Field(
        "torch_profiler",
        Kind.SECTION,
        "Traces of the server.",
        fields=(
            Field("enabled", Kind.BOOLEAN, "On unless switched off.", default=True),
            Field("num_steps", Kind.INTEGER, "AgentX captures.", default=20, minimum=1),
            Field("capture_timeout_seconds", Kind.NUMBER, "AgentX captures.", default=300, above=0),
            Field("flush_timeout_seconds", Kind.NUMBER, "AgentX captures.", default=1800, above=0),
            Field("num_profiles", Kind.INTEGER, "AgentX captures.", default=1, minimum=1),
            Field("interval_seconds", Kind.NUMBER, "AgentX captures.", default=200, minimum=0),
            Field("start_seconds", Kind.NUMBER, "AgentX captures.", default=0, minimum=0),
            Field("detailed_annotations", Kind.BOOLEAN, "AgentX captures.", default=False),
            Field("on_demand", Kind.BOOLEAN, "Start a clean server ready for a capture (ours).", default=False),
        ),
    ),
    Field(
        "system_profiler",
        Kind.SECTION,
        "Accepted and recorded only.",
        fields=(
            Field("enabled", Kind.BOOLEAN, "Does nothing.", default=False),
            Field("profile_args", Kind.TEXT_LIST, "Does nothing.", default=(), single=True),
        ),
    ),
    Field(
        "tracelens",
        Kind.SECTION,
        "TraceLens after the run.",
        fields=(
            Field("enabled", Kind.BOOLEAN, "Analyse the traces.", default=False),
            Field(
                "analysis_mode",
                Kind.TEXT,
                "Stage windows, or the whole trace.",
                default="inference",
                choices=("inference", "pytorch"),
                choice_aliases={"classic": "pytorch"},
                fold_case=True,
            ),
            Field("analysis_stages", Kind.NODE, "Which stages.", default=STAGES),
            Field("num_steps", Kind.INTEGER, "Steps for the split.", default=32, minimum=1),
            Field("cli_timeout_seconds", Kind.NUMBER, "Limit of each command.", default=1800, above=0),
            Field("auto_patch_runtime", Kind.BOOLEAN, "Build an image with TraceLens.", default=True),
            Field("tracelens_repo_path", Kind.TEXT, "Checkout of TraceLens.", nullable=True),
            Field("extension_wheel_path", Kind.TEXT, "Wheel of an extension.", nullable=True),
            Field("runtime_patch_image_tag", Kind.TEXT, "Name of the image built.", nullable=True),
            Field("runtime_patch_force_rebuild", Kind.BOOLEAN, "Build it again.", default=False),
            Field("restore_patches", Kind.BOOLEAN, "Undo edits of InferenceX files.", default=True),
            Field("export_format", Kind.TEXT, "Tables.", default="csv", choices=("csv", "excel"), fold_case=True),
            Field("export_csv", Kind.BOOLEAN, "Earlier name of export_format.", hidden=True),
            Field("export_excel", Kind.BOOLEAN, "Earlier name of export_format.", hidden=True),
            Field("perf_report_enabled", Kind.BOOLEAN, "PyTorch flow.", default=True),
            Field("multi_rank_report_enabled", Kind.BOOLEAN, "PyTorch flow.", default=True),
            Field("gpu_arch_config", Kind.TEXT, "Ceilings for the roofline.", nullable=True),
        ),
    ),
    Field(
        "gpu_monitor",
        Kind.SECTION,
        "Temperature, clocks, power.",
        fields=(
            Field("enabled", Kind.BOOLEAN, "Sample.", default=True),
            Field("interval_sec", Kind.NUMBER, "Seconds between samples.", default=2.0, minimum=0.5),
            Field("device_id", Kind.INTEGER, "GPU; null is the first visible one.", nullable=True, minimum=0),
        ),
    ),
    Field("targeted_trace", Kind.ANY, "Traces of single kernels (upstream's evidence line)."),
)

GAP_FIELDS: tuple[Field, ...] = (
    Field("enabled", Kind.BOOLEAN, "Rank kernels after the run.", default=False),
    Field("trace_start_pct", Kind.NUMBER, "Start of the window.", default=0.0, minimum=0, maximum=100),
    Field("trace_end_pct", Kind.NUMBER, "End of the window.", default=100.0, minimum=0, maximum=100),
    Field("top_k", Kind.INTEGER, "Rows.", default=20, minimum=1),
    Field("min_duration_us", Kind.NUMBER, "Shorter events are dropped.", default=0.0, minimum=0),
    Field("categories", Kind.TEXT_LIST, "Allowed; empty is all.", default=("kernel", "gpu"), nullable=True),
    Field(
        "ignore_categories",
        Kind.TEXT_LIST,
        "Left out.",
        default=("gpu_user_annotation", "user_annotation"),
        nullable=True,
    ),
    Field("find_kernel_sources", Kind.BOOLEAN, "Add source columns.", default=False),
    Field("kernel_source_repos", Kind.TEXT_LIST, "Checkouts to search.", nullable=True),
    Field("auto_clone_repos", Kind.BOOLEAN, "Clone what is missing.", default=True),
    Field("repos_base_dir", Kind.TEXT, "Where clones lie.", nullable=True),
)
SELECTION_FIELDS: tuple[Field, ...] = (
    Field("auto", Kind.BOOLEAN, "Choose idle GPUs.", default=True),
    Field("min_free_memory_gb", Kind.NUMBER, "Idle means this much is free.", default=8.0, minimum=0),
    Field("count", Kind.INTEGER, "How many; null is TP.", nullable=True, minimum=1),
    Field("candidates", Kind.INTEGER_LIST, "Physical ids allowed.", nullable=True, minimum=0),
)
LIFECYCLE_FIELDS: tuple[Field, ...] = (
    Field("enabled", Kind.BOOLEAN, "Keep the server between runs.", default=False),
    Field("cleanup", Kind.BOOLEAN, "Stop it after this run.", default=False),
    Field("force_reuse", Kind.BOOLEAN, "Use it although settings differ.", default=False),
    Field("pid_dir", Kind.TEXT, "Where its state lies.", nullable=True),
    Field("server_ready_timeout_s", Kind.NUMBER, "Limit of the start.", default=2700, above=0),
)
RAY_FIELDS: tuple[Field, ...] = (
    Field("cluster_address", Kind.TEXT, "Ray cluster.", default="auto"),
    Field("shared_storage_path", Kind.TEXT, "Directory that all nodes see.", default="/shared_nfs/magpie"),
    Field("entrypoint_num_gpus", Kind.NUMBER, "GPUs of the driver.", default=0, minimum=0),
    Field("entrypoint_num_cpus", Kind.NUMBER, "CPUs of the driver.", default=16, minimum=0),
    Field("multi_node", Kind.BOOLEAN, "Several nodes.", default=False),
    Field("total_num_gpus", Kind.INTEGER, "GPUs in all.", default=8, minimum=1),
    Field("num_nodes", Kind.INTEGER, "Nodes.", default=1, minimum=1),
    Field("gpus_per_node", Kind.INTEGER, "GPUs of a node.", default=8, minimum=1),
    Field("pip_packages", Kind.TEXT_LIST, "Installed on the workers.", default=()),
    Field("env_vars", Kind.MAP, "Environment of the workers.", default={}),
    Field("metadata", Kind.MAP, "Recorded.", default={}),
    Field("install_magpie", Kind.BOOLEAN, "Install Magpie there.", default=True),
    Field("magpie_install_path", Kind.TEXT, "From where.", nullable=True),
)
LOAD_FIELDS: tuple[Field, ...] = (
    Field("endpoint", Kind.TEXT, "API of the server.", default="completions", choices=("completions", "chat")),
    Field(
        "arrival",
        Kind.TEXT,
        "closed: CONC in flight; the others follow a schedule, whatever the server does.",
        default="closed",
        choices=("closed", "poisson", "gamma", "constant", "replay"),
    ),
    Field("request_rate", Kind.NUMBER, "Requests a second of a schedule.", nullable=True, above=0),
    Field("burstiness", Kind.NUMBER, "Shape of gamma arrivals; 1 is Poisson.", default=1.0, above=0),
    Field("schedule", Kind.TEXT, "File of the times that are replayed.", nullable=True),
    Field("prompts", Kind.TEXT, "File of prompts, or of conversations in ShareGPT's form (.json).", nullable=True),
    Field("shared_prefix", Kind.INTEGER, "Tokens that all random prompts begin with.", default=0, minimum=0),
    Field("warmup_requests", Kind.INTEGER, "Requests of a warm-up round; null is CONC.", nullable=True, minimum=0),
    Field("ignore_eos", Kind.BOOLEAN, "Ask for exactly OSL tokens.", default=True),
    Field("seed", Kind.INTEGER, "Of prompts, lengths and arrivals.", default=0, minimum=0),
    Field("request_timeout_s", Kind.NUMBER, "Limit of one request.", default=600.0, above=0),
    Field("slo_ttft_ms", Kind.NUMBER, "Goodput: limit of the time to the first token.", nullable=True, above=0),
    Field("slo_tpot_ms", Kind.NUMBER, "Goodput: limit of the time for each further token.", nullable=True, above=0),
    Field("slo_e2el_ms", Kind.NUMBER, "Goodput: limit of the whole request.", nullable=True, above=0),
    Field("stop_on", Kind.TEXT_LIST, "Kinds of flags of the server's log that end a run.", default=(), single=True),
)
"""Ours: what upstream leaves to its benchmark scripts. Upstream ignores the section."""
_CLI_ONLY = "upstream takes it from the command line only; use {}"

BENCHMARK_FIELDS: tuple[Field, ...] = (
    Field("framework", Kind.TEXT, "Server.", default="sglang", choices=FRAMEWORKS, fold_case=True),
    Field("model", Kind.TEXT, "Hub id or path.", default=""),
    Field("precision", Kind.TEXT, "Part of script names, and PRECISION.", default="fp8"),
    Field("run_mode", Kind.TEXT, "Where the server runs.", default="docker", choices=RUN_MODES, fold_case=True),
    Field("envs", Kind.NODE, "Environment of the benchmark script."),
    Field("profiler", Kind.SECTION, "Profilers.", fields=PROFILER_FIELDS),
    Field("gap_analysis", Kind.SECTION, "Kernel ranking.", fields=GAP_FIELDS),
    Field("docker_image", Kind.TEXT, "Image; null is chosen from the GPU.", nullable=True),
    Field("gpu_arch", Kind.TEXT, "gfx942, sm_90 ...; null is detected.", nullable=True),
    Field("timeout_seconds", Kind.NUMBER, "Limit of the run.", default=3600.0, above=0),
    Field(
        "inferencex_path",
        Kind.TEXT,
        "InferenceX checkout; empty is searched for.",
        default="",
        nullable=True,
        aliases=("inferencemax_path",),
    ),
    Field("hf_cache_path", Kind.TEXT, "Hugging Face cache, mounted in Docker.", nullable=True),
    Field("runner_type", Kind.TEXT, "mi300x, h100 ...; null is told by the GPU.", nullable=True),
    Field("benchmark_script", Kind.TEXT, "Script below benchmarks/; null is chosen.", nullable=True),
    Field("gpu_selection", Kind.SECTION, "Choice of GPUs.", fields=SELECTION_FIELDS),
    Field("server_lifecycle", Kind.SECTION, "Keeping a server.", fields=LIFECYCLE_FIELDS),
    Field("ray_config", Kind.SECTION, "Ray.", fields=RAY_FIELDS),
    Field("load", Kind.SECTION, "The load, beyond what envs say (ours).", fields=LOAD_FIELDS),
    Field("python", Kind.TEXT, "Interpreter or environment of the framework, run_mode local (ours).", nullable=True),
    Field("agentx", Kind.ANY, "Trace-replay workload (upstream's main line).", nullable=True),
    Field("scenario", Kind.MAP, "Earlier form of agentx.", hidden=True),
    Field(
        "run_kind",
        Kind.TEXT,
        "auto, measurement or diagnostic.",
        default="auto",
        choices=("auto", "measurement", "diagnostic"),
    ),
    Field("lm_eval_runtime", Kind.MAP, "Locked lm-eval (upstream's evidence line).", nullable=True),
    Field("sweep_matrix", Kind.MAP, "Several workloads on one server (a side branch).", nullable=True),
    Field("run_cmd", Kind.TEXT, "Command of offline diffusion.", nullable=True, literal=True),
    Field("targeted_trace", Kind.ANY, "Where a snapshot of upstream's evidence line has it.", hidden=True),
    Field("output_dir", Kind.ANY, "", hidden=True, ignored=_CLI_ONLY.format("--output-dir")),
    Field("magpie_tui", Kind.ANY, "Our part of a snapshot.", hidden=True),
)

IGNORED_BESIDE_CONFIG = (
    "framework",
    "model",
    "precision",
    "tp",
    "concurrency",
    "input-len",
    "output-len",
    "torch-profiler",
    "system-profiler",
    "docker-image",
    "inferencex-path",
    "benchmark-script",
    "timeout",
)
"""Options of ``benchmark`` that upstream silently ignores when ``-b`` is given."""
