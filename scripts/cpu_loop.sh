#!/usr/bin/env bash
# The loop on this machine's cores: measure, calibrate, then forecast, run and compare plans that no fit has seen, on local MPI and (as root) over
# hosts that are network namespaces, at two link rates and with an oversubscribed spine.
#
#   scripts/cpu_loop.sh [FOLDER]      (default: cpu-loop in the temporary folder; points that FOLDER/points.db has are not measured again)
#
# The plans of a place run in rounds (a, b, c, a, b, c, ...), so that a machine that drifts drifts for all of them; a plan's measurement is the median of its
# rounds, its deviation that of their mean. Two plans whose difference, round by round, is on average less than two standard errors from 0 are a tie:
# the measurement does not say which is faster, and no forecast is held against it. The rule was there before the runs.
#
# Prints each plan's forecast, measurement and error, the mean error, and whether the forecasts rank the variants of each place as measured. Takes ten to
# twelve minutes. Wants an idle machine: another program on the cores is measured too. QUICK=1 takes fewer points, steps and rounds.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
folder=${1:-${TMPDIR:-/tmp}/cpu-loop}
stepcast=${STEPCAST:-$here/../stepcast}
export NETCLUSTER=scloop
net="$here/netcluster.sh"
quick=${QUICK:+--quick}
steps=$([ -n "${QUICK:-}" ] && echo 3 || echo 4)
rounds=$([ -n "${QUICK:-}" ] && echo 3 || echo 6)
mkdir -p "$folder"
db=$folder/points.db
runs=$folder/runs.db
rows=$folder/rows.tsv       # place, plan, forecast
measured=$folder/rounds.tsv # plan, round, measured
: > "$rows"
: > "$measured"

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
# As scripts/netcluster.sh sets links and Open MPI up: jumbo frames, messages up to 1 MiB are sent unasked, and the executor sends synchronously (MPI_Issend).
cluster() { echo "cluster: {nodes: 2, node: cpu-host, gpus_per_node: 1, fabric: {nic: eth-1, nics_per_node: 1, transport: {mtu: 9000 B, eager: 1 MiB, buffered: 0 B}, network: $1}}"; }

# compare PLACE [OPTION...]: runs every plan of the place, round by round, and sets its forecast beside. FOLDER/NAME.txt says where they differ.
compare() {
  local place=$1 file name round
  shift
  for ((round = 1; round <= rounds; ++round)); do
    for file in "$folder/$place"-*.yaml; do
      name=$(basename "$file" .yaml)
      "$stepcast" run "$file" --steps "$steps" --warmup 1 --db "$runs" --json - "$@" | awk -F '[:,] *' -v name="$name" -v round="$round" '
        /^  "step_time_s"/ { print name "\t" round "\t" $2 }' >> "$measured"
    done
  done
  for file in "$folder/$place"-*.yaml; do
    name=$(basename "$file" .yaml)
    "$stepcast" validate "$file" --db "$runs" > "$folder/$name.txt"
    "$stepcast" simulate "$file" --json - | awk -F '[:,] *' -v place="$place" -v name="$name" '/^  "step_time_s"/ { print place "\t" name "\t" $2 }' >> "$rows"
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
  function median(plan, r, i, j, v, n, t) {
    n = 0
    for (r = 1; r <= rounds[plan]; ++r) v[++n] = m[plan, r]
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && v[j - 1] > v[j]; --j) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
  }
  # Mean of the rounds of a, less those of b where b is a plan, and its standard error.
  function mean_of(a, b, r, x, sum, squares, n) {
    n = rounds[a]; sum = squares = 0
    for (r = 1; r <= n; ++r) { x = m[a, r] - (b == "" ? 0 : m[b, r]); sum += x; squares += x * x }
    mean = sum / n
    error = n > 1 ? sqrt((squares - n * mean * mean > 0 ? squares - n * mean * mean : 0) / (n - 1) / n) : 0
  }
  FNR == NR { m[$1, $2] = $3; if ($2 > rounds[$1]) rounds[$1] = $2; next }
  { ++plans; place[plans] = $1; name[plans] = $2; f[plans] = $3 }
  END {
    for (i = 1; i <= plans; ++i) {
      middle = median(name[i]); mean_of(name[i], ""); e = f[i] / middle - 1; sum += e < 0 ? -e : e
      printf "  %-20s forecast %9.2f ms   measured %9.2f +- %7.2f ms   %+6.1f %%\n", name[i], 1e3 * f[i], 1e3 * middle, 1e3 * error, 100 * e
    }
    for (i = 1; i <= plans; ++i) for (j = i + 1; j <= plans; ++j) if (place[i] == place[j]) {
      mean_of(name[i], name[j])
      if ((mean < 0 ? -mean : mean) < 2 * error) { ++ties; printf "  tie: %s and %s differ by %.2f +- %.2f ms\n", name[i], name[j], 1e3 * mean, 1e3 * error; continue }
      ++pairs
      if ((f[i] - f[j]) * mean > 0) ++right
      else printf "  ranked wrong: %s and %s differ by %.2f +- %.2f ms, forecast %.2f ms\n", name[i], name[j], 1e3 * mean, 1e3 * error, 1e3 * (f[i] - f[j])
    }
    printf "%d plans, mean error %.1f %%; %d of %d pairs ranked right, %d ties (less than two standard errors apart over %d rounds)\n", plans, 100 * sum / plans, right, pairs, ties, rounds[name[1]]
  }' "$measured" "$rows"
