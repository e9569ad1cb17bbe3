// Searches by cells (index/metric/cells): objects lie in cells, each around a centroid, and a query compares those of the cells whose centroids are nearest to it.
//
// Centroids are a column like any other (near_scan.cu), and the nearest are what a search of it has found. Here the objects of their cells become the list of the query in the column
// itself, which near_gate.cu compares. The host has seen to it that a list has room for the largest cells.
#include "near.cuh"

namespace geniemq {

struct NearCelled {
  Near near;                 // of the column
  const NearQuery* queries;  // of the centroids
  const NearState* states;
  const NearEntry* entries;
  const uint32_t* starts;    // by cell and one more: its first place
  const uint32_t* order;     // by place: the object
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearCelled) == 160);

namespace {

constexpr uint32_t kThreads = 256;

struct Shared {
  uint32_t scratch[32];
  uint32_t places[kThreads], begins[kThreads], ends[kThreads];  // of some cells: where they go on the list, and where they lie
};

}  // namespace

// Lists the objects of cells. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) near_celled(const NearCelled v) {
  __shared__ Shared s;
  const uint32_t q = blockIdx.x, kept = v.states[q].kept;
  const NearEntry* entries = v.entries + v.queries[q].entries;
  uint32_t* list = v.near.lists + size_t{q} * v.near.listRoom;
  uint32_t listed = 0;
  for (uint32_t first = 0; first < kept; first += kThreads) {
    const bool real = first + threadIdx.x < kept;
    const uint32_t cell = real ? entries[first + threadIdx.x].id : 0;
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
  if (threadIdx.x == 0) v.near.states[q].list = listed;
}

extern "C" __device__ const uint32_t near_cells_threads = kThreads;

}  // namespace geniemq
