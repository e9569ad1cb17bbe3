// Sums and places over the threads of a block.
#pragma once
#include <cstdint>

namespace geniemq {

__device__ __forceinline__ uint32_t laneOf() { return threadIdx.x & 31; }
__device__ __forceinline__ uint32_t warpOf() { return threadIdx.x >> 5; }

// Sum over the lanes before this one; total is the sum over the warp.
__device__ __forceinline__ uint32_t warpPlace(uint32_t value, uint32_t& total) {
  uint32_t sum = value;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, sum, d);
    if (laneOf() >= d) sum += other;
  }
  total = __shfl_sync(~0u, sum, 31);
  return sum - value;
}

// Sum over the threads before this one; total is the sum over the block. scratch: a word a warp. All threads must call
// it; scratch may be used again after the next __syncthreads.
template <int THREADS>
__device__ __forceinline__ uint32_t blockPlace(uint32_t value, uint32_t* scratch, uint32_t& total) {
  uint32_t inWarp;
  uint32_t place = warpPlace(value, inWarp);
  if (laneOf() == 0) scratch[warpOf()] = inWarp;
  __syncthreads();
  const uint32_t of = laneOf() < THREADS / 32 ? scratch[laneOf()] : 0;
  const uint32_t before = warpPlace(of, total);
  return place + __shfl_sync(~0u, before, warpOf());
}

// Sum over the block. The same rules.
template <int THREADS>
__device__ __forceinline__ uint32_t blockSum(uint32_t value, uint32_t* scratch) {
  value = __reduce_add_sync(~0u, value);
  if (laneOf() == 0) scratch[warpOf()] = value;
  __syncthreads();
  return __reduce_add_sync(~0u, laneOf() < THREADS / 32 ? scratch[laneOf()] : 0);
}

}  // namespace geniemq
