// The hits of a query that one warp has: the k first of what it is offered, by (value, id).
//
// They lie in shared memory in their order, at most kWarpHits: an object that precedes the k-th moves those behind it. Lane i of a chunk of 32 has place 32 chunk + i; chunks are
// moved last first, so what a chunk reads of the one before it is still in its old place. All lanes of the warp know how many hits there are, and the last one.
//
// Of n offers in no order about k (1 + log(n / k)) are inserted, each by some 40 instructions, and the others cost a comparison each: for few hits that is a tenth of what sorting them,
// or finding the k-th by digits, takes.
#pragma once
#include "near.cuh"

namespace geniemq {

constexpr uint32_t kWarpHits = 128;  // of a query, at most

#ifdef __CUDACC__
namespace {

struct WarpHits {
  uint64_t values[kWarpHits];
  uint32_t ids[kWarpHits];
};

__device__ __forceinline__ bool precedes(uint64_t value, uint32_t id, uint64_t other, uint32_t of) { return value < other || value == other && id < of; }

// What a warp knows of its hits.
struct Kept {
  WarpHits& hits;
  const uint32_t k;
  uint32_t found = 0;
  uint64_t last = 0;  // the k-th hit, of which there is one
  uint32_t lastId = 0;

  __device__ Kept(WarpHits& h, uint32_t wanted) : hits(h), k(wanted) {}

  __device__ bool takes(uint64_t value, uint32_t id) const { return found < k || precedes(value, id, last, lastId); }

  // Puts a hit in its place that is taken; k is not 0.
  __device__ void insert(uint64_t value, uint32_t id) {
    uint32_t place = 0;
    for (uint32_t first = 0; first < found; first += 32) {
      const uint32_t e = first + laneOf();
      place += __popc(__ballot_sync(~0u, e < found && precedes(hits.values[e], hits.ids[e], value, id)));
    }
    found = min(found + 1, k);
    for (uint32_t first = (found - 1) / 32 * 32; first + 32 > place; first -= 32) {
      const uint32_t e = first + laneOf();
      const bool moves = e > place && e < found;
      const uint64_t before = moves ? hits.values[e - 1] : 0;
      const uint32_t of = moves ? hits.ids[e - 1] : 0;
      __syncwarp();
      if (moves) hits.values[e] = before, hits.ids[e] = of;
      __syncwarp();
      if (first == 0) break;
    }
    if (laneOf() == 0) hits.values[place] = value, hits.ids[place] = id;
    __syncwarp();
    if (found == k) last = hits.values[found - 1], lastId = hits.ids[found - 1];
  }

  // Offers an object per lane, of those lanes that have one. It returns how many were inserted. k is not 0.
  __device__ uint32_t offer(bool has, uint64_t value, uint32_t id) {
    uint32_t inserted = 0;
    for (uint32_t left = __ballot_sync(~0u, has); left != 0; left &= left - 1) {
      const uint32_t lane = __ffs(left) - 1;
      const uint64_t its = __shfl_sync(~0u, value, lane);
      const uint32_t of = __shfl_sync(~0u, id, lane);
      if (takes(its, of)) {
        insert(its, of);
        inserted++;
      }
    }
    return inserted;
  }
};

}  // namespace
#endif

}  // namespace geniemq
