// The sieve's product: near_sieve.cuh says what lies where.
//
// A block owns kSieveQueries queries, whose float16s it keeps in shared memory as registers want them, and a stretch of objects. A warp takes 32 objects and 64
// queries at a time: 64 sums a lane. Objects come from global memory straight into registers, 16 bytes a lane, two steps before they are wanted; so there is no
// barrier in the loop, and warps that are at the end of their objects leave the tensor cores to others. For 32 elements a pair costs the tensor cores 1/16 clock of
// a multiprocessor, so little else may be done with it: a sum begins with what is known of the object, and is compared.
//
// What passes is rare, but of the first waves; there it is what takes the time. So a lane first collects what passes of its sums, and then all lanes put theirs
// on lists at once.
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

constexpr uint32_t kStepWords = kSieveQueries * 4;  // pairs of registers in shared memory
constexpr uint32_t kStepBytes = kStepWords * sizeof(uint2);

// What is known of the queries of a block.
struct Asked {
  float floors[kSieveQueries];
  uint32_t passing[kSieveQueries];
};

// Adds terms of which each is right within 2^-51 of itself; the sum is no less than the truth.
__device__ __forceinline__ double sumUp(double a, double b, double c, double d) {
  return a + b + c + d + (fabs(a) + fabs(b) + fabs(c) + fabs(d)) * 0x1p-49;
}

// bound.L2: objects of a tile of which the sum is below it, which is -tau/2, have values above that of `limit`. Of angles the value is made a squared chord first, which is
// 2 + 2v but for what metric.Slack allows.
__device__ float floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  const double dims = v.near.dims, least = v.near.norms != nullptr ? -1.0 : 0.0;
  if (limit < orderedOf(least)) return __int_as_float(0x7f800000);  // nothing is wanted any more
  double t = valueOf(limit);
  if (v.near.norms != nullptr) t = fmax(0.0, 2 + 2 * t) + (dims / 2 + 32) * 0x1p-51;
  t = fmax(0.0, t) * v.scale;
  const double reach = __dsqrt_rn(t * (1 + (dims / 8 + 16) * 0x1p-51)) * (1 + 0x1p-51) + q.remainder + x.remainder, both = q.norm + x.norm;
  return -0.5f * __double2float_ru(sumUp(reach * reach, -q.square, 2 * v.gamma * q.norm * x.norm, 0x1p-22 * both * both));
}

// Puts an object on the list of a query, if it may be a hit. The count goes on when there is no room, which near_gate.cu sees.
__device__ __forceinline__ void list(const NearSieve& v, uint32_t q, uint32_t passing, uint32_t object) {
  const Near& n = v.near;
  if (q >= n.queriesOfBatch || object >= n.end || n.present != nullptr && !hasBit(n.present, object)) return;
  if (passing != kNoFilter && !hasBit(n.sets + size_t{passing} * n.passingWords, object)) return;
  const uint32_t place = atomicAdd(&n.states[q].list, 1);
  if (place < n.listRoom) n.lists[size_t{q} * n.listRoom + place] = object;
}

// A step of the products of a warp; the first one begins with something.
template <bool FIRST>
__device__ __forceinline__ void multiply(float (&sums)[kRows][kColumns][4], const uint4 (&a)[kRows], const uint2* columns, const float (&begin)[kRows][4]) {
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++) {
    const uint2 b = columns[t * 32];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) {
      if (FIRST)
        multiplyHalvesFrom(sums[r][t], a[r], b, begin[r]);
      else
        multiplyHalves(sums[r][t], a[r], b);
    }
  }
}

// A step of a warp's objects.
__device__ __forceinline__ void fetch(uint4 (&a)[kRows], const uint4* rows, uint32_t steps) {
#pragma unroll
  for (uint32_t r = 0; r < kRows; r++) a[r] = __ldg(rows + r * steps * 32);
}

__device__ __forceinline__ void fetch(float (&squares)[kRows][2], const float* of) {
#pragma unroll
  for (uint32_t r = 0; r < kRows; r++) squares[r][0] = __ldg(of + r * 16), squares[r][1] = __ldg(of + r * 16 + 8);
}

}  // namespace

