#!/usr/bin/env bash
# Builds the device image: one fat binary a kernels/*.cu whose sources have changed, with machine code for the GPUs below
# and PTX for later ones, and beside it the sums of its sources and its own. Run it by `go generate ./kernels` after a change
# and check in the result.
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

# sources NAME: the sums of what a module is built from.
sources() {
  echo "# sha256 of what this image was built from and of itself, by $("$nvcc" --version | sed -n 's/.*release \(.*\)/CUDA \1/p')"
  sha256sum build.sh $("$nvcc" -MM "$1.cu" | tr -d '\\' | cut -d: -f2 | tr ' ' '\n' | grep -v /)
}

mkdir -p image
for built in image/*.fatbin; do
  name=$(basename "$built" .fatbin)
  [ -f "$name.cu" ] || rm -f "image/$name".*
done
for source in *.cu; do
  name=${source%.cu}
  sources "$name" >"image/$name.new"
  if grep -v fatbin "image/$name.sources" 2>/dev/null | cmp -s "image/$name.new" &&
    grep fatbin "image/$name.sources" | sha256sum -c --status; then
    rm "image/$name.new"
    continue
  fi
  echo "nvcc $source" >&2
  # The target sm_90a (H100, H200): the shared-decode kernel moves registers between its warps where it can, and matrix products of
  # groups of warps, the bound's and the sieve's, exist nowhere else.
  own=()
  case $name in sliced_match | bound_match | near_groups | near_levels) own=(-gencode arch=compute_90a,code=sm_90a) ;; esac
  "$nvcc" "${flags[@]}" "${own[@]}" -Xfatbin -compress-all -fatbin -o "image/$name.fatbin" "$source"
  sha256sum "image/$name.fatbin" >>"image/$name.new"
  mv "image/$name.new" "image/$name.sources"
done
