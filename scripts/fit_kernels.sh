#!/usr/bin/env bash
# scripts/fit_kernels.sh — fits every GPU of the shared kernel tables and prints its errors on the half of the shapes that
# the fit did not see, and of a fit of the smaller half of the work on the larger.
#
#   scripts/fit_kernels.sh [OUTPUT_FOLDER]          profiles go to OUTPUT_FOLDER, where it is given
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
stepcast=${STEPCAST:-$root/build/release/app/stepcast}
kernels=${STEPCAST_SHARED:-$root/../shared}/kernels
output=${1:-}
[ -f "$kernels/gemm.csv" ] || { echo "skipped: $kernels/gemm.csv is absent"; exit 77; }
[ -x "$stepcast" ] || { echo "build first: $stepcast is absent" >&2; exit 3; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The tables' bf16 rows: fp8 rows time the kernels of serving engines (docs/guide/gpu_model.md). Products from 1 GFLOP on, so that errors are those that
# the guide states.
awk -F, 'NR == 1 || ($2 == "bf16" && 2 * $3 * $4 * $5 >= 1e9)' "$kernels/gemm.csv" > "$work/gemm.csv"
awk -F, 'NR == 1 || $2 == "bf16"' "$kernels/attention_prefill.csv" > "$work/attention.csv"
[ -z "$output" ] || mkdir -p "$output"
echo "| GPU | kernels | n | median | p95 | smaller half on larger: median |"
echo "| --- | --- | ---: | ---: | ---: | ---: |"
for gpu in a100-sxm h100-sxm h200-sxm b200-sxm b300-sxm gb200 gb300 l40s rtx-pro-6000; do
  target="$work/$gpu.yaml"
  [ -z "$output" ] || target="$output/$gpu.yaml"
  "$stepcast" calibrate --kernels "$work/gemm.csv" --kernels "$work/attention.csv" --gpu "$gpu" --half 0 --folds 5 \
    --source "bf16 rows of ai-dynamo/aiconfigurator@095f58a51c4c" -o "$target" > "$work/$gpu.txt"
  # Lines are "  TITLE  KERNELS  n  median %  p95 %  signed %".
  for part in products attention; do
    awk -v gpu="$gpu" -v part="$part" '
      index($0, "the other half of the shapes") && $(NF - 7) == part { n = $(NF - 6); median = $(NF - 5); p95 = $(NF - 3) }
      index($0, "fit of smaller half on larger") && $(NF - 7) == part { larger = $(NF - 5) }
      END { printf "| %s | %s | %s | %s %% | %s %% | %s %% |\n", gpu, part, n, median, p95, larger }' "$work/$gpu.txt"
  done
done
