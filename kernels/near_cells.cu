// Searches by cells (index/metric/cells): objects lie in cells, each around a centroid, and a query compares those of the cells whose centroids are nearest to it.
//
// Centroids are a column like any other (near_scan.cu), and the nearest are what a search of it has found. Here the objects of their cells are compared: first those of the nearest cell,
// whose k-th value drops most of the others. A query whose centroids the sieve has given up is given up here too.
//
// Rows, and norms, lie here once more, in the order of cells: those of a cell are read one after the other.
//
// Of many queries the nearest cell alone is visited so, and near_visits.cu goes on with what there are candidates of then.
//
// A block has a query, whose warps take objects of a cell in turns, each with hits of its own, and tell each other the least k-th value. Then the first of them is offered what the others
// have. So queries that are few have many warps each, and a list of objects is never written. While objects are compared the next ones are loaded.
//
// # Floats
//
// Most objects are far beyond the limit, which sums of float32s prove. Elements are float32s or less, of queries too, so that a difference, a product and a sum are each wrong by 2^-24 of
// what they are, or by 2^-150 where that is less than a float32 has. What adds up numbers that are not negative, by c operations in a row, is so at most v (1 + 2^-24)^c + 2^-120 for a value
// v; hence v is at least s (1 - c 2^-23) - 2^-119 for a sum s. Likewise it is s (1 + c 2^-22) + 2^-118 at most. Of dots, whose terms may be negative, it is wrong by c 2^-23 of the product of the norms, and 2^-119. c = dims + kRoundings
// counts the sum in any order, the powers of lp, what float64s are wrong by, and the comparison. Where a sum overflows, or is NaN, nothing is proven. Objects of which nothing is proven are
// compared in float64s, as all else does, once a step is full of them.
//
// The nearest cell has no limit yet. So all its objects are summed up before any is compared: k of them are no farther than the k-th of what they are at most, and that is the first limit.
#include <type_traits>

#include "near_visits.cuh"

