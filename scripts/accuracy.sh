#!/usr/bin/env bash
# Rewrites the tables of docs/accuracy.md between their markers: forecasts of the tables of published training runs as profiles are
# shipped, and held-out errors once a profile is fitted to 30 % of each GPU's rows (seed 1). Writes the fitted profiles of GPUs with ten
# rows and more to calibration/profiles/machines/, for `stepcast validate --table T --fitted`. The text around the tables is by hand.
#   scripts/accuracy.sh [FOLDER]     default ../shared/truth; needs a build in build/release; some ten minutes on two idle cores
#   STEPCAST_TABLES="torchtitan papers" scripts/accuracy.sh     only these tables' lines; others stay
#   STEPCAST_RESULTS=KEEP scripts/accuracy.sh     keeps what each table printed in KEEP, with its rows as JSON, and takes from there what is there already
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-../shared/truth}
document=docs/accuracy.md
machines=calibration/profiles/machines
program=${STEPCAST:-build/release/app/stepcast}
least_rows=10
[[ -d $folder ]] || { echo "$folder: no such folder: nothing is rewritten" >&2; exit 77; }
[[ -x $program ]] || { echo "$program is missing: run ./stepcast --help once" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=${STEPCAST_RESULTS:-$work}
mkdir -p "$results" "$machines"
day=$(date +%F)

# name|file|GPU that its rows' lines hold
tables="
Megatron-LM|megatron_lm|
LLM Foundry (MPT, FSDP)|mpt_llmfoundry|
vTrain|vtrain_ground_truth|
NeMo summary|nvidia_nemo_summary|
papers|papers|
DGX Cloud|nvidia_dgxc_benchmarking|
Megatron-Bridge|nvidia_megatron_bridge|
torchtitan|torchtitan|
SimuMax B200|simumax_b200|
bigscience, A100|bigscience_jeanzay|,A100-SXM,
bigscience, V100|bigscience_jeanzay|,V100-SXM2,
Megatron-Core functional tests|megatron_core_golden|
llm.q|llmq_consumer_gpus|
DeepSpeed|deepspeed_offload_zero|
"

fit() {  # file, text of the rows' lines, where to print
  [[ -s $3 ]] && return
  awk -v text="$2" 'NR == 1 || text == "" || index($0, text)' "$folder/$1.csv" > "$work/part.csv"
  mkdir -p "$work/profiles"
  "$program" calibrate --table "$work/part.csv" --rows 30% --seed 1 --date "$day" -o "$work/profiles/" --json "${3%.txt}.json" > "$work/printed" 2> "$work/log" || { cat "$work/log" >&2; return 1; }
  awk -v least="$least_rows" -v file="$1" '
    /^[a-z0-9-]+$/ { gpu = $1 }
    $1 == "fitted" { fitted = $2 }
    $1 == "held" && gpu != "all" && fitted + $3 >= least { print file "-" gpu ".yaml" }' "$work/printed" > "$work/large"
  while read -r profile; do cp "$work/profiles/$profile" "$machines/$profile"; done < "$work/large"
  cp "$work/printed" "$3"
}

shipped_line() {  # name, what was printed
  awk -v name="$1" '/^as profiles were: / {
    gsub(/[,:]/, "")
    printf "| %s | %d | %d | %d | %s %% | %s %% | %s %% | %s %% |\n", name, $4, $6, $4 - $6, $16, $19, $22, $25
  }' "$2"
}

# A line for each GPU, and one for all where there are several; at its end the held-out rows that state their whole set-up, and their mean.
fitted_lines() {  # name, what was printed
  awk -v name="$1" '
    function put() { if (line != "") print line " " (rows == "" ? " |  |" : rows " | " mean " % |"); line = rows = "" }
    /^[a-z0-9-]+$/ { gpu = $1 }
    $1 == "fitted" { fitted = $2 }
    $1 == "held" { put(); line = sprintf("| %s | %s | %d | %d | %s %% | %s %% | %s %% | %s %% | %s %% |", name, gpu, fitted, $3, $4, $12, $14, $16, $18) }
    $1 == "complete" { rows = $2; mean = $11 }
    END { put() }' "$2"
}

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

lines_of() {  # marker
  awk -v marker="$1" 'index($0, "<!-- table: " marker " -->") { inside = 1 } /<!-- end -->/ { inside = 0 } inside && /^\| / && !/^\| (family|---|\*\*)/' "$document"
}

# Weighted by rows.
write_totals() {
  lines_of shipped | awk -F'|' '{ n = $4; rows += $3; ok += n; out += $5; mean += n * $6; sign += n * $9; if ($8 + 0 > worst) worst = $8 + 0 }
    END { printf "| **all rows** | %d | %d | %d | %.1f %% |  | %.1f %% | %.1f %% |\n", rows, ok, out, mean / ok, worst, sign / ok }' > "$work/lines"
  replace_lines shipped "**all rows**" "$work/lines"
  lines_of fitted | awk -F'|' '$3 !~ /^ all / { complete += $11; of_complete += $11 * $12; n = $5; fitted += $4; held += n; before += n * $6; mean += n * $7; sign += n * $10; if ($9 + 0 > worst) worst = $9 + 0 }
    END { printf "| **all rows** |  | %d | %d | %.1f %% | %.1f %% |  | %.1f %% | %.1f %% | %d | %.1f %% |\n", fitted, held, before / held, mean / held, worst, sign / held, complete, of_complete / complete }' > "$work/lines"
  replace_lines fitted "**all rows**" "$work/lines"
}

while IFS='|' read -r name file gpu; do
  [[ -n $name ]] || continue
  [[ -z ${STEPCAST_TABLES:-} || " $STEPCAST_TABLES " == *" $file "* ]] || continue
  echo "$name" >&2
  printed="$results/${name//[ ,()]/_}.txt"
  fit "$file" "$gpu" "$printed"
  shipped_line "$name" "$printed" > "$work/lines"
  if [[ -s $work/lines ]]; then replace_lines shipped "$name" "$work/lines"; fi
  fitted_lines "$name" "$printed" > "$work/lines"
  if [[ -s $work/lines ]]; then replace_lines fitted "$name" "$work/lines"; fi
done <<< "$tables"
write_totals
