#!/usr/bin/env bash
# Makes the figures of the shipped profiles that are fitted to kernels again, out of measurements that others published, and the tables of
# errors of kernels and collectives in docs/accuracy.md (between their markers; the rest of that file is not touched).
#   scripts/make_profiles.sh [kernels|collectives] [GPU or family ...]     default: everything; needs a build in build/release
# Measurements: ../shared/kernels, ../shared/nccl_logs with ../shared/nccl_table.csv (STEPCAST_SHARED: elsewhere).
#   STEPCAST_PROFILES=FOLDER STEPCAST_ACCURACY=FILE     write these in place of calibration/profiles and docs/accuracy.md
# A fit of kernels sees one half of the shapes (by a hash) and begins from the profile `generic`, whatever the GPU's own holds, so the same
# tables give the same bytes; errors are those of the other half. V100, MI300X and generic have no table of kernels.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stepcast=${STEPCAST:-$root/build/release/app/stepcast}
shared=${STEPCAST_SHARED:-$root/../shared}
profiles=${STEPCAST_PROFILES:-$root/calibration/profiles}
document=${STEPCAST_ACCURACY:-$root/docs/accuracy.md}
what=${1:-all}
[[ $# -gt 0 ]] && shift
only=" $* "
case $what in all | kernels | collectives) ;; *) echo "usage: scripts/make_profiles.sh [kernels|collectives] [GPU or family ...]" >&2; exit 2 ;; esac
[[ -f $shared/kernels/gemm.csv ]] || { echo "skipped: $shared/kernels/gemm.csv is absent"; exit 77; }
[[ -x $stepcast ]] || { echo "build first: $stepcast is absent" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Lines of a table of the document that begin as one of FILE's do make way for them, in their place; others go to its end.
replace_lines() {  # marker, columns that name a line, file
  awk -v marker="$1" -v columns="$2" -v new="$3" '
    function name(line,   part, i, key) {
      split(line, part, "|")
      for (i = 2; i <= columns + 1; ++i) key = key "|" part[i]
      return key
    }
    BEGIN { while ((getline line < new) > 0) { count++; text[count] = line; by[name(line)] = count } }
    index($0, "<!-- table: " marker " -->") { inside = 1 }
    inside && /<!-- end -->/ { for (i = 1; i <= count; ++i) if (!(i in done)) print text[i]; inside = 0 }
    inside && (name($0) in by) { print text[by[name($0)]]; done[by[name($0)]] = 1; next }
    { print }' "$document" > "$work/document"
  cp "$work/document" "$document"
}

known=" "  # what there is to make again
wanted() {
  known+="$1 "
  [[ $only == "  " || $only == *" $1 "* ]]
}

# Figures that a second of load a shape measured: the short runs of the kernel tables only guess them.
kept_of() { case $1 in h200-sxm | b200-sxm | gb200) echo "--keep clock.sustained_fraction" ;; esac; }

# How far two measurements of one shape lie apart: medians of different frameworks; of attention, calls of two engines.
repeated() {  # table, condition on columns
  awk -F, -v gpu="$2" -v kind="$1" '
    NR == 1 { for (i = 1; i <= NF; ++i) column[$i] = i; next }
    $column["gpu"] != gpu { next }
    kind == "products" && 2 * $column["m"] * $column["n"] * $column["k"] >= 1e9 {
      split("sglang trtllm vllm", from, " ")
      for (i = 1; i <= 3; ++i) for (j = i + 1; j <= 3; ++j) {
        a = $column["median_us_" from[i]]; b = $column["median_us_" from[j]]
        if (a > 0 && b > 0) print (a > b ? a / b : b / a) - 1
      }
    }
    kind == "attention" && $column["dtype"] == "bf16" && $column["kernel"] !~ /^triton/ {
      key = $column["batch"] "," $column["q_heads"] "," $column["kv_heads"] "," $column["head_dim"] "," $column["seq_len"]
      t = $column["latency_us"]
      if (key in first) print (t > first[key] ? t / first[key] : first[key] / t) - 1
      else first[key] = t
    }' "$3" | sort -g | awk '
    { v[NR] = $1 }
    END { if (NR == 0) { print "- | -"; exit }
      printf "%.1f %% | %.1f %%\n", 100 * v[int((NR + 1) / 2)], 100 * v[int(0.95 * NR + 0.999)] }'
}

