"""Compares one output tensor with the reference: the numbers behind the gate's checks.

A deviation is allowed up to ``rtol * |reference| + scale * rms(reference) + atol``. ``scale`` makes the bound follow
the size of the output: small outputs get no free pass from an absolute number.
"""

from __future__ import annotations

from typing import Any

STARTING_POINTS: dict[str, dict[str, float]] = {
    "float64": {"rtol": 1e-8, "scale": 1e-9},
    "float32": {"rtol": 1e-4, "scale": 1e-5},
    "float16": {"rtol": 4e-3, "scale": 2e-3},
    "bfloat16": {"rtol": 3e-2, "scale": 1.5e-2},
    "float8_e4m3fn": {"rtol": 0.15, "scale": 0.06},
    "float8_e5m2": {"rtol": 0.3, "scale": 0.12},
    "complex64": {"rtol": 1e-4, "scale": 1e-5},
    "complex128": {"rtol": 1e-8, "scale": 1e-9},
}
"""Starting points by the dtype of the output: a few units in the last place, and as much again of the output's size."""

WIDEST_FACTOR = 8.0
WIDEST_RTOL = 0.08
"""How far the reference's own rounding may widen a starting point: by this factor, and to this relative error."""


class Tolerance:
    """The bound for one output.

    Attributes:
        rtol, scale, atol: See the module; all 0 for exact comparison.
        factor: Widening by the reference's own rounding, 1 for none.
        origin: ``config``, ``dtype`` or ``exact``.
    """

    def __init__(self, rtol: float, scale: float, atol: float, origin: str, factor: float = 1.0) -> None:
        self.rtol = rtol
        self.scale = scale
        self.atol = atol
        self.origin = origin
        self.factor = factor

    def bound(self, reference: Any, size: float) -> Any:
        """Return the allowed deviation of every element, as a float64 tensor; ``size`` is the rms of the reference."""
        constant = (self.scale * size + self.atol) * self.factor
        return reference.abs().mul_(self.rtol * self.factor).add_(constant)

    def facts(self) -> dict[str, Any]:
        """Return what the report says about it."""
        return {
            "rtol": self.rtol,
            "scale": self.scale,
            "atol": self.atol,
            "factor": self.factor,
            "origin": self.origin,
        }


def widest_factor(tolerance: Tolerance) -> float:
    """Return how far a starting point may be widened, at least 1."""
    return max(1.0, min(WIDEST_FACTOR, WIDEST_RTOL / tolerance.rtol)) if tolerance.rtol else WIDEST_FACTOR


def tolerance_for(dtype: str, configured: dict[str, dict[str, float | None]]) -> Tolerance:
    """Return the bound for outputs of ``dtype``: the configured one (by dtype, or ``*``), else the starting point."""
    given = configured.get(dtype) or configured.get("*")
    if given:
        return Tolerance(given.get("rtol") or 0.0, 0.0, given.get("atol") or 0.0, "config")
    start = STARTING_POINTS.get(dtype)
    if start is None:
        return Tolerance(0.0, 0.0, 0.0, "exact")
    return Tolerance(start["rtol"], start["scale"], 0.0, "dtype")


def smallest_normal(tensor: Any) -> float:
    """Return the smallest normal number of a floating-point tensor's dtype; float16 has no hardware that flushes."""
    import torch

    real = tensor.real if tensor.is_complex() else tensor
    return 0.0 if real.dtype is torch.float16 else float(torch.finfo(real.dtype).tiny)


def exact_values(tensor: Any) -> Any:
    """Return a tensor as float64 (complex as pairs, integers exactly where float64 holds them)."""
    import torch

    dense = tensor.detach()
    if dense.is_complex():
        dense = torch.view_as_real(dense.resolve_conj())
    return dense.to(torch.float64)


def rms(values: Any) -> float:
    """Root mean square over the finite elements, 0 for none."""
    finite = _finite(values)
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def _finite(values: Any) -> Any:
    """Return the finite elements; picking some out costs far more than finding that all are."""
    mask = values.isfinite()
    return values if bool(mask.all()) else values[mask]


SAMPLE = 1_000_000
"""Elements that are looked at for a percentile."""


