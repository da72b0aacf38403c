"""The few distribution functions that the intervals need, without SciPy: beta, Student's t, binomial, normal."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_NORMAL = NormalDist()
_TINY = 1e-300
_LARGE_DF = 10_000.0
"""Above it the Cornish-Fisher series of the t quantile is exact to about 1e-11."""


def normal_cdf(z: float) -> float:
    """Probability that a standard normal variable is below ``z``; exact in both tails (``erfc``)."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def normal_quantile(p: float) -> float:
    """Inverse of the standard normal distribution (Wichura's AS 241 in the standard library).

    Raises:
        ValueError: ``p`` is not inside (0, 1).
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"a probability strictly between 0 and 1 is needed, not {p}")
    return _NORMAL.inv_cdf(p)


def _beta_continued_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function by the modified Lentz method (DLMF 8.17.22)."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    result = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + numerator / c
            c = c if abs(c) > _TINY else _TINY
            result *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function I_x(a, b) (DLMF 8.17.2), dimensionless, in [0, 1].

    Args:
        a, b: Shape parameters, both above 0.
        x: In [0, 1].

    Raises:
        ValueError: An argument is out of its range.
    """
    if not (a > 0.0 and b > 0.0 and 0.0 <= x <= 1.0):
        raise ValueError(f"incomplete_beta needs a > 0, b > 0 and 0 <= x <= 1, not a={a}, b={b}, x={x}")
    if x in (0.0, 1.0):
        return x
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_continued_fraction(a, b, x) / a
    return 1.0 - front * _beta_continued_fraction(b, a, 1.0 - x) / b


def t_upper_tail(t: float, df: float) -> float:
    """Probability that Student's t with ``df`` degrees of freedom exceeds ``t`` (DLMF 8.17, by the beta function).

    Raises:
        ValueError: ``df`` is not above 0.
    """
    if not df > 0.0:
        raise ValueError(f"degrees of freedom must be above 0, not {df}")
    if t < 0.0:
        return 1.0 - t_upper_tail(-t, df)
    square = t * t
    if math.isinf(square):
        return 0.0
    if square < df:
        # Near the middle the complement keeps the digits.
        return 0.5 * (1.0 - incomplete_beta(0.5, 0.5 * df, square / (df + square)))
    return 0.5 * incomplete_beta(0.5 * df, 0.5, df / (df + square))


def _cornish_fisher(z: float, df: float) -> float:
    """Series of the t quantile in 1/df (Abramowitz and Stegun 26.7.5)."""
    g1 = (z**3 + z) / 4
    g2 = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    g3 = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + g1 / df + g2 / df**2 + g3 / df**3


def _t_density(t: float, df: float) -> float:
    log_front = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log_front - (df + 1) / 2 * math.log1p(t * t / df))


@lru_cache(maxsize=1024)
def t_quantile(p: float, df: float) -> float:
    """Value below which Student's t with ``df`` degrees of freedom lies with probability ``p``.

    Newton steps on the tail probability, kept inside a shrinking bracket; relative error below 1e-9.

    Raises:
        ValueError: ``p`` is not inside (0, 1), or ``df`` is not above 0.
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"a probability strictly between 0 and 1 is needed, not {p}")
    if not df > 0.0:
        raise ValueError(f"degrees of freedom must be above 0, not {df}")
    if p < 0.5:
        return -_t_from_upper_tail(p, df)
    return 0.0 if p == 0.5 else _t_from_upper_tail(1.0 - p, df)


def _t_from_upper_tail(tail: float, df: float) -> float:
    z = -normal_quantile(tail)
    if df >= _LARGE_DF:
        return _cornish_fisher(z, df)
    low, high = 0.0, max(1.0, 2 * z)
    while t_upper_tail(high, df) > tail:
        low, high = high, high * 4
        if math.isinf(high):
            return high
    t = min(max(_cornish_fisher(z, df), low), high)
    for _ in range(200):
        error = t_upper_tail(t, df) - tail
        if error > 0.0:
            low = t
        else:
            high = t
        density = _t_density(t, df)
        step = t + error / density if density > 0.0 else math.inf
        following = step if low < step < high else 0.5 * (low + high)
        if abs(following - t) <= 1e-14 * following:
            return following
        t = following
    return t


def t_two_sided_p(t: float, df: float) -> float:
    """Probability of a |t| at least as large as the one seen, under no difference."""
    return min(1.0, 2.0 * t_upper_tail(abs(t), df))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Probability of at most ``k`` successes in ``n`` trials: I_{1-p}(n - k, k + 1) (DLMF 8.17.5).

    Raises:
        ValueError: ``n`` is negative or ``p`` is outside [0, 1].
    """
    if n < 0 or not 0.0 <= p <= 1.0:
        raise ValueError(f"binomial_cdf needs n >= 0 and 0 <= p <= 1, not n={n}, p={p}")
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    return incomplete_beta(n - k, k + 1.0, 1.0 - p)
