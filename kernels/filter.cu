// What passes the filters of a batch: a bit per object, found once for each distinct filter, before the kernels that count.
//
// filter_tiles: a block owns a filter and a tile. Clause by clause it makes a bitmap of the tile in shared memory. First a warp finds out where
// the tile has what the spans of the clause ask for, a lane a span, since that is a chain of dependent loads; then all threads set bits: of
// postings by a bit per posting, of planes by comparing 32 objects at a time, of rare lists by what of them lies in the tile. Of the objects
// of edges, whose buckets hold values within and without what is asked, it looks at the stored values before it sets their bits. Clauses are
// joined to groups, and these to what passes; one clause alone is what passes. The bitmap is gone through as seldom as can be: for a filter
// that selects little that is what costs.
//
// The kernels that count meet the bitmap before their gates: match.cu, sliced_match.cu, bound_match.cu. first_passing answers queries
// that are nothing but a filter.
#include "block.cuh"
#include "forms.cuh"
#include "listed.cuh"
#include "planes.cuh"
#include "rare.cuh"

namespace geniemq {

// A clause of a filter. Its spans are FilterTiles::spans[first .. first + spans), the spans of its edges follow them.
struct Clause {
  uint32_t attribute, flags;
  uint32_t first, spans, edges;
  uint32_t firstRange, ranges;
  uint32_t unused;
};
constexpr uint32_t kClauseFirst = 1;  // of its group
constexpr uint32_t kClauseLast = 2;
constexpr uint32_t kClauseNot = 4;    // the group is negated

// The stored values of an attribute's objects: those of object i are values[starts[i] .. starts[i + 1]), or where starts is null values[i].
struct Numbers {
  const uint32_t* starts;
  const double* values;
};

// The clauses of a filter.
struct FilterHead {
  uint32_t first, clauses;
};

// Kernels take this by value. It has what Batch has, where the names are the same.
struct FilterTiles {
  const uint8_t* data;
  const Section* sections;
  const uint32_t* planes;
  const uint8_t* rare;
  const Form* forms;             // by attribute; null: all lie as postings
  const Numbers* numbers;        // by attribute; null: none are stored here
  const FilterHead* filters;
  const Clause* clauses;
  const Span* spans;             // of keywords
  const double* ranges;          // least and largest value of each, ascending
  uint32_t* passing;
  uint32_t* passingOfTile;
  unsigned long long* totals;    // by filter, zero at first
  uint32_t attributes, objects;
  uint32_t firstTile;            // blockIdx.y counts from here
  uint32_t residentTile;
  uint32_t base, planesOfGroup;
  uint32_t passingWords, listing;  // listing: tiles in which few objects pass have lists (listed.cuh)
};

static_assert(sizeof(Clause) == 32 && sizeof(Numbers) == 16 && sizeof(FilterHead) == 8 && sizeof(FilterTiles) == 136);

namespace {

constexpr uint32_t kThreads = 256;
// Of a multiprocessor. A block waits for memory most of the time, so as many are wanted as there are threads for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900
constexpr uint32_t kBlocks = 6;
#else
constexpr uint32_t kBlocks = 8;
#endif
constexpr uint32_t kFewSpans = 8;   // up to so many the whole block takes one after the other; of more each warp takes its own
constexpr uint32_t kRoundSpans = 32;  // are found at a time: one a lane

// Where a tile has what a span asks for.
struct Found {
  Run run;       // of postings
  Span planes;   // codes
  Span rare;
};

struct Filter {
  struct alignas(16) Shared {
    uint32_t result[kTileWords], group[kTileWords], clause[kTileWords];
    Found found[kRoundSpans];
    uint32_t scratch[32];
    uint32_t listed;
  };
  static constexpr uint32_t kQuads = kTileWords / 4;
  static_assert(kTileWords % 4 == 0);

  const FilterTiles& f;
  Shared& shared;
  const uint32_t tile, left;  // left: objects from the tile's first on
  Batch batch;                // of what findRun and rareIds read

