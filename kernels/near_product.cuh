// What products of the sieve (near_sieve.cuh) have in common: what is known of queries, floors of float16s and bytes, and lists.
#pragma once
#include "near_sieve.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kWarps = 8;
constexpr uint32_t kThreads = 32 * kWarps;

constexpr uint32_t kFound = 64;  // pairs of a warp

// What is known of the queries of a block, and what its warps have found.
template <class Product>
struct alignas(8) Asked {
  typename Product::Sum floors[kSieveQueries];
  uint32_t passing[kSieveQueries];
  uint32_t found[kWarps][kFound];
};

// The objects that a block goes through: blockIdx.y counts stretches from the wave's first object on, which is the first of kSieveObjects.
struct Stretch {
  uint32_t from, to;
  __device__ __forceinline__ Stretch(uint32_t first, uint32_t end) : from(first), to(end) {}
  __device__ __forceinline__ explicit Stretch(const NearSieve& v) : Stretch(v.near.first + blockIdx.y * v.stretch, min(v.near.end, v.near.first + (blockIdx.y + 1) * v.stretch)) {}

  // Of a sample: kSieveObjects of a block, all of which are there, so far apart.
  static __device__ __forceinline__ Stretch ofSample(const NearSieve& v) { return {blockIdx.y * v.stretch, blockIdx.y * v.stretch + kSieveObjects}; }

  // What is known of its objects, which lie in two tiles at most.
  __device__ __forceinline__ NearReach reach(const NearReach* reaches) const {
    const NearReach a = reaches[from / kTileObjects], b = reaches[(to - 1) / kTileObjects];
    return {fmax(a.norm, b.norm), fmax(a.remainder, b.remainder)};
  }
};

// What is known of one of the block's queries. It is loaded before other things are, so that a block waits for both together.
struct Wanted {
  bool any = false;
  uint32_t passing = kNoFilter;
  uint64_t limit = 0;
  NearSieved sieved = {};

  __device__ __forceinline__ Wanted(const NearSieve& v, uint32_t first) {
    const Near& n = v.near;
    const uint32_t q = first + threadIdx.x;
    if (threadIdx.x >= kSieveQueries || q >= n.queriesOfBatch) return;
    const uint64_t most = n.queries[q].most, now = n.states[q].limit;
    const bool counts = n.queries[q].counts;
    any = !n.states[q].given, passing = n.queries[q].passing, sieved = v.sieved[q];
    limit = counts ? most : now;
  }
};

// Fills shared memory of the block, which calls it together; several of a thread's loads are on their way at a time.
template <uint32_t THREADS = kThreads, class T, class Of>
__device__ __forceinline__ void fill(T* to, uint32_t n, Of of) {
  constexpr uint32_t kTogether = 8;
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < n; i += kTogether * THREADS) {
    T some[kTogether];
#pragma unroll
    for (uint32_t j = 0; j < kTogether; j++)
      if (i + j * THREADS < n) some[j] = of(i + j * THREADS);
#pragma unroll
    for (uint32_t j = 0; j < kTogether; j++)
      if (i + j * THREADS < n) to[i + j * THREADS] = some[j];
  }
}

// Adds terms of which each is right within 2^-51 of itself; the sum is no less than the truth.
__device__ __forceinline__ double sumUp(double a, double b, double c, double d) {
  return a + b + c + d + (fabs(a) + fabs(b) + fabs(c) + fabs(d)) * 0x1p-49;
}

// What a product of float16s is of.
struct Halved {
  const uint32_t dims;
  const bool angles;
  const double scale, gamma;
};

// bound.L2: objects of a tile of which the sum is below it, which is -tau/2, have values above that of `limit`. Of angles the value is made a squared chord first, which is
// 2 + 2v but for what metric.Slack allows.
__device__ __forceinline__ float halvesFloorOf(const Halved& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  const double dims = v.dims, least = v.angles ? -1.0 : 0.0;
  if (limit < orderedOf(least)) return __int_as_float(0x7f800000);  // nothing is wanted any more
  double t = valueOf(limit);
  if (v.angles) t = fmax(0.0, 2 + 2 * t) + (dims / 2 + 32) * 0x1p-51;
  t = fmax(0.0, t) * v.scale;
  const double reach = __dsqrt_rn(t * (1 + (dims / 8 + 16) * 0x1p-51)) * (1 + 0x1p-51) + q.remainder + x.remainder, both = q.norm + x.norm;
  return -0.5f * __double2float_ru(sumUp(reach * reach, -q.square, 2 * v.gamma * q.norm * x.norm, 0x1p-22 * both * both));
}
__device__ float halvesFloorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  return halvesFloorOf(Halved{v.near.dims, v.near.norms != nullptr, v.scale, v.gamma}, limit, q, x);
}

