#!/usr/bin/env bash
# The packages that building needs, in one place, and their installation.
#
#   scripts/dependencies.sh            install what is missing (root or sudo; apt-based systems)
#   scripts/dependencies.sh --list     print all package names
#   scripts/dependencies.sh --missing  print those that are not installed
#
# Debian 12 and 13, Ubuntu 22.04 and 24.04 use the same names. On a system without apt nothing is
# installed: the libraries are then found by CMake or named in its error.
set -euo pipefail

packages=(
  g++ cmake ninja-build                  # C++20 compiler (g++ 11 or later), CMake 3.22 or later
  libboost-graph-dev                     # header-only use: topologies/
  libboost-program-options-dev           # the command line
  libeigen3-dev                          # fits, and the executor on CPUs
  libfmt-dev nlohmann-json3-dev          # text and JSON
  libyaml-cpp-dev libsqlite3-dev         # scenario files; measurement stores
  zlib1g-dev                             # profilers' traces are compressed
  libtomlplusplus-dev                    # torchtitan's configurations
  libopenmpi-dev openmpi-bin             # the executor on CPUs
  doctest-dev                            # tests
)

missing() {
  command -v dpkg-query > /dev/null || return 0
  local package
  for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || echo "$package"
  done
}

install_packages() {
  local -a wanted runner=()
  mapfile -t wanted < <(missing)
  ((${#wanted[@]} > 0)) || return 0
  if ((EUID != 0)); then
    # sudo may ask for a password only where somebody can type it.
    if command -v sudo > /dev/null && { [[ -t 0 && -t 2 ]] || sudo -n true 2> /dev/null; }; then
      runner=(sudo)
    else
      {
        echo "stepcast: these packages are missing, and installing them takes root or sudo:"
        echo "  apt-get install -y --no-install-recommends ${wanted[*]}"
      } >&2
      exit 3
    fi
  fi
  echo "stepcast: installing ${wanted[*]}" >&2
  local log
  log=$(mktemp)
  runner+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  if ! { "${runner[@]}" update && "${runner[@]}" install -y --no-install-recommends "${wanted[@]}"; } > "$log" 2>&1 < /dev/null; then
    tail -n 20 "$log" >&2
    echo "stepcast: apt-get failed; its whole output is in $log" >&2
    exit 3
  fi
  rm -f "$log"
}

case ${1:-} in
  --list) printf '%s\n' "${packages[@]}" ;;
  --missing) missing ;;
  '') install_packages ;;
  *) echo "usage: scripts/dependencies.sh [--list|--missing]" >&2; exit 2 ;;
esac
