// Rare keywords in the (query, tile) kernel: lists that are not cut by tiles.
//
// A keyword with few postings a tile costs more in the tiles' directories than its postings do. Such keywords are kept
// apart: their lists, ascending object ids as u32, lie end to end and are resident as a whole. A block looks for what of
// them lies in its objects. resolve.cu has found the run of a span of keywords: the lists of consecutive keywords are
// one run, which ascends only when it is of one list.
#pragma once
#include "batch.cuh"
#include "block.cuh"

namespace geniemq {

// A run ids [lo, hi), in Span::attribute where the attribute's ids lie: unit of Batch::rare << 1 | one list.
__device__ __forceinline__ const uint32_t* rareIds(const Batch& batch, const Span& span) {
  return reinterpret_cast<const uint32_t*>(batch.rare + (span.attribute >> 1) * size_t{16});
}
__host__ __device__ constexpr bool oneList(const Span& span) { return span.attribute & 1; }

// Calls add(object, weight) for each id of the runs in [lowest, lowest + objects), object counting from lowest. All
// threads call it; each returns its number of calls. A list is one warp's, a run of several lists the whole block's.
template <int THREADS, class Add>
__device__ uint32_t scanRare(const Batch& batch, const Span* spans, uint32_t count, uint32_t lowest, uint32_t objects, Add add) {
  constexpr uint32_t kAhead = 4;  // loads that a lane has under way
  uint32_t found = 0;
  for (uint32_t s = 0; s < count; s++) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(spans) + s);
    const Span span = {v.x, v.y, v.z, v.w};
    const bool one = oneList(span);
    if (one && s % (THREADS / 32) != warpOf()) continue;
    const uint32_t* ids = rareIds(batch, span);
    const uint32_t stride = one ? 32 : THREADS;
    uint32_t begin = span.lo;
    if (one) {
      // The first id that is not below lies in [begin, begin + n]: the lanes cut that into 32 until it is short.
      for (uint32_t n = span.hi - begin; n > 8 * 32;) {
        const uint32_t step = (n + 31) / 32, at = laneOf() * step;
        const uint32_t below = __popc(__ballot_sync(~0u, at < n && __ldg(ids + begin + at) < lowest));
        if (below == 0) break;
        begin += (below - 1) * step;
        n = min(step, n - (below - 1) * step);
      }
    }
    for (uint64_t i = begin; i < span.hi; i += stride * kAhead) {  // i does not wrap
      uint32_t object[kAhead];
      bool beyond = false;
#pragma unroll
      for (uint32_t j = 0; j < kAhead; j++) {
        const uint64_t at = i + j * stride + (one ? laneOf() : threadIdx.x);
        const uint32_t id = at < span.hi ? __ldg(ids + at) : ~0u;
        beyond = beyond || at >= span.hi || (id >= lowest && id - lowest >= objects);
        object[j] = at < span.hi ? id - lowest : ~0u;
      }
#pragma unroll
      for (uint32_t j = 0; j < kAhead; j++) {
        if (object[j] >= objects) continue;
        add(object[j], span.weight);
        found++;
      }
      if (one && __any_sync(~0u, beyond)) break;
    }
  }
  return found;
}

}  // namespace geniemq
