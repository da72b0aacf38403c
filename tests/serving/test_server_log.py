"""What a server's log says about a result; lines as real servers write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magpie_tui.serving.model import Phase
from magpie_tui.serving.server_log import Expectation, ServerLog, first_cause

ASKED = Expectation(
    dtype="bfloat16", kv_cache_dtype="fp8", attention_backend="ROCM_AITER_FA", kv_tokens=100_000, eager=False
)
ENGINE = (
    "(EngineCore pid=9885) INFO 11-30 08:05:31 [core.py:107] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='/m', dtype=torch.float16, max_seq_len=2048, kv_cache_dtype=auto, device_config=cpu"
)


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        (ENGINE, "other_dtype", "bfloat16 was asked for, the server took float16"),
        ("INFO [x.py:1] kv_cache_dtype=auto", "other_dtype", "a KV cache of fp8 was asked for, the server took auto"),
        (
            "INFO 11-30 [cuda.py:1] Using TRITON_ATTN backend.",
            "other_backend",
            "the attention backend ROCM_AITER_FA was asked for, the server took TRITON_ATTN",
        ),
        ("WARNING falling back to eager attention", "other_backend", "the server fell back to something else"),
        (
            "WARNING [fused_moe.py:886] Using default MoE config. Performance might be sub-optimal!",
            "default_moe_config",
            "no tuned MoE configuration here",
        ),
        (
            "[aiter] shape M:32, N:4096, K:4096 not found tuned config in CSV, will use default config!",
            "default_gemm_config",
            "no tuned GEMM configuration for these shapes",
        ),
        ("[aiter] start build [module_rmsnorm] under /x", "kernel_built", "a kernel was built during the measurement"),
        (
            "WARNING Sequence group 3 is preempted by PreemptionMode.RECOMPUTE",
            "preemption",
            "requests were preempted: the KV cache is too small for the load",
        ),
        (
            "INFO Cudagraph is disabled under eager mode",
            "graphs_off",
            "graphs are off although nobody switched them off",
        ),
        (
            "INFO [kv_cache_utils.py:1] GPU KV cache size: 65,536 tokens",
            "small_kv_cache",
            "the KV cache holds 65,536 tokens, the load needs 100,000",
        ),
        ("[2026] max_total_num_tokens=4096, chunked_prefill_size=8192", "small_kv_cache", None),
        ("(APIServer pid=9) ERROR 11-30 [core.py:1] something broke", "error", "the server reports an error"),
    ],
)
def test_lines_that_tell(tmp_path: Path, line: str, kind: str, text: str | None) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"INFO nothing\n{line}\nINFO nothing\n")
    (flag,) = ServerLog(log, ASKED).read(Phase.measure)
    assert (flag.kind, flag.line) == (kind, 2)
    assert text is None or flag.text == text
    assert flag.quote in line


@pytest.mark.parametrize(
    "line",
    [
        "INFO [core.py:107] Initializing a V1 LLM engine with config: dtype=torch.bfloat16, x=1",
        "INFO Using ROCM_AITER_FA backend",
        "INFO GPU KV cache size: 165,536 tokens",
        "INFO num_preemptions: 0",
        "INFO Decode batch. #running-req: 32, cuda graph: True",
        'INFO: 127.0.0.1:52114 - "POST /v1/completions HTTP/1.1" 200 OK',
        "INFO error_rate=0",
    ],
)
def test_lines_that_are_as_asked(tmp_path: Path, line: str) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"{line}\n")
    assert ServerLog(log, ASKED).read(Phase.measure) == ()


def test_a_kernel_built_at_the_start_is_no_flag(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("INFO torch.compile takes 12.1 s in total\n")
    assert ServerLog(log, ASKED).read(Phase.start) == ()


@given(st.lists(st.binary(max_size=200), max_size=30), st.integers(1, 7))
def test_any_bytes_in_any_pieces(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], pieces: int) -> None:
    """A log is read as it grows: pieces make no difference, and bytes that are no text harm nothing."""
    data = b"\n".join([*lines, b"WARNING x is preempted by y", b""])
    path = tmp_path_factory.mktemp("log") / "server.log"
    log = ServerLog(path, ASKED)
    step = max(1, len(data) // pieces)
    for start in range(0, len(data), step):
        with path.open("ab") as file:
            file.write(data[start : start + step])
        log.read(Phase.measure)
    assert log.flags[-1].kind == "preemption"
    assert log.flags[-1].line == data.count(b"\n")


def test_the_first_cause_is_found(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "(Worker pid=3) Traceback (most recent call last):\n"
        "(Worker pid=3) ERROR 11-30 [x.py:3] torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB\n"
        "(EngineCore pid=2) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert first_cause(log) == "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB"
    assert first_cause(tmp_path / "none") is None
