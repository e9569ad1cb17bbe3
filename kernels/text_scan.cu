// The texts nearest to a query, and those within an edit distance of it (edit.cuh): searches by distance over a column of texts, which lies in the order of
// their lengths (gpuexec/cuda/texts).
//
// It is a search like that by counts (select.cu) with another measure. An entry is (kFarthest - distance) << 32 | ~id, so that entries have the order of
// hits: distance, then id, ascending. What differs is the order of objects. Ids do not ascend here, so an object as far as the k-th that is stored
// may come before it, and is stored: what passes is closeness + 1 >= State::threshold. compact_wave makes the threshold the k-th closeness plus one.
// Hence nothing is dropped unless k entries that are nearer are stored.
//
// A query takes blocks of kTextBlock positions in the order of their distance from its home, where the texts are as long as its pattern: home, home + 1, home - 1,
// home + 2, ... (blockOf), a wave of ranks at a time, each followed by compact_wave. So the first waves have the texts that are likely to be near, and what
// they leave of later ones is a span of positions that the threshold allows by length alone: what a block has outside of it is never looked at, and a block that
// has nothing within ends after four loads.
//
// Bound of the candidate buffer. A position appends one entry at most, and compact_wave leaves k: so a wave of w ranks needs k + w * kTextBlock entries, and no more than
// k + the positions of all blocks of the query (plan: texts.Piece).
//
// What two texts have in common says more: each edit takes at most one symbol away and brings at most one, so they are as far apart as one has symbols that the other has not. A word of
// 64 bits, its signs, says of each text which symbols it has, by number mod 64; what is farther by it than the limit is not compared. Of natural language that is most, of four
// letters nothing.
//
// Who asks for a total wants all within counted, however many are kept: `most` bounds its comparisons, and the threshold only what is stored.
#include "batch.cuh"
#include "block.cuh"
#include "edit.cuh"

