// The sieve's product of float16s (near_sieve.cu) by groups of four warps, where a device has such products: capability 9.0.
//
// A group multiplies 64 objects by all queries of the block at once, 64 sums a lane. Tensor cores read the queries from shared memory, once for a group where each warp read
// them for itself, and each object is loaded once for a block, into the registers of one warp, two steps before it is wanted. A block of two groups needs no barrier in its
// loop, and two blocks a multiprocessor keep the tensor cores busy while some group is at the end of its objects.
//
// It is off until it is measured on a device (profile.Paths.Groups).
#include "mma.cuh"
#include "near_product.cuh"

namespace geniemq {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr uint32_t kGroup = 4;                            // warps
constexpr uint32_t kRows = 16;                            // objects of a warp
constexpr uint32_t kColumns = kSieveQueries / 8;
constexpr uint32_t kPiece = 2 * kSieveQueries;            // uint4s of queries in a step: [half of its elements][query]
constexpr uint32_t kPieceBytes = kPiece * sizeof(uint4);  // near_sieve_halves_step_bytes, as what lies beside them is near_sieve_static
constexpr uint32_t kStep = 32;                            // uint4s from an object's step to the next
static_assert(kWarps * kRows == kSieveObjects);

struct Halves {
  using Sum = float;
};

using Sums = float[kColumns][4];  // of rows lane / 4 and 8 further, of queries 2 (lane % 4) and the next of each column

// Queries of a block, 16 bytes of one in some step; nothing beyond the last query.
__device__ __forceinline__ uint4 pieceOf(const NearSieve& v, uint32_t first, uint32_t i) {
  const uint32_t q = first + i % kSieveQueries;
  if (q >= v.near.queriesOfBatch) return {0, 0, 0, 0};
  const uint2* of = reinterpret_cast<const uint2*>(v.queries + size_t{q} * v.steps * 8 + i / kSieveQueries * 4);
  const uint2 a = __ldg(of), b = __ldg(of + 1);
  return {a.x, a.y, b.x, b.y};
}

// The objects of a warp, kSieveObjects from one to the next, and their sums.
struct Objects {
  const NearSieve& v;
  const uint64_t queries;  // the matrix of the first step
  const uint4* at;
  uint4 a[2][2] = {};  // of two steps each: those that are multiplied, and those that come then
  uint32_t now = 0;
  float begins[2] = {};

  __device__ __forceinline__ Objects(const NearSieve& sieve, const uint8_t* memory, uint32_t object, bool any)
      : v(sieve), queries(matrixOf(memory, kPieceBytes / 2, 128)), at(reinterpret_cast<const uint4*>(v.few) + size_t{object / kRows} * v.steps * kStep + laneOf()) {
    if (!any) return;
    load(a[0], at);
    begin(object);
  }

  static __device__ __forceinline__ void load(uint4 (&a)[2], const uint4* from) { a[0] = __ldg(from), a[1] = __ldg(from + kStep); }
  __device__ __forceinline__ void begin(uint32_t object) {
    const uint32_t* of = v.begins + object + laneOf() / 4;
    begins[0] = __uint_as_float(__ldg(of)), begins[1] = __uint_as_float(__ldg(of + 8));
  }

  // Two steps, while the next ones are loaded.
  static __device__ __forceinline__ void multiply(Sums& sums, const uint4 (&own)[2], uint64_t step, uint4 (&next)[2], const uint4* from) {
    load(next, from);
    beginProducts();
    multiplyHalves(sums, own[0], step);
    multiplyHalves(sums, own[1], step + (kPieceBytes >> 4));
    commitProducts();
    awaitProducts<0>();  // in the turn of the loop in which they began, see bound_match.cu
  }

