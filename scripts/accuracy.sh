#!/usr/bin/env bash
# Rewrites the tables of docs/accuracy.md between their markers: forecasts of the tables of published training runs as profiles are
# shipped, and held-out errors once a profile is fitted to 30 % of each hardware family's rows (seed 1). The text around them is by hand.
#   scripts/accuracy.sh [FOLDER]     default ../shared/truth; needs a build in build/release; about an hour on two cores
#   STEPCAST_TABLES="torchtitan papers" scripts/accuracy.sh     only these tables' lines; others stay
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-../shared/truth}
document=docs/accuracy.md
program=${STEPCAST:-build/release/app/stepcast}
[[ -d $folder ]] || { echo "$folder: no such folder: nothing is rewritten" >&2; exit 77; }
[[ -x $program ]] || { echo "$program is missing: run ./stepcast --help once" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# name|file|GPU that its rows' lines hold|share of the rows to fit
tables="
Megatron-LM|megatron_lm||30%
LLM Foundry (MPT, FSDP)|mpt_llmfoundry||30%
vTrain|vtrain_ground_truth||10%
NeMo summary|nvidia_nemo_summary||30%
papers|papers||30%
DGX Cloud|nvidia_dgxc_benchmarking||30%
Megatron-Bridge|nvidia_megatron_bridge||30%
torchtitan|torchtitan||30%
SimuMax B200|simumax_b200||30%
bigscience, A100|bigscience_jeanzay|,A100-SXM,|30%
bigscience, V100|bigscience_jeanzay|,V100-SXM2,|30%
Megatron-Core functional tests|megatron_core_golden||30%
llm.q|llmq_consumer_gpus||30%
DeepSpeed|deepspeed_offload_zero||30%
"

part_of() {  # file, text of the rows' lines
  awk -v text="$2" 'NR == 1 || text == "" || index($0, text)' "$folder/$1.csv" > "$work/part.csv"
}

# The two lines that sum up `validate --table`.
shipped_line() {  # name
  "$program" validate --table "$work/part.csv" 2> "$work/log" | awk -v name="$1" '
    /^[0-9]+ rows, / { rows = $1; ok = $3; refused = $5 }
    /^step time: mean absolute error/ {
      gsub(/,/, "")
      printf "| %s | %d | %d | %d | %s %% | %s %% | %s %% | %s %% |\n", name, rows, ok, refused, $6, $9, $12, $16
    }'
}

# A line for each GPU of `calibrate --table`.
fitted_lines() {  # name, share
  "$program" calibrate --table "$work/part.csv" --rows "$2" --seed 1 2> "$work/log" | awk -v name="$1" '
    /^[a-z0-9-]+$/ { gpu = $1 }
    $1 == "fitted" { fitted = $2 }
    $1 == "held" { printf "| %s | %s | %d | %d | %s %% | %s %% | %s %% | %s %% | %s %% |\n", name, gpu, fitted, $3, $4, $12, $14, $16, $18 }' || true
}

wanted() { [[ -z ${STEPCAST_TABLES:-} || " $STEPCAST_TABLES " == *" $1 "* ]]; }

# Lines of a table that start with "| name |" make way for new ones, in their place.
replace_lines() {  # marker, name, file of new lines
  awk -v marker="$1" -v name="| $2 |" -v new="$3" '
    function put() { while ((getline line < new) > 0) print line; close(new); done = 1 }
    index($0, "<!-- table: " marker " -->") { inside = 1 }
    inside && index($0, name) == 1 { if (!done) put(); next }
    inside && /<!-- end -->/ { if (!done) put(); inside = 0 }
    { print }' "$document" > "$work/document"
  cp "$work/document" "$document"
}

while IFS='|' read -r name file gpu share; do
  [[ -n $name ]] && wanted "$file" || continue
  part_of "$file" "$gpu"
  echo "$name" >&2
  shipped_line "$name" > "$work/lines"
  if [[ -s $work/lines ]]; then replace_lines shipped "$name" "$work/lines"; fi
  if [[ -z ${STEPCAST_SHIPPED_ONLY:-} ]]; then
    fitted_lines "$name" "$share" > "$work/lines"
    if [[ -s $work/lines ]]; then replace_lines fitted "$name" "$work/lines"; fi
  fi
done <<< "$tables"
