#!/usr/bin/env bash
# Builds the device image: one fat binary a kernels/*.cu, with machine code for the GPUs below and PTX for later ones, and
# SOURCES, which says what they were built from. Run it by `go generate ./kernels` after a change and check in the result.
#
# The compiler is $NVCC, else nvcc of the PATH, else the one that pip installs into build/nvcc (CUDA 13, 200 MB).
set -euo pipefail
cd "$(dirname "$0")"
flags=(-O3 -std=c++17
  -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86
  -gencode arch=compute_89,code=sm_89 -gencode arch=compute_90,code=sm_90
  -gencode arch=compute_90,code=compute_90)

nvcc=${NVCC:-$(command -v nvcc || true)}
if [ -z "$nvcc" ]; then
  venv=$PWD/../build/nvcc
  if [ ! -x "$venv/bin/pip" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q "nvidia-cuda-nvcc==13.0.*" "nvidia-cuda-crt==13.0.*" "nvidia-cuda-runtime==13.0.*" \
      "nvidia-cuda-cccl==13.0.*" "nvidia-nvvm==13.0.*"
  fi
  nvcc=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
fi

mkdir -p image
rm -f image/*
for source in *.cu; do
  echo "nvcc $source" >&2
  "$nvcc" "${flags[@]}" -Xfatbin -compress-all -fatbin -o "image/${source%.cu}.fatbin" "$source" &
  [ "$(jobs -r | wc -l)" -lt "$(nproc)" ] || wait -n
done
for job in $(jobs -p); do wait "$job"; done
{
  echo "# sha256 of what image/*.fatbin were built from, by $("$nvcc" --version | sed -n 's/.*release \(.*\)/CUDA \1/p')"
  sha256sum build.sh *.cu *.cuh
} >image/SOURCES
