// The sieve's product of float16s (near_sieve.cu) by groups of four warps, where a device has such products: capability 9.0.
//
// A group multiplies 64 objects by all queries of the block at once, 64 sums a lane. Tensor cores read the queries from shared memory, once for a group where each warp read
// them for itself, and each object is loaded once for a block, into the registers of one warp, four steps before it is wanted. A block of two groups needs no barrier in its
// loop, and two blocks a multiprocessor keep the tensor cores busy while some group is at the end of its objects.
//
// A group waits at the end of its objects for the slowest of its warps. Of few steps that comes too often, and warps alone are faster (profile.NearWaves.Grouped).
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
constexpr uint32_t kAhead = 3;                            // pairs of steps of an object in registers
static_assert(kWarps * kRows == kSieveObjects);

struct Halves {
  using Sum = float;
};

using Sums = float[kColumns][4];  // of rows lane / 4 and 8 further, of queries 2 (lane % 4) and the next of each column

// Queries of a block, 16 bytes of one in some step; nothing beyond the last query.
__device__ __forceinline__ uint4 pieceOf(const NearSieve& v, const NearPieces& pieces, uint32_t i) {
  const uint32_t q = i % kSieveQueries;
  if (q >= pieces.queries) return {0, 0, 0, 0};
  return __ldg(reinterpret_cast<const uint4*>(v.queries) + pieces.begin(v.steps * 2) + pieces.at(i / kSieveQueries, q));
}

// The objects of a warp, kSieveObjects from one to the next, and their sums.
struct Objects {
  const NearSieve& v;
  const uint64_t queries;  // the matrix of the first step
  const uint4* ahead;      // the pair of steps that is loaded next: of an object `left` ones are, and of so many objects
  uint32_t left, objects;
  uint4 a[kAhead][2] = {};  // pairs: the one that is multiplied, and those that come then
  uint32_t now = 0;
  float begins[2] = {};

  __device__ __forceinline__ Objects(const NearSieve& sieve, const uint8_t* memory, uint32_t object, uint32_t n)
      : v(sieve),
        queries(matrixOf(memory, kPieceBytes / 2, 128)),
        ahead(reinterpret_cast<const uint4*>(v.few) + size_t{object / kRows} * v.steps * kStep + laneOf()),
        left(v.steps),
        objects(n) {
    if (n == 0) return;
#pragma unroll
    for (uint32_t i = 0; i + 1 < kAhead; i++) load(a[i]);
    begin(object);
  }

  __device__ __forceinline__ void load(uint4 (&pair)[2]) {
    if (objects == 0) return;
    pair[0] = __ldg(ahead), pair[1] = __ldg(ahead + kStep);
    ahead += 2 * kStep;
    left -= 2;
    if (left > 0) return;
    ahead += size_t{kSieveObjects / kRows - 1} * v.steps * kStep;
    left = v.steps;
    objects--;
  }
  __device__ __forceinline__ void begin(uint32_t object) {
    const uint32_t* of = v.begins + object + laneOf() / 4;
    begins[0] = __uint_as_float(__ldg(of)), begins[1] = __uint_as_float(__ldg(of + 8));
  }

  // A pair of steps, while another one is loaded.
  __device__ __forceinline__ void multiply(Sums& sums, const uint4 (&own)[2], uint64_t step, uint4 (&next)[2]) {
    load(next);
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
    if (more) begin(object + kSieveObjects);
    uint64_t step = queries;
    static_assert(kAhead == 3);
#pragma unroll 1
    for (uint32_t done = 0; done < v.steps; done += 2) {
      switch (now) {
        case 0: multiply(sums, a[0], step, a[2]); break;
        case 1: multiply(sums, a[1], step, a[0]); break;
        default: multiply(sums, a[2], step, a[1]); break;
      }
      now = now == 2 ? 0 : now + 1;
      step += 2 * (kPieceBytes >> 4);
    }
  }
};

__device__ __forceinline__ uint32_t queryOf(uint32_t t, uint32_t i) { return t * 8 + laneOf() % 4 * 2 + i % 2; }

