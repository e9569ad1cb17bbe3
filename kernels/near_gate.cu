// Searches by distance, between waves: listed objects compared exactly, and candidates cut to the k first. A block owns a query.
//
// Candidates are distinct, so the k first are one set whatever the order in which they were appended. The host puts them in order.
#include "near.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kLoads = 4;  // that a thread has in flight
constexpr uint32_t kRows = kThreads / kNearTerms;  // that are compared at a time

struct Select {
  uint32_t histogram[256];
  uint32_t scratch[2][32];
  uint64_t largest[kThreads / 32];
  uint32_t digit, rest, here;
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

// Moves the k first of n candidates to the front, n > k.
__device__ void keepFirst(NearEntry* entries, uint32_t n, uint32_t k, Select& s) {
  const Last last = lastOf(entries, n, k, s);
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

// Cuts a query's candidates to its k first and lowers its limit; returns how many there are. The block calls it together.
__device__ uint32_t compact(const Near& n, const NearQuery& query, NearState& state, Select& s) {
  __syncthreads();
  const uint32_t stored = state.stored, before = state.kept, k = query.k;
  NearEntry* entries = n.entries + query.entries;
  __syncthreads();
  if (stored > k) keepFirst(entries, stored, k, s);
  const uint32_t kept = min(stored, k);
  if (stored >= k && stored != before) {
    uint64_t largest = 0;
    for (uint32_t i = threadIdx.x; i < kept; i += kThreads) largest = max(largest, entries[i].value);
#pragma unroll
    for (int d = 16; d > 0; d /= 2) largest = max(largest, __shfl_xor_sync(~0u, largest, d));
    if (laneOf() == 0) s.largest[warpOf()] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t w = 1; w < kThreads / 32; w++) largest = max(largest, s.largest[w]);
      state.limit = min(state.limit, largest - 1);  // no value is 0 as an integer
    }
  }
  if (threadIdx.x == 0) {
    state.passed += stored - before;
    state.stored = state.kept = kept;
  }
  __syncthreads();
  return kept;
}

// Compares the objects of a query's list, eight lanes each: a lane has one of the partial sums.
template <class Terms>
__device__ void compareListed(const Near& n, uint32_t q, const NearQuery& query, NearState& state) {
  const uint32_t listed = min(state.list, n.listRoom), term = laneOf() % kNearTerms;
  const uint64_t limit = state.limit;
  const uint32_t* list = n.lists + size_t{q} * n.listRoom;
  const double* vector = n.vectors + size_t{q} * n.dims;
  for (uint32_t first = warpOf() * (32 / kNearTerms); first < listed; first += kRows) {
    const uint32_t i = first + laneOf() / kNearTerms;
    const bool real = i < listed;
    const uint32_t object = real ? list[i] : 0;
    double sum = 0;
    if (real)
      for (uint32_t e = term; e < n.dims; e += kNearTerms) Terms::add(sum, __ldg(vector + e), elementOf(n.rows, n.storage, size_t{object} * n.dims + e), n.power);
#pragma unroll
    for (uint32_t d = 1; d < kNearTerms; d *= 2) sum = Terms::both(sum, __shfl_xor_sync(~0u, sum, d));
    const bool own = real && term == 0;
    const uint64_t value = own ? orderedOf(finished(n, query, sum, object)) : ~0ull;
    const bool within = own && value <= (query.counts ? query.most : limit) && mayHit(n, query, object);
    passGate(n, query, state, limit, within, value, object);
  }
}

// The list of a query, and the Gate after it. A list that had no room for all gives the query up: nothing of it is wanted any more.
template <class Terms>
__device__ void listed(const Near& n, Select& s) {
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t list = state.list;
  if (list > n.listRoom || state.given) {
    __syncthreads();
    if (threadIdx.x == 0) state.given = 1, state.limit = 0, state.list = 0;
    return;
  }
  compareListed<Terms>(n, q, query, state);
  __syncthreads();
  if (threadIdx.x == 0) {
    state.listed += list;
    state.list = 0;
  }
  compact(n, query, state, s);
}

}  // namespace

// After a wave that was scanned. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) near_compact(const Near n) {
  __shared__ Select s;
  const uint32_t q = n.firstQuery + blockIdx.x;
  compact(n, n.queries[q], n.states[q], s);
}

// The candidates that are left are the answer; the host copies all k places.
extern "C" __global__ void __launch_bounds__(kThreads) near_answer(const Near n) {
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  const uint32_t kept = n.states[q].kept;
  for (uint32_t i = threadIdx.x; i < query.k; i += kThreads) n.out[query.out + i] = i < kept ? n.entries[query.entries + i] : NearEntry{};
}

extern "C" __global__ void __launch_bounds__(kThreads) near_list_squares(const Near n) {
  __shared__ Select s;
  listed<NearSquares>(n, s);
}
extern "C" __global__ void __launch_bounds__(kThreads) near_list_dots(const Near n) {
  __shared__ Select s;
  listed<NearDots>(n, s);
}

extern "C" __device__ const uint32_t near_gate_threads = kThreads;

}  // namespace geniemq
