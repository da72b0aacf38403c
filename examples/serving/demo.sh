#!/usr/bin/env bash
# The serving loop on a real engine without a GPU: what `make serve-demo` runs. FULL=1 measures 6 pairs instead of 2.
set -euo pipefail
cd "$(dirname "$0")/../.."
results="${MAGPIE_TUI_DEMO_RESULTS:-results/serve-demo}"
pairs=2
[ "${FULL:-0}" = 1 ] && pairs=6

step() { printf '\n--- %s\n    $ %s\n' "$1" "$2"; }

mapfile -t made < <(python examples/serving/make_env.py)
python examples/serving/make_configs.py "${made[0]}" "${made[1]}" "$results/configs" >/dev/null
few="$results/configs/few_slots.yaml"
many="$results/configs/many_slots.yaml"
newest() { ls -dt "$results"/benchmark_vllm_* | head -n 1; }

# On busy cores the client may come too late to measure the server: such a run does not count, and is made again.
counting() {
  for _ in 1 2 3; do
    if "$@"; then return 0; fi
    printf '\n--- The run did not count: once more\n'
  done
  printf '\n--- The machine is too busy for a clean run; the rest shows what can be shown\n'
}

step "Is everything there that the run needs?" "magpie-tui config review $few"
magpie-tui config review "$few" -o "$results"

step "The baseline: a clean run" "magpie-tui benchmark -b $few -o $results"
counting magpie-tui benchmark -b "$few" -o "$results"

step "Its profiled twin: the same load with 32 steps recorded" "magpie-tui config twin $few; magpie-tui benchmark -b ..."
magpie-tui config twin "$few" -o "$results/configs" --force
magpie-tui benchmark -b "$results/configs/few_slots_profiled.yaml" -o "$results"

step "What the trace holds" "magpie-tui trace summary $(newest)"
magpie-tui trace summary "$(newest)"

step "Did a change make serving faster? $pairs interleaved pairs, each run with a fresh server" \
     "magpie-tui experiment -a $few -b $many --pairs $pairs -o $results"
if ! magpie-tui experiment -a "$few" -b "$many" --pairs "$pairs" -o "$results"; then
  # On two busy cores the client may come too late to measure the server: such a run does not count, and is repeated.
  experiment="$(ls -dt "$results"/experiment_* | head -n 1)"
  for _ in 1 2 3; do
    printf '\n--- A run did not count: once more\n'
    if magpie-tui experiment --resume "$experiment"; then break; fi
  done
fi

experiment="$(ls -dt "$results"/experiment_* | head -n 1)"
if [ ! -f "$experiment/verdict.md" ]; then
  printf '\nThere is no verdict: too many runs did not count on this machine. Later: magpie-tui experiment --resume %s\n' \
    "$experiment"
  exit 1
fi
step "The verdict, to send to a colleague" "cat $experiment/verdict.md"
cat "$experiment/verdict.md"
