"""Do our device times agree with ncu and with Triton's do_bench on this GPU?

python -m benchmarks.kernel_agreement --smoke     exercise every way of timing, under a minute
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.gpu_smoke import run_smoke


def main() -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="only exercise every way of timing")
    parser.parse_args()
    return run_smoke()


if __name__ == "__main__":
    sys.exit(main())
