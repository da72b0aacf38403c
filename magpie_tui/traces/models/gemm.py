"""Matrix products: 2*M*N*K operations, every operand moved once.

Formula: each of M*N outputs takes K multiplications and K additions (Golub & Van Loan, Matrix Computations, 1.1); the
least traffic reads both factors and writes the product once. Conventions per operator follow TraceLens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from magpie_tui.traces.models.arguments import OperatorArguments
from magpie_tui.traces.models.build import build
from magpie_tui.traces.models.element_types import WidthOf, reference_width
from magpie_tui.traces.models.model import Calculation, Model, Unmodelled, Work
from magpie_tui.traces.models.reading import (
    elements,
    flag,
    has_sizes,
    kind,
    sizes,
    strides,
    tensor,
    text,
)

Traffic = Callable[[WidthOf], float]


def transposes(kernel_names: tuple[str, ...]) -> tuple[bool, bool] | None:
    """Which factors the kernel reads transposed, from its name; None where the name does not say."""
    for name in kernel_names:
        if "Cijk_" in name:
            first = True if "_Alik_" in name else False if "_Ailk_" in name else None
            second = False if "_Bljk_" in name else True if "_Bjlk_" in name else None
            if first is not None and second is not None:
                return first, second
        if name.startswith("nvjet"):
            letters = name.rsplit("_", 1)[-1]
            if len(letters) >= 2 and set(letters[:2]) <= {"T", "N"}:
                return letters[0] == "T", letters[1] == "T"
    return None


def product(
    arguments: OperatorArguments,
    m: int,
    n: int,
    k: int,
    kinds: tuple[str, str, str],
    *,
    batch: int = 1,
    bias: str | None = None,
    precision_of: str | None = None,
    parameters: Mapping[str, object] | None = None,
    widths: tuple[float | None, float | None, float | None] = (None, None, None),
    caveats: tuple[str, ...] = (),
) -> Work:
    """Answer for one product of ``batch`` times [M,K] x [K,N].

    Args:
        kinds: Types of the factors and of the result.
        bias: Type of a bias of N elements; None without one.
        widths: Bytes of an element where they do not follow from the type (packed four-bit values).
    """
    flops = batch * (2 * m * n * k + (m * n if bias is not None else 0))

    def traffic(of: WidthOf) -> float:
        a, b, out = (fixed if fixed is not None else of(name) for fixed, name in zip(widths, kinds, strict=True))
        moved = m * k * a + k * n * b + m * n * out
        return batch * (moved + (n * of(bias) if bias is not None else 0))

    numbers: dict[str, float] = {"M": m, "N": n, "K": k, "B": batch}
    for symbol, fixed, name in zip(("a", "b", "o"), widths, kinds, strict=True):
        numbers[symbol] = fixed if fixed is not None else reference_width(name)
    many = "B*" if batch != 1 else ""
    with_bias = bias is not None
    return build(
        "matrix",
        precision_of if precision_of is not None else kinds[0],
        flops,
        traffic,
        parameters=_shown(arguments, parameters or {}),
        formula=f"{many}({'2*M*N*K + M*N'})" if with_bias else f"{many}2*M*N*K",
        formula_bytes=f"{many}(M*K*a + K*N*b + M*N*o{' + bias' if with_bias else ''})",
        numbers={name: value for name, value in numbers.items() if value == value},
        caveats=caveats,
    )


def _shown(arguments: OperatorArguments, parameters: Mapping[str, object]) -> dict[str, object]:
    """Add ``transpose`` when the kernel's name says it."""
    shown = dict(parameters)
    transpose = transposes(arguments.kernel_names)
    if transpose is not None:
        shown["transpose"] = transpose
    return shown


def _plain(first: int, second: int, bias_index: int | None = None) -> Calculation:
    """aten::mm and aten::addmm: [M,K] x [K,N], all operands of one width."""

    def calculate(arguments: OperatorArguments) -> Work:
        (m, k), (inner, n) = tensor(arguments, first, 2), tensor(arguments, second, 2)
        _same(k, inner)
        name = kind(arguments, first)
        return product(
            arguments,
            m,
            n,
            k,
            (name, name, name),
            bias=name if bias_index is not None else None,
            parameters={
                "M": m,
                "N": n,
                "K": k,
                "bias": bias_index is not None,
                "stride_A": strides(arguments, first),
                "stride_B": strides(arguments, second),
                "dtype_A_B": (name, kind(arguments, second)),
                "B": 1,
            },
        )

    return calculate


