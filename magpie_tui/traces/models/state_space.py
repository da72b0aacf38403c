"""Selective state spaces (Mamba) and hyper-connections (DeepSeek-V4).

Formula: Mamba-2's chunked scan (Dao & Gu 2024, 6): the causal convolution, C*B transposed within a chunk, the masked
product with the input, and the states of the chunks. Hyper-connections mix n streams of width C a token.
"""

from __future__ import annotations

from collections.abc import Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import elements, kind, number, tensor


def _mamba(arguments: OperatorArguments) -> Work:
    """MambaSplitConv1dScanCombinedFn(zxbcdt [B,L,d], conv weight [C,k], ..., A [H], ..., chunk size)."""
    batch, length, width = tensor(arguments, 0, 3)
    channels, taps = tensor(arguments, 1, 2)
    heads = tensor(arguments, 4)[0] if len(arguments.input_dims) > 4 else 0
    chunk = int(number(arguments, 6, 256))
    inner = width - channels - heads
    if heads <= 0 or inner <= 0 or inner % heads:
        raise Unmodelled("the heads do not divide the inner size")
    state = (channels - inner) // 2
    rows = batch * length
    conv = 2 * rows * channels * taps
    scores, mixed = 2 * rows * chunk * state, 2 * rows * chunk * inner
    states = 2 * 2 * rows * state * inner
    name = kind(arguments, 0)
    return build(
        "matrix",
        name,
        conv + scores + mixed + states,
        lambda of: (rows * width + rows * inner + channels * taps) * of(name),
        parameters={"B": batch, "L": length, "H": heads, "d_state": state, "chunk_size": chunk},
        formula="2*T*C*k + 2*T*Q*N + 2*T*Q*P + 4*T*N*P",
        formula_bytes="(T*d + T*P + C*k)*a",
        numbers={"T": rows, "C": channels, "k": taps, "Q": chunk, "N": state, "P": inner, "d": width},
    )


def _streams(arguments: OperatorArguments) -> tuple[int, int, int, str]:
    """Tokens, streams, width and type of the first [M,n,C]."""
    for index in range(len(arguments.input_dims)):
        try:
            tokens, streams, width = tensor(arguments, index, 3)
        except Unmodelled:
            continue
        return tokens, streams, width, kind(arguments, index)
    raise Unmodelled("no [tokens, streams, width] among the arguments")


def _hyper(part: str) -> Calculation:
    unit = "vector" if part == "big_fuse" else "matrix"

    def calculate(arguments: OperatorArguments) -> Work:
        m, n, c, name = _streams(arguments)
        h = n * n + 2 * n
        post, pre = 2 * m * n * c * (n + 1), 2 * m * h * n * c
        flops = {"post": post, "pre": pre, "big_fuse": 2 * m * c * n + 5 * m * c, "fused": post + pre}[part]
        formula = {
            "post": "2*M*n*C*(n + 1)",
            "pre": "2*M*h*n*C",
            "big_fuse": "2*M*C*n + 5*M*C",
            "fused": "2*M*n*C*(n + 1) + 2*M*h*n*C",
        }[part]

        def moved(size: float) -> float:
            total = sum(
                elements(tensor(arguments, index))
                for index, value in enumerate(arguments.input_dims)
                if isinstance(value, tuple) and value and isinstance(value[0], int)
            )
            return total * size

        return build(
            unit,
            name,
            flops,
            lambda of: moved(of(name)),
            parameters={"M": m, "n": n, "C": c},
            formula=formula,
            formula_bytes="every operand once",
            numbers={"M": m, "n": n, "C": c, "h": h},
        )

    return calculate


MODELS: Mapping[str, Model] = {
    "MambaSplitConv1dScanCombinedFn": Model("SSM", "SSM_fwd", _mamba),
    "aiter::mhc_post": Model("mHC", "mHC", _hyper("post")),
    "aiter::mhc_pre_gemm_sqrsum": Model("mHC", "mHC", _hyper("pre")),
    "aiter::mhc_pre_big_fuse_rmsnorm": Model("mHC", "mHC", _hyper("big_fuse")),
    "aiter::mhc_fused_post_pre_gemm_sqrsum": Model("mHC", "mHC", _hyper("fused")),
}
