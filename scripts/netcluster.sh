#!/usr/bin/env bash
# A cluster of network namespaces on one machine: N hosts under leaf and spine routers, links shaped to rates, so that MPI programs
# meet real queues, oversubscription and ECMP collisions. Root only; traffic stays inside the namespaces.
#
#   scripts/netcluster.sh up [OPTION...]       build it (an earlier one of the name is taken down first)
#       --hosts N       hosts (default 4)              --rate R     of a host's link, e.g. 200mbit, 1gbit (default 200mbit)
#       --leaves L      leaf routers (default 1)       --uplink R   of a leaf-spine link (default: --rate)
#       --spines S      spine routers (default 0; several leaves need one)
#       --for S         seconds until it is taken down by itself (default 900)
#   scripts/netcluster.sh run [-n N] PROGRAM...  mpirun over the hosts, one slot each and round again; ends after 600 s at the latest
#   scripts/netcluster.sh counters              bytes that each leaf has sent to each spine
#   scripts/netcluster.sh address N             address of host N
#   scripts/netcluster.sh exec N PROGRAM...     a program on host N
#   scripts/netcluster.sh down
#
# NETCLUSTER (default sc) names the cluster: several may exist. Equal-cost paths are chosen by the kernel's hash of the five-tuple
# (fib_multipath_hash_policy 1).
set -euo pipefail

name=${NETCLUSTER:-sc}
state=/run/stepcast-netcluster-$name
limit=600  # seconds that a run may take

die() {
  echo "netcluster: $*" >&2
  exit "${status:-2}"
}

need_root() {
  ((EUID == 0)) || status=77 die "needs root: namespaces, interfaces and routes are made"
  command -v ip > /dev/null && command -v tc > /dev/null || status=77 die "needs ip and tc (iproute2)"
}

host() { echo "$name-h$1"; }
leaf() { echo "$name-l$1"; }
spine() { echo "$name-s$1"; }
host_address() { echo "10.77.$1.2"; }

namespace() {
  ip netns add "$1"
  ip -n "$1" link set lo up
}

readonly mtu=9000  # bytes: jumbo frames keep the routers' work for packets away from the hosts' cores

# Bytes that a link may send at once after it was idle: 32 KiB at 1 Gb/s, which its timer needs to keep up, less below, but two packets with their
# headers. A millisecond's worth (125 kB at 1 Gb/s) let most of a tensor-parallel all-reduce between two kernels pass as if the link had no rate.
burst_of() {
  local number=${1%%[a-z]*} bytes=0
  case ${1##*[0-9]} in
    kbit) bytes=$((number * 32768 / 1000000)) ;;
    mbit) bytes=$((number * 32768 / 1000)) ;;
    gbit) bytes=$((number * 32768)) ;;
  esac
  echo $((bytes > 2 * mtu + 100 ? bytes : 2 * mtu + 100))
}

# end NAMESPACE INTERFACE ADDRESS RATE
end() {
  ip -n "$1" addr add "$3" dev "$2"
  ip -n "$1" link set "$2" mtu "$mtu" up
  tc -n "$1" qdisc add dev "$2" root tbf rate "$4" burst "$(burst_of "$4")b" limit 2mb
}

# link NAMESPACE INTERFACE ADDRESS NAMESPACE INTERFACE ADDRESS RATE: a pair of interfaces, shaped both ways.
link() {
  ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
  end "$1" "$2" "$3" "$7"
  end "$4" "$5" "$6" "$7"
}

router() {
  namespace "$1"
  ip netns exec "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.fib_multipath_hash_policy=1 net.ipv4.conf.all.rp_filter=0
}