def _batched(first: int, second: int, bias: bool = False) -> Calculation:
    """aten::bmm and aten::baddbmm: [b,M,K] x [b,K,N]."""

    def calculate(arguments: OperatorArguments) -> Work:
        (batch, m, k), (_batch, inner, n) = tensor(arguments, first, 3), tensor(arguments, second, 3)
        _same(k, inner)
        name = kind(arguments, first)
        return product(
            arguments,
            m,
            n,
            k,
            (name, name, name),
            batch=batch,
            bias=name if bias else None,
            parameters={
                "B": batch,
                "M": m,
                "N": n,
                "K": k,
                "bias": bias,
                "stride_A": strides(arguments, first),
                "stride_B": strides(arguments, second),
                "dtype_A_B": (name, kind(arguments, second)),
            },
        )

    return calculate


def _same(k: int, inner: int) -> None:
    if k != inner:
        raise Unmodelled(f"the factors do not fit together: {k} columns, {inner} rows")


def scaled(arguments: OperatorArguments) -> Work:
    """``aten::_scaled_mm`` and its like: factors of their own types, a wider result."""
    (m, k), (inner, n) = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    _same(k, inner)
    a, b = kind(arguments, 0), kind(arguments, 1)
    if reference_width(a) != reference_width(a) or reference_width(b) != reference_width(b):
        raise Unmodelled(f"the width of {a or 'a factor'} or {b or 'a factor'} is not known")
    bias = len(arguments.input_dims) == 3
    return product(
        arguments,
        m,
        n,
        k,
        (a, b, a),
        bias=a if bias else None,
        widths=(None, None, 2 if reference_width(a) == 1 else None),
        parameters={
            "M": m,
            "N": n,
            "K": k,
            "bias": bias,
            "stride_A": strides(arguments, 0),
            "stride_B": strides(arguments, 1),
            "dtype_A_B": (a, b),
            "B": 1,
        },
    )


def with_weight(
    *,
    first: int = 0,
    weight: int = 1,
    bias_index: int | None = None,
    result: Callable[[OperatorArguments, bool], str] | None = None,
    result_width: float | None = None,
    batch_first: bool = False,
) -> Calculation:
    """[..., M, K] x [N, K] transposed, as linear layers and AITER's products have it."""

    def calculate(arguments: OperatorArguments) -> Work:
        x, w = tensor(arguments, first), tensor(arguments, weight, 2)
        m, k, n = elements(x[:-1]), x[-1], w[0]
        a, b = kind(arguments, first), kind(arguments, weight)
        bias = bias_index is not None and has_sizes(arguments, bias_index)
        out = result(arguments, bias) if result else a
        shown_out = kind(arguments, bias_index) if bias_index is not None and result is _out_of_bias else out
        bias_kind = kind(arguments, bias_index) if bias and bias_index is not None else None
        parameters: dict[str, object] = {
            "M": m,
            "N": n,
            "K": k,
            "bias": bias,
            "dtype_A_B": (a, b, shown_out),
        }
        parameters = {"B": 1} | parameters if batch_first else parameters | {"B": 1}
        return product(
            arguments,
            m,
            n,
            k,
            (a, b, out),
            bias=bias_kind,
            widths=(None, None, result_width),
            parameters=parameters,
        )

    return calculate


def _out_of_bias(arguments: OperatorArguments, bias: bool) -> str:
    return kind(arguments, 2) if bias else kind(arguments, 1)


def _out_of_input(arguments: OperatorArguments, bias: bool) -> str:
    return kind(arguments, 0)


def _out_of_type_3(arguments: OperatorArguments, bias: bool) -> str:
    name = kind(arguments, 3)
    return name if reference_width(name) == reference_width(name) and name != "Scalar" else "c10::BFloat16"


def _out_of_type_2(arguments: OperatorArguments, bias: bool) -> str:
    name = kind(arguments, 2)
    return name if reference_width(name) == reference_width(name) and name != "Scalar" else kind(arguments, 0)


