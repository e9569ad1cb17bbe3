// The n-th smallest of what the threads of a block hold, by halving what it can be: a round for each bit in which values differ, of one barrier and as many comparisons as a thread has values.
//
// Histograms of digits read all values again for each digit (near_gate.cu, of more values): near_guessed took 66 us with them and takes 42 (docs/benchmarks/history/2026-11-30-h200-samples.md).
#pragma once
#include "near.cuh"

namespace geniemq {

constexpr uint32_t kHeld = 16;  // values of a thread
constexpr uint32_t kMostHeld = 4096;

#ifdef __CUDACC__
namespace {

template <int THREADS>
struct NthScratch {
  uint64_t all[THREADS / 32], any[THREADS / 32];
  uint32_t sums[2][32];
};

// What a thread holds: so much of n values, the others all ones, which no value is.
template <int THREADS, class Of>
__device__ __forceinline__ void hold(uint64_t (&own)[kHeld], uint32_t n, Of of) {
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++) own[i] = threadIdx.x + i * THREADS < n ? of(threadIdx.x + i * THREADS) : ~0ull;
}

// So many values, and no more than `upTo`, are at most what it returns: where upTo is not `wanted`, that is the value that as many more share. The block calls it together, and there
// are as many values.
template <int THREADS>
__device__ uint64_t nthOf(const uint64_t (&own)[kHeld], uint32_t wanted, uint32_t& upTo, NthScratch<THREADS>& s) {
  uint64_t all = ~0ull, any = 0;
  uint32_t held = 0;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++)
    if (own[i] != ~0ull) all &= own[i], any |= own[i], held++;
  all = uint64_t{__reduce_and_sync(~0u, uint32_t(all >> 32))} << 32 | __reduce_and_sync(~0u, uint32_t(all));
  any = uint64_t{__reduce_or_sync(~0u, uint32_t(any >> 32))} << 32 | __reduce_or_sync(~0u, uint32_t(any));
  if (laneOf() == 0) s.all[warpOf()] = all, s.any[warpOf()] = any;
  upTo = blockSum<THREADS>(held, s.sums[0]);  // has a barrier
  for (uint32_t w = 0; w < THREADS / 32; w++) all &= s.all[w], any |= s.any[w];
  uint64_t value = all;
  uint32_t turn = 0;
  for (uint64_t left = any & ~all; left != 0;) {
    const uint64_t bit = 1ull << (63 - __clzll((long long)left));
    left &= ~bit;
    const uint64_t most = value | left;
    uint32_t count = 0;
#pragma unroll
    for (uint32_t i = 0; i < kHeld; i++) count += own[i] <= most;
    count = blockSum<THREADS>(count, s.sums[turn ^= 1]);
    if (count < wanted) {
      value |= bit;
      continue;
    }
    upTo = count;
    if (count == wanted) return most;
  }
  return value;
}

}  // namespace
#endif

}  // namespace geniemq