fit_kernels() {
  awk -F, 'NR == 1 || (($2 == "bf16" || $2 == "fp8") && 2 * $3 * $4 * $5 >= 1e9)' "$shared/kernels/gemm.csv" > "$work/gemm.csv"
  awk -F, 'NR == 1 || $2 == "bf16"' "$shared/kernels/attention_prefill.csv" > "$work/attention.csv"
  local gpu profile table text
  while read -r gpu profile table; do
    wanted "$gpu" || continue
    echo "$gpu" >&2
    # shellcheck disable=SC2046
    "$stepcast" calibrate --kernels "$work/gemm.csv" --kernels "$work/attention.csv" --gpu "$gpu" --half 0 --folds 5 --start generic $(kept_of "$gpu") \
      --source "tables of ai-dynamo/aiconfigurator@095f58a51c4c" --date 2026-08-21 --into "$profiles/$profile.yaml" > "$work/fit.txt"
    # Lines are "  TITLE  KERNELS  n  median %  p95 %  signed %", then "  FIGURE  value  +-  N %[, left as it was]".
    awk -v gpu="$gpu" -v products="$(repeated products "$table" "$shared/kernels/gemm_repeatability.csv")" \
      -v attention="$(repeated attention "$table" "$shared/kernels/attention_prefill.csv")" '
      index($0, "the other half of the shapes") { part = $(NF - 7); if (part == "products" && $(NF - 8) == "fp8") part = "fp8"; n[part] = $(NF - 6); median[part] = $(NF - 5); p95[part] = $(NF - 3) }
      index($0, "fit of smaller half on larger") { part = $(NF - 7); if (part == "products" && $(NF - 8) == "fp8") part = "fp8"; larger[part] = $(NF - 5) }
      $1 ~ /^[a-z]+\.[a-z0-9_]+$/ && !/left as it was/ {
        part = $1 ~ /^attention\.|attention_/ ? "attention" : ($1 ~ /fp8/ ? "fp8" : "products")
        figures[part]++
      }
      function line(part, name, repeated) {
        if (n[part] > 0) printf "| %s | %s | %d | %d | %s %% | %s %% | %s %% | %s |\n", gpu, name, figures[part], n[part], median[part], p95[part], larger[part], repeated
      }
      END { line("products", "products, bf16", products); line("fp8", "products, fp8", "- | -"); line("attention", "attention, bf16", attention) }' "$work/fit.txt" >> "$work/kernels"
  done <<< "a100-sxm a100 a100_sxm
h100-sxm h100 h100_sxm
h200-sxm h200 h200_sxm
b200-sxm b200 b200_sxm
b300-sxm b300 b300_sxm
gb200 gb200 gb200
gb300 gb300 gb300
l40s l40s l40s
rtx-pro-6000 rtx-pro-6000 rtx_pro_6000_server"
  [[ ! -s $work/kernels ]] || replace_lines kernels 2 "$work/kernels"
}

# Errors of the figures that the profiles hold.
collectives() {
  local family
  "$stepcast" calibrate --nccl-logs "$root/calibration/data/nccl_logs.csv" --folder "$shared" > "$work/errors.txt"
  for family in $(awk -F, 'NR > 1 && !seen[$1]++ { print $1 }' "$root/calibration/data/nccl_logs.csv"); do
    wanted "$family" || continue
    # Lines are "FAMILY  ROLE  LOG  rows  >= 1 MiB %  below %"; a log's name may have blanks, and a remark may follow.
    awk -v family="$family" '
      $1 == family && ($2 == "fit" || $2 == "held" || $2 == "half") {
        line = $0; gsub(/ %/, "%", line); count = split(line, part, " ")
        for (i = 4; i < count; ++i) if (part[i] ~ /^[0-9]+$/ && part[i + 1] ~ /%$|^-$/ && part[i + 2] ~ /%$|^-$/) break
        name = part[3]
        for (k = 4; k < i; ++k) name = name " " part[k]
        large = part[i + 1]; small = part[i + 2]; gsub(/%/, " %", large); gsub(/%/, " %", small)
        printf "| %s | %s | %s | %s | %s | %s |\n", family, part[2], name, part[i], large, small
      }' "$work/errors.txt" >> "$work/collectives"
  done
  [[ ! -s $work/collectives ]] || replace_lines collectives 3 "$work/collectives"
}

[[ $what == collectives ]] || fit_kernels
[[ $what == kernels ]] || collectives
for name in "$@"; do
  [[ $known == *" $name "* ]] || { echo "scripts/make_profiles.sh: nothing to make again for '$name'; there are$known" >&2; exit 2; }
done