def eight_bit(arguments: OperatorArguments) -> Work:
    """AITER's a8w8 family: [M,K] x [N,K], scales not counted, a two-byte result."""
    (m, k), (n, _k) = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    a, b = kind(arguments, 0), kind(arguments, 1)
    parameters: dict[str, object] = {"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, b), "B": 1}
    if has_sizes(arguments, 2) and has_sizes(arguments, 3):
        block_k = -(-k // tensor(arguments, 2)[-1])
        block_n = -(-n // tensor(arguments, 3)[0])
        scheme = "per_token" if block_k >= k else "blockscale"
        parameters |= {"block_k": block_k, "block_n": block_n, "quant_scheme": scheme, "output_shape": (m, n)}
    return product(arguments, m, n, k, (a, b, "c10::BFloat16"), parameters=parameters)


def _four_bit(arguments: OperatorArguments) -> Work:
    """aiter::gemm_afp4wfp4_: both factors packed two values a byte along K."""
    (m, half), (n, _half) = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    k = 2 * half
    kinds = ("fp4", "fp4", "c10::BFloat16")
    return product(
        arguments,
        m,
        n,
        k,
        kinds,
        widths=(0.5, 0.5, 2),
        parameters={"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": kinds[:2], "B": 1},
    )


def _batched_four_bit_weight(arguments: OperatorArguments) -> Work:
    """aiter::batched_gemm_a16wfp4_: a wide input and packed weights."""
    (batch, m, k), (_batch, n, _half) = tensor(arguments, 0, 3), tensor(arguments, 1, 3)
    a = kind(arguments, 0)
    return product(
        arguments,
        m,
        n,
        k,
        (a, "fp4", "c10::BFloat16"),
        batch=batch,
        precision_of="fp4",
        widths=(None, 0.5, 2),
        parameters={"B": batch, "M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, kind(arguments, 1))},
    )


def _batched_eight_bit(arguments: OperatorArguments) -> Work:
    """SGLang's batched a8w8 with quantisation inside: i0 [b,M,K] or [M,b,K], i1 [b,N,K]."""
    first, (batch, n, k) = tensor(arguments, 0, 3), tensor(arguments, 1, 3)
    m = first[1] if first[0] == batch else first[0]
    a, b = kind(arguments, 0), kind(arguments, 1)
    return product(
        arguments,
        m,
        n,
        k,
        (a, b, "c10::BFloat16"),
        batch=batch,
        precision_of=b,
        parameters={"B": batch, "M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, b)},
    )


def _dynamic_quantised(arguments: OperatorArguments) -> Work:
    """vllm::gemm_with_dynamic_quant: [M,K] and packed [N,K/2], which the reference counts at full width."""
    found = [index for index in range(len(arguments.input_dims)) if len(sizes(arguments, index)) == 2][:2]
    if len(found) < 2:
        raise Unmodelled("fewer than two matrices among the arguments")
    (m, k), (n, _half) = sizes(arguments, found[0]), sizes(arguments, found[1])
    a = kind(arguments, found[0])
    return product(
        arguments,
        m,
        n,
        k,
        (a, a, a),
        parameters={"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, kind(arguments, found[1])), "B": 1},
        caveats=("packed four-bit weights are counted at the input's width, as the reference does",),
    )


def _transformer_engine(arguments: OperatorArguments) -> Work:
    """tex_ts::te_gemm_ts: flags among the concrete inputs say which factors are transposed."""
    a, b = tensor(arguments, 0, 2), tensor(arguments, 5, 2)
    m, k = a if text(arguments, 4) == "1" else (a[1], a[0])
    n = b[1] if text(arguments, 9) == "1" else b[0]
    kinds = (kind(arguments, 0), kind(arguments, 5), kind(arguments, 10))
    bias = kind(arguments, 18) if text(arguments, 14) else None
    return product(
        arguments,
        m,
        n,
        k,
        kinds,
        bias=bias,
        parameters={"M": m, "N": n, "K": k, "bias": bias is not None, "dtype_A_B": kinds[:2], "B": 1},
    )


def _equal_types(arguments: OperatorArguments) -> Work:
    """Transformer Engine's linear layers: like mm, a two-byte result, equal types required."""
    (m, k), (_inner, n) = tensor(arguments, 0, 2), tensor(arguments, 1, 2)
    a, b = kind(arguments, 0), kind(arguments, 1)
    if a != b:
        raise Unmodelled(f"the factors have different types: {a} and {b}")
    return product(
        arguments,
        m,
        n,
        k,
        (a, b, a),
        widths=(None, None, 2),
        parameters={"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, b), "B": 1},
    )


def _hipblaslt(four_bit: bool, second: int, flags: int | None) -> Calculation:
    """Products of primus_turbo and AITER's a4w4: flags transA, transB, transC, or A times B transposed."""

    def calculate(arguments: OperatorArguments) -> Work:
        first, other = tensor(arguments, 0, 2), tensor(arguments, second, 2)
        a, b = kind(arguments, 0), kind(arguments, second)
        trans_a, trans_b, trans_c = (
            (False, True, False) if flags is None else tuple(flag(arguments, flags + i) for i in range(3))
        )
        if trans_c:
            first, other, a, b = other, first, b, a
            trans_a, trans_b = not trans_b, not trans_a
        m, k = (first[1], first[0]) if trans_a else first
        n = other[0] if trans_b else other[1]
        if not four_bit:
            shown: dict[str, object] = {"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": (a, b), "B": 1}
            out = 2 if reference_width(a) == 1 else None
            return product(arguments, m, n, k, (a, b, a), widths=(None, None, out), parameters=shown)
        return _block_scaled(arguments, m, n, 2 * k, (a, b))

    return calculate


def _block_scaled(arguments: OperatorArguments, m: int, n: int, k: int, kinds: tuple[str, str]) -> Work:
    """Four-bit factors with one scale for 32 values."""
    moved = m * k / 2 + n * k / 2 + (m + n) * -(-k // 32) + m * n * 2
    return build(
        "matrix",
        "fp4",
        2 * m * n * k,
        lambda _of: moved,
        parameters=_shown(arguments, {"M": m, "N": n, "K": k, "bias": False, "dtype_A_B": kinds, "B": 1}),
        formula="2*M*N*K",
        formula_bytes="M*K/2 + N*K/2 + (M + N)*S + 2*M*N",
        numbers={"M": m, "N": n, "K": k, "S": -(-k // 32)},
    )


def _models(calculate: Calculation, *names: str) -> dict[str, Model]:
    return {name: Model("GEMM", "GEMM", calculate) for name in names}


_EIGHT_BIT = (
    "aiter::gemm_a8w8_ck",
    "aiter::gemm_a8w8_bpreshuffle",
    "aiter::gemm_a8w8_bpreshuffle_ck",
    "aiter::gemm_a8w8_blockscale_ck",
    "aiter::gemm_a8w8_blockscale_cktile",
    "aiter::gemm_a8w8_blockscale_bpreshuffle_ck",
    "aiter::gemm_a8w8_blockscale_bpreshuffle_cktile",
    "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm",
    "aiter::flatmm_a8w8_blockscale_asm",
    "aiter::gfx950_a8w8_blockscale_asm",
    "vllm::rocm_aiter_triton_gemm_a8w8_blockscale",
    "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm",
    "sglang_profiler::fp8_utils_gemm_a8w8_blockscale",
    "sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale",
)
_PRIMUS = ("primus_turbo::", "primus_turbo_cpp_extension::")

MODELS: Mapping[str, Model] = {
    **_models(_plain(0, 1), "aten::mm"),
    **_models(_plain(1, 2, 0), "aten::addmm"),
    **_models(_batched(0, 1), "aten::bmm"),
    **_models(_batched(1, 2, True), "aten::baddbmm"),
    **_models(scaled, "aten::_scaled_mm", "trtllm::cublas_scaled_mm", "bitsandbytes::int8_linear_matmul"),
    **_models(_dynamic_quantised, "vllm::gemm_with_dynamic_quant"),
    **_models(_transformer_engine, "tex_ts::te_gemm_ts"),
    **_models(
        _equal_types,
        "_Linear_yfwd_mm",
        "_LinearBackward_xgrad_mm",
        "_LinearBackward_wgrad_mm",
        "_LayerNormLinear_yfwd_mm",
        "_LayerNormLinearBackward_xgrad_mm",
        "_LayerNormLinearBackward_wgrad_mm",
    ),
    **_models(with_weight(bias_index=2, result=_out_of_bias), "vllm::rocm_unquantized_gemm"),
    **_models(with_weight(bias_index=2, result=_out_of_input, batch_first=True), "aiter::gemm_a16w16"),
    **_models(
        with_weight(result=_out_of_type_3),
        "aiter::gemm_a16w16_atomic_",
        "sglang_profiler::gemm_kernels_flydsl_hgemm",
    ),
    **_models(with_weight(result=_out_of_type_2), "aiter::_gemm_a16w16_asm"),
    **_models(eight_bit, *_EIGHT_BIT),
    **_models(_four_bit, "aiter::gemm_afp4wfp4_"),
    **_models(_batched_four_bit_weight, "aiter::batched_gemm_a16wfp4_"),
    **_models(_hipblaslt(False, 2, 5), *(f"{prefix}hipblaslt_gemm_fp8" for prefix in _PRIMUS)),
    **_models(_hipblaslt(True, 2, 5), *(f"{prefix}hipblaslt_gemm_fp4" for prefix in _PRIMUS)),
    **_models(_hipblaslt(True, 1, None), "aiter::gemm_a4w4", "aiter::_gemm_a4w4_asm"),
}

BATCHED_EIGHT_BIT = Model("GEMM", "GEMM", _batched_eight_bit)
"""SGLang's batched product whose name goes on with the way it quantises."""
