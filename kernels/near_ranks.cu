// Searches by rank vectors (index/metric/permutation): an object's ranks say in which order a few objects, the permutants, are near to it, and objects whose ranks are like a query's
// are likely to be near the query.
//
// Rank vectors are a column of bytes like any other: rho is l2 of them, footrule l1, and the candidates are the first by (value, id), which a search of that column finds
// finds. They are whole numbers below 2^24, so that float64s hold them exactly, and candidates are those of the host. Here they become the list of the query in the column itself,
// of which near_gate.cu compares vectors and points, and near_list_edits_* texts.
//
// Bytes are compared four at a time (rank_*): a block has kRankObjects objects, a thread each, and kRankQueries queries, of which lane i of a warp has the counter of query i. It
// takes a tenth of what float64s do (near_scan.cu), whose Gate it has.
//
// Many candidates are wanted, and to keep them from wave to wave takes longer than to find them. So where a guess is wanted a sample of the objects is ranked first, whose r-th value is taken for a
// limit (near_guess): r is what the sample has of the candidates by its share, and six standard deviations more. With that limit all objects are one wave. If there are too few then, or more than
// there is room for, the query is given up, and asked again without a guess (near_guessed, near_gate.cu): so no guess changes an answer.
#include "near_hits.cuh"
#include "near_product.cuh"
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

// A wave of rank vectors: those of every stride-th object, of so many, and so many candidates have room beside those that are wanted.
struct NearRankScan {
  Near near;
  uint32_t stride, room, objects, unused;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearRanked) == 160 && sizeof(NearRankScan) == 136);

namespace {

constexpr uint32_t kListThreads = 256;

constexpr uint32_t kRankObjects = 128;  // of a block, a thread each
constexpr uint32_t kRankQueries = 32;   // of a block, a lane each
constexpr uint32_t kRankStep = 4;       // words that are compared between two loads
constexpr uint32_t kGuessing = 4;       // warps of a block that guesses
constexpr float kDeviations = 6;

// WORDS of four ranks, at most.
template <uint32_t WORDS>
struct RankShared {
  NearQuery asked[kRankQueries];
  uint32_t limits[kRankQueries], squares[kRankQueries];
  alignas(16) uint32_t queries[kRankQueries][WORDS];
  uint32_t rows[kRankObjects][WORDS + 1];  // so that a warp reads a word from as many banks
};

// What a rank distance is made of, and what it is then; query: the sum of the squares of its ranks.
struct Rho {
  static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b, uint32_t sum) { return __dp4a(a, b, sum); }
  static __device__ __forceinline__ uint32_t of(uint32_t sum, uint32_t object, uint32_t query) { return object + query - 2 * sum; }
};
struct Footrule {
  static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b, uint32_t sum) { return uint32_t(differ(a, b, int(sum))); }
  static __device__ __forceinline__ uint32_t of(uint32_t sum, uint32_t, uint32_t) { return sum; }
};

// Brings ranks of objects and queries into shared memory, zeros behind the last, up to whole steps: these add nothing.
template <uint32_t WORDS>
__device__ void loadRanks(const Near& n, RankShared<WORDS>& s, uint32_t words, uint32_t object, uint32_t objects, uint32_t stride, uint32_t query, uint32_t queries) {
  const uint8_t* rows = n.rows + size_t{object} * stride * n.dims;
  for (uint32_t i = threadIdx.x; i < objects * words; i += kRankObjects) {
    const uint32_t row = i / words, w = i % words;
    uint32_t word = 0;
    if (n.dims % 4 == 0) {
      if (4 * w < n.dims) word = __ldg(reinterpret_cast<const uint32_t*>(rows) + size_t{row} * stride * (n.dims / 4) + w);
    } else {
      for (uint32_t b = 0; b < 4 && 4 * w + b < n.dims; b++) word |= uint32_t{__ldg(rows + size_t{row} * stride * n.dims + 4 * w + b)} << 8 * b;
    }
    s.rows[row][w] = word;
  }
  for (uint32_t i = threadIdx.x; i < kRankQueries * words; i += kRankObjects) {
    const uint32_t q = i / words, w = i % words;
    uint32_t word = 0;
    for (uint32_t b = 0; b < 4 && 4 * w + b < n.dims && q < queries; b++) word |= uint32_t(__ldg(n.vectors + size_t{query + q} * n.dims + 4 * w + b)) << 8 * b;
    s.queries[q][w] = word;
  }
  if (threadIdx.x < queries) {
    s.asked[threadIdx.x] = n.queries[query + threadIdx.x];
    const double limit = valueOf(n.states[query + threadIdx.x].limit);
    s.limits[threadIdx.x] = limit < 0 ? 0 : uint32_t(fmin(limit, 0x1p31)) + 1;  // what is below it may stay
  }
}