template <bool SAMPLE>
__device__ __forceinline__ void sieve(const NearSieve& v, uint8_t* memory, Asked<Halves>& asked) {
  const Near& n = v.near;
  const uint32_t first = n.firstQuery + blockIdx.x * kSieveQueries;
  const Stretch stretch = SAMPLE ? Stretch::ofSample(v) : Stretch(v);
  const uint32_t from = stretch.from, to = stretch.to;
  const Wanted wanted(v, first);
  const uint32_t behind = warpOf() % kGroup * kRows;  // the group's first object; what is beyond `to` is there, and not listed
  uint32_t object = from + warpOf() * kRows;
  Objects objects(v, memory, object, object - behind < to ? (to - (object - behind) + kSieveObjects - 1) / kSieveObjects : 0);
  const NearPieces pieces(first, n.queriesOfBatch);
  fill(reinterpret_cast<uint4*>(memory), v.steps * kPiece, [&](uint32_t i) { return pieceOf(v, pieces, i); });
  showProducts();
  if (!SAMPLE && threadIdx.x < kSieveQueries) {
    asked.floors[threadIdx.x] = wanted.any ? halvesFloorOf(v, wanted.limit, wanted.sieved, stretch.reach(v.reaches)) : __builtin_inff();
    asked.passing[threadIdx.x] = wanted.passing;
  }
  __syncthreads();
  const float2* const floors = reinterpret_cast<const float2*>(&asked.floors[queryOf(0, 0)]);
  Found<Halves> found(v, asked, to);
  for (; object - behind < to; object += kSieveObjects) {
    Sums sums;
    objects.add(sums, object, object - behind + kSieveObjects < to);
    if constexpr (SAMPLE) {
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) putSum(n, first + queryOf(t, i), object - from + i / 2 * 8 + laneOf() / 4, sums[t][i]);
      continue;
    }
    bool some[4] = {};  // apart, so that a comparison need not wait for the one before
#pragma unroll
    for (uint32_t t = 0; t < kColumns; t++) {
      const float2 floor = floors[t * 4];
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) some[i] |= !(sums[t][i] < (i % 2 == 0 ? floor.x : floor.y));
    }
    if (!__any_sync(~0u, some[0] | some[1] | some[2] | some[3])) continue;
    uint64_t passed = 0;
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
      uint32_t bits = 0;
#pragma unroll
      for (uint32_t bit = 0; bit < 32; bit++) {
        const uint32_t t = half * 8 + bit / 4, i = bit % 4;
        const float2 floor = floors[t * 4];
        bits |= !(sums[t][i] < (i % 2 == 0 ? floor.x : floor.y)) ? 1u << bit : 0u;
      }
      passed |= uint64_t{bits} << 32 * half;
    }
    found.keep(passed, [](uint32_t bit) { return queryOf(bit / 4, bit); }, [=](uint32_t bit) { return object + bit % 4 / 2 * 8 + laneOf() / 4; });
  }
  found.put(found.count);
}

#endif

}  // namespace

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GENIEMQ_NEAR_GROUPS(name, SAMPLE)                                                               \
  extern "C" __global__ void __launch_bounds__(kThreads, 2) name(const __grid_constant__ NearSieve v) { \
    extern __shared__ __align__(128) uint8_t memory[];                                                  \
    __shared__ Asked<Halves> asked;                                                                     \
    sieve<SAMPLE>(v, memory, asked);                                                                    \
  }
extern "C" __device__ const uint32_t near_groups_threads = kThreads;
#else
#define GENIEMQ_NEAR_GROUPS(name, SAMPLE) \
  extern "C" __global__ void __launch_bounds__(kThreads, 2) name(const __grid_constant__ NearSieve v) {}
extern "C" __device__ const uint32_t near_groups_threads = 0;  // there are no such products
#endif
GENIEMQ_NEAR_GROUPS(near_groups, false)
GENIEMQ_NEAR_GROUPS(near_groups_sample, true)
#undef GENIEMQ_NEAR_GROUPS

}  // namespace geniemq
