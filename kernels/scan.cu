// The nearest texts of all: what is left where no number of candidates can certify a query's hits (index/verify). Edit distances
// (edit.cuh) of a query to every text that is near enough in length, and the match counts of those that are near.
//
// It is a search like that by counts, with another measure. An entry is closeness << 48 | count << 32 | ~id, closeness
// being kFarthest - distance, so that entries have the total order of hits: distance ascending, count descending, id
// ascending. Objects run in waves of ascending ids, each but the last followed by compact_wave (select.cu), which keeps
// the k best and raises the threshold that entries must reach; the distance that it allows bounds the next wave's
// comparisons. At last comes answer. An object appends one entry at most, so a query's buffer needs k + the objects of a wave.
#include "batch.cuh"
#include "block.cuh"
#include "edit.cuh"

namespace geniemq {

constexpr uint32_t kFarthest = kMaxText;  // no distance is larger: the host sees to it that no longer text is near enough
static_assert(kMaxPattern <= kMaxText && kMaxText + 8 < 1 << 16);

struct ScanQuery {
  uint32_t pattern, length;  // patterns[pattern .. pattern + length)
  uint32_t minCount, unused;
};

struct Scan {
  const uint8_t* texts;
  const uint32_t* starts;  // of each object's text, in units of 16 bytes
  const uint16_t* patterns;
  const ScanQuery* scans;   // beside queries
  const Query* queries;     // of which entries holds
  State* states;            // the threshold is that of entries without their ids
  uint64_t* entries;
  uint32_t firstQuery, lanes;  // blockIdx.x counts from here; lanes a pair
  uint32_t first, end;         // objects of the wave, from the base on; blockIdx.y counts kScanObjects each
  uint32_t symbols, base;      // symbols that occur in the texts; id of the first object
  uint32_t ngram, unused;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(ScanQuery) == 16 && sizeof(Scan) == 88);

namespace {

constexpr uint32_t kThreads = 128;
constexpr uint32_t kScanObjects = 1024;  // of a block

struct Shared {
  uint32_t near[kThreads / 32][64];  // objects that are near enough in length, by warp: less than 32, and 32 that come
  uint16_t pattern[kMaxPattern];
};

// A symbol of a text of n symbols with sentinels around it, from -(ngram - 1) to n + ngram - 2.
template <class Symbol>
__device__ uint32_t symbolAt(const Symbol* text, uint32_t n, int32_t i) {
  if (i < 0) return 0x10000 - i;
  return i < int32_t(n) ? text[i] : 0x20000 + i - n;
}

template <class A, class B>
__device__ bool sameGram(const A* a, uint32_t na, int32_t i, const B* b, uint32_t nb, int32_t j, uint32_t ngram) {
  for (uint32_t t = 0; t < ngram; t++, i++, j++) {
    if (symbolAt(a, na, i) != symbolAt(b, nb, j)) return false;
  }
  return true;
}

// The match count of a text and the pattern, found by a warp: n-grams of the text that the pattern has, a repeated one as
// often as the pattern repeats it.
template <class Symbol>
__device__ uint32_t overlap(const Symbol* text, uint32_t n, const uint16_t* pattern, uint32_t m, uint32_t ngram) {
  const int32_t before = ngram - 1;  // where the first gram begins, below 0
  uint32_t count = 0;
  for (int32_t i = int32_t(laneOf()) - before; i < int32_t(n); i += 32) {
    uint32_t asked = 0, earlier = 0;
    for (int32_t j = -before; j < int32_t(m); j++) asked += sameGram(text, n, i, pattern, m, j, ngram);
    if (asked == 0) continue;
    for (int32_t j = -before; j < i; j++) earlier += sameGram(text, n, i, text, n, j, ngram);
    count += earlier < asked;
  }
  return __reduce_add_sync(~0u, count);
}

// Compares the last objects of a warp's list, one a pair, and appends what reaches the threshold.
template <template <int> class Masks, int kLanes>
__device__ void compare(const Scan& v, uint32_t q, const ScanQuery& scan, uint32_t threshold, const uint16_t* pattern,
                        const uint32_t* near, uint32_t pairs) {
  using Symbol = typename Masks<kLanes>::Symbol;
  const uint32_t pair = laneOf() / kLanes, m = scan.length;
  const int32_t limit = kFarthest - (threshold >> 16);
  const bool real = pair < pairs;
  const uint32_t object = real ? near[pair] : 0;
  Reader<Symbol> text;
  uint32_t n = 0;
  if (real) n = text.open(v.texts + size_t{16} * v.starts[object]);
  const int32_t d = distance<Masks, kLanes>(text, n, m, real, limit);
  // Whether it may reach the threshold: the shorter of the two bounds the count.
  bool passes = real && laneOf() % kLanes == (max(m, 1u) - 1) / 64 && d <= limit;
  passes = passes && ((kFarthest - d) << 16 | (min(n, m) + v.ngram - 1)) >= threshold;
  uint32_t measure = 0;
  for (uint32_t left = __ballot_sync(~0u, passes); left != 0; left &= left - 1) {
    const uint32_t lane = __ffs(left) - 1;
    const uint8_t* of = v.texts + size_t{16} * v.starts[__shfl_sync(~0u, object, lane)];
    const uint32_t count = overlap(reinterpret_cast<const Symbol*>(of + 4), __shfl_sync(~0u, n, lane), pattern, m, v.ngram);
    if (laneOf() != lane) continue;
    measure = (kFarthest - d) << 16 | count;
    passes = measure >= threshold && count >= scan.minCount;
  }
  const uint32_t kept = __ballot_sync(~0u, passes);
  if (kept == 0) return;
  uint32_t place = 0;
  if (laneOf() == 0) place = atomicAdd(&v.states[q].stored, __popc(kept));
  place = __shfl_sync(~0u, place, 0) + __popc(kept & ((1u << laneOf()) - 1));
  if (passes) v.entries[v.queries[q].entries + place] = uint64_t{measure} << 32 | uint32_t(~(object + v.base));
}

template <template <int> class Masks, int kLanes>
__device__ void scan(const Scan& v, Shared& s) {
  constexpr uint32_t kPairs = 32 / kLanes;
  const uint32_t q = v.firstQuery + blockIdx.x;
  const ScanQuery scan = v.scans[q];
  const uint32_t m = scan.length, threshold = v.states[q].threshold;
  const uint32_t limit = kFarthest - (threshold >> 16);
  for (uint32_t i = threadIdx.x; i < m; i += kThreads) s.pattern[i] = v.patterns[scan.pattern + i];
  Masks<kLanes>::build(v.symbols, v.patterns + scan.pattern, m);

  uint32_t* near = s.near[warpOf()];
  uint32_t count = 0;
  const uint32_t begin = v.first + blockIdx.y * kScanObjects, end = min(v.end, begin + kScanObjects);
  for (uint32_t i = begin + warpOf() * 32; i < end; i += kThreads) {
    const uint32_t object = i + laneOf();
    bool fits = false;
    if (object < end) {
      const uint32_t n = *reinterpret_cast<const uint32_t*>(v.texts + size_t{16} * v.starts[object]);
      fits = n <= m + limit && m <= n + limit;
    }
    const uint32_t fitting = __ballot_sync(~0u, fits);
    if (fits) near[count + __popc(fitting & ((1u << laneOf()) - 1))] = object;
    count += __popc(fitting);
    __syncwarp();
    while (count >= kPairs || count > 0 && i + kThreads >= end) {
      const uint32_t pairs = min(count, kPairs);
      count -= pairs;
      compare<Masks, kLanes>(v, q, scan, threshold, s.pattern, near + count, pairs);
    }
    __syncwarp();
  }
}

template <template <int> class Masks>
__device__ void scan(const Scan& v) {
  __shared__ Shared s;
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

extern "C" __device__ const uint32_t scan_objects = kScanObjects, scan_threads = kThreads, scan_shared = sizeof(Shared);
extern "C" __device__ const uint32_t scan_farthest = kFarthest;

extern "C" __global__ void __launch_bounds__(kThreads) scan_narrow(const Scan v) { scan<DenseMasks>(v); }
extern "C" __global__ void __launch_bounds__(kThreads) scan_wide(const Scan v) { scan<HashedMasks>(v); }

}  // namespace geniemq