up() {
  local hosts=4 leaves=1 spines=0 rate=200mbit uplink='' lifetime=900
  while (($# > 0)); do
    (($# > 1)) || die "$1 has no value"
    case $1 in
      --hosts) hosts=$2 ;;
      --leaves) leaves=$2 ;;
      --spines) spines=$2 ;;
      --rate) rate=$2 ;;
      --uplink) uplink=$2 ;;
      --for) lifetime=$2 ;;
      *) die "unknown option $1" ;;
    esac
    shift 2
  done
  local number
  for number in "$hosts" "$leaves" "$spines" "$lifetime"; do [[ $number =~ ^[0-9]+$ ]] || die "not a whole number: $number"; done
  for number in "$rate" "${uplink:-$rate}"; do [[ $number =~ ^[1-9][0-9]*[kmg]bit$ ]] || die "not a rate: $number (such as 200mbit or 1gbit)"; done
  ((hosts >= 1 && hosts <= 64 && leaves >= 1 && leaves <= 8 && spines <= 8)) || die "1 to 64 hosts, 1 to 8 leaves, up to 8 spines"
  ((leaves == 1 || spines >= 1)) || die "several leaves need a spine"
  ((hosts % leaves == 0)) || die "$hosts hosts do not divide among $leaves leaves"
  need_root
  down
  trap 'down' ERR
  mkdir -p "$state"
  echo "$hosts $leaves $spines" > "$state/shape"
  local l s h per=$((hosts / leaves))
  for ((l = 0; l < leaves; ++l)); do router "$(leaf "$l")"; done
  for ((s = 0; s < spines; ++s)); do router "$(spine "$s")"; done
  for ((h = 0; h < hosts; ++h)); do
    namespace "$(host "$h")"
    link "$(host "$h")" eth0 "10.77.$h.2/24" "$(leaf $((h / per)))" "h$h" "10.77.$h.1/24" "$rate"
    ip -n "$(host "$h")" route add default via "10.77.$h.1"
  done
  for ((l = 0; l < leaves; ++l)); do
    local -a ways=()
    for ((s = 0; s < spines; ++s)); do
      local net=10.78.$((l * 8 + s))
      link "$(leaf "$l")" "s$s" "$net.1/30" "$(spine "$s")" "l$l" "$net.2/30" "${uplink:-$rate}"
      ways+=(nexthop via "$net.2")
      for ((h = l * per; h < (l + 1) * per; ++h)); do ip -n "$(spine "$s")" route add "10.77.$h.0/24" via "$net.1"; done
    done
    for ((h = 0; h < hosts; ++h)); do
      ((h / per == l)) || ip -n "$(leaf "$l")" route add "10.77.$h.0/24" "${ways[@]}"
    done
  done
  trap - ERR
  (
    exec > /dev/null 2>&1 < /dev/null
    sleep "$lifetime" &
    echo $! > "$state/timer"
    wait $! && NETCLUSTER=$name "$0" down
  ) &
  disown
  echo "netcluster: $hosts hosts at $rate, $leaves leaves, $spines spines${uplink:+, uplinks at $uplink}"
}

down() {
  need_root
  local space pids
  for space in $(ip netns list | awk '{print $1}' | grep -E "^$name-[hls][0-9]+$" || true); do
    pids=$(ip netns pids "$space" || true)
    [[ -z $pids ]] || kill -9 $pids 2> /dev/null || true
    ip netns del "$space"
  done
  if [[ -f $state/timer ]]; then kill "$(cat "$state/timer")" 2> /dev/null || true; fi
  rm -rf "$state"
}

shape() {
  [[ -f $state/shape ]] || die "no cluster '$name' is up"
  read -r hosts leaves spines < "$state/shape"
}

# A host has a core of its own, as far as there are cores: otherwise the scheduler now and then puts two hosts on one, for a time slice of milliseconds.
core_of() { echo $(($1 % $(nproc --all))); }

# What mpirun starts remote daemons with: the address says which namespace, which also gets a name of its own.
agent() {
  local address=$1 number
  shift
  number=$(cut -d. -f3 <<< "$address")
  exec taskset -c "$(core_of "$number")" ip netns exec "$(host "$number")" unshare --uts sh -c "hostname $(host "$number"); $*"
}

run() {
  need_root
  shape
  local h list=''
  for ((h = 0; h < hosts; ++h)); do list+=",$(host_address "$h"):16"; done
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  exec timeout --kill-after=5 "$limit" taskset -c "$(core_of 0)" ip netns exec "$(host 0)" unshare --uts sh -c "hostname $(host 0); exec \"\$@\"" netcluster \
    mpirun --host "${list:1}" --map-by node --bind-to none --oversubscribe --mca plm rsh --mca plm_rsh_agent "$(readlink -f "$0") agent" \
    --mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 \
    --mca oob_tcp_if_include 10.77.0.0/16 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/16 --mca mpi_yield_when_idle 0 --mca btl_tcp_eager_limit 1048576 --mca btl_tcp_rndv_eager_limit 1048576 --mca btl_tcp_max_send_size 1048576 \
    -x NETCLUSTER="$name" "$@"
}

counters() {
  shape
  local l s
  for ((l = 0; l < leaves; ++l)); do
    for ((s = 0; s < spines; ++s)); do
      echo "leaf$l -> spine$s $(ip netns exec "$(leaf "$l")" cat "/sys/class/net/s$s/statistics/tx_bytes" 2> /dev/null || ip -n "$(leaf "$l")" -s -o link show dev "s$s" | awk '{for (i = 1; i <= NF; ++i) if ($i == "TX:") print $(i + 8)}')"
    done
  done
}

export NETCLUSTER=$name
command=${1:-}
shift || true
case $command in
  up) up "$@" ;;
  down) down ;;
  run) run "$@" ;;
  agent) agent "$@" ;;
  counters) counters ;;
  address) shape; host_address "${1:?host number}" ;;
  exec) need_root; shape; number=${1:?host number}; shift; exec ip netns exec "$(host "$number")" "$@" ;;
  *) sed -n '2,20p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