  __device__ Filter(const FilterTiles& tiles, Shared& s)
      : f(tiles), shared(s), tile(tiles.firstTile + blockIdx.y), left(min(tiles.objects - tile * kTileObjects, kTileObjects)) {
    batch.data = f.data;
    batch.sections = f.sections;
    batch.attributes = f.attributes;
    batch.residentTile = f.residentTile;
    batch.rare = f.rare;
  }

  __device__ void run() {
    const FilterHead head = f.filters[blockIdx.x];
    bool negated = false;
    if (head.clauses == 1) {  // it is first and last, and what it is met by passes
      const Clause clause = f.clauses[head.first];
      negated = clause.flags & kClauseNot;
      meet(clause, shared.result);
    } else {
      for (uint32_t w = threadIdx.x; w < kTileWords; w += kThreads) shared.result[w] = ~0u;
      for (uint32_t i = 0; i < head.clauses; i++) {
        const Clause clause = f.clauses[head.first + i];
        meet(clause, shared.clause);
        for (uint32_t w = threadIdx.x; w < kTileWords; w += kThreads) {
          const uint32_t met = clause.flags & kClauseFirst ? shared.clause[w] : shared.clause[w] & shared.group[w];
          shared.group[w] = met;
          if (clause.flags & kClauseLast) shared.result[w] &= clause.flags & kClauseNot ? ~met : met;
        }
        __syncthreads();
      }
      __syncthreads();  // of no clause too
    }
    store(negated ? ~0u : 0);
  }

  // Stores the result, each bit changed or not, and how many objects it has.
  __device__ void store(uint32_t change) {
    if (f.listing != 0 && storeList(change)) return;
    uint4* const to = reinterpret_cast<uint4*>(f.passing + size_t{blockIdx.x} * f.passingWords + size_t{tile} * kTileWords);
    uint32_t mine = 0;
    for (uint32_t q = threadIdx.x; q < kQuads; q += kThreads) {
      uint4 v = reinterpret_cast<const uint4*>(shared.result)[q];
      const uint32_t w = q * 4;
      v.x = (v.x ^ change) & present(w);
      v.y = (v.y ^ change) & present(w + 1);
      v.z = (v.z ^ change) & present(w + 2);
      v.w = (v.w ^ change) & present(w + 3);
      to[q] = v;
      mine += __popc(v.x) + __popc(v.y) + __popc(v.z) + __popc(v.w);
    }
    const uint32_t passing = blockSum<kThreads>(mine, shared.scratch);
    if (threadIdx.x == 0) storeCount(passing, 0);
  }

  __device__ void storeCount(uint32_t passing, uint32_t listed) const {
    f.passingOfTile[size_t{blockIdx.x} * (f.passingWords / kTileWords) + tile] = passing | listed;
    if (passing != 0) atomicAdd(f.totals + blockIdx.x, (unsigned long long)passing);
  }

  // Stores a list if few objects pass; else it is false in all threads, and nothing is stored.
  __device__ bool storeList(uint32_t change) {
    uint32_t mine = 0;
    for (uint32_t w = threadIdx.x; w < kTileWords; w += kThreads) mine += __popc((shared.result[w] ^ change) & present(w));
    const uint32_t passing = blockSum<kThreads>(mine, shared.scratch);
    if (threadIdx.x == 0) shared.listed = 0;
    __syncthreads();  // of scratch too, which is used again
    if (passing > kMostListed) return false;
    uint16_t* const to = reinterpret_cast<uint16_t*>(f.passing + size_t{blockIdx.x} * f.passingWords + size_t{tile} * kTileWords);
    for (uint32_t w = threadIdx.x; w < kTileWords; w += kThreads) {
      uint32_t word = (shared.result[w] ^ change) & present(w);
      if (word == 0) continue;
      for (uint32_t place = atomicAdd(&shared.listed, __popc(word)); word != 0; word &= word - 1, place++) to[place] = w * 32 + __ffs(word) - 1;
    }
    if (threadIdx.x == 0) storeCount(passing, kListed);
    return true;
  }