  // The sums of those from an object on; more: others follow.
  __device__ __forceinline__ void add(Sums& sums, uint32_t object, bool more) {
#pragma unroll
    for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) sums[t][i] = begins[i / 2];
    const uint4* const after = more ? at + size_t{kSieveObjects / kRows} * v.steps * kStep : at;
    if (more) begin(object + kSieveObjects);
    uint64_t step = queries;
#pragma unroll 1
    for (uint32_t left = v.steps; left > 0; left -= 2) {
      at += 2 * kStep;
      const uint4* const from = left > 2 ? at : after;
      if (now == 0)
        multiply(sums, a[0], step, a[1], from);
      else
        multiply(sums, a[1], step, a[0], from);
      now ^= 1;
      step += 2 * (kPieceBytes >> 4);
    }
    at = after;
  }
};

__device__ __forceinline__ uint32_t queryOf(uint32_t t, uint32_t i) { return t * 8 + laneOf() % 4 * 2 + i % 2; }

__device__ __forceinline__ void sieve(const NearSieve& v, uint8_t* memory, Asked<Halves>& asked) {
  const Near& n = v.near;
  const uint32_t first = n.firstQuery + blockIdx.x * kSieveQueries;
  const uint32_t stretch = n.first / v.stretch + blockIdx.y;
  const uint32_t from = max(n.first, stretch * v.stretch), to = min(n.end, (stretch + 1) * v.stretch);
  const uint32_t behind = warpOf() % kGroup * kRows;  // the group's first object; what is beyond `to` is there, and not listed
  uint32_t object = from + warpOf() * kRows;
  Objects objects(v, memory, object, object - behind < to);
  for (uint32_t i = threadIdx.x; i < v.steps * kPiece; i += kThreads) reinterpret_cast<uint4*>(memory)[i] = pieceOf(v, first, i);
  showProducts();
  if (threadIdx.x < kSieveQueries) {
    const uint32_t q = first + threadIdx.x;
    float floor = __builtin_inff();
    uint32_t passing = kNoFilter;
    if (q < n.queriesOfBatch && !n.states[q].given) {
      floor = halvesFloorOf(v, n.queries[q].counts ? n.queries[q].most : n.states[q].limit, v.sieved[q], v.reaches[from / kTileObjects]);
      passing = n.queries[q].passing;
    }
    asked.floors[threadIdx.x] = floor, asked.passing[threadIdx.x] = passing;
  }
  __syncthreads();
  float floors[kColumns][2];
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++) floors[t][0] = asked.floors[queryOf(t, 0)], floors[t][1] = asked.floors[queryOf(t, 1)];
  for (; object - behind < to; object += kSieveObjects) {
    Sums sums;
    objects.add(sums, object, object - behind + kSieveObjects < to);
    bool some[4] = {};  // apart, so that a comparison need not wait for the one before
#pragma unroll
    for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) some[i] |= !(sums[t][i] < floors[t][i % 2]);
    if (!__any_sync(~0u, some[0] | some[1] | some[2] | some[3])) continue;
    uint64_t passed = 0;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
      uint32_t bits = 0;
#pragma unroll
      for (uint32_t bit = 0; bit < 32; bit++) {
        const uint32_t t = half * 8 + bit / 4, i = bit % 4;
        bits |= !(sums[t][i] < floors[t][i % 2]) ? 1u << bit : 0u;
      }
      passed |= uint64_t{bits} << 32 * half;
    }
    for (; passed != 0; passed &= passed - 1) {
      const uint32_t bit = __ffsll((long long)passed) - 1, q = queryOf(bit / 4, bit);
      list(v, first + q, asked.passing[q], object + bit % 4 / 2 * 8 + laneOf() / 4);
    }
    __syncwarp();  // the next products want the warp together
  }
}

#endif

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads, 2) near_groups(const __grid_constant__ NearSieve v) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ Asked<Halves> asked;
  sieve(v, memory, asked);
#endif
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __device__ const uint32_t near_groups_threads = kThreads;
#else
extern "C" __device__ const uint32_t near_groups_threads = 0;  // there are no such products
#endif

}  // namespace geniemq