// blockIdx.x counts blocks of queries, blockIdx.y stretches from that of the wave's first object on. Waves begin at whole kSieveObjects.
extern "C" __global__ void __launch_bounds__(kThreads, 2) near_sieve(const __grid_constant__ NearSieve v) {
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ Asked asked;
  uint2* const columns = reinterpret_cast<uint2*>(memory);  // [step][8 queries][lane]
  const Near& n = v.near;
  const uint32_t first = n.firstQuery + blockIdx.x * kSieveQueries;
  const uint32_t stretch = n.first / v.stretch + blockIdx.y;
  const uint32_t from = max(n.first, stretch * v.stretch), to = min(n.end, (stretch + 1) * v.stretch);
  const uint32_t lane = laneOf(), warp = warpOf();
  uint32_t object = from + warp / kAcross * 16 * kRows;
  const uint4* rows = reinterpret_cast<const uint4*>(v.halves) + size_t{object / 16} * v.steps * 32 + lane;
  uint4 a[2][kRows] = {};
  float squares[kRows][2] = {};
  if (object < to) {
    fetch(a[0], rows, v.steps);
    fetch(a[1], rows + 32, v.steps);
    fetch(squares, v.squares + object + lane / 4);
  }
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
    float floor = __int_as_float(0x7f800000);
    uint32_t passing = kNoFilter;
    if (q < n.queriesOfBatch && !n.states[q].given) {
      floor = floorOf(v, n.queries[q].counts ? n.queries[q].most : n.states[q].limit, v.sieved[q], v.reaches[from / kTileObjects]);
      passing = n.queries[q].passing;
    }
    asked.floors[threadIdx.x] = floor, asked.passing[threadIdx.x] = passing;
  }
  __syncthreads();
  const uint32_t column = warp % kAcross * kColumns;  // the warp's first, of 8 queries
  const uint2* const own = columns + column * 32 + lane;
  float floors[kColumns][2];
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++) floors[t][0] = asked.floors[(column + t) * 8 + lane % 4 * 2], floors[t][1] = asked.floors[(column + t) * 8 + lane % 4 * 2 + 1];
  for (; object < to; object += kSieveObjects) {
    const bool more = object + kSieveObjects < to;
    const uint4* const next = more ? rows + size_t{kSieveObjects / 16} * v.steps * 32 : rows;
    float sums[kRows][kColumns][4], begin[kRows][4];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) begin[r][i] = squares[r][i / 2];
    if (more) fetch(squares, v.squares + object + kSieveObjects + lane / 4);
    multiply<true>(sums, a[0], own, begin);
    fetch(a[0], v.steps > 2 ? rows + 64 : next, v.steps);
    multiply<false>(sums, a[1], own + kStepWords, begin);
    fetch(a[1], v.steps > 2 ? rows + 96 : next + 32, v.steps);
#pragma unroll 1
    for (uint32_t step = 2; step < v.steps; step += 2) {
      const uint4* const after = step + 2 < v.steps ? rows + (step + 2) * 32 : next;
      multiply<false>(sums, a[0], own + step * kStepWords, begin);
      fetch(a[0], after, v.steps);
      multiply<false>(sums, a[1], own + (step + 1) * kStepWords, begin);
      fetch(a[1], after + 32, v.steps);
    }
    rows = next;
    bool some[4] = {};  // apart, so that a comparison need not wait for the one before
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) some[i] |= !(sums[r][t][i] < floors[t][i % 2]);
    if (!__any_sync(~0u, some[0] | some[1] | some[2] | some[3])) continue;
    uint64_t passed = 0;
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) {
      uint32_t bits = 0;
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) bits |= !(sums[r][t][i] < floors[t][i % 2]) ? 1u << (t * 4 + i) : 0u;
      passed |= uint64_t{bits} << 32 * r;
    }
    for (; passed != 0; passed &= passed - 1) {
      const uint32_t bit = __ffsll((long long)passed) - 1, q = (column + bit % 32 / 4) * 8 + lane % 4 * 2 + bit % 2;
      list(v, first + q, asked.passing[q], object + bit / 32 * 16 + bit / 2 % 2 * 8 + lane / 4);
    }
    __syncwarp();  // the next products want the warp together
  }
}

extern "C" __device__ const uint32_t near_sieve_threads = kThreads, near_sieve_step_bytes = kStepBytes, near_sieve_static = sizeof(Asked);

}  // namespace geniemq
