// Searches by distance, between waves: listed objects compared exactly, and candidates cut to the k first. A block owns a query.
//
// Candidates are distinct, so the k first are one set whatever the order in which they were appended. The host puts them in order.
#include "near_nth.cuh"
#include "near_sieve.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kLoads = 4;  // that a thread has in flight
constexpr uint32_t kElements = 8;  // of each of two objects
constexpr uint32_t kRows = kThreads / kNearTerms;  // that are compared at a time

struct Select {
  union {
    uint32_t histogram[256];
    NearEntry few[kThreads];  // so many or fewer candidates are put in order instead
  };
  uint32_t scratch[2][32];
  uint64_t largest[kThreads / 32];
  uint32_t digit, rest, here;
  uint32_t stored, within;  // of a list
  NthScratch<kThreads> nth;
};

// The digits of a candidate, the first one 11: eight of the value, four of the id.
__device__ __forceinline__ uint32_t digitOf(const NearEntry& e, int digit) {
  return digit >= 4 ? uint32_t(e.value >> (digit - 4) * 8) & 255 : e.id >> digit * 8 & 255;
}

// What the k first candidates do not exceed: their first digits.
struct Last {
  uint64_t value, ofValue;  // as far as the mask goes
  uint32_t id, ofId;

  __device__ bool begins(const NearEntry& e) const { return (e.value & ofValue) == value && (e.id & ofId) == id; }
  __device__ bool reaches(const NearEntry& e) const { return (e.value & ofValue) < value || (e.value & ofValue) == value && (e.id & ofId) <= id; }
  __device__ void add(int digit, uint32_t v) {
    if (digit >= 4) {
      value |= uint64_t{v} << (digit - 4) * 8;
      ofValue |= uint64_t{255} << (digit - 4) * 8;
    } else {
      id |= v << digit * 8;
      ofId |= 255u << digit * 8;
    }
  }
};

// Finds what exactly k of n > k candidates reach, digit by digit.
__device__ Last lastOf(const NearEntry* entries, uint32_t n, uint32_t k, Select& s) {
  Last last = {};
  uint32_t rest = k;  // of the candidates that begin so, so many are wanted
  for (int digit = 11; digit >= 0; digit--) {
    s.histogram[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t first = threadIdx.x; first < n; first += kLoads * kThreads) {
      NearEntry e[kLoads];
#pragma unroll
      for (uint32_t j = 0; j < kLoads; j++) e[j] = first + j * kThreads < n ? entries[first + j * kThreads] : NearEntry{};
#pragma unroll
      for (uint32_t j = 0; j < kLoads; j++)
        if (first + j * kThreads < n && last.begins(e[j])) atomicAdd(&s.histogram[digitOf(e[j], digit)], 1);
    }
    __syncthreads();
    const uint32_t here = s.histogram[threadIdx.x];
    uint32_t total;
    const uint32_t below = blockPlace<kThreads>(here, s.scratch[0], total);
    if (below < rest && below + here >= rest) {
      s.digit = threadIdx.x;
      s.rest = rest - below;
      s.here = here;
    }
    __syncthreads();
    last.add(digit, s.digit);
    rest = s.rest;
    const bool all = rest == s.here;  // of those that begin so all are wanted
    __syncthreads();
    if (all) break;
  }
  return last;
}

// The same of no more candidates than threads hold.
__device__ Last lastOfHeld(const NearEntry* entries, uint32_t n, uint32_t k, Select& s) {
  uint64_t own[kHeld];
  hold<kThreads>(own, n, [=](uint32_t i) { return entries[i].value; });
  uint32_t upTo;
  const uint64_t value = nthOf<kThreads>(own, k, upTo, s.nth);
  if (upTo == k) return {value, ~0ull, ~0u, ~0u};
  hold<kThreads>(own, n, [=](uint32_t i) { return entries[i].value == value ? uint64_t{entries[i].id} : ~0ull; });
  uint32_t ties = 0;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++) ties += own[i] != ~0ull;
  const uint32_t before = upTo - blockSum<kThreads>(ties, s.scratch[0]);
  return {value, ~0ull, uint32_t(nthOf<kThreads>(own, k - before, upTo, s.nth)), ~0u};
}