  // The places of a word that are objects.
  __device__ uint32_t present(uint32_t w) const { return w * 32 + 32 <= left ? ~0u : w * 32 < left ? (1u << left % 32) - 1 : 0; }

  // Sets words to the objects that meet a clause. All threads call it; the words are complete when it returns.
  __device__ void meet(const Clause& clause, uint32_t* words) {
    const uint32_t count = clause.spans + clause.edges;
    for (uint32_t base = 0; base == 0 || base < count; base += kRoundSpans) {
      const uint32_t n = min(count - base, kRoundSpans);
      if (threadIdx.x < n) shared.found[threadIdx.x] = find(clause.first + base + threadIdx.x);
      if (base == 0)
        for (uint32_t q = threadIdx.x; q < kQuads; q += kThreads) reinterpret_cast<uint4*>(words)[q] = make_uint4(0, 0, 0, 0);
      __syncthreads();
      if (n <= kFewSpans) {
        // A short span, as that of an edge, is one warp's or two's: each begins with others, so that none waits for all of them.
        for (uint32_t i = 0; i < n; i++) add<kThreads>(words, clause, base + i, shared.found[i], (threadIdx.x - 64 * i) % kThreads);
      } else {
        for (uint32_t i = warpOf(); i < n; i += kThreads / 32) add<32>(words, clause, base + i, shared.found[i], laneOf());
      }
      __syncthreads();
    }
  }

  // Whether one of an object's values lies in one of the ranges.
  __device__ static bool stored(const Numbers& numbers, const double* ranges, uint32_t count, uint32_t object) {
    uint32_t i = object, end = object + 1;
    if (numbers.starts != nullptr) i = __ldg(numbers.starts + object), end = __ldg(numbers.starts + object + 1);
    for (; i < end; i++) {
      const double v = __ldg(numbers.values + i);
      // The first range whose largest value is not less; NaN finds one, and is not in it.
      uint32_t at = 0;
      for (uint32_t n = count; n > 0;) {
        const uint32_t half = n / 2;
        if (__ldg(ranges + 2 * (at + half) + 1) < v)
          at += half + 1, n -= half + 1;
        else
          n = half;
      }
      if (at < count && v >= __ldg(ranges + 2 * at) && v <= __ldg(ranges + 2 * at + 1)) return true;
    }
    return false;
  }

  // Finds what a span asks for.
  __device__ Found find(uint32_t span) const {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(f.spans) + span);
    Resolved r = {};
    if (f.forms == nullptr)
      r.of[0] = {v.x, v.y, v.z, v.w};
    else
      r = look(f.forms, {v.x, v.y, v.z, v.w});
    Found found = {{}, r.of[1], r.of[2]};
    if (r.of[0].lo < r.of[0].hi) found.run = findRun(batch, tile, r.of[0]);
    return found;
  }

  // Adds the objects of the i-th span of a clause, by TEAM threads, of which this is number `at`.
  template <uint32_t TEAM>
  __device__ void add(uint32_t* words, const Clause& clause, uint32_t i, const Found& found, uint32_t at) const {
    if (i < clause.spans)
      addFound<TEAM, false>(words, clause, found, at);
    else
      addFound<TEAM, true>(words, clause, found, at);
  }

