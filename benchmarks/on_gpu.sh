#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in parts of less than ten minutes each; what it prints goes to OUT as well.
#
#     benchmarks/on_gpu.sh                    all parts, about 30 minutes
#     benchmarks/on_gpu.sh corpus memory      the named ones
#
#   corpus     cheating, broken and honest kernels through the gate (about 2 minutes)
#   memory     what takes the time when a kernel wants too much memory (1 to 3 minutes)
#   raw        kernels without a main: gate, timing, ncu (about 3 minutes; 8 at most)
#   agreement  device times against ncu, do_bench and graphs; ceilings (about 3 minutes)
#   noise      records replicates and judges 1,000 comparisons drawn from them (about 9 minutes)
#   live       8 comparisons from their first block on (about 9 minutes)
set -u
cd "$(dirname "$0")/.."
export OUT="${OUT:-$PWD/build/gpu}" PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
PYTHON="${PYTHON:-python3}"
mkdir -p "$OUT"
status=0

part() { # name, limit in seconds, command
  local name=$1 limit=$2 started=$SECONDS ended
  shift 2
  echo "== $name: $*"
  timeout --signal=ABRT --kill-after=5 "$limit" "$PYTHON" -X faulthandler "$@" 2>&1 | tee "$OUT/$name.txt"
  ended=${PIPESTATUS[0]}
  echo "== $name: exit status $ended, $((SECONDS - started)) s"
  [ "$ended" -eq 0 ] || status=1
}

# Recorded earlier, to go on from: NOISE_FROM=FILE (a noise_gpu.jsonl.gz).
recorded=()
[ -f "${NOISE_FROM:-}" ] && recorded=(--from "$NOISE_FROM")

[ $# -gt 0 ] || set -- corpus memory raw agreement noise live
for name in "$@"; do
  case "$name" in
    corpus) part corpus 400 tests/adversarial/run_on_gpu.py --json "$OUT/corpus.json" ;;
    memory) part memory 180 -m benchmarks.gpu_out_of_memory ;;
    raw) part raw 500 -m benchmarks.raw_kernels_gpu --limit 120 --keep "$OUT/raw" ;;
    agreement) part agreement 190 -m benchmarks.kernel_agreement ;;
    noise)
      part noise 590 -m benchmarks.kernel_noise "${recorded[@]}" --record "$OUT/noise_gpu.jsonl.gz" --live 0 --minutes 9
      ;;
    live) part live 590 -m benchmarks.kernel_noise --comparisons 0 --live 8 ;;
    *) echo "there is no part $name: corpus memory raw agreement noise live"; status=2 ;;
  esac
done
exit "$status"
