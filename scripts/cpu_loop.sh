#!/usr/bin/env bash
# The loop on this machine's cores: measure, calibrate, then forecast, run and compare plans that no fit has seen, on local MPI and (as root) over
# hosts that are network namespaces, at two link rates and with an oversubscribed spine.
#
#   scripts/cpu_loop.sh [FOLDER]      (default: cpu-loop in the temporary folder; points that FOLDER/points.db has are not measured again)
#
# Prints each plan's forecast, measurement and error, the mean error, and whether the forecasts rank the variants of each place as measured.
# Wants an idle machine: another program on the cores is measured too. QUICK=1 takes fewer points and steps.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
folder=${1:-${TMPDIR:-/tmp}/cpu-loop}
stepcast=${STEPCAST:-$here/../stepcast}
export NETCLUSTER=scloop
net="$here/netcluster.sh"
quick=${QUICK:+--quick}
steps=$([ -n "${QUICK:-}" ] && echo 5 || echo 15)
mkdir -p "$folder"
db=$folder/points.db
runs=$folder/runs.db
rows=$folder/rows.tsv
: > "$rows"

# plan NAME PLACE PARALLEL [MODEL] [BATCH] [MEMORY]: a scenario file of two workers, or of what PARALLEL says.
plan() {
  local file="$folder/$2-$1.yaml" workers=2
  [[ $3 == *"workers: 1"* ]] && workers=1
  {
    echo "name: $2-$1"
    echo "model: {sequence: 128, shape: ${4:-{layers: 4, hidden: 256, heads: 4, kv_heads: 2, ffn: 768, vocab: 1024, gated_mlp: true\}}}"
    case $2 in
      local) echo "cluster: {nodes: 1, node: cpu-host, gpus_per_node: $workers}" ;;
      1gbit) cluster "{switches: [leaf0], links: [{from: \"node[0-1]\", to: leaf0, rate: 1 Gb/s}]}" ;;
      200mbit) cluster "{switches: [leaf0], links: [{from: \"node[0-1]\", to: leaf0, rate: 200 Mb/s}]}" ;;
      spine) cluster "{switches: [leaf0, leaf1, spine0], links: [{from: node0, to: leaf0, rate: 1 Gb/s}, {from: node1, to: leaf1, rate: 1 Gb/s}, {from: \"leaf[0-1]\", to: spine0, rate: 100 Mb/s}]}" ;;
    esac
    echo "parallel: {${3/workers: 1, /}}"
    echo "batch: ${5:-{global: 8, micro: 1\}}"
    echo "memory: ${6:-{recompute: none\}}"
    echo "training: {precision: fp32}"
    echo "communication: {algorithm: ring, protocol: simple}"
    echo "profile: $folder/$([[ $2 == local ]] && echo local || echo network).yaml"
  } > "$file"
}
cluster() { echo "cluster: {nodes: 2, node: cpu-host, gpus_per_node: 1, fabric: {nic: eth-1, nics_per_node: 1, network: $1}}"; }

# compare PLACE [OPTION...]: runs every plan of the place and sets its forecast beside. FOLDER/NAME.txt says where they differ.
compare() {
  local place=$1 file name
  shift
  for file in "$folder/$place"-*.yaml; do
    name=$(basename "$file" .yaml)
    "$stepcast" run "$file" --steps "$steps" --db "$runs" "$@" > /dev/null
    "$stepcast" validate "$file" --db "$runs" > "$folder/$name.txt"
    "$stepcast" validate "$file" --db "$runs" --json - | awk -F '[:,] *' -v place="$place" -v name="$name" '
      /^  "forecast_step_s"/ { forecast = $2 } /^  "measured_step_s"/ { measured = $2 }
      END { print place "\t" name "\t" forecast "\t" measured }' >> "$rows"
  done
}

measure() { "$stepcast" measure --db "$db" $quick "$@" > /dev/null; }

# calibrate MACHINE CLUSTER PROFILE OUTPUT: its collectives, the rest from the profile.
calibrate() {
  {
    echo "name: $1"
    echo "$2"
    echo "communication: {algorithm: ring, protocol: simple}"
  } > "$folder/cluster-$1.yaml"
  "$stepcast" calibrate --db "$db" --machine "$1" --cluster "$folder/cluster-$1.yaml" --profile "$3" -o "$4"
}

measure --workers 1,2 --machine local
"$stepcast" calibrate --db "$db" --machine local --gpu cpu-host -o "$folder/kernels.yaml"
calibrate local "cluster: {nodes: 1, node: cpu-host, gpus_per_node: 2}" "$folder/kernels.yaml" "$folder/local.yaml"

plan one local "workers: 1, tp: 1"
plan tp2 local "tp: 2"
plan dp2 local "dp: 2"
plan dp2-zero1 local "dp: 2, zero: 1"
plan pp2 local "pp: 2, schedule: 1f1b"
plan pp2-gpipe local "pp: 2, schedule: gpipe" "" "" "{recompute: full}"
plan wide local "tp: 2" "{layers: 2, hidden: 512, heads: 8, kv_heads: 8, ffn: 1536, vocab: 2048, gated_mlp: true}" "{global: 4, micro: 2}"
compare local

if ((EUID == 0)) && ip netns add scloop-probe 2> /dev/null; then
  ip netns delete scloop-probe
  trap '"$net" down > /dev/null 2>&1 || true' EXIT
  "$net" up --hosts 2 --rate 1gbit > /dev/null
  measure --workers 2 --machine network --launcher "$net run"
  calibrate network "$(cluster "{switches: [leaf0], links: [{from: \"node[0-1]\", to: leaf0, rate: 1 Gb/s}]}")" "$folder/local.yaml" "$folder/network.yaml"
  for place in 1gbit 200mbit spine; do
    plan dp2 $place "dp: 2"
    plan dp2-zero1 $place "dp: 2, zero: 1"
    plan pp2 $place "pp: 2, schedule: 1f1b"
    plan tp2 $place "tp: 2"
  done
  compare 1gbit --launcher "$net run"
  "$net" up --hosts 2 --rate 200mbit > /dev/null
  compare 200mbit --launcher "$net run"
  "$net" up --hosts 2 --leaves 2 --spines 1 --rate 1gbit --uplink 100mbit > /dev/null
  compare spine --launcher "$net run"
else
  echo "over a network: skipped (root and network namespaces are needed)"
fi

awk -F '\t' '
  { place[NR] = $1; name[NR] = $2; f[NR] = $3; m[NR] = $4; e = f[NR] / m[NR] - 1; sum += e < 0 ? -e : e
    printf "  %-20s forecast %9.2f ms   measured %9.2f ms   %+6.1f %%\n", $2, 1e3 * f[NR], 1e3 * m[NR], 100 * e }
  END {
    for (i = 1; i <= NR; ++i) for (j = i + 1; j <= NR; ++j) if (place[i] == place[j] && (m[i] > 1.05 * m[j] || m[j] > 1.05 * m[i])) {
      ++pairs; if ((f[i] - f[j]) * (m[i] - m[j]) > 0) ++right; else printf "  ranked wrong: %s and %s\n", name[i], name[j] }
    printf "%d plans, mean error %.1f %%; %d of %d pairs that differ by more than 5 %% ranked right\n", NR, 100 * sum / NR, right, pairs
  }' "$rows"