def size_of(values: Any) -> float:
    """Return the size that a bound may follow: the root mean square, or the 95th percentile where that is smaller.

    A few large elements would otherwise lift the bound of all others. Below a thousandth of the root mean square it
    does not go (a softmax with one peak has nothing but rounding there), and 0 at the percentile means that most are 0.
    """
    finite = _finite(values)
    size = rms(finite)
    magnitude = finite.abs().reshape(-1)
    if magnitude.numel() < 20:
        return size
    sample = magnitude[:: max(1, magnitude.numel() // SAMPLE)]
    usual = float(sample.kthvalue(max(1, int(0.95 * sample.numel()))).values)
    return min(size, max(usual, 1e-3 * size)) if usual > 0 else size


def _position(flat_index: int, shape: list[int]) -> list[int]:
    position: list[int] = []
    for extent in reversed(shape):
        position.insert(0, flat_index % extent)
        flat_index //= extent
    return position


def nonfinite_mismatch(output: Any, reference: Any) -> dict[str, Any]:
    """Compare where NaN, +Inf and -Inf stand; ``count`` is the number of elements that differ in that."""
    import torch

    if bool(output.isfinite().all()) and bool(reference.isfinite().all()):
        return {"count": 0, "position": None, "got": None, "expected": None}

    def kinds(values: Any) -> Any:
        nan, plus, minus = values.isnan(), values.isposinf(), values.isneginf()
        return nan.to(torch.int8) + 2 * plus.to(torch.int8) + 4 * minus.to(torch.int8)

    differs = (kinds(output) != kinds(reference)).reshape(-1)
    count = int(differs.sum())
    if not count:
        return {"count": 0, "position": None, "got": None, "expected": None}
    first = int(differs.to(torch.int8).argmax())
    return {
        "count": count,
        "position": _position(first, list(output.shape)),
        "got": repr(float(output.reshape(-1)[first])),
        "expected": repr(float(reference.reshape(-1)[first])),
    }


def deviation(output: Any, reference: Any, tolerance: Tolerance, size: float | None = None) -> dict[str, Any]:
    """Measure how far ``output`` is from ``reference`` (both float64, equal shapes), over elements finite in both.

    Args:
        size: ``size_of(reference)``, where it is known.

    Returns:
        ``max_abs``, ``max_rel`` (relative to the element, or to a hundredth of the rms where it is smaller than that),
        ``worst`` (largest deviation / bound, null where a bound of 0 is broken), ``over`` (elements beyond the bound),
        the worst ``position`` with ``got``, ``expected`` and ``allowed``, ``bias`` (mean deviation / mean bound),
        ``gain`` (deviation in proportion to the reference, least squares, / the mean relative bound), ``rms`` (the size
        that the bound followed).
    """
    import torch

    both = (output.isfinite() & reference.isfinite()).reshape(-1)
    expected, got = reference.reshape(-1), output.reshape(-1)
    size = size_of(reference) if size is None else size
    result: dict[str, Any] = {"elements": int(expected.numel()), "compared": int(both.sum()), "rms": size}
    if not result["compared"]:
        return {**result, "max_abs": None, "max_rel": None, "worst": None, "over": 0, "bias": None, "gain": None}
    if result["compared"] < result["elements"]:
        zero = torch.zeros((), dtype=torch.float64, device=expected.device)
        expected, got = torch.where(both, expected, zero), torch.where(both, got, zero)
    difference = got - expected
    absolute = difference.abs()
    bound = tolerance.bound(expected, size)
    magnitude = expected.abs()
    over = int((absolute > bound).sum())
    ratio = absolute / bound.clamp_min(1e-300)
    worst = int(ratio.argmax())
    broken = float(bound[worst]) == 0.0 and float(absolute[worst]) > 0.0
    relative = float((absolute / magnitude.clamp_min(0.01 * size)).max()) if size > 0 else None
    mean_bound = float(bound.mean())
    return {
        **result,
        "max_abs": float(absolute.max()),
        "max_rel": relative,
        "worst": None if broken else float(ratio[worst]),
        "over": over,
        "position": _position(worst, list(output.shape)),
        "got": float(got[worst]),
        "expected": float(expected[worst]),
        "allowed": float(bound[worst]),
        "bias": abs(float(difference.mean())) / mean_bound if mean_bound > 0 else None,
        "gain": _gain(difference, expected, mean_bound),
    }


def _gain(difference: Any, expected: Any, mean_bound: float) -> float | None:
    """Return the factor by which an output is too large or too small, as a share of what the bound allows on average.

    Errors of rounding have no direction; ``y * 1.00005`` has one that the mean of the deviation does not show where
    outputs have both signs.
    """
    power, mean_size = float(expected.square().sum()), float(expected.abs().mean())
    if not (0 < power < float("inf")) or mean_bound <= 0 or mean_size <= 0:
        return None
    return abs(float((difference * expected).sum()) / power) / (mean_bound / mean_size)


BIAS_LIMIT = 0.5
"""A mean deviation, or a common factor, above this share of the mean bound is a bias and no rounding."""


def within(result: dict[str, Any]) -> bool:
    """True when no element is beyond the bound and the deviations have no direction."""
    return result["over"] == 0 and all(result[name] is None or result[name] <= BIAS_LIMIT for name in ("bias", "gain"))


def impostors(reference: Any, scale: float) -> dict[str, Any]:
    """Return outputs that a useful check must refuse: zeros, the mean everywhere, the values moved, the values scaled.

    One element has no order and is its own mean; there only zeros and the scaled value remain.
    """
    import torch

    finite = torch.where(reference.isfinite(), reference, torch.zeros_like(reference))
    made = {"zeros": torch.zeros_like(reference), "scaled": finite * scale}
    if reference.numel() > 1:
        made["mean"] = torch.full_like(reference, float(finite.mean()))
        flat = finite.reshape(-1)
        generator = torch.Generator().manual_seed(int(flat.numel()))
        order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
        made["permuted"] = flat[order].reshape(reference.shape)
    return made


def accepted_impostors(reference: Any, tolerance: Tolerance, *, exact: bool) -> list[str]:
    """Return the impostors that the bound lets pass; the check proves something only when there is none."""
    accepted = []
    size = size_of(reference)
    # The formats with two or three bits of mantissa cannot tell 10 % apart.
    scale = 1.5 if tolerance.origin == "dtype" and tolerance.rtol > WIDEST_RTOL else 1.1
    for name, fake in impostors(reference, scale).items():
        if exact and name == "scaled":
            continue
        masked = fake.masked_fill(~reference.isfinite(), float("nan"))
        if within(deviation(masked, reference, tolerance, size)):
            accepted.append(name)
    return accepted