namespace geniemq {

constexpr uint32_t kTextBlock = 1024;      // positions of a block of threads
constexpr uint32_t kTextFarthest = kMaxText;  // no distance of a pattern and a text that are compared is larger
constexpr uint32_t kTextTotal = 1;         // TextQuery::flags: all within are counted

struct TextQuery {
  uint32_t pattern, length;  // patterns[pattern .. pattern + length)
  uint32_t most;             // distances beyond it are not wanted
  uint32_t home, low, high;  // its blocks are low .. high - 1, of which home is the first that it takes
  uint32_t filter, flags;    // what passes: passing[filter * passingWords ..), kNoFilter: everybody
  uint64_t signs;            // of the pattern
};

struct TextCounts {
  uint64_t within, distances;  // objects within most, where a total is wanted; comparisons
  uint32_t blocks, unused;
};

struct TextScan {
  const uint8_t* texts;
  const uint32_t* starts;  // by position: of a text, in units of 16 bytes
  const uint32_t* ids;     // by position
  const uint32_t* first;   // by length: the first position that has it or more
  const unsigned long long* signs;  // by position
  const uint16_t* patterns;
  const TextQuery* asked;  // beside queries
  const Query* queries;    // of which k and entries hold
  State* states;
  TextCounts* counts;
  uint64_t* entries;
  const uint32_t* passing;     // a bit an object, from base on
  uint32_t firstQuery, lanes;  // blockIdx.x counts from here; lanes a pair
  uint32_t firstRank, longest; // blockIdx.y counts from here; symbols of the longest text
  uint32_t positions, symbols; // texts; symbols that occur in them
  uint32_t base, passingWords;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(TextQuery) == 40 && sizeof(TextCounts) == 24 && sizeof(TextScan) == 128);

namespace {

constexpr uint32_t kThreads = 128;

struct Shared {
  uint32_t near[kThreads / 32][64];  // positions that are to be compared, by warp: less than 32, and 32 that come
};

// The block of a rank, of those from low to high - 1: to and fro around home while there are some on both sides.
__device__ uint32_t blockOf(uint32_t rank, uint32_t home, uint32_t low, uint32_t high) {
  const uint32_t below = home - low, above = high - 1 - home, pairs = min(below, above);
  if (rank <= 2 * pairs) return rank % 2 == 1 ? home + (rank + 1) / 2 : home - rank / 2;
  return below > above ? home - (rank - pairs) : home + (rank - pairs);
}

// What a block of threads searches for.
struct Sought {
  const TextScan& v;
  const TextQuery& asked;
  uint32_t q, limit;   // distances up to it are computed,
  uint32_t threshold;  // and those are stored that reach it
};

// Compares the last positions of a warp's list, one a pair. Returns how many are within the limit.
template <template <int> class Masks, int kLanes>
__device__ uint32_t compare(const Sought& s, const uint32_t* near, uint32_t pairs) {
  const TextScan& v = s.v;
  const uint32_t pair = laneOf() / kLanes, m = s.asked.length;
  const bool real = pair < pairs;
  const uint32_t position = real ? near[pair] : 0;
  Reader<typename Masks<kLanes>::Symbol> text;
  uint32_t n = 0;
  if (real) n = text.open(v.texts + size_t{16} * v.starts[position]);
  const int32_t d = distance<Masks, kLanes>(text, n, m, real, int32_t(s.limit));
  const bool within = real && laneOf() % kLanes == (max(m, 1u) - 1) / 64 && d <= int32_t(s.limit);
  const bool passes = within && kTextFarthest - d + 1 >= s.threshold;
  const uint32_t kept = __ballot_sync(~0u, passes);
  if (kept != 0) {
    uint32_t place = 0;
    if (laneOf() == 0) place = atomicAdd(&v.states[s.q].stored, __popc(kept));
    place = __shfl_sync(~0u, place, 0) + __popc(kept & ((1u << laneOf()) - 1));
    if (passes) v.entries[v.queries[s.q].entries + place] = uint64_t{kTextFarthest - d} << 32 | uint32_t(~v.ids[position]);
  }
  return __popc(__ballot_sync(~0u, within));
}

__device__ bool passes(const TextScan& v, const TextQuery& asked, uint32_t position) {
  if (asked.filter == kNoFilter) return true;
  const uint32_t object = v.ids[position] - v.base;
  return v.passing[size_t{asked.filter} * v.passingWords + object / 32] >> object % 32 & 1;
}

// How far a text is at least from the pattern, by its signs.
__device__ __forceinline__ uint32_t leastOf(uint64_t pattern, uint64_t text) { return max(__popcll(pattern & ~text), __popcll(text & ~pattern)); }

// Compares the positions from to end - 1.
template <template <int> class Masks, int kLanes>
__device__ void search(const Sought& s, uint32_t from, uint32_t end, uint32_t* near) {
  constexpr uint32_t kPairs = 32 / kLanes;
  const TextScan& v = s.v;
  uint32_t count = 0, compared = 0, within = 0;
  for (uint32_t i = from + warpOf() * 32; i < end; i += kThreads) {
    const uint32_t position = i + laneOf();
    const bool wanted = position < end && leastOf(s.asked.signs, __ldg(v.signs + position)) <= s.limit && passes(v, s.asked, position);
    const uint32_t all = __ballot_sync(~0u, wanted);
    if (wanted) near[count + __popc(all & ((1u << laneOf()) - 1))] = position;
    count += __popc(all);
    __syncwarp();
    while (count >= kPairs || count > 0 && i + kThreads >= end) {
      const uint32_t pairs = min(count, kPairs);
      count -= pairs;
      compared += pairs;
      within += compare<Masks, kLanes>(s, near + count, pairs);
    }
    __syncwarp();
  }
  if (laneOf() != 0 || compared == 0) return;
  TextCounts& counts = v.counts[s.q];
  atomicAdd(reinterpret_cast<unsigned long long*>(&counts.distances), (unsigned long long)compared);
  if (s.asked.flags & kTextTotal) atomicAdd(reinterpret_cast<unsigned long long*>(&counts.within), (unsigned long long)within);
}

template <template <int> class Masks, int kLanes>
__device__ void scan(const TextScan& v, Shared& shared) {
  const uint32_t q = v.firstQuery + blockIdx.x, rank = v.firstRank + blockIdx.y;
  const TextQuery asked = v.asked[q];
  if (rank >= asked.high - asked.low) return;
  const uint32_t threshold = v.states[q].threshold, nearest = kTextFarthest + 1 - min(threshold, kTextFarthest + 1);
  const uint32_t limit = asked.flags & kTextTotal ? asked.most : min(asked.most, nearest), m = asked.length;
  const uint32_t begin = blockOf(rank, asked.home, asked.low, asked.high) * kTextBlock;
  const uint32_t from = max(begin, v.first[min(m - min(m, limit), v.longest + 1)]);
  const uint32_t end = min(min(begin + kTextBlock, v.positions), v.first[min(m + limit, v.longest) + 1]);
  if (from >= end) return;
  if (threadIdx.x == 0) atomicAdd(&v.counts[q].blocks, 1);
  Masks<kLanes>::build(v.symbols, v.patterns + asked.pattern, m);
  search<Masks, kLanes>(Sought{v, asked, q, limit, threshold}, from, end, shared.near[warpOf()]);
}

template <template <int> class Masks>
__device__ void scan(const TextScan& v, Shared& s) {
  switch (v.lanes) {
    case 1: return scan<Masks, 1>(v, s);
    case 2: return scan<Masks, 2>(v, s);
    case 4: return scan<Masks, 4>(v, s);
    case 8: return scan<Masks, 8>(v, s);
    case 16: return scan<Masks, 16>(v, s);
    case 32: return scan<Masks, 32>(v, s);
  }
}

}  // namespace

extern "C" __device__ const uint32_t text_scan_threads = kThreads, text_scan_shared = sizeof(Shared);

extern "C" __global__ void __launch_bounds__(kThreads) text_scan_narrow(const TextScan v) {
  __shared__ Shared s;
  scan<DenseMasks>(v, s);
}
extern "C" __global__ void __launch_bounds__(kThreads) text_scan_wide(const TextScan v) {
  __shared__ Shared s;
  scan<HashedMasks>(v, s);
}

}  // namespace geniemq
