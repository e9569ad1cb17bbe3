// Searches by cells (index/metric/cells): objects lie in cells, each around a centroid, and a query compares those of the cells whose centroids are nearest to it.
//
// Centroids are a column like any other (near_scan.cu), and the nearest are what a search of it has found. Here the objects of their cells are compared: first those of the nearest cell,
// whose k-th value drops most of the others. A query whose centroids the sieve has given up is given up here too.
//
// Rows, and norms, lie here once more, in the order of cells: those of a cell are read one after the other. By the order of objects each is in another page, and that takes five times
// as long as reading it.
//
// A query has some warps of a block, one to kWarps, each with hits of its own: `share` of them where queries are few. They take objects of a cell in turns, and tell each other the
// least k-th value. Then the first of them is offered what the others have. So of a batch of any size all warps of the device are busy, and a list of objects is never written.
#include "near_hits.cuh"

namespace geniemq {

struct NearCelled {
  Near near;                 // of the column, with rows and norms by place
  const NearQuery* queries;  // of the centroids
  const NearState* states;
  const NearEntry* entries;
  const uint32_t* starts;    // by cell and one more: its first place
  const uint32_t* order;     // by place: the object
  uint32_t share, unused;    // warps of a query: 1, 2 or 4
};

// Rows and norms, and where they go by place. norms: null where there are none.
struct NearOrder {
  const uint8_t* rows;
  const double* norms;
  const uint32_t* order;
  uint8_t* rowsTo;
  double* normsTo;
  uint32_t places, bytes;  // of a row
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearCelled) == 168 && sizeof(NearOrder) == 48);

namespace {

constexpr uint32_t kWarps = 4;                      // of a block
constexpr uint32_t kBlocks = 4;                     // that a multiprocessor has registers for
constexpr uint32_t kGroups = 32 / kNearTerms;       // of eight lanes, each with one of the partial sums of an object
constexpr uint32_t kObjects = 4;                    // that a group compares together, so that it waits once for all
constexpr uint32_t kElements = 4;                   // of each of these that a lane has at once
constexpr uint32_t kTogether = kGroups * kObjects;  // objects of a warp
static_assert(kObjects <= kNearTerms);

struct Shared {
  WarpHits hits[kWarps];
  uint32_t found[kWarps];
  unsigned long long limits[kWarps];  // by the first warp of a query: what no object beyond is a hit
};

template <class Terms>
struct Visit {
  const NearCelled& v;
  const uint32_t q, own, share;  // the query; this warp of so many
  const NearQuery query;
  Kept kept;
  volatile unsigned long long& limit;
  uint64_t compared = 0;

  __device__ Visit(const NearCelled& c, uint32_t at, uint32_t warp, Shared& s)
      : v(c), q(at), own(warp % c.share), share(c.share), query(c.near.queries[at]), kept(s.hits[warp], query.k), limit(s.limits[warp - own]) {}

  // The values of the objects at some places with a query, of object j of a group in all its lanes.
  __device__ __forceinline__ void values(double (&sum)[kObjects], const uint32_t (&place)[kObjects], const bool (&real)[kObjects]) const {
    const Near& n = v.near;
    const uint32_t term = laneOf() % kNearTerms;
    const double* vector = n.vectors + size_t{q} * n.dims;
#pragma unroll
    for (uint32_t j = 0; j < kObjects; j++) sum[j] = 0;
    for (uint32_t first = term; first < n.dims; first += kElements * kNearTerms) {
      double x[kElements], o[kElements * kObjects];
      size_t at[kElements * kObjects];
      bool there[kElements * kObjects];
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++) {
        const bool has = first + e * kNearTerms < n.dims;
        x[e] = has ? __ldg(vector + first + e * kNearTerms) : 0.0;
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) {
          at[kObjects * e + j] = size_t{place[j]} * n.dims + first + e * size_t{kNearTerms};
          there[kObjects * e + j] = has && real[j];
        }
      }
      elementsOf(o, n.rows, n.storage, at, there);
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) Terms::add(sum[j], x[e], o[kObjects * e + j], n.power);
    }
#pragma unroll
    for (uint32_t d = 1; d < kNearTerms; d *= 2)