// Moves the k first of n candidates to the front, n > k.
__device__ void keepFirst(NearEntry* entries, uint32_t n, uint32_t k, Select& s) {
  const Last last = n <= kHeld * kThreads ? lastOfHeld(entries, n, k, s) : lastOf(entries, n, k, s);
  // In place: a chunk is read before what is kept of it is written, and that is never further than the chunk.
  uint32_t kept = 0;
  for (uint32_t first = threadIdx.x; first - threadIdx.x < n; first += kLoads * kThreads) {
    NearEntry e[kLoads];
    uint32_t mine = 0;
#pragma unroll
    for (uint32_t j = 0; j < kLoads; j++) {
      const uint32_t i = first + j * kThreads;
      e[j] = i < n ? entries[i] : NearEntry{};
      mine += i < n && last.reaches(e[j]);
    }
    __syncthreads();
    uint32_t total;
    uint32_t place = kept + blockPlace<kThreads>(mine, s.scratch[0], total);
#pragma unroll
    for (uint32_t j = 0; j < kLoads; j++)
      if (first + j * kThreads < n && last.reaches(e[j])) entries[place++] = e[j];
    kept += total;
  }
  __syncthreads();
}

// Puts n > k candidates in order, and keeps the k first. It returns the k-th value. A candidate has a thread, or as many as there are for each: they count what is before it.
__device__ uint64_t rankFirst(NearEntry* entries, uint32_t n, uint32_t k, Select& s) {
  const uint32_t share = n > kThreads / 2 ? 1 : n > kThreads / 4 ? 2 : 4, own = threadIdx.x / share;
  const NearEntry mine = own < n ? entries[own] : NearEntry{};
  if (own < n && threadIdx.x % share == 0) s.few[own] = mine;
  __syncthreads();
  uint32_t rank = 0;
  if (own < n) {
#pragma unroll 4
    for (uint32_t i = threadIdx.x % share; i < n; i += share) {
      const NearEntry& other = s.few[i];
      rank += uint32_t(other.value < mine.value) | uint32_t(other.value == mine.value) & uint32_t(other.id < mine.id);
    }
  }
  for (uint32_t d = 1; d < share; d *= 2) rank += __shfl_xor_sync(~0u, rank, d);
  if (own < n && threadIdx.x % share == 0) {
    if (rank < k) entries[rank] = mine;
    if (rank + 1 == k) s.largest[0] = mine.value;
  }
  __syncthreads();
  return s.largest[0];
}

// The largest value of so many candidates.
__device__ uint64_t largestOf(const NearEntry* entries, uint32_t n, Select& s) {
  uint64_t largest = 0;
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) largest = max(largest, entries[i].value);
#pragma unroll
  for (int d = 16; d > 0; d /= 2) largest = max(largest, __shfl_xor_sync(~0u, largest, d));
  if (laneOf() == 0) s.largest[warpOf()] = largest;
  __syncthreads();
  for (uint32_t w = 0; w < kThreads / 32; w++) largest = max(largest, s.largest[w]);
  return largest;
}

// Cuts a query's candidates to its k first and lowers its limit. The block calls it together, after a barrier; what State says is still what it was before the wave, and
// so many are stored.
__device__ void compact(const Near& n, const NearQuery& query, NearState& state, uint32_t stored, uint32_t before, uint64_t limit, Select& s) {
  const uint32_t k = query.k, kept = min(stored, k);
  NearEntry* entries = n.entries + query.entries;
  if (stored >= k && stored != before && k > 0) {
    uint64_t largest;
    if (stored > k && stored <= kThreads) {
      largest = rankFirst(entries, stored, k, s);
    } else {
      if (stored > k) keepFirst(entries, stored, k, s);
      largest = largestOf(entries, kept, s);
    }
    limit = min(limit, largest - 1);  // no value is 0 as an integer
  }
  if (threadIdx.x != 0) return;
  if (k > 0) state.limit = limit;
  state.passed += stored - before;
  state.stored = state.kept = kept;
}

