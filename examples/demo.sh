#!/usr/bin/env bash
# Judges and compares real kernels on this machine's CPU and shows the reports: what `make demo` runs.
set -euo pipefail
cd "$(dirname "$0")/.."
results="${MAGPIE_TUI_DEMO_RESULTS:-results/demo}"

# Says what a command is for, shows it as it is typed, and runs it.
step() { printf '\n--- %s\n    $ %s\n' "$1" "${*:2}"; "${@:2}"; }

step "Three RMSNorms in PyTorch: a baseline, a faster one, and one that is wrong on purpose" \
     magpie-tui compare -k examples/pytorch_rmsnorm/compare.yaml --baseline 0 --quick -o "$results"

if command -v g++ >/dev/null; then
  step "One C++ program built with -O2 and -O3: proved by its own testcase, and therefore not ranked by time" \
       magpie-tui compare -k examples/cpp_vector_add/compare_o2_o3.yaml --baseline 0 --quick -o "$results"
else
  printf '\n--- The C++ pair is left out: there is no g++ here\n'
fi

step "The kernels of a trace recorded on an H200, ranked" \
     magpie-tui trace kernels examples/traces/h200_eager_rank-0.pt.trace.json.gz --top-k 5

step "How far its operators are from the ceilings of an H200, most time to be won first" \
     magpie-tui trace roofline examples/traces/h200_eager_rank-0.pt.trace.json.gz --sort win --top-k 8

step "What lies there now" magpie-tui workspaces list "$results"

bin="$(dirname "$(command -v magpie-tui)")"
cat <<END

Next:
    export PATH="$bin:\$PATH"
    magpie-tui compare -k examples/pytorch_softmax/compare.yaml --baseline 0     without --quick: a minute a kernel
    magpie-tui analyze -k examples/pytorch_rmsnorm/analyze.yaml --quick         one kernel against a reference
    magpie-tui gpu-info                                                        what this machine has
    magpie-tui config check examples/pytorch_rmsnorm/compare.yaml              what is wrong with a config
    magpie-tui                                                                 the same, full-screen
END
