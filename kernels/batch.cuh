// What the kernels read and write: the resident index, a batch of queries, and the state of each query.
#pragma once
#include <cstdint>

namespace geniemq {

// Objects of a tile: index.TileObjects.
constexpr uint32_t kTileObjects = 64512;

// Postings of one (tile, attribute), in canonical form. Offsets count 16-byte units from Index::data.
struct Section {
  uint32_t words;   // directory: a u64 per 32 keywords, presence bits below, rank above
  uint32_t starts;  // u32 start of each list that is present, and the end
  uint32_t ids;     // u16 tile-local ids, zeros up to the next unit
  uint32_t lists;   // keywords that are present; all of this is 0 where the attribute has no postings on the device
};

// A set of consecutive keywords [lo, hi) of one attribute. All spans of a query count, each by its weight: the host has
// flattened items into spans. The (query, tile) kernel wants to know where they are found, which resolve.cu looks up; there
// a span is one of
//   postings  keywords as Section numbers them: all of the attribute, or the frequent ones
//   planes    codes of a bit-sliced attribute without postings here; planes.cuh says what attribute holds
//   rare      the run of rare lists' ids; rare.cuh
struct Span {
  uint32_t attribute, lo, hi, weight;
};

struct Query {
  uint32_t first, spans;  // its spans on postings are Batch::spans[first .. first + spans); then come those on planes, and rare ones
  uint32_t k, bound;      // k >= 1; no object's count exceeds bound
  uint64_t entries;       // its candidate buffer is Batch::entries[entries ..)
  uint64_t out;           // its answer is Batch::out[out .. out + k)
  uint32_t planeSpans, rareSpans;
};

// State of a query between kernels. The host writes {max(1, min_count), 0, 0, 0}.
struct State {
  uint32_t threshold;  // A: an object passes when its count is at least this
  uint32_t stored;     // entries in the candidate buffer
  uint64_t postings;   // counted so far by the (query, tile) kernel
  uint64_t passed;     // entries that passed the Gate so far
  uint32_t kept;       // entries after the last compaction
  uint32_t unused;
};

// A run of a tile's postings.
struct Run {
  uint32_t begin, length, ids;  // ids: the unit of the section's first posting
};

// One run of tiles for all queries. Kernels take this by value.
struct Batch {
  const uint8_t* data;
  const Section* sections;  // by (tile - first resident tile) * attributes + attribute
  const Query* queries;
  const Span* spans;
  State* states;
  uint64_t* entries;
  uint64_t* out;
  const uint32_t* planes;   // bit planes, group-major (sliced.cuh)
  const uint8_t* rare;      // ids of rare keywords
  uint32_t attributes;
  uint32_t objects;      // of the segment
  uint32_t firstQuery;   // blockIdx.x counts from here
  uint32_t firstTile;    // of the wave; blockIdx.y / parts counts from here
  uint32_t residentTile; // the tile of sections[0] and planes[0]
  uint32_t base;         // id of the segment's object 0
  uint32_t roundSpans;   // so many spans of a query have less than 2^31 postings in a tile
  uint32_t planesOfGroup;
};

// What passes the filters of a batch (filter.cu). Kernels have variants for batches with filters, which take it beside what they take
// without: so those without are the same machine code that they would be if there were no filters.
struct Filters {
  const uint32_t* passing;        // by filter, passingWords each: a bit an object of the range, tile after tile
  const uint32_t* passingOfTile;  // by filter and tile: how many objects pass
  const uint32_t* filterOf;       // of each query its filter, kNoFilter, or with kFilterOnly
  uint32_t passingWords, unused;
};

struct FilteredBatch {
  Batch batch;
  Filters filters;
};

constexpr uint32_t kTileWords = kTileObjects / 32;  // of a bit an object
constexpr uint32_t kNoFilter = ~0u;
constexpr uint32_t kFilterOnly = 1u << 31;  // the query asks for nothing else

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(Section) == 16 && sizeof(Span) == 16 && sizeof(Query) == 40 && sizeof(State) == 32 && sizeof(Batch) == 104 && sizeof(FilteredBatch) == 136);

#ifdef __CUDACC__
// What a kernel's variant for filters has beside the other, which has nothing of it.
template <bool FILTERED>
struct Meets {};
template <>
struct Meets<true> {
  const Filters& filters;
};

// The number of keywords below one that a directory has.
__device__ __forceinline__ uint32_t rankOf(const unsigned long long* words, uint32_t keyword) {
  const uint64_t w = __ldg(words + keyword / 32);
  return uint32_t(w >> 32) + __popc(uint32_t(w) & ((1u << keyword % 32) - 1));
}

// Finds the postings of a span in a tile, by two dependent loads.
__device__ inline Run findRun(const Batch& batch, uint32_t tile, const Span& span) {
  const Section section = batch.sections[(tile - batch.residentTile) * (size_t)batch.attributes + span.attribute];
  const unsigned long long* words = reinterpret_cast<const unsigned long long*>(batch.data + section.words * size_t{16});
  const uint32_t lo = rankOf(words, span.lo), hi = rankOf(words, span.hi);
  if (lo == hi) return {};
  const uint32_t* starts = reinterpret_cast<const uint32_t*>(batch.data + section.starts * size_t{16});
  const uint32_t begin = __ldg(starts + lo);
  return {begin, __ldg(starts + hi) - begin, section.ids};
}
#endif

}  // namespace geniemq