// Counts and appends listed objects, as passGate does, where the block has the query alone.
__device__ __forceinline__ void passListed(const Near& n, const NearQuery& query, Select& s, uint64_t limit, bool within, uint64_t value, uint32_t object) {
  const uint32_t all = __ballot_sync(~0u, within);
  if (all == 0) return;
  const bool candidate = within && value <= limit && query.k > 0;
  const uint32_t stay = __ballot_sync(~0u, candidate);
  uint32_t place = 0;
  if (laneOf() == 0) {
    if (query.counts) atomicAdd(&s.within, __popc(all));
    if (stay != 0) place = atomicAdd(&s.stored, __popc(stay));
  }
  place = __shfl_sync(~0u, place, 0) + __popc(stay & ((1u << laneOf()) - 1));
  if (candidate) n.entries[query.entries + place] = {value, object + n.base, 0};
}

// Compares the objects of a query's list, eight lanes each: a lane has one of the partial sums. It has two objects at a time, so that it waits once for both.
template <class Terms>
__device__ void compareListed(const Near& n, uint32_t q, const NearQuery& query, uint32_t listed, uint64_t limit, Select& s) {
  const uint32_t term = laneOf() % kNearTerms;
  const uint32_t* list = n.lists + size_t{q} * n.listRoom;
  const double* vector = n.vectors + size_t{q} * n.dims;
  for (uint32_t first = warpOf() * (32 / kNearTerms); first < listed; first += 2 * kRows) {
    const uint32_t i = first + laneOf() / kNearTerms;
    const bool real[2] = {i < listed, i + kRows < listed};
    const uint32_t object[2] = {real[0] ? list[i] : 0, real[1] ? list[i + kRows] : 0};
    double sum[2] = {};
    for (uint32_t e = term; e < n.dims; e += kElements * kNearTerms) {
      double x[kElements], o[2 * kElements];
      size_t at[2 * kElements];
      bool there[2 * kElements];
#pragma unroll
      for (uint32_t i = 0; i < kElements; i++) {
        const uint32_t element = e + i * kNearTerms;
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) at[2 * i + j] = size_t{object[j]} * n.dims + e + i * size_t{kNearTerms}, there[2 * i + j] = real[j] && element < n.dims;
        x[i] = element < n.dims ? __ldg(vector + element) : 0.0;
      }
      elementsOf(o, n.rows, n.storage, at, there);
#pragma unroll
      for (uint32_t i = 0; i < kElements; i++)
#pragma unroll
        for (uint32_t j = 0; j < 2; j++) Terms::add(sum[j], x[i], o[2 * i + j], n.power);
    }
#pragma unroll
    for (uint32_t j = 0; j < 2; j++) {
#pragma unroll
      for (uint32_t d = 1; d < kNearTerms; d *= 2) sum[j] = Terms::both(sum[j], __shfl_xor_sync(~0u, sum[j], d));
      const bool own = real[j] && term == 0;
      const uint64_t value = own ? orderedOf(finished(n, query, sum[j], object[j])) : ~0ull;
      const bool within = own && value <= (query.counts ? query.most : limit) && mayHit(n, query, object[j]);
      passListed(n, query, s, limit, within, value, object[j]);
    }
  }
}

// The list of a query, and the Gate after it. A list that had no room for all gives the query up: nothing of it is wanted any more.
template <class Terms>
__device__ void listed(const Near& n, Select& s) {
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t list = state.list, before = state.stored;
  const uint64_t limit = state.limit;
  if (threadIdx.x == 0) s.stored = before, s.within = 0;
  const bool given = list > n.listRoom || state.given;
  __syncthreads();
  if (given) {
    if (threadIdx.x == 0) state.given = 1, state.limit = 0, state.list = 0;
    return;
  }
  if (list == 0) return;
  compareListed<Terms>(n, q, query, list, limit, s);
  __syncthreads();
  compact(n, query, state, s.stored, before, limit, s);
  if (threadIdx.x == 0) {
    state.within += s.within;
    state.listed += list;
    state.list = 0;
  }
}

// Nearest objects of a sample are kept by so many threads for each that is wanted, so that few of those share one.
constexpr uint32_t kKeptOf = 8;
constexpr uint32_t kMostKept = 256;  // so many candidates have room
static_assert(kMostKept == kThreads);

