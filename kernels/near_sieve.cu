// The sieve's product: near_sieve.cuh says what lies where.
//
// A block owns kSieveQueries queries, whose float16s it keeps in shared memory as registers want them, and a stretch of objects. A warp takes 32 objects and 64
// queries at a time: 64 sums a lane. Objects come from global memory straight into registers, 16 bytes a lane; so there is no barrier in the loop, and
// warps that are at the end of their objects leave the tensor cores to others. For 32 elements a pair costs the tensor cores 1/16 clock of a multiprocessor
// and the comparison two instructions, about as much: so it has nothing but a fused product and a comparison.
#include "mma.cuh"
#include "near_sieve.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kWarps = 8;
constexpr uint32_t kThreads = 32 * kWarps;
constexpr uint32_t kRows = 2;     // of 16 objects, of a warp
constexpr uint32_t kColumns = 8;  // of 8 queries, of a warp
constexpr uint32_t kAcross = kSieveQueries / (8 * kColumns);  // warps that share objects
static_assert(kWarps / kAcross * 16 * kRows == kSieveObjects);

constexpr uint32_t kStepBytes = kSieveQueries * 32;  // of shared memory

// Adds terms of which each is right within 2^-51 of itself; the sum is no less than the truth.
__device__ __forceinline__ double sumUp(double a, double b, double c, double d) {
  return a + b + c + d + (fabs(a) + fabs(b) + fabs(c) + fabs(d)) * 0x1p-49;
}

// bound.L2: objects of a tile with N - 2A above it have values above that of `limit`. Of angles the value is made a squared chord first, which is 2 + 2v but for what
// metric.Slack allows.
__device__ float tauOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  const double dims = v.near.dims, least = v.near.norms != nullptr ? -1.0 : 0.0;
  if (limit < orderedOf(least)) return __int_as_float(0xff800000);  // nothing is wanted any more
  double t = valueOf(limit);
  if (v.near.norms != nullptr) t = fmax(0.0, 2 + 2 * t) + (dims / 2 + 32) * 0x1p-51;
  t = fmax(0.0, t) * v.scale;
  const double reach = __dsqrt_rn(t * (1 + (dims / 8 + 16) * 0x1p-51)) * (1 + 0x1p-51) + q.remainder + x.remainder, both = q.norm + x.norm;
  return __double2float_ru(sumUp(reach * reach, -q.square, 2 * v.gamma * q.norm * x.norm, 0x1p-22 * both * both));
}

// Puts an object on the list of a query, if it may be a hit. The count goes on when there is no room, which near_gate.cu sees.
__device__ __forceinline__ void list(const NearSieve& v, uint32_t q, uint32_t object) {
  if (q >= v.near.queriesOfBatch || object >= v.near.end || !mayHit(v.near, v.near.queries[q], object)) return;
  const uint32_t place = atomicAdd(&v.near.states[q].list, 1);
  if (place < v.near.listRoom) v.near.lists[size_t{q} * v.near.listRoom + place] = object;
}

// A step of the products of a warp.
template <bool FIRST>
__device__ __forceinline__ void multiply(float (&sums)[kRows][kColumns][4], const uint4* rows, const uint2* columns, uint32_t steps) {
  uint4 a[kRows];
#pragma unroll
  for (uint32_t r = 0; r < kRows; r++) a[r] = __ldg(rows + r * steps * 32);
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++) {
    const uint2 b = columns[t * 32];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) {
      if (FIRST)
        multiplyHalvesFirst(sums[r][t], a[r], b);
      else
        multiplyHalves(sums[r][t], a[r], b);
    }
  }
}

}  // namespace

// blockIdx.x counts blocks of queries, blockIdx.y stretches from that of the wave's first object on. Waves begin at whole kSieveObjects.
extern "C" __global__ void __launch_bounds__(kThreads, 2) near_sieve(const __grid_constant__ NearSieve v) {
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ float taus[kSieveQueries];
  uint2* const columns = reinterpret_cast<uint2*>(memory);  // [step][8 queries][lane]
  const Near& n = v.near;
  const uint32_t first = n.firstQuery + blockIdx.x * kSieveQueries;
  const uint32_t stretch = n.first / kSieveStretch + blockIdx.y;
  const uint32_t from = max(n.first, stretch * kSieveStretch), to = min(n.end, (stretch + 1) * kSieveStretch);
  const uint32_t lane = laneOf(), warp = warpOf();
  for (uint32_t i = threadIdx.x; i < v.steps * kSieveQueries * 4; i += kThreads) {
    const uint32_t step = i / (kSieveQueries * 4), q = first + i / 32 % (kSieveQueries / 8) * 8 + i % 32 / 4;
    uint2 b = {0, 0};
    if (q < n.queriesOfBatch) {
      const uint32_t* of = reinterpret_cast<const uint32_t*>(v.queries + (size_t{q} * v.steps + step) * 16) + i % 4;
      b = {__ldg(of), __ldg(of + 4)};
    }
    columns[i] = b;
  }
  if (threadIdx.x < kSieveQueries) {
    const uint32_t q = first + threadIdx.x;
    float tau = __int_as_float(0xff800000);
    if (q < n.queriesOfBatch && !n.states[q].given)
      tau = tauOf(v, n.queries[q].counts ? n.queries[q].most : n.states[q].limit, v.sieved[q], v.reaches[from / kTileObjects]);
    taus[threadIdx.x] = tau;
  }
  __syncthreads();
  const uint32_t column = warp % kAcross * kColumns;  // the warp's first, of 8 queries
  float tau[kColumns][2];
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++) tau[t][0] = taus[(column + t) * 8 + lane % 4 * 2], tau[t][1] = taus[(column + t) * 8 + lane % 4 * 2 + 1];
  for (uint32_t object = from + warp / kAcross * 16 * kRows; object < to; object += kSieveObjects) {
    float sums[kRows][kColumns][4];
    const uint4* rows = reinterpret_cast<const uint4*>(v.halves) + size_t{object / 16} * v.steps * 32 + lane;
    multiply<true>(sums, rows, columns + column * 32 + lane, v.steps);
#pragma unroll 2
    for (uint32_t step = 1; step < v.steps; step++) multiply<false>(sums, rows + step * 32, columns + (step * (kSieveQueries / 8) + column) * 32 + lane, v.steps);
    float squares[kRows][2];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) squares[r][0] = __ldg(v.squares + object + r * 16 + lane / 4), squares[r][1] = __ldg(v.squares + object + r * 16 + 8 + lane / 4);
    bool some = false;
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) some |= !(fmaf(-2, sums[r][t][i], squares[r][i / 2]) > tau[t][i % 2]);
    if (!__any_sync(~0u, some)) continue;
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
          if (!(fmaf(-2, sums[r][t][i], squares[r][i / 2]) > tau[t][i % 2]))
            list(v, first + (column + t) * 8 + lane % 4 * 2 + i % 2, object + r * 16 + lane / 4 + i / 2 * 8);
    __syncwarp();  // the next products want the warp together
  }
}

extern "C" __device__ const uint32_t near_sieve_threads = kThreads, near_sieve_step_bytes = kStepBytes, near_sieve_static = sizeof(float) * kSieveQueries;

}  // namespace geniemq
