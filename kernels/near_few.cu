// Searches by distance after a wave that was scanned, where few are wanted: candidates are cut to the k first as near_compact does (near_gate.cu), by a warp for each query.
#include "near_hits.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kWarps = 4;  // of a block
constexpr uint32_t kLoads = 4;  // that a lane has in flight

__device__ void compactFew(const Near& n, uint32_t q, WarpHits& hits) {
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t stored = state.stored, before = state.kept;
  NearEntry* entries = n.entries + query.entries;
  uint64_t limit = state.limit;
  if (stored >= query.k && stored != before && query.k > 0) {
    Kept kept(hits, query.k);
    for (uint32_t first = laneOf(); first - laneOf() < stored; first += kLoads * 32) {
      NearEntry e[kLoads];
#pragma unroll
      for (uint32_t j = 0; j < kLoads; j++) e[j] = first + 32 * j < stored ? entries[first + 32 * j] : NearEntry{};
#pragma unroll
      for (uint32_t j = 0; j < kLoads; j++) kept.offer(first + 32 * j < stored && kept.takes(e[j].value, e[j].id), e[j].value, e[j].id);
    }
    for (uint32_t i = laneOf(); i < query.k; i += 32) entries[i] = {hits.values[i], hits.ids[i], 0};
    limit = min(limit, kept.last - 1);  // no value is 0 as an integer
  }
  if (laneOf() != 0) return;
  if (query.k > 0) state.limit = limit;
  state.passed += stored - before;
  state.stored = state.kept = min(stored, query.k);
}

}  // namespace

// blockIdx.x * kWarps is the first query.
extern "C" __global__ void __launch_bounds__(32 * kWarps) near_compact_few(const Near n) {
  __shared__ WarpHits hits[kWarps];
  const uint32_t q = n.firstQuery + blockIdx.x * kWarps + warpOf();
  if (q < n.queriesOfBatch) compactFew(n, q, hits[warpOf()]);
}

extern "C" __device__ const uint32_t near_few_threads = 32 * kWarps;

}  // namespace geniemq