namespace geniemq {

struct NearCelled {
  Near near;                 // of the column, with rows and norms by place
  const NearQuery* queries;  // of the centroids
  const NearState* states;
  const NearEntry* entries;
  const uint32_t* starts;    // by cell and one more: its first place
  const uint32_t* order;     // by place: the object
  uint32_t nearest, unused;  // the nearest cell alone is visited
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
static_assert(sizeof(NearCelled) == 176 && sizeof(NearOrder) == 48);

namespace {

constexpr uint32_t kWarps = 8;                      // of a block, at most
constexpr uint32_t kBlocks = 2;                     // so large that a multiprocessor has registers for
constexpr uint32_t kGroups = 32 / kNearTerms;       // of eight lanes, each with one of the partial sums of an object
constexpr uint32_t kObjects = 4;                    // that a group compares together, so that it waits once for all
constexpr uint32_t kElements = 4;                   // of each of these that a lane has at once
constexpr uint32_t kTogether = kGroups * kObjects;  // objects of a warp
constexpr uint32_t kChunk = kElements * kNearTerms; // elements of an object that are compared at a time
constexpr uint32_t kFirst = 512;                    // objects of a warp of which nothing is asked before their sums are there
constexpr uint32_t kLeft = kTogether + 32;          // room for objects that are left
static_assert(kObjects <= kNearTerms && kFirst % 32 == 0);

// What a warp of a query has; the first one has the limit of all, beyond which no object is a hit.
struct Share {
  WarpHits hits;
  float sums[kFirst];       // of the first objects
  uint32_t left[kLeft];     // places of objects that are not proven to be too far
  unsigned long long limit;
  uint32_t found, unused;
};

constexpr uint32_t kRoundings = 32;     // more than there are elements
constexpr float kTiny = 0x1p-119f;      // what vanishes
constexpr float kProven = 0x1p100f;     // a value that a sum without an overflow may prove
constexpr float kNothing = __builtin_inff();

// Terms in float32s.
template <class Terms>
struct Floats {};
template <>
struct Floats<NearSquares> {
  static __device__ __forceinline__ void add(float& s, float q, float o, uint32_t) { s = fmaf(q - o, q - o, s); }
  static __device__ __forceinline__ float both(float a, float b) { return a + b; }
};
template <>
struct Floats<NearDifferences> {
  static __device__ __forceinline__ void add(float& s, float q, float o, uint32_t) { s += fabsf(q - o); }
  static __device__ __forceinline__ float both(float a, float b) { return a + b; }
};
template <>
struct Floats<NearDots> {
  static __device__ __forceinline__ void add(float& s, float q, float o, uint32_t) { s = fmaf(q, o, s); }
  static __device__ __forceinline__ float both(float a, float b) { return a + b; }
};
template <>
struct Floats<NearPowers> {
  static __device__ __forceinline__ void add(float& s, float q, float o, uint32_t p) {
    const float d = fabsf(q - o);
    float power = d;
    for (uint32_t i = 1; i < p; i++) power *= d;
    s += power;
  }
  static __device__ __forceinline__ float both(float a, float b) { return a + b; }
};
template <>
struct Floats<NearLargest> {
  static __device__ __forceinline__ void add(float& s, float q, float o, uint32_t) { s = fmaxf(s, fabsf(q - o)); }
  static __device__ __forceinline__ float both(float a, float b) { return fmaxf(a, b); }
};

__device__ __forceinline__ double widened(float v) { return double(v); }
__device__ __forceinline__ double widened(uint16_t v) { return double(floatOf(v)); }
__device__ __forceinline__ double widened(uint8_t v) { return double(uint32_t{v}); }

__device__ __forceinline__ float asFloat(float v) { return v; }
__device__ __forceinline__ float asFloat(uint16_t v) { return floatOf(v); }
__device__ __forceinline__ float asFloat(uint8_t v) { return float(uint32_t{v}); }

template <class Terms, class Stored>
struct Visit {
  const Near& n;
  const NearCelled& v;
  const uint32_t q, own, warps;  // the query; this warp of so many
  const NearQuery query;
  Kept kept;
  Share& share;
  volatile unsigned long long& limit;
  const uint8_t* const rows;  // from this lane's first element on
  const uint32_t stride;      // bytes of a row
  uint64_t compared = 0;
  uint32_t left = 0;  // objects

  float x[kElements];  // of the query, of the elements from `loaded` on
  uint32_t loaded;
  Stored next[kElements][kObjects];  // elements of the objects that come next

  __device__ Visit(const NearCelled& c, Share* s)
      : n(c.near), v(c), q(blockIdx.x), own(warpOf()), warps(blockDim.x / 32), query(c.near.queries[q]), kept(s[own].hits, query.k), share(s[own]), limit(s->limit),
        rows(n.rows + laneOf() % kNearTerms * sizeof(Stored)), stride(n.dims * sizeof(Stored)) {
    elements(0);
  }

  // Of an object's element this lane has a part of the sum, if there is such an element.
  __device__ bool has(uint32_t first, uint32_t e) const { return first + e * kNearTerms + laneOf() % kNearTerms < n.dims; }

  // Loads elements of the query.
  __device__ void elements(uint32_t first) {
    const double* from = n.vectors + size_t{q} * n.dims + first + laneOf() % kNearTerms;
#pragma unroll
    for (uint32_t e = 0; e < kElements; e++) x[e] = has(first, e) ? float(__ldg(from + e * kNearTerms)) : 0.0f;
    loaded = first;
  }

  // Loads elements of the objects at some places of a cell that ends so; beyond its end its last object is read, and not compared.
  __device__ __forceinline__ void load(Stored (&to)[kElements][kObjects], uint32_t at, uint32_t end, uint32_t first) const {
    const Stored* from[kObjects];
#pragma unroll
    for (uint32_t j = 0; j < kObjects; j++)
      from[j] = reinterpret_cast<const Stored*>(rows + first * sizeof(Stored) + uint64_t{min(at + j * kGroups + laneOf() / kNearTerms, end - 1)} * stride);
    if (first + kChunk <= n.dims) {
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) to[e][j] = __ldg(from[j] + e * kNearTerms);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) to[e][j] = has(first, e) ? __ldg(from[j] + e * kNearTerms) : Stored(0);
    }
  }