#pragma unroll
      for (uint32_t j = 0; j < kObjects; j++) sum[j] = Terms::both(sum[j], __shfl_xor_sync(~0u, sum[j], d));
  }

  // Compares the objects of a cell that are this warp's.
  __device__ void cell(uint32_t c) {
    const uint32_t begin = __ldg(v.starts + c), end = __ldg(v.starts + c + 1);
    compared += end - begin;
    for (uint32_t at = begin + own * kTogether; at < end; at += share * kTogether) {
      uint32_t place[kObjects];
      bool real[kObjects];
#pragma unroll
      for (uint32_t j = 0; j < kObjects; j++) place[j] = at + j * kGroups + laneOf() / kNearTerms, real[j] = place[j] < end;
      // Lane j of a group goes on with its object j.
      const uint32_t j = laneOf() % kNearTerms, its = at + j * kGroups + laneOf() / kNearTerms;
      const bool has = j < kObjects && its < end;
      const uint32_t id = has ? __ldg(v.order + its) : 0;
      double sum[kObjects];
      values(sum, place, real);
      double mine = sum[0];
#pragma unroll
      for (uint32_t i = 1; i < kObjects; i++)
        if (j == i) mine = sum[i];
      const uint64_t value = has ? orderedOf(finished(v.near, query, mine, its)) : ~0ull;
      offer(has && value <= limit, value, id + v.near.base);
    }
  }

  // Offers an object per lane, none beyond the limit.
  __device__ void offer(bool has, uint64_t value, uint32_t id) {
    const uint32_t inserted = kept.offer(has && kept.takes(value, id), value, id);
    if (inserted > 0 && kept.found == kept.k && laneOf() == 0) atomicMin(const_cast<unsigned long long*>(&limit), static_cast<unsigned long long>(kept.last));
    __syncwarp();
  }

  // Visits the cells of some entries.
  __device__ void run(const NearEntry* entries, uint32_t count) {
    uint64_t least = ~0ull;
    uint32_t nearest = ~0u;
    for (uint32_t i = laneOf(); i < count; i += 32)
      if (precedes(entries[i].value, entries[i].id, least, nearest)) least = entries[i].value, nearest = entries[i].id;
#pragma unroll
    for (uint32_t d = 16; d > 0; d /= 2) {
      const uint64_t other = __shfl_xor_sync(~0u, least, d);
      const uint32_t of = __shfl_xor_sync(~0u, nearest, d);
      if (precedes(other, of, least, nearest)) least = other, nearest = of;
    }
    if (count > 0) cell(nearest);
    for (uint32_t i = 0; i < count; i++)
      if (const uint32_t c = __ldg(&entries[i].id); c != nearest) cell(c);
  }

  // Takes what other warps of the query have found, and answers.
  __device__ void answer(Shared& s, uint32_t warp, bool given) {
    for (uint32_t w = warp + 1; w < warp + share; w++)
      for (uint32_t first = 0; first < s.found[w]; first += 32) {
        const uint32_t i = first + laneOf();
        const bool has = i < s.found[w];
        offer(has, has ? s.hits[w].values[i] : 0, has ? s.hits[w].ids[i] : 0);
      }
    NearEntry* out = v.near.out + query.out;
    for (uint32_t i = laneOf(); i < query.k; i += 32) out[i] = i < kept.found ? NearEntry{kept.hits.values[i], kept.hits.ids[i], 0} : NearEntry{};
    if (laneOf() != 0) return;
    NearState& state = v.near.states[q];
    state.passed = kept.found;
    state.listed = compared;
    state.kept = kept.found;
    state.given = given;
  }
};

// A block has kWarps / share queries.
template <class Terms>
__device__ void visited(const NearCelled& v, Shared& s) {
  const uint32_t warp = warpOf(), q = blockIdx.x * (kWarps / v.share) + warp / v.share;
  const bool real = q < v.near.queriesOfBatch;
  Visit<Terms> visit(v, real ? q : 0, warp, s);
  if (visit.own == 0 && laneOf() == 0) s.limits[warp] = visit.query.most;
  __syncthreads();
  const bool given = v.states[visit.q].given != 0;
  if (real && !given && visit.query.k > 0) visit.run(v.entries + v.queries[q].entries, v.states[q].kept);
  if (laneOf() == 0) s.found[warp] = visit.kept.found;
  __syncthreads();
  if (real && visit.own == 0) visit.answer(s, warp, given);
}

}  // namespace

// Copies rows and norms into the order of cells. A warp has a place.
extern "C" __global__ void __launch_bounds__(32 * kWarps) near_order(const NearOrder v) {
  const uint32_t place = blockIdx.x * kWarps + warpOf();
  if (place >= v.places) return;
  const uint32_t object = __ldg(v.order + place);
  const uint8_t* from = v.rows + size_t{object} * v.bytes;
  uint8_t* to = v.rowsTo + size_t{place} * v.bytes;
  for (uint32_t i = laneOf(); i < v.bytes; i += 32) to[i] = __ldg(from + i);
  if (v.norms != nullptr && laneOf() == 0) v.normsTo[place] = __ldg(v.norms + object);
}

extern "C" __device__ const uint32_t near_cells_threads = 32 * kWarps, near_cells_warps = kWarps;

#define GENIEMQ_CELLS(name, Terms)                                                                 \
  extern "C" __global__ void __launch_bounds__(32 * kWarps, kBlocks) near_cells_##name(const NearCelled v) { \
    __shared__ Shared s;                                                                           \
    visited<Terms>(v, s);                                                                          \
  }
GENIEMQ_CELLS(squares, NearSquares)
GENIEMQ_CELLS(differences, NearDifferences)
GENIEMQ_CELLS(dots, NearDots)
GENIEMQ_CELLS(powers, NearPowers)
GENIEMQ_CELLS(largest, NearLargest)
GENIEMQ_CELLS(unequal, NearUnequal)
#undef GENIEMQ_CELLS

}  // namespace geniemq
