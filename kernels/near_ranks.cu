// Searches by rank vectors (index/metric/permutation): an object's ranks say in which order a few objects, the permutants, are near to it, and objects whose ranks are like a query's
// are likely to be near the query.
//
// Rank vectors are a column of bytes like any other: rho is l2 of them, footrule l1, and the candidates are the first by (value, id), which a search of that column finds
// finds. They are whole numbers below 2^24, so that float64s hold them exactly, and candidates are those of the host. Here they become the list of the query in the column itself,
// of which near_gate.cu compares vectors and points, and near_list_edits_* texts.
//
// Bytes are compared four at a time (rank_*): a block has kRankQueries queries in shared memory and goes through a stretch of objects, a thread each. It takes a small part of what float64s do (near_scan.cu), whose Gate it has.
//
// Many candidates are wanted, and to keep them from wave to wave takes longer than to find them. So where a guess is wanted a sample of the objects is ranked first, whose r-th value is taken for a
// limit (near_guess): r is what the sample has of the candidates by its share, and six standard deviations more. With that limit all objects are one wave. If there are too few then, or more than
// there is room for, the query is given up, and asked again without a guess (near_guessed, near_gate.cu): so no guess changes an answer.
#include "near_nth.cuh"
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

// A wave of rank vectors: those of every stride-th object, of so many, of which a block has `stretch`; and so many candidates have room beside those that are wanted.
struct NearRankScan {
  Near near;
  uint32_t stride, room, objects, stretch;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearRanked) == 168 && sizeof(NearRankScan) == 144);

namespace {

constexpr uint32_t kListThreads = 256;

constexpr uint32_t kRankObjects = 128;  // of a block at a time, a thread each
constexpr uint32_t kRankQueries = 32;   // of a block, a bit each
constexpr uint32_t kRankGroup = 8;      // queries between which a warp does not append
constexpr uint32_t kRankWords = 16;     // of four ranks, that a thread has of an object at a time
constexpr uint32_t kMostWords = 64;
constexpr uint32_t kRankBlocks = 4;     // of a multiprocessor
constexpr int kMostRanked = 1 << 30;    // no rank distance is as large
constexpr float kDeviations = 6;
static_assert(kHeld * kListThreads >= kMostHeld);  // a sample is no more

// What a warp has found and not appended: a rank distance less the square of the query's ranks, with the query in its lower bits, and the object.
struct RankFound {
  int valueAndQuery;
  uint32_t object;
};
static_assert(kRankQueries == 32 && 2ull * 4 * kMostWords * 255 * 255 < 1ull << 26);  // such a value has 27 bits with its sign

struct RankShared {
  NearQuery asked[kRankQueries];
  alignas(16) int below[kRankQueries];
  int squares[kRankQueries];
  RankFound found[kRankObjects / 32][32 + 32 * kRankGroup];
  alignas(16) uint32_t queries[kMostWords / kRankWords][kRankQueries][kRankWords];
};

// What a rank distance is made of: words, and squares of an object's ranks and a query's.
struct Rho {
  static constexpr bool kSquares = true;
  static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b, uint32_t sum) { return __dp4a(a, b, sum); }
  static __device__ __forceinline__ int of(uint32_t sum, uint32_t square) { return int(square - 2 * sum); }
};
struct Footrule {
  static constexpr bool kSquares = false;
  static __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b, uint32_t sum) { return uint32_t(differ(a, b, int(sum))); }
  static __device__ __forceinline__ int of(uint32_t sum, uint32_t) { return int(sum); }
};

// Words of an object's ranks from one on, zeros behind the last and where there is none: these add nothing.
__device__ __forceinline__ void loadRanks(const Near& n, uint32_t (&words)[kRankWords], uint32_t object, uint32_t first, bool there) {
  const uint32_t all = there ? n.dims : 0;
  const uint8_t* const row = n.rows + size_t{object} * n.dims + 4 * first;
  if (n.dims % 16 == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kRankWords; i += 4) {
      const uint4 x = 4 * (first + i) < all ? __ldg(reinterpret_cast<const uint4*>(row) + i / 4) : uint4{};
      words[i] = x.x, words[i + 1] = x.y, words[i + 2] = x.z, words[i + 3] = x.w;
    }
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kRankWords; i++) {
    words[i] = 0;
#pragma unroll
    for (uint32_t b = 0; b < 4; b++)
      if (4 * (first + i) + b < all) words[i] |= uint32_t{__ldg(row + 4 * i + b)} << 8 * b;
  }
}