// bound.Dot: objects of a tile of which the sum is below it, which is -tau, have values above that of `limit`. Values are wrong by what metric.Slack says of dots.
__device__ float productsFloorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  if (limit < orderedOf(__longlong_as_double(0xfff0000000000000ll))) return __int_as_float(0x7f800000);  // nothing is wanted any more
  const double t = valueOf(limit) * v.scale, of = q.norm + q.remainder, wrong = (double(v.near.dims) / 8 + 16) * 0x1p-51 * of * (x.norm + x.remainder);
  return -__double2float_ru(sumUp(t, of * x.remainder, q.remainder * x.norm, (v.gamma + 0x1p-22) * q.norm * x.norm + wrong));
}

// The same of bytes, where objects of which the sum is above it have values above that of `limit`: these are right but for (dims/8 + 5) 2^-53 of themselves.
__device__ int bytesFloorOf(const NearSieve& v, uint64_t limit, const NearSieved& q) {
  if (limit < orderedOf(0.0)) return -2 * kSieveNever;
  const double reach = fmax(0.0, valueOf(limit)) * v.scale * (1 + (double(v.near.dims) / 8 + 16) * 0x1p-51) + q.remainder;
  return __double2int_rd(fmin(reach * (1 + 0x1p-50), double(kSieveMost)));
}

// c and the absolute differences of four bytes.
__device__ __forceinline__ int differ(uint32_t a, uint32_t b, int c) {
  uint32_t d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return int(d);
}

// Puts an object on the list of a query, if it may be a hit. The count goes on when there is no room, which near_gate.cu sees.
__device__ __forceinline__ void list(const NearSieve& v, uint32_t q, uint32_t passing, uint32_t object) {
  const Near& n = v.near;
  if (q >= n.queriesOfBatch || object >= n.end || !passes(n, passing, object)) return;
  const uint32_t place = atomicAdd(&n.states[q].list, 1);
  if (place < n.listRoom) n.lists[size_t{q} * n.listRoom + place] = object;
}

// Puts a sum of a sample, of an object of the block, where the query's list will be (near_gate.cu).
__device__ __forceinline__ void putSum(const Near& n, uint32_t q, uint32_t object, float sum) {
  if (q < n.queriesOfBatch) n.lists[size_t{q} * n.listRoom + blockIdx.y * kSieveObjects + object] = __float_as_uint(sum);
}

// What a warp has found and not put on lists: objects that may be hits, with a query of the block each. It puts 32 of them there at once, one a lane: so it waits for memory once
// for them, and with it what waits for the warp. Between calls there are fewer than 32, and all lanes call together.
template <class Product>
struct Found {
  const NearSieve& v;
  Asked<Product>& asked;
  const uint32_t end;  // no object is beyond it, nor far before
  uint32_t count = 0;

  __device__ __forceinline__ Found(const NearSieve& sieve, Asked<Product>& of, uint32_t to) : v(sieve), asked(of), end(to + kSieveObjects) {}

  // Keeps what a lane has found: by the number of a bit the query, and the object.
  template <class QueryOf, class ObjectOf>
  __device__ __forceinline__ void keep(uint64_t passed, QueryOf queryOf, ObjectOf objectOf) {
    uint32_t* const own = asked.found[warpOf()];
    for (uint32_t lanes; (lanes = __ballot_sync(~0u, passed != 0)) != 0;) {
      if (passed != 0) {
        const uint32_t bit = __ffsll((long long)passed) - 1;
        passed &= passed - 1;
        own[count + __popc(lanes & ((1u << laneOf()) - 1))] = objectOf(bit) * kSieveQueries + queryOf(bit);  // the object's lower bits
      }
      count += __popc(lanes);
      if (count < 32) continue;
      put(32);
      count -= 32;
      if (laneOf() < count) own[laneOf()] = own[32 + laneOf()];
      __syncwarp();  // before others are written there
    }
    __syncwarp();  // the next products want the warp together
  }

  __device__ __forceinline__ void put(uint32_t n) const {
    __syncwarp();  // what other lanes have written
    if (laneOf() < n) {
      const uint32_t one = asked.found[warpOf()][laneOf()], q = one % kSieveQueries;
      constexpr uint32_t kObjects = ~0u / kSieveQueries;
      list(v, v.near.firstQuery + blockIdx.x * kSieveQueries + q, asked.passing[q], end - (end - one / kSieveQueries & kObjects));
    }
    __syncwarp();  // before they are written again
  }
};

static_assert(kFound == 64 && kTileObjects + kSieveObjects < ~0u / kSieveQueries);

}  // namespace
}  // namespace geniemq
