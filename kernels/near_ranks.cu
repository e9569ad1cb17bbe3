// Searches by rank vectors (index/metric/permutation): an object's ranks say in which order a few objects, the permutants, are near to it, and objects whose ranks are like a query's
// are likely to be near the query.
//
// Rank vectors are a column of bytes like any other: rho is l2 of them, footrule l1, and the candidates are the first by (value, id), which a search of that column finds
// (near_scan.cu, near_sieve.cu). They are whole numbers below 2^24, so that float64s hold them exactly, and candidates are those of the host. Here they become the list of the
// query in the column itself, of which near_gate.cu compares vectors and points, and near_list_edits_* texts.
#include "near_texts.cuh"

namespace geniemq {

struct NearRanked {
  Near near;                   // of the column
  const NearQuery* queries;    // of the rank vectors
  const NearState* states;
  const NearEntry* entries;
  const uint32_t* starts;      // of texts (NearTexts)
  uint32_t symbols, unused;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearRanked) == 160);

namespace {

constexpr uint32_t kThreads = 256;

// Compares what is listed of a query, a block of threads.
template <int kLanes>
__device__ void compareTexts(const NearRanked& v) {
  constexpr uint32_t kPairs = 32 / kLanes, kTogether = kThreads / kLanes;
  const Near& n = v.near;
  const uint32_t q = blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t listed = state.given ? 0 : state.list;
  const uint32_t* list = n.lists + size_t{q} * n.listRoom;
  const NearTexts texts{v.starts, v.symbols};
  for (uint32_t first = warpOf() * kPairs; first < listed; first += kTogether) {
    const uint32_t i = first + laneOf() / kLanes;
    const bool real = i < listed;
    const uint32_t object = real ? list[i] : 0;
    const double d = texts.value<kLanes>(n, q, object, real);
    const bool own = real && laneOf() % kLanes == 0;
    const uint64_t value = own ? orderedOf(d) : ~0ull;
    passGate(n, query, state, query.most, own && value <= query.most, value, object);
  }
  if (threadIdx.x == 0) state.listed = listed;
}

}  // namespace

// Lists the candidates. Whose sieve had no room is given up. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kThreads) near_ranked(const NearRanked v) {
  const uint32_t q = blockIdx.x;
  const NearState& ranked = v.states[q];
  const NearEntry* entries = v.entries + v.queries[q].entries;
  uint32_t* list = v.near.lists + size_t{q} * v.near.listRoom;
  const uint32_t kept = ranked.given ? 0 : ranked.kept;
  for (uint32_t i = threadIdx.x; i < kept; i += kThreads) list[i] = entries[i].id - v.near.base;
  if (threadIdx.x != 0) return;
  v.near.states[q].list = kept;
  v.near.states[q].given = ranked.given;
}

#define GENIEMQ_LIST_EDITS(LANES)                                                                                        \
  extern "C" __global__ void __launch_bounds__(kThreads) near_list_edits_##LANES(const NearRanked v) { compareTexts<LANES>(v); }
GENIEMQ_LIST_EDITS(1)
GENIEMQ_LIST_EDITS(2)
GENIEMQ_LIST_EDITS(4)

extern "C" __device__ const uint32_t near_ranks_threads = kThreads;

}  // namespace geniemq