// Brings queries into shared memory, and what rank distances have to be below, less what of them is the query's.
template <class Similarity>
__device__ void loadQueries(const Near& n, RankShared& s, uint32_t words, uint32_t query, uint32_t queries) {
  for (uint32_t i = threadIdx.x; i < kRankQueries * words; i += kRankObjects) {
    const uint32_t q = i / words, w = i % words;
    uint32_t word = 0;
    for (uint32_t b = 0; b < 4 && 4 * w + b < n.dims && q < queries; b++) word |= uint32_t(__ldg(n.vectors + size_t{query + q} * n.dims + 4 * w + b)) << 8 * b;
    s.queries[w / kRankWords][q][w % kRankWords] = word;
  }
  __syncthreads();
  if (threadIdx.x >= kRankQueries) return;
  const uint32_t q = threadIdx.x;
  uint32_t square = 0;
  for (uint32_t w = 0; w < words && Similarity::kSquares; w++) square = __dp4a(s.queries[w / kRankWords][q][w % kRankWords], s.queries[w / kRankWords][q][w % kRankWords], square);
  s.squares[q] = int(square), s.below[q] = -kMostRanked;
  if (q >= queries) return;
  s.asked[q] = n.queries[query + q];
  const double limit = valueOf(n.states[query + q].limit);
  if (limit >= 0) s.below[q] = int(fmin(limit, double(kMostRanked))) + 1 - int(square);
}

// Appends what a warp has found, from one on 32 or fewer, one a lane, so that it waits for memory once for them. Lanes of the same query ask together for their places: of a sample all are.
__device__ __forceinline__ void append(const NearRankScan& v, const RankShared& s, uint32_t query, uint32_t first, uint32_t n) {
  __syncwarp();  // what other lanes have written
  const bool there = laneOf() < n;
  const RankFound found = there ? s.found[warpOf()][first + laneOf()] : RankFound{};
  const uint32_t q = uint32_t(found.valueAndQuery) % kRankQueries;
  const NearQuery& of = s.asked[q];
  const uint32_t stays = __ballot_sync(~0u, there && mayHit(v.near, of, found.object));
  const uint32_t alike = __match_any_sync(~0u, q) & stays, leader = alike != 0 ? __ffs(int(alike)) - 1 : 0;
  uint32_t place = 0;
  if (alike != 0 && laneOf() == leader) place = atomicAdd(&v.near.states[query + q].stored, __popc(alike));
  place = __shfl_sync(~0u, place, leader) + __popc(alike & ((1u << laneOf()) - 1));
  if ((stays >> laneOf() & 1) && place < v.room + of.k) v.near.entries[of.entries + place] = {orderedOf(double((found.valueAndQuery >> 5) + s.squares[q])), found.object + v.near.base, 0};
  __syncwarp();  // before they are written again
}

