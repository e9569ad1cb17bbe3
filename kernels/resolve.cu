// Resolves spans of keywords into what the (query, tile) kernel reads.
//
// The host maps a query's items to spans of keywords and knows no more of them. On postings of all keywords these are what
// the kernel wants. Where an attribute lies on the device in another form it wants something else (Span in batch.cuh): codes for
// planes; for rare keywords the numbers of the frequent ones among them, and the run of the others' ids. Either is two
// look-ups a bound in tables that are too large for the caches of a host that asks for a dozen random words a query.
//
// A block owns a query. It writes the spans anew, those on postings, then those on planes, then rare runs, and leaves out
// what is empty: at most Resolve::slots for each. Among themselves the spans of a kind come in any order, since
// counts are sums.
#include "batch.cuh"
#include "block.cuh"
#include "forms.cuh"

namespace geniemq {

struct Resolve {
  Query* queries;
  Span* spans;
  const Form* forms;  // by attribute
  uint32_t resolved;  // the spans of a query go to spans[resolved + slots * first ..)
  uint32_t slots;     // 2 where there are rare keywords, else 1
};

static_assert(sizeof(Resolve) == 32);

namespace {

constexpr uint32_t kThreads = 256;
}  // namespace

// blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) resolve(const Resolve r) {
  __shared__ uint32_t counts[kKinds], places[kKinds];
  const Query query = r.queries[blockIdx.x];
  const Span* spans = r.spans + query.first;
  const uint32_t first = r.resolved + r.slots * query.first;
  if (threadIdx.x < kKinds) counts[threadIdx.x] = 0;
  __syncthreads();
  Resolved mine = {};
  for (uint32_t base = 0; base < query.spans; base += kThreads) {
    mine = base + threadIdx.x < query.spans ? look(r.forms, spans[base + threadIdx.x]) : Resolved{};
#pragma unroll
    for (uint32_t kind = 0; kind < kKinds; kind++) {
      const uint32_t there = __ballot_sync(~0u, mine.of[kind].lo < mine.of[kind].hi);
      if (laneOf() == 0 && there != 0) atomicAdd(&counts[kind], __popc(there));
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    places[0] = first;
    places[1] = first + counts[0];
    places[2] = first + counts[0] + counts[1];
    Query& to = r.queries[blockIdx.x];
    to.first = first;
    to.spans = counts[0];
    to.planeSpans = counts[1];
    to.rareSpans = counts[2];
  }
  __syncthreads();
  for (uint32_t base = 0; base < query.spans; base += kThreads) {
    if (query.spans > kThreads) mine = base + threadIdx.x < query.spans ? look(r.forms, spans[base + threadIdx.x]) : Resolved{};
#pragma unroll
    for (uint32_t kind = 0; kind < kKinds; kind++) {
      const bool is = mine.of[kind].lo < mine.of[kind].hi;
      const uint32_t there = __ballot_sync(~0u, is);
      uint32_t place = 0;
      if (laneOf() == 0 && there != 0) place = atomicAdd(&places[kind], __popc(there));
      place = __shfl_sync(~0u, place, 0) + __popc(there & ((1u << laneOf()) - 1));
      if (is) r.spans[place] = mine.of[kind];
    }
  }
}

}  // namespace geniemq
