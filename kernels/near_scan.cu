// Searches by distance, exactly: every object of a wave against every query.
//
// A block owns kObjects objects, a thread each, and kQueries queries. Elements go through shared memory in pieces of kPiece, as float64s: so rows are read
// as they lie in the file, each element is widened once for all queries, and a thread adds up kQueries values at once, in kNearTerms partial sums each,
// which stay in registers. What binds it is the rate of float64s: three operations for an element of l2, two for l1.
#include "near.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kObjects = 128;
constexpr uint32_t kQueries = 8;
constexpr uint32_t kPiece = 32;
constexpr uint32_t kThreads = kObjects;
constexpr uint32_t kWarps = kThreads / 32;
constexpr uint32_t kLoads = 16;  // of elements, that a thread has in flight
static_assert(kObjects % (kWarps * kLoads) == 0);
static_assert(kPiece % kNearTerms == 0 && kPiece <= 32);

struct Shared {
  NearQuery asked[kQueries];
  uint64_t limits[kQueries];
  double objects[kPiece][kObjects + 1];  // so that a warp that writes a row writes to other banks
  double queries[kPiece][kQueries];
};

// Loads elements first .. of all objects and queries, zeros where there are none, and returns how many, whole groups of kNearTerms.
__device__ uint32_t load(const Near& n, Shared& s, uint32_t first, uint32_t object, uint32_t objects, uint32_t query, uint32_t queries) {
  const uint32_t width = min(kPiece, n.dims - first), padded = (width + kNearTerms - 1) / kNearTerms * kNearTerms;
  const uint32_t e = laneOf();
  if (e < padded) {
    for (uint32_t row = warpOf(); row < kObjects; row += kWarps * kLoads) {
      double x[kLoads];
      size_t at[kLoads];
      bool there[kLoads];
#pragma unroll
      for (uint32_t i = 0; i < kLoads; i++) {
        const uint32_t r = row + i * kWarps;
        at[i] = size_t{object + r} * n.dims + first + e, there[i] = r < objects && e < width;
      }
      elementsOf(x, n.rows, n.storage, at, there);
#pragma unroll
      for (uint32_t i = 0; i < kLoads; i++) s.objects[e][row + i * kWarps] = x[i];
    }
    for (uint32_t q = warpOf(); q < kQueries; q += kWarps)
      s.queries[e][q] = q < queries && e < width ? __ldg(n.vectors + size_t{query + q} * n.dims + first + e) : 0.0;
  }
  return padded;
}

template <class Terms>
__device__ __forceinline__ void scan(const Near& n, Shared& s) {
  const uint32_t query = n.firstQuery + blockIdx.x * kQueries, queries = min(kQueries, n.queriesOfBatch - query);
  const uint32_t object = n.first + blockIdx.y * kObjects, objects = min(kObjects, n.end - object);
  if (threadIdx.x < queries) s.asked[threadIdx.x] = n.queries[query + threadIdx.x], s.limits[threadIdx.x] = n.states[query + threadIdx.x].limit;
  double sums[kQueries][kNearTerms] = {};
  for (uint32_t first = 0; first < n.dims; first += kPiece) {
    __syncthreads();
    const uint32_t width = load(n, s, first, object, objects, query, queries);
    __syncthreads();
    for (uint32_t e = 0; e < width; e += kNearTerms) {
#pragma unroll
      for (uint32_t j = 0; j < kNearTerms; j++) {
        const double o = s.objects[e + j][threadIdx.x];
#pragma unroll
        for (uint32_t q = 0; q < kQueries; q++) Terms::add(sums[q][j], s.queries[e + j][q], o, n.power);
      }
    }
  }
  const uint32_t own = object + threadIdx.x;
  const bool real = threadIdx.x < objects;
  // A lane has the counters of one query: so a warp waits once for all of them.
  uint64_t values[kQueries];
  uint32_t counted = 0, stayed = 0, within = 0, candidates = 0;  // by lane: of its query; by query: a bit
#pragma unroll
  for (uint32_t q = 0; q < kQueries; q++) {
    if (q >= queries) break;
    const double(&t)[kNearTerms] = sums[q];
    const double sum = Terms::both(Terms::both(Terms::both(t[0], t[1]), Terms::both(t[2], t[3])), Terms::both(Terms::both(t[4], t[5]), Terms::both(t[6], t[7])));
    const NearQuery& of = s.asked[q];
    const uint64_t limit = s.limits[q], value = real ? orderedOf(finished(n, of, sum, own)) : ~0ull;
    const bool in = real && value <= (of.counts ? of.most : limit) && mayHit(n, of, own), candidate = in && value <= limit && of.k > 0;
    const uint32_t all = __ballot_sync(~0u, in), stay = __ballot_sync(~0u, candidate);
    if (laneOf() == q) counted = __popc(all), stayed = __popc(stay);
    within |= all != 0 ? 1u << q : 0, candidates |= candidate ? 1u << q : 0;
    values[q] = value;
  }
  if (within == 0) return;
  uint32_t places = 0;
  if (laneOf() < queries) {
    NearState& state = n.states[query + laneOf()];
    if (counted != 0 && s.asked[laneOf()].counts) atomicAdd(reinterpret_cast<unsigned long long*>(&state.within), (unsigned long long)counted);
    if (stayed != 0) places = atomicAdd(&state.stored, stayed);
  }
#pragma unroll
  for (uint32_t q = 0; q < kQueries; q++) {
    const uint32_t stay = __ballot_sync(~0u, candidates >> q & 1);
    const uint32_t place = __shfl_sync(~0u, places, q) + __popc(stay & ((1u << laneOf()) - 1));
    if (candidates >> q & 1) n.entries[s.asked[q].entries + place] = {values[q], own + n.base, 0};
  }
}

// Powers whose exponent the compiler knows: a loop for each element would wait for each of its products.
template <uint32_t P>
struct PowersOf : NearPowers {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) { NearPowers::add(s, q, o, P); }
};

}  // namespace

// blockIdx.x counts blocks of queries, blockIdx.y those of objects.
#define GENIEMQ_NEAR_SCAN(name, Terms) \
  extern "C" __global__ void __launch_bounds__(kThreads, 3) name(const Near n) { \
    __shared__ Shared s;                                                             \
    scan<Terms>(n, s);                                                               \
  }
GENIEMQ_NEAR_SCAN(near_squares, NearSquares)
GENIEMQ_NEAR_SCAN(near_differences, NearDifferences)
GENIEMQ_NEAR_SCAN(near_dots, NearDots)
GENIEMQ_NEAR_SCAN(near_products, NearProducts)
GENIEMQ_NEAR_SCAN(near_largest, NearLargest)
GENIEMQ_NEAR_SCAN(near_unequal, NearUnequal)
#undef GENIEMQ_NEAR_SCAN

extern "C" __global__ void __launch_bounds__(kThreads, 2) near_powers(const Near n) {
  __shared__ Shared s;
  switch (n.power) {
    case 3: return scan<PowersOf<3>>(n, s);
    case 4: return scan<PowersOf<4>>(n, s);
    case 5: return scan<PowersOf<5>>(n, s);
    case 6: return scan<PowersOf<6>>(n, s);
    case 7: return scan<PowersOf<7>>(n, s);
    case 8: return scan<PowersOf<8>>(n, s);
  }
  scan<NearPowers>(n, s);
}

extern "C" __device__ const uint32_t near_scan_threads = kThreads, near_scan_objects = kObjects, near_scan_queries = kQueries;

}  // namespace geniemq