  // The place of the object with which this lane goes on: what compare leaves to it. Lanes that differ in bit 2 alone have the same.
  __device__ uint32_t placeOf(uint32_t at) const { return at + (laneOf() % 2 * 2 + laneOf() / 2 % 2) * kGroups + laneOf() / kNearTerms; }

  // Goes through the objects of a cell that are this warp's. The first time their sums are kept, until there are k of which it is known how far they are at most.
  __device__ void cell(uint32_t c, bool first) {
    const uint32_t begin = __ldg(v.starts + c) + own * kTogether, end = __ldg(v.starts + c + 1);
    compared += end - __ldg(v.starts + c);
    uint32_t at = begin, element = 0, summed = 0;
    if (at >= end) return;
    first &= query.k <= 32;
    float most = kNothing;  // of lane i the i-th of what objects are at most
    load(next, at, end, 0);
    float sum[kObjects];
    while (true) {
      Stored these[kElements][kObjects];
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) these[e][j] = next[e][j];
      if (element == 0) {
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) sum[j] = 0;
      }
      uint32_t then = at, from = element + kChunk;
      if (from >= n.dims) then += warps * kTogether, from = 0;
      const bool more = then < end;
      if (more) load(next, then, end, from);
      if (loaded != element) elements(element);
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) Floats<Terms>::add(sum[j], x[e], asFloat(these[e][j]), n.power);
      if (from == 0) {
        const float all = joined<Floats<Terms>>(sum);
        if (!first) {
          leave(mine(at, end), all, placeOf(at));
        } else {
          if (laneOf() % kNearTerms < kObjects) share.sums[summed + placeOf(0)] = all;
          summed += kTogether;
          put(most, mine(at, end) ? mostOf(all, placeOf(at)) : kNothing);
          if (!more || summed == kFirst) {
            first = false;
            bounded(most);
            for (uint32_t i = laneOf(); i - laneOf() < summed; i += 32) {
              const uint32_t place = begin + i / kTogether * warps * kTogether + i % kTogether;
              leave(i < summed && place < end, share.sums[i], place);
            }
          }
        }
      }
      if (!more) return;
      at = then, element = from;
    }
  }

  // Whether there is an object with which this lane goes on, and another lane does not.
  __device__ bool mine(uint32_t at, uint32_t end) const { return laneOf() % kNearTerms < kObjects && placeOf(at) < end; }

  // What a sum in float32s is wrong by, as a share.
  __device__ float wrong() const { return float(n.dims + kRoundings) * 0x1p-23f; }

  // Whether the sum of an object proves that it is beyond the limit.
  __device__ bool beyond(float s, uint32_t place) const {
    const double most = valueOf(limit);
    if constexpr (std::is_same_v<Terms, NearDots>) {
      const double both = __ldg(n.norms + place) * query.norm;
      return both > 0 && both < kProven && fabsf(s) < kProven && double(-s) - (double(wrong()) * both + double(kTiny)) > most * both;
    }
    const float up = __double2float_ru(most);
    return up < kProven && __fmaf_rn(s, 1 - wrong(), -kTiny) > up;
  }

  // What the value of an object is at most, by its sum; kNothing where nothing is known.
  __device__ float mostOf(float s, uint32_t place) const {
    if constexpr (std::is_same_v<Terms, NearDots>) {
      const double both = __ldg(n.norms + place) * query.norm;
      if (!(both > 0 && both < kProven && fabsf(s) < kProven)) return kNothing;
      return __double2float_ru(fmax(-1.0, (double(-s) + (double(wrong()) * both + double(kTiny))) / both + 0x1p-40));
    }
    return s < kProven ? __fmaf_rn(s, 1 + 2 * wrong(), 2 * kTiny) : kNothing;
  }

  // Puts what lanes have among the 32 least; lane i has the i-th.
  __device__ void put(float& most, float of) const {
    for (uint32_t lanes = __ballot_sync(~0u, of < __shfl_sync(~0u, most, query.k - 1)); lanes != 0; lanes &= lanes - 1) {
      const float one = __shfl_sync(~0u, of, __ffs(lanes) - 1), before = __shfl_up_sync(~0u, most, 1);
      if (most > one) most = laneOf() > 0 && before > one ? before : one;
    }
  }

  // k objects are no farther than the k-th of what they are at most.
  __device__ void bounded(float most) {
    const float last = __shfl_sync(~0u, most, query.k - 1);
    if (last < kNothing && laneOf() == 0) atomicMin(const_cast<unsigned long long*>(&limit), static_cast<unsigned long long>(orderedOf(double(last))));
    __syncwarp();
  }

  // Leaves objects, one a lane, to be compared as all else does, unless they are too far; and compares as many as a step has.
  __device__ void leave(bool real, float s, uint32_t place) {
    const bool stays = real && !beyond(s, place);
    const uint32_t lanes = __ballot_sync(~0u, stays);
    if (lanes == 0) return;
    if (stays) share.left[left + __popc(lanes & ((1u << laneOf()) - 1))] = place;
    left += __popc(lanes);
    __syncwarp();
    while (left >= kTogether) {
      exactly(kTogether);
      left -= kTogether;
      const uint32_t rest = laneOf() < left ? share.left[kTogether + laneOf()] : 0;
      __syncwarp();
      if (laneOf() < left) share.left[laneOf()] = rest;
      __syncwarp();
    }
  }

  // Compares the first objects that are left.
  __device__ void exactly(uint32_t count) {
    const uint32_t place = share.left[min(placeOf(0), count - 1)], id = __ldg(v.order + place);
    double sum[kObjects] = {};
    for (uint32_t first = 0; first < n.dims; first += kChunk) {
      Stored these[kElements][kObjects];
#pragma unroll
      for (uint32_t j = 0; j < kObjects; j++) {
        const Stored* const from = reinterpret_cast<const Stored*>(rows + first * sizeof(Stored) + uint64_t{share.left[min(j * kGroups + laneOf() / kNearTerms, count - 1)]} * stride);
#pragma unroll
        for (uint32_t e = 0; e < kElements; e++) these[e][j] = has(first, e) ? __ldg(from + e * kNearTerms) : Stored(0);
      }
      if (loaded != first) elements(first);
#pragma unroll
      for (uint32_t e = 0; e < kElements; e++)
#pragma unroll
        for (uint32_t j = 0; j < kObjects; j++) Terms::add(sum[j], double(x[e]), widened(these[e][j]), n.power);
    }
    const double all = joined<Terms>(sum);
    const bool real = mine(0, count);
    const uint64_t value = real ? orderedOf(finished(n, query, all, place)) : ~0ull;
    offer(real && value <= limit, value, id + n.base);
  }

  // Adds partial sums up, neighbours first. Of two lanes each goes on with half of the objects: it gives away the others.
  template <class Sums, class T>
  static __device__ T joined(const T (&sum)[kObjects]) {
    static_assert(kObjects == 4 && kNearTerms == 8);
    const bool odd = laneOf() & 1, second = laneOf() & 2;
    const T a = Sums::both(odd ? sum[2] : sum[0], __shfl_xor_sync(~0u, odd ? sum[0] : sum[2], 1));
    const T b = Sums::both(odd ? sum[3] : sum[1], __shfl_xor_sync(~0u, odd ? sum[1] : sum[3], 1));
    const T own = Sums::both(second ? b : a, __shfl_xor_sync(~0u, second ? a : b, 2));
    return Sums::both(own, __shfl_xor_sync(~0u, own, 4));
  }

  // Offers an object per lane, none beyond the limit.
  __device__ void offer(bool has, uint64_t value, uint32_t id) {
    const uint32_t inserted = kept.offer(has && kept.takes(value, id), value, id);
    if (inserted > 0 && kept.found == kept.k && laneOf() == 0) atomicMin(const_cast<unsigned long long*>(&limit), static_cast<unsigned long long>(kept.last));
    __syncwarp();
  }

  // Visits the cells of some entries, or the nearest alone.
  __device__ void run(const NearEntry* entries, uint32_t count) {
    const uint32_t nearest = nearestOf(entries, count);
    // One call, so that what compares is there once: the nearest first, and then the others.
    const uint32_t calls = count == 0 || v.nearest ? min(count, 1u) : count + 1;
    for (uint32_t i = 0; i < calls; i++) {
      const uint32_t c = i == 0 ? nearest : __ldg(&entries[i - 1].id);
      if (i == 0 || c != nearest) cell(c, i == 0);
    }
    if (left > 0) exactly(left);
  }

  // Takes what other warps have found.
  __device__ void take(const Share* s) {
    for (uint32_t w = 1; w < warps; w++)
      for (uint32_t first = 0; first < s[w].found; first += 32) {
        const uint32_t i = first + laneOf();
        const bool real = i < s[w].found;
        offer(real, real ? s[w].hits.values[i] : 0, real ? s[w].hits.ids[i] : 0);
      }
  }

  // Answers; or where the nearest cell alone was visited, says what there are candidates of, and how far others may be: of other cells ids may be lower, so an equal value is a candidate.
  __device__ void answer(bool given) {
    NearState& state = n.states[q];
    if (v.nearest) {
      NearEntry* const to = n.entries + query.entries;
      for (uint32_t i = laneOf(); i < kept.found; i += 32) to[i] = {kept.hits.values[i], kept.hits.ids[i], 0};
      if (laneOf() != 0) return;
      state.passed = state.stored = state.kept = kept.found;
      if (kept.found == query.k) state.limit = min(state.limit, kept.last);
      if (given) state.given = 1;
      return;
    }
    NearEntry* out = n.out + query.out;
    for (uint32_t i = laneOf(); i < query.k; i += 32) out[i] = i < kept.found ? NearEntry{kept.hits.values[i], kept.hits.ids[i], 0} : NearEntry{};
    if (laneOf() != 0) return;
    state.passed = kept.found;
    state.listed = compared;
    state.kept = kept.found;
    state.given = given;
  }
};