// A block goes through so many objects, and loads the next one's ranks while it compares.
template <class Similarity>
__device__ void scanRanks(const NearRankScan& v, RankShared& s) {
  const Near& n = v.near;
  const uint32_t query = n.firstQuery + blockIdx.x * kRankQueries, queries = min(kRankQueries, n.queriesOfBatch - query);
  const uint32_t from = n.first + blockIdx.y * v.stretch, to = min(n.end, from + v.stretch);
  const uint32_t words = ((n.dims + 3) / 4 + kRankWords - 1) / kRankWords * kRankWords;
  uint32_t next[kRankWords];
  loadRanks(n, next, (from + threadIdx.x) * v.stride, 0, from + threadIdx.x < to);
  loadQueries<Similarity>(n, s, words, query, queries);
  __syncthreads();
  RankFound* const found = s.found[warpOf()];
  uint32_t count = 0;
  for (uint32_t object = from + threadIdx.x; object - threadIdx.x < to; object += kRankObjects) {
    uint32_t sums[kRankQueries] = {}, square = 0;
    for (uint32_t first = 0; first < words; first += kRankWords) {
      uint32_t own[kRankWords];
#pragma unroll
      for (uint32_t i = 0; i < kRankWords; i++) own[i] = next[i];
      const bool last = first + kRankWords == words;
      const uint32_t after = last ? object + kRankObjects : object;
      loadRanks(n, next, after * v.stride, last ? 0 : first + kRankWords, after < to);
      const auto& columns = s.queries[first / kRankWords];
#pragma unroll
      for (uint32_t i = 0; i < kRankWords; i += 4) {
        if (Similarity::kSquares) square = __dp4a(own[i], own[i], __dp4a(own[i + 1], own[i + 1], __dp4a(own[i + 2], own[i + 2], __dp4a(own[i + 3], own[i + 3], square))));
#pragma unroll
        for (uint32_t q = 0; q < kRankQueries; q++) {
          const uint4 x = *reinterpret_cast<const uint4*>(&columns[q][i]);
          sums[q] = Similarity::add(own[i + 3], x.w, Similarity::add(own[i + 2], x.z, Similarity::add(own[i + 1], x.y, Similarity::add(own[i], x.x, sums[q]))));
        }
      }
    }
    uint32_t candidates = 0;  // by query: a bit
#pragma unroll
    for (uint32_t first = 0; first < kRankQueries; first += 4) {
      const int4 below = *reinterpret_cast<const int4*>(&s.below[first]);
      const int of[4] = {below.x, below.y, below.z, below.w};
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) candidates |= Similarity::of(sums[first + i], square) < of[i] ? 1u << (first + i) : 0;
    }
    if (object >= to) candidates = 0;
    const uint32_t some = __reduce_or_sync(~0u, candidates);
    if (some == 0) continue;
#pragma unroll
    for (uint32_t first = 0; first < kRankQueries; first += kRankGroup) {
#pragma unroll
      for (uint32_t q = first; q < first + kRankGroup; q++) {
        if ((some >> q & 1) == 0) continue;
        const bool stays = candidates >> q & 1;
        const uint32_t all = __ballot_sync(~0u, stays);
        if (stays) found[count + __popc(all & ((1u << laneOf()) - 1))] = {int(uint32_t(Similarity::of(sums[q], square)) << 5 | q), object * v.stride};
        count += __popc(all);
      }
      for (; count >= 32; count -= 32) append(v, s, query, count - 32, 32);
    }
  }
  append(v, s, query, 0, count);
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

// Takes the limit of a query from a sample, and forgets it. blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kListThreads) near_guess(const NearRankScan v) {
  __shared__ NthScratch<kListThreads> s;
  const Near& n = v.near;
  const uint32_t q = n.firstQuery + blockIdx.x;
  const NearQuery query = n.queries[q];
  NearState& state = n.states[q];
  const uint32_t stored = state.stored;
  const float mean = float(query.k) * float(n.end) / float(v.objects);
  const uint32_t wanted = uint32_t(ceilf(mean + kDeviations * sqrtf(mean) + 4));
  uint64_t own[kHeld], limit = ~0ull;
  hold<kListThreads>(own, stored, [&](uint32_t i) { return n.entries[query.entries + i].value; });
  uint32_t upTo;
  if (stored >= wanted) limit = nthOf<kListThreads>(own, wanted, upTo, s);
  __syncthreads();  // all have read what is written below
  if (threadIdx.x == 0) state.limit = min(state.limit, limit), state.stored = state.kept = 0;
}

// blockIdx.x counts blocks of queries, blockIdx.y those of objects.
#define GENIEMQ_RANKS(name, Similarity)                                                                  \
  extern "C" __global__ void __launch_bounds__(kRankObjects, kRankBlocks) name(const NearRankScan v) { \
    __shared__ RankShared s;                                                                             \
    scanRanks<Similarity>(v, s);                                                                         \
  }
GENIEMQ_RANKS(rank_squares, Rho)
GENIEMQ_RANKS(rank_differences, Footrule)
#undef GENIEMQ_RANKS

extern "C" __device__ const uint32_t near_ranks_threads = kListThreads, rank_threads = kRankObjects, rank_queries = kRankQueries, rank_blocks = kRankBlocks;

}  // namespace geniemq