template <class Similarity, uint32_t WORDS>
__device__ void scanRanks(const NearRankScan& v, RankShared<WORDS>& s) {
  const Near& n = v.near;
  const uint32_t query = n.firstQuery + blockIdx.x * kRankQueries, queries = min(kRankQueries, n.queriesOfBatch - query);
  const uint32_t object = n.first + blockIdx.y * kRankObjects, objects = min(kRankObjects, n.end - object);
  const uint32_t words = ((n.dims + 3) / 4 + kRankStep - 1) / kRankStep * kRankStep;
  loadRanks(n, s, words, object, objects, v.stride, query, queries);
  __syncthreads();
  if (threadIdx.x < kRankQueries) {
    uint32_t square = 0;
    for (uint32_t w = 0; w < words; w++) square = __dp4a(s.queries[threadIdx.x][w], s.queries[threadIdx.x][w], square);
    s.squares[threadIdx.x] = square;
  }
  __syncthreads();
  const bool real = threadIdx.x < objects;
  uint32_t sums[kRankQueries] = {}, square = 0;
  for (uint32_t first = 0; first < words; first += kRankStep) {
    uint32_t own[kRankStep];
#pragma unroll
    for (uint32_t i = 0; i < kRankStep; i++) {
      own[i] = real ? s.rows[threadIdx.x][first + i] : 0;
      square = __dp4a(own[i], own[i], square);
    }
#pragma unroll
    for (uint32_t q = 0; q < kRankQueries; q++) {
      const uint4 x = *reinterpret_cast<const uint4*>(&s.queries[q][first]);
      sums[q] = Similarity::add(own[3], x.w, Similarity::add(own[2], x.z, Similarity::add(own[1], x.y, Similarity::add(own[0], x.x, sums[q]))));
    }
  }
  const uint32_t id = (object + threadIdx.x) * v.stride;
  uint32_t candidates = 0, stayed = 0;  // by query: a bit; by lane: of its query
#pragma unroll
  for (uint32_t q = 0; q < kRankQueries; q++) {
    sums[q] = Similarity::of(sums[q], square, s.squares[q]);
    const bool stays = q < queries && real && sums[q] < s.limits[q] && mayHit(n, s.asked[q], id);
    const uint32_t all = __ballot_sync(~0u, stays);
    if (laneOf() == q) stayed = __popc(all);
    candidates |= uint32_t{stays} << q;
  }
  const uint32_t places = stayed != 0 ? atomicAdd(&n.states[query + laneOf()].stored, stayed) : 0;
#pragma unroll
  for (uint32_t q = 0; q < kRankQueries; q++) {
    const bool stays = candidates >> q & 1;
    const uint32_t all = __ballot_sync(~0u, stays);
    if (all == 0) continue;
    const uint32_t place = __shfl_sync(~0u, places, q) + __popc(all & ((1u << laneOf()) - 1));
    if (stays && place < v.room + s.asked[q].k) n.entries[s.asked[q].entries + place] = {orderedOf(sums[q]), id + n.base, 0};
  }
}

// Compares what is listed of a query, a block of threads.
template <int kLanes>
__device__ void compareTexts(const NearRanked& v) {
  constexpr uint32_t kPairs = 32 / kLanes, kTogether = kListThreads / kLanes;
  const Near& n = v.near;
  const uint32_t q = blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t listed = state.list;
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

// Lists the candidates. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kListThreads) near_ranked(const NearRanked v) {
  const uint32_t q = blockIdx.x;
  const NearState& ranked = v.states[q];
  if (ranked.given) {
    if (threadIdx.x == 0) v.near.states[q].given = 1, v.near.states[q].list = 0;
    return;
  }
  const NearEntry* entries = v.entries + v.queries[q].entries;
  uint32_t* list = v.near.lists + size_t{q} * v.near.listRoom;
  for (uint32_t i = threadIdx.x; i < ranked.kept; i += kListThreads) list[i] = entries[i].id - v.near.base;
  if (threadIdx.x == 0) v.near.states[q].list = ranked.kept;
}

#define GENIEMQ_LIST_EDITS(LANES)                                                                                        \
  extern "C" __global__ void __launch_bounds__(kListThreads) near_list_edits_##LANES(const NearRanked v) { compareTexts<LANES>(v); }
GENIEMQ_LIST_EDITS(1)
GENIEMQ_LIST_EDITS(2)
GENIEMQ_LIST_EDITS(4)

// Takes the limit of a query from a sample, and forgets it. A warp has a query; more than kWarpHits are not kept, so a sample has few of what is wanted.
extern "C" __global__ void __launch_bounds__(32 * kGuessing) near_guess(const NearRankScan v) {
  __shared__ WarpHits hits[kGuessing];
  const Near& n = v.near;
  const uint32_t q = n.firstQuery + blockIdx.x * kGuessing + warpOf();
  if (q >= n.queriesOfBatch) return;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t stored = state.stored;
  const float mean = float(query.k) * float(n.end) / float(v.objects);
  Kept kept(hits[warpOf()], min(kWarpHits, uint32_t(ceilf(mean + kDeviations * sqrtf(mean) + 4))));
  for (uint32_t first = 0; first < stored; first += 32) {
    const uint32_t i = first + laneOf();
    const NearEntry e = i < stored ? n.entries[query.entries + i] : NearEntry{};
    kept.offer(i < stored && kept.takes(e.value, e.id), e.value, e.id);
  }
  __syncwarp();
  if (laneOf() != 0) return;
  if (kept.found == kept.k) state.limit = min(state.limit, kept.last);
  state.stored = state.kept = 0;
}

// blockIdx.x counts blocks of queries, blockIdx.y those of objects. Of so many ranks, at most.
#define GENIEMQ_RANKS(name, Similarity, RANKS)                                                             \
  extern "C" __global__ void __launch_bounds__(kRankObjects) rank_##name##_##RANKS(const NearRankScan v) { \
    __shared__ RankShared<RANKS / 4> s;                                                                    \
    scanRanks<Similarity>(v, s);                                                                           \
  }
GENIEMQ_RANKS(squares, Rho, 64)
GENIEMQ_RANKS(squares, Rho, 128)
GENIEMQ_RANKS(squares, Rho, 256)
GENIEMQ_RANKS(differences, Footrule, 64)
GENIEMQ_RANKS(differences, Footrule, 128)
GENIEMQ_RANKS(differences, Footrule, 256)

extern "C" __device__ const uint32_t near_ranks_threads = kListThreads, rank_threads = kRankObjects, rank_queries = kRankQueries, near_guess_threads = 32 * kGuessing;

}  // namespace geniemq
