// Searches by cells (index/metric/cells): objects lie in cells, each around a centroid, and a query compares those of the cells whose centroids are nearest to it.
//
// Centroids are a column like any other (near_scan.cu), and the nearest are what a search of it has found. Here the objects of their cells become the list of the query in the column
// itself, which near_gate.cu compares: first those of the nearest cell, and then the others, of which few are within the limit that these have left. The host has seen to it that
// a list has room for the largest cells. A query whose centroids the sieve has given up is given up here too.
//
// Ids of the others may be lower than those of the nearest cell, so that an object whose value equals the k-th may come before it: the limit, which near_gate.cu makes the k-th value
// less one, is raised again, as descents do (descent.cuh).
#include "near.cuh"

namespace geniemq {

struct NearCelled {
  Near near;                 // of the column
  const NearQuery* queries;  // of the centroids
  const NearState* states;
  const NearEntry* entries;
  const uint32_t* starts;    // by cell and one more: its first place
  const uint32_t* order;     // by place: the object
  uint32_t others, unused;   // 0: of the nearest cell; 1: of the others
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearCelled) == 168);

namespace {

constexpr uint32_t kThreads = 256;

struct Shared {
  uint32_t scratch[32];
  uint32_t places[kThreads], begins[kThreads], ends[kThreads];  // of some cells: where they go on the list, and where they lie
  uint64_t values[kThreads / 32];
  uint32_t cells[kThreads / 32];
};

// The cell that is nearest of some, one at least: the first by (value, number).
__device__ uint32_t nearestOf(const NearEntry* entries, uint32_t count, Shared& s) {
  uint64_t value = ~0ull;
  uint32_t cell = ~0u;
  const auto take = [&](uint64_t v, uint32_t c) {
    if (v < value || v == value && c < cell) value = v, cell = c;
  };
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) take(entries[i].value, entries[i].id);
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) take(__shfl_xor_sync(~0u, value, d), __shfl_xor_sync(~0u, cell, d));
  if (laneOf() == 0) s.values[warpOf()] = value, s.cells[warpOf()] = cell;
  __syncthreads();
  for (uint32_t w = 0; w < kThreads / 32; w++) take(s.values[w], s.cells[w]);
  return cell;
}

}  // namespace

// Lists the objects of cells. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) near_celled(const NearCelled v) {
  __shared__ Shared s;
  const uint32_t q = blockIdx.x, kept = v.states[q].kept;
  const NearEntry* entries = v.entries + v.queries[q].entries;
  uint32_t* list = v.near.lists + size_t{q} * v.near.listRoom;
  NearState& state = v.near.states[q];
  if (v.states[q].given) {
    if (threadIdx.x == 0) state.given = 1;
    return;
  }
  const uint32_t nearest = kept > 0 ? nearestOf(entries, kept, s) : 0;
  uint32_t listed = 0;
  for (uint32_t first = 0; first < kept; first += kThreads) {
    const uint32_t cell = first + threadIdx.x < kept ? entries[first + threadIdx.x].id : 0;
    const bool real = first + threadIdx.x < kept && (cell != nearest) == (v.others != 0);
    const uint32_t begin = real ? __ldg(v.starts + cell) : 0, end = real ? __ldg(v.starts + cell + 1) : 0;
    uint32_t total;
    s.places[threadIdx.x] = listed + blockPlace<kThreads>(end - begin, s.scratch, total);
    s.begins[threadIdx.x] = begin;
    s.ends[threadIdx.x] = end;
    listed += total;
    __syncthreads();
    for (uint32_t c = warpOf(); c < min(kThreads, kept - first); c += kThreads / 32)
      for (uint32_t i = s.begins[c] + laneOf(); i < s.ends[c]; i += 32) list[s.places[c] + i - s.begins[c]] = __ldg(v.order + i);
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  state.list = listed;
  if (v.others) state.limit = min(v.near.queries[q].most, state.limit + 1);
}

extern "C" __device__ const uint32_t near_cells_threads = kThreads;

}  // namespace geniemq
