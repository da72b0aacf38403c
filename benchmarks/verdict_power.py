"""How often is the end-to-end verdict wrong, and how small a gain does it find? On systems that are known.

    python -m benchmarks.verdict_power [--experiments 400]

Runs have 1.5 % of noise and the machine drifts from run to run (a random walk of 0.3 % a step). Every experiment goes
through the function that judges real ones. Beside it: what single runs and blocks of runs would have claimed.

Exit status 1: of an unchanged system more than 7 % are called improved, or +3 % is found in less than 85 % at 8 pairs.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter

from magpie_tui.basics.tables import Column, format_table
from magpie_tui.serving.verdict_model import Pair
from magpie_tui.statistics.distributions import t_quantile
from magpie_tui.statistics.intervals import mean
from tests.serving.simulated_runs import simulated_pairs, simulated_verdict

GAINS = (0.0, 0.01, 0.02, 0.03, 0.05)
PAIRS = (6, 8, 12)
MOST_FALSE = 28 / 400
LEAST_FOUND = 0.85


def single_runs_claim(pair: Pair) -> bool:
    """One run each, more than 1 % wins."""
    a, b = pair.a.values["output_throughput"], pair.b.values["output_throughput"]
    return a is not None and b is not None and b / a > 1.01


def blocks_claim(seed: int, gain: float, runs: int) -> bool:
    """``runs`` of A, then as many of B, and a two-sample t test with pooled variance."""
    from random import Random

    noise, drift = Random(seed), 0.0
    samples: list[list[float]] = [[], []]
    for index in range(2 * runs):
        drift += noise.gauss(0.0, 0.003)
        arm = index // runs
        samples[arm].append(drift + noise.gauss(0.0, 0.015) + (math.log1p(gain) if arm else 0.0))
    means = [mean(values) for values in samples]
    squares = sum((value - centre) ** 2 for values, centre in zip(samples, means, strict=True) for value in values)
    error = math.sqrt(squares / (2 * runs - 2) * 2 / runs)
    return means[1] - means[0] > max(t_quantile(0.975, 2 * runs - 2) * error, math.log(1.01))


def main() -> int:
    """Run the experiments and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--experiments", type=int, default=400)
    count = parser.parse_args().experiments
    rows, misses = [], []
    for pairs in PAIRS:
        for gain in GAINS:
            words = Counter(simulated_verdict(seed, gain, pairs).word for seed in range(count))
            improved = (words["improved"] + words["improved_with_regression"]) / count
            rest = count - sum(words[word] for word in ("improved", "improved_with_regression", "regressed"))
            rows.append((f"{pairs} interleaved pairs", gain, improved, words["regressed"] / count, rest / count))
            if gain == 0.0 and improved > MOST_FALSE:
                misses.append(f"{pairs} pairs: {improved:.1%} of unchanged systems improved, limit {MOST_FALSE:.0%}")
            if gain == 0.03 and pairs == 8 and improved < LEAST_FOUND:
                misses.append(f"+3 % found in {improved:.1%}, limit {LEAST_FOUND:.0%}")
    for gain in (0.0, 0.03):
        single = sum(single_runs_claim(simulated_pairs(seed, gain, 1)[0]) for seed in range(count)) / count
        rows.append(("one run each, > 1 %", gain, single, None, None))
        for runs in (5, 10):
            share = sum(blocks_claim(seed, gain, runs) for seed in range(count)) / count
            rows.append((f"{runs} of A, then {runs} of B", gain, share, None, None))
    columns = [
        Column("Rule"),
        Column("True gain", align="right"),
        Column("Called improved", align="right"),
        Column("Regressed", align="right"),
        Column("No claim", align="right"),
    ]
    cells = [
        (name, f"{gain:+.0%}", *("-" if value is None else f"{value:.1%}" for value in values))
        for name, gain, *values in rows
    ]
    print(f"{count} simulated experiments a row")
    print(format_table(columns, cells))
    for text in misses:
        print(f"MISSED  {text}")
    return 1 if misses else 0


if __name__ == "__main__":
    raise SystemExit(main())