  // EDGE: only those of its objects that have a value in the clause's ranges.
  template <uint32_t TEAM, bool EDGE>
  __device__ void addFound(uint32_t* words, const Clause& clause, const Found& found, uint32_t at) const {
    const Numbers numbers = EDGE ? f.numbers[clause.attribute] : Numbers{};
    const double* const ranges = f.ranges + 2 * size_t{clause.firstRange};
    const uint32_t first = tile * kTileObjects;
    const uint16_t* const ids = reinterpret_cast<const uint16_t*>(f.data + found.run.ids * size_t{16}) + found.run.begin;
#pragma unroll 4
    for (uint32_t i = at; i < found.run.length; i += TEAM) {
      const uint32_t id = __ldg(ids + i);
      if (!EDGE || stored(numbers, ranges, clause.ranges, first + id)) atomicOr(&words[id / 32], 1u << id % 32);
    }
    if (found.planes.lo < found.planes.hi) {
      const uint32_t* const planes = f.planes + size_t{tile - f.residentTile} * (kTileObjects / 1024) * f.planesOfGroup * 32;
      for (uint32_t w = at; w < (left + 31) / 32; w += TEAM) {
        const uint32_t* const group = planes + size_t{w / 32} * f.planesOfGroup * 32 + w % 32;
        uint32_t in = codesWithin(group + planeOf(found.planes) * 32, planesOf(found.planes), found.planes.lo, found.planes.hi);
        if (EDGE) {
          for (uint32_t edge = in; edge != 0; edge &= edge - 1) {
            const uint32_t bit = __ffs(edge) - 1;
            if (!stored(numbers, ranges, clause.ranges, first + w * 32 + bit)) in &= ~(1u << bit);
          }
        }
        if (in != 0) atomicOr(&words[w], in);
      }
    }
    if (found.rare.lo >= found.rare.hi) return;
    // One list ascends, and is looked into where the tile begins.
    const uint32_t* const rare = rareIds(batch, found.rare);
    const uint32_t lowest = f.base + first;
    uint32_t begin = found.rare.lo, end = found.rare.hi;
    if (oneList(found.rare)) {
      begin = firstFrom(rare, begin, end, lowest);
      end = firstFrom(rare, begin, end, lowest + left);
    }
#pragma unroll 4
    for (uint64_t i = begin + uint64_t{at}; i < end; i += TEAM) {
      const uint32_t id = __ldg(rare + i) - lowest;
      if (id < left && (!EDGE || stored(numbers, ranges, clause.ranges, first + id))) atomicOr(&words[id / 32], 1u << id % 32);
    }
  }

  // The first of the places [begin, end) of a list whose id is not below one.
  __device__ static uint32_t firstFrom(const uint32_t* ids, uint32_t begin, uint32_t end, uint32_t id) {
    while (begin < end) {
      const uint32_t middle = begin + (end - begin) / 2;
      if (__ldg(ids + middle) < id)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
};

}  // namespace

// blockIdx.x is the filter, blockIdx.y a tile.
extern "C" __global__ void __launch_bounds__(kThreads, kBlocks) filter_tiles(const FilterTiles f) {
  __shared__ Filter::Shared shared;
  Filter(f, shared).run();
}

// The candidates of a query that is nothing but a filter: the first k objects that pass, with count 0. blockIdx.x is the query; other
// queries are left alone.
extern "C" __global__ void __launch_bounds__(kThreads) first_passing(const FilteredBatch f) {
  const Batch& batch = f.batch;
  const Filters& filters = f.filters;
  __shared__ uint32_t scratch[2][32];
  const uint32_t q = batch.firstQuery + blockIdx.x, filter = filters.filterOf[q];
  if (filter == kNoFilter || !(filter & kFilterOnly)) return;
  const Query query = batch.queries[q];
  const uint32_t* const passing = filters.passing + size_t{filter & ~kFilterOnly} * filters.passingWords;
  uint32_t stored = 0;
  for (uint32_t base = 0, turn = 0; base < filters.passingWords && stored < query.k; base += kThreads, turn ^= 1) {
    const uint32_t w = base + threadIdx.x;
    uint32_t word = w < filters.passingWords ? __ldg(passing + w) : 0, total;
    uint32_t place = stored + blockPlace<kThreads>(__popc(word), scratch[turn], total);
    for (; word != 0 && place < query.k; word &= word - 1, place++)
      batch.entries[query.entries + place] = uint32_t(~(batch.base + w * 32 + __ffs(word) - 1));
    stored = min(query.k, stored + total);
  }
  if (threadIdx.x == 0) batch.states[q].stored = stored;
}

}  // namespace geniemq