template <class Terms, class Stored>
__device__ void visited(const NearCelled& v, Share* s) {
  Visit<Terms, Stored> visit(v, s);
  if (threadIdx.x == 0) s->limit = visit.query.most;
  __syncthreads();
  const bool given = v.states[visit.q].given != 0;
  if (!given && visit.query.k > 0) visit.run(v.entries + v.queries[visit.q].entries, v.states[visit.q].kept);
  if (laneOf() == 0) s[visit.own].found = visit.kept.found;
  __syncthreads();
  if (visit.own != 0) return;
  visit.take(s);
  visit.answer(given);
}

template <class Terms>
__device__ void visited(const NearCelled& v, Share* s) {
  switch (v.near.storage) {
    case kNearF32: return visited<Terms, float>(v, s);
    case kNearU8: return visited<Terms, uint8_t>(v, s);
  }
  visited<Terms, uint16_t>(v, s);
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

extern "C" __device__ const uint32_t near_cells_warps = kWarps, near_cells_share = sizeof(Share), near_order_threads = 32 * kWarps;

// A block has a query, and up to kWarps warps, a Share each.
#define GENIEMQ_CELLS(name, Terms)                                                                                 \
  extern "C" __global__ void __launch_bounds__(32 * kWarps, kBlocks) near_cells_##name(const NearCelled v) {         \
    extern __shared__ __align__(16) uint8_t memory[];                                                              \
    visited<Terms>(v, reinterpret_cast<Share*>(memory));                                                           \
  }
GENIEMQ_CELLS(squares, NearSquares)
GENIEMQ_CELLS(differences, NearDifferences)
GENIEMQ_CELLS(dots, NearDots)
GENIEMQ_CELLS(powers, NearPowers)
GENIEMQ_CELLS(largest, NearLargest)
#undef GENIEMQ_CELLS

}  // namespace geniemq