// Takes the limit of a query from a sample: near.end objects of it, kSieveObjects that begin near.first apart, whose sums lie where the list will be, the nearest with the largest. Of k objects
// that seem to be nearest none is farther than the limit says; which they are does not matter, but for how low it is. All are forgotten, and come again with the waves.
template <class Terms>
__device__ void limited(const Near& n, Select& s) {
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint64_t limit = state.limit;
  if (query.k == 0 || state.given) return;
  uint32_t* const list = n.lists + size_t{q} * n.listRoom;
  NearEntry* const entries = n.entries + query.entries;
  float nearest = -__builtin_inff();  // what is NaN is damaged
  uint32_t object = ~0u;
#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < n.end; i += kThreads) {
    const float sum = __uint_as_float(list[i]);
    const uint32_t own = i / kSieveObjects * n.first + i % kSieveObjects;
    if (sum > nearest && mayHit(n, query, own)) nearest = sum, object = own;
  }
  const uint32_t share = kKeptOf * query.k <= kThreads / 4 ? 4 : kKeptOf * query.k <= kThreads / 2 ? 2 : 1, kept = kThreads / share;
  for (uint32_t d = 1; d < share; d *= 2) {
    const float other = __shfl_xor_sync(~0u, nearest, d);
    const uint32_t of = __shfl_xor_sync(~0u, object, d);
    if (other > nearest || other == nearest && of < object) nearest = other, object = of;
  }
  const bool keeps = threadIdx.x % share == 0;
  if (keeps) entries[threadIdx.x / share] = {orderedOf(-double(nearest)), object, 0};
  const uint32_t found = __syncthreads_count(keeps && object != ~0u);  // and all have read the sums
  if (found < query.k) return;
  if (query.k < kept) rankFirst(entries, kept, query.k, s);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < query.k; i += kThreads) list[i] = entries[i].id;
  if (threadIdx.x == 0) s.stored = s.within = 0;
  __syncthreads();
  compareListed<Terms>(n, q, query, query.k, limit, s);
  __syncthreads();
  const uint64_t largest = s.stored == query.k ? largestOf(entries, query.k, s) : ~0ull;
  if (threadIdx.x == 0) state.limit = min(limit, largest), state.listed = query.k;
}

}  // namespace

// After a wave that was scanned. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) near_compact(const Near n) {
  __shared__ Select s;
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t stored = state.stored, before = state.kept;
  const uint64_t limit = state.limit;
  __syncthreads();  // all have read what is written below
  compact(n, query, state, stored, before, limit, s);
}

// After a wave with a limit that was guessed (near_ranks.cu), where a query has room for k + listRoom candidates. Who has too few, or had no room, is given up.
extern "C" __global__ void __launch_bounds__(kThreads) near_guessed(const Near n) {
  __shared__ Select s;
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t stored = state.stored;
  const uint64_t limit = state.limit;
  __syncthreads();  // all have read what is written below
  if (stored < query.k || stored > query.k + n.listRoom) {
    if (threadIdx.x == 0) state.given = 1, state.stored = state.kept = 0;
    return;
  }
  compact(n, query, state, stored, 0, limit, s);
}

// The candidates that are left are the answer; the host copies all k places.
extern "C" __global__ void __launch_bounds__(kThreads) near_answer(const Near n) {
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  const uint32_t kept = n.states[q].kept;
  for (uint32_t i = threadIdx.x; i < query.k; i += kThreads) n.out[query.out + i] = i < kept ? n.entries[query.entries + i] : NearEntry{};
}

#define GENIEMQ_NEAR_LIST(name, Terms, of)                                       \
  extern "C" __global__ void __launch_bounds__(kThreads, 4) name(const Near n) { \
    __shared__ Select s;                                                         \
    of<Terms>(n, s);                                                             \
  }
GENIEMQ_NEAR_LIST(near_list_squares, NearSquares, listed)
GENIEMQ_NEAR_LIST(near_list_differences, NearDifferences, listed)
GENIEMQ_NEAR_LIST(near_list_dots, NearDots, listed)
GENIEMQ_NEAR_LIST(near_list_products, NearProducts, listed)
GENIEMQ_NEAR_LIST(near_list_powers, NearPowers, listed)
GENIEMQ_NEAR_LIST(near_list_largest, NearLargest, listed)
GENIEMQ_NEAR_LIST(near_list_unequal, NearUnequal, listed)
GENIEMQ_NEAR_LIST(near_limit_squares, NearSquares, limited)
GENIEMQ_NEAR_LIST(near_limit_dots, NearDots, limited)
#undef GENIEMQ_NEAR_LIST

extern "C" __device__ const uint32_t near_gate_threads = kThreads;

}  // namespace geniemq
