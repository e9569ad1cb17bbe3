// Visits of cells by many queries at once: what near_cells.cu and near_visits.cu have in common.
#pragma once
#include "near_hits.cuh"
#include "near_sieve.cuh"

namespace geniemq {

constexpr uint32_t kVisitQueries = 64;  // of a group
constexpr uint32_t kVisitObjects = 32;  // cells begin at multiples of it

// Queries that visit a cell: NearVisits::pairs[first .. first + queries).
struct NearGroup {
  uint32_t cell, first, queries;
};

struct NearVisits {
  // Of the column, in the order of cells.
  const uint8_t* few;       // float16s, and what sums begin with; between cells there is room up to kVisitObjects
  const uint32_t* begins;
  const NearReach* reach;   // of all objects
  const uint32_t* padded;   // by cell and one more: its first place there
  const uint32_t* starts;   // by cell and one more: its first place in `order`
  const uint32_t* order;    // by place: the object
  // Of the search for cells.
  const NearQuery* asked;
  const NearState* found;
  const NearEntry* cells;
  // Of the groups.
  uint32_t* counts;         // by cell: queries, then where the next one is put; and two more: how many groups and pairs there are
  uint32_t* pairs;          // queries, by cell; of near_visits_mark, by query a set of cells
  NearGroup* groups;
  // Of the queries.
  const NearQuery* queries;
  NearState* states;
  const NearEntry* entries;
  NearEntry* out;
  uint32_t* lists;
  const NearSieved* sieved;
  const uint32_t* halves;
  double gamma, scale;
  uint32_t dims, angles, steps, queriesOfBatch, listRoom, count;  // count: of cells
};

// What a column has in the order of cells, and where it is made of what lies in that of objects.
struct NearVisitsOrder {
  const uint8_t* few;
  const uint32_t* begins;
  const NearReach* reaches;  // by tile
  const uint32_t* starts;
  const uint32_t* order;
  const uint32_t* padded;
  uint8_t* fewTo;
  uint32_t* beginsTo;
  NearReach* reachTo;
  uint32_t steps, tiles;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearGroup) == 12 && sizeof(NearVisits) == 192 && sizeof(NearVisitsOrder) == 80);

#ifdef __CUDACC__
namespace {

// The cell that is nearest, of so many; the lanes of a warp call it together.
__device__ __forceinline__ uint32_t nearestOf(const NearEntry* cells, uint32_t count) {
  uint64_t least = ~0ull;
  uint32_t nearest = ~0u;
  for (uint32_t i = laneOf(); i < count; i += 32)
    if (precedes(cells[i].value, cells[i].id, least, nearest)) least = cells[i].value, nearest = cells[i].id;
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) {
    const uint64_t other = __shfl_xor_sync(~0u, least, d);
    const uint32_t of = __shfl_xor_sync(~0u, nearest, d);
    if (precedes(other, of, least, nearest)) least = other, nearest = of;
  }
  return nearest;
}

}  // namespace
#endif

}  // namespace geniemq
