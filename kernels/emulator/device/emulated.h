// What a kernel sees in place of CUDA's own headers; it is included before every kernel.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "fiber.h"
#include "vectors.h"
#include "intrinsics.h"
#include "ptx.h"

// Qualifiers. The translator (translate.go) makes C++ of what begins with EMULATED_.
#define __global__ EMULATED_GLOBAL
#define __shared__ EMULATED_SHARED
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) EMULATED_BOUNDS(__VA_ARGS__)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)
#define __nv_pure__

#define threadIdx (::emulated::running.fiber->thread)
#define blockIdx (::emulated::running.block->index)
#define blockDim (::emulated::running.dim)
#define gridDim (::emulated::running.grid)
#define warpSize 32

#define __CUDACC__ 1
