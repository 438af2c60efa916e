#!/usr/bin/env bash
# Builds stepcast-cuda with nvcc alone, on a GPU machine that has CUDA and NCCL and none of the project's other libraries.
#
#   scripts/build_cuda_worker.sh [OUTPUT]        (default: ./stepcast-cuda; NVCC, ARCH=sm_90 and NCCL_HOME change the rest)
set -euo pipefail

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
output=${1:-stepcast-cuda}
arch=${ARCH:-native}
if [[ $arch == native && ! -e /dev/nvidia0 ]]; then
  echo "no GPU is here to build for: say which with ARCH=sm_80, ARCH=sm_90 or ARCH=sm_100" >&2
  exit 2
fi
nccl=${NCCL_HOME:+-I$NCCL_HOME/include -L$NCCL_HOME/lib}
"${NVCC:-nvcc}" -std=c++20 -O2 -Xcompiler -fopenmp,-ffp-contract=fast --extended-lambda -arch="$arch" --threads 0 -I. $nccl \
  executor/cuda/*.cpp executor/cuda/cudnn/*.cpp executor/cuda/*.cu executor/common/*.cpp \
  sim/base/{diagnostic,file,plain_text,text}.cpp sim/plan/{names,plan,plan_file_read,token_line,volumes}.cpp \
  -lcublasLt -lnccl -ldl -o "$output"
echo "built $output"
