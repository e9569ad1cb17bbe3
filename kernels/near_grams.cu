// Searches by distance within a radius, of texts by what n-grams they share with the query's: a text within it is in so many of the lists that the host has chosen (gpuexec/cpu/nearest,
// gramQuery). These are counted here, and what is in enough of them becomes the list of the query, which near_list_edits_* compares (near_ranks.cu).
//
// A block counts a tile for a query, a byte an object: there are at most 255 lists. No object is in a list twice, so whoever makes a counter the number that is wanted lists the object, and
// nothing is read again. Neither the lists' order nor that of their objects matters.
#include "near.cuh"

namespace geniemq {

// What a query counts: numbers of n-grams, `frequent` ones and then `rare` ones. Of no list nothing is found.
struct GramAsk {
  uint32_t first, frequent, rare, least;
};

struct NearGrams {
  Near near;                   // of the texts
  const GramAsk* asks;         // by query
  const uint32_t* numbers;
  const uint32_t* starts;      // by tile and frequent n-gram, and one more: its first object among those of the tile
  const uint64_t* tiles;       // where these begin
  const uint16_t* ids;
  const uint32_t* rareStarts;  // by rare n-gram, and one more
  const uint32_t* rareIds;     // of the whole index
  uint32_t frequent, unused;   // n-grams
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(kTileObjects % sizeof(uint4) == 0 && sizeof(GramAsk) == 16 && sizeof(NearGrams) == 192);

namespace {

constexpr uint32_t kThreads = 512;
constexpr uint32_t kTile = kTileObjects;  // objects, and bytes of counters

struct Counting {
  const Near& n;
  const NearQuery query;
  const uint32_t q, first, least;  // the tile's first object
  uint32_t* const counts;

  __device__ void add(uint32_t id) const {
    const uint32_t shift = id % 4 * 8;
    if ((atomicAdd(counts + id / 4, 1u << shift) >> shift & 255) + 1 != least) return;
    const uint32_t object = first + id;
    if (!mayHit(n, query, object)) return;
    const uint32_t place = atomicAdd(&n.states[q].list, 1);
    if (place < n.listRoom) n.lists[size_t{q} * n.listRoom + place] = object;
  }
};

}  // namespace

// blockIdx.x is the query, blockIdx.y the tile of those on the device.
extern "C" __global__ void __launch_bounds__(kThreads) near_grams(const NearGrams v) {
  extern __shared__ __align__(16) uint8_t memory[];
  const uint32_t q = blockIdx.x, tile = blockIdx.y;
  const GramAsk ask = v.asks[q];
  if (ask.frequent + ask.rare == 0) return;
  for (uint32_t i = threadIdx.x; i < kTile / sizeof(uint4); i += kThreads) reinterpret_cast<uint4*>(memory)[i] = {};
  __syncthreads();
  const Counting c{v.near, v.near.queries[q], q, tile * kTile, ask.least, reinterpret_cast<uint32_t*>(memory)};
  const uint32_t* starts = v.starts + size_t{tile} * (v.frequent + 1);
  const uint16_t* ids = v.ids + __ldg(v.tiles + tile);
  for (uint32_t i = warpOf(); i < ask.frequent; i += kThreads / 32) {
    const uint32_t gram = __ldg(v.numbers + ask.first + i), end = __ldg(starts + gram + 1);
    for (uint32_t at = __ldg(starts + gram) + laneOf(); at < end; at += 32) c.add(__ldg(ids + at));
  }
  for (uint32_t i = warpOf(); i < ask.rare; i += kThreads / 32) {
    const uint32_t gram = __ldg(v.numbers + ask.first + ask.frequent + i), end = __ldg(v.rareStarts + gram + 1);
    for (uint32_t at = __ldg(v.rareStarts + gram) + laneOf(); at < end; at += 32)
      if (const uint32_t id = __ldg(v.rareIds + at) - v.near.base; id / kTile == tile) c.add(id % kTile);
  }
}

// Gives up queries whose list had no room for all.
extern "C" __global__ void __launch_bounds__(kThreads) near_grams_listed(const NearGrams v) {
  const uint32_t q = blockIdx.x * kThreads + threadIdx.x;
  if (q >= v.near.queriesOfBatch) return;
  NearState& state = v.near.states[q];
  if (state.list > v.near.listRoom) state.given = 1, state.list = 0;
}

extern "C" __device__ const uint32_t near_grams_threads = kThreads, near_grams_shared = kTile;

}  // namespace geniemq
