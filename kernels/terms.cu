// Scores of candidates by the terms that they hold in a column, once the answers stand: what they have in common with the query's, for measures
// of sets, and BM25. gpuexec/cuda/rescoring says where everything lies and what the host makes of it.
//
// The bits are the host's (index/similarity): common weights are integers, and of BM25 each product, quotient and sum is rounded by
// itself, and terms are added in ascending order.
//
// A block has a table of the query's terms in shared memory and compares some entries of its answer. Objects lie anywhere, so what it costs is
// two dependent accesses to memory for each: its record, then its terms. Short rows are read by a lane each; long ones by a warp, a
// term a lane.
//
// Of BM25 the hits can come back alone, in the order of scores (order_terms): on the host the same takes 4 us of a core per query, and candidates that are
// no hits are eight times as many as hits.
#include "batch.cuh"
#include "block.cuh"

namespace geniemq {

constexpr uint32_t kTermsThreads = 128;
constexpr uint32_t kMaxAskedTerms = 256;      // of a query; of more the host compares
constexpr uint32_t kMaxObjectTerms = 1 << 16; // a longer object would hold up the batch
enum TermsMeasure : uint32_t { kTermsCounted, kTermsSummed, kTermsBM25 };
constexpr uint32_t kOrderThreads = 128;
constexpr uint32_t kMostOrdered = 1024;       // hits of a query that come back in order; the order of more the host makes

// A term of a query.
struct AskedTerm {
  uint32_t term, weight;  // of measures of sets
  double gain;            // of BM25: idf (k1 + 1)
};

// Some entries of an answer, of which a block compares some (Terms::ranks). Rank 0 is the best one, which is the last.
struct TermsTask {
  uint32_t query, answer;   // of the query's answer, out[answer ..), states[query].kept places are taken
  uint32_t rank, ranks;     // rank .. rank + ranks
  uint32_t scores;          // scores[scores + rank] is that of an entry
  uint32_t first, terms;    // asked[first .. first + terms), ascending
  uint32_t measure;         // sets: common weight << 32 | the object's, its terms counted or the sum of its record; or the bits of BM25
  double mean;              // length of all objects, of BM25
  uint32_t unused[2];
};

// Kernels take this by value.
struct Terms {
  const uint8_t* data;      // a tile: records of its objects, 16 bytes each, then terms and frequencies, 4 bytes each
  const uint64_t* tiles;    // where each begins in data, in units of 16 bytes
  const uint64_t* out;      // the answers: count << 32 | ~id
  const State* states;
  const TermsTask* tasks;
  const AskedTerm* asked;
  uint64_t* scores;         // ~0: not computed
  uint32_t firstTask, lanes;  // blockIdx.x counts from here; lanes an object, 1 or 32
  uint32_t objects, base;   // of the range; id of the first one
  uint32_t ranks, unused;   // ranks a block: blockIdx.y says which of its task's
};

// A query whose hits come back in the order of scores.
struct TermsOrder {
  uint32_t query, answer;   // its candidates: out[answer ..), states[query].kept places are taken
  uint32_t scores;          // scores[scores + rank] is that of an entry
  uint32_t hits, wanted;    // the first ones go to hits[hits .. hits + wanted), zeros behind them
  uint32_t unused;
};

struct OrderedHit {
  uint64_t score, entry;    // the bits of BM25; count << 32 | ~id
};

// What is told of a query beside its hits.
struct OrderedHead {
  uint32_t least;           // the smallest count of a candidate
  uint32_t ordered;         // 0: some candidate was not compared, and the hits mean nothing
};

// Kernels take this by value.
struct TermsOrders {
  const uint64_t* out;
  const State* states;
  const uint64_t* scores;
  const TermsOrder* orders;
  OrderedHead* heads;       // by order
  OrderedHit* hits;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(AskedTerm) == 16 && sizeof(TermsTask) == 48 && sizeof(Terms) == 80);
static_assert(sizeof(TermsOrder) == 24 && sizeof(OrderedHit) == 16 && sizeof(OrderedHead) == 8 && sizeof(TermsOrders) == 48);

namespace {

constexpr uint32_t kSlots = 2 * kMaxAskedTerms;  // at most half of them taken, and of few terms an eighth
constexpr uint32_t kNoTerm = ~0u;                // no column has so many
constexpr uint64_t kNotComputed = ~0ull;
constexpr uint32_t kWideFrequencies = 255;       // from so many repeats on frequencies take words (index/forward)

struct Asked {
  uint32_t keys[kSlots];
  uint16_t places[kSlots];
  uint32_t weights[kMaxAskedTerms];
  double gains[kMaxAskedTerms];
  uint32_t shift;  // of a 32-bit hash; the same in all threads

  // All threads of the block call it.
  __device__ void build(const AskedTerm* asked, uint32_t terms) {
    uint32_t slots = 32, bits = 5;
    while (slots < min(8 * terms, kSlots)) slots *= 2, bits++;
    for (uint32_t i = threadIdx.x; i < slots; i += kTermsThreads) keys[i] = kNoTerm;
    if (threadIdx.x == 0) shift = 32 - bits;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < terms; i += kTermsThreads) {
      const AskedTerm own = asked[i];
      weights[i] = own.weight;
      gains[i] = own.gain;
      uint32_t slot = slotOf(own.term);
      while (atomicCAS(&keys[slot], kNoTerm, own.term) != kNoTerm) slot = next(slot);
      places[slot] = i;
    }
    __syncthreads();
  }

  // The place of a term among those that are asked for, kNoTerm where it is none.
  __device__ uint32_t find(uint32_t term) const {
    for (uint32_t slot = slotOf(term);; slot = next(slot)) {
      const uint32_t key = keys[slot];
      if (key == kNoTerm) return kNoTerm;
      if (key == term) return places[slot];
    }
  }

  // True of every term that is asked for, and of few others.
  __device__ bool maybe(uint32_t term) const { return keys[slotOf(term)] != kNoTerm; }

  __device__ uint32_t slotOf(uint32_t term) const { return term * 0x9e3779b1u >> shift; }
  __device__ uint32_t next(uint32_t slot) const { return (slot + 1) & ((1u << (32 - shift)) - 1); }
};

// The terms of an object.
struct Row {
  const uint32_t* words;
  uint32_t terms, length, sum;

  // False where the host has to look at it. object is one of the range.
  __device__ bool open(const Terms& t, uint32_t object) {
    const uint32_t tile = object / kTileObjects, local = object % kTileObjects;
    const uint8_t* const data = t.data + size_t{16} * __ldg(t.tiles + tile);
    const uint4 record = __ldg(reinterpret_cast<const uint4*>(data) + local);
    words = reinterpret_cast<const uint32_t*>(data + size_t{16} * min(t.objects - tile * kTileObjects, kTileObjects)) + record.x;
    terms = record.y;
    length = record.z;
    sum = record.w;
    return terms <= kMaxObjectTerms;
  }

  // How often the i-th term occurs.
  __device__ uint32_t frequency(uint32_t i) const {
    const uint32_t repeats = length - terms;
    if (repeats == 0) return 1;
    if (repeats < kWideFrequencies) return __ldg(words + terms + i / 4) >> i % 4 * 8 & 0xff;
    return __ldg(words + terms + i);
  }
};

// k1 (1 - b + b length / mean), and what a term adds.
__device__ double normOf(uint32_t length, double mean) {
  return __dmul_rn(1.2, __dadd_rn(0.25, __dmul_rn(0.75, __ddiv_rn(double(length), mean))));
}
__device__ double termOf(double gain, uint32_t times, double norm) {
  const double tf = double(times);
  return __ddiv_rn(__dmul_rn(gain, tf), __dadd_rn(tf, norm));
}

// Calls found(place, i) for the terms of a row that are asked for, in ascending order. They are marked first, so that the lanes of a warp, whose rows have them
// in different places, compute scores at the same time. What some terms ask of memory is on its way at the same time too.
template <class Found>
__device__ void eachAsked(const Asked& asked, const Row& row, Found found) {
  constexpr uint32_t kTogether = 4;
  for (uint32_t strip = 0; strip < row.terms; strip += 32) {
    uint32_t marks = 0;  // bit i: of term strip + i
    for (uint32_t first = strip; first < min(row.terms, strip + 32); first += kTogether) {
      uint32_t terms[kTogether];
#pragma unroll
      for (uint32_t j = 0; j < kTogether; j++) terms[j] = first + j < row.terms ? __ldg(row.words + first + j) : kNoTerm;
#pragma unroll
      for (uint32_t j = 0; j < kTogether; j++)
        if (terms[j] != kNoTerm && asked.maybe(terms[j])) marks |= 1u << (first + j - strip);
    }
    for (; marks != 0; marks &= marks - 1) {
      const uint32_t i = strip + __ffs(marks) - 1, place = asked.find(__ldg(row.words + i));
      if (place != kNoTerm) found(place, i);
    }
  }
}

// The score of an object, by the lane that reads its row.
__device__ uint64_t scoreOf(const Asked& asked, const Row& row, const TermsTask& task) {
  if (task.measure == kTermsBM25) {
    const double norm = normOf(row.length, task.mean);
    double score = 0;
    eachAsked(asked, row, [&](uint32_t place, uint32_t i) { score = __dadd_rn(score, termOf(asked.gains[place], row.frequency(i), norm)); });
    return __double_as_longlong(score);
  }
  uint32_t common = 0;
  eachAsked(asked, row, [&](uint32_t place, uint32_t) { common += asked.weights[place]; });
  return uint64_t{common} << 32 | (task.measure == kTermsSummed ? row.sum : row.terms);
}

// The same by a warp, with the score in every lane.
__device__ uint64_t warpScoreOf(const Asked& asked, const Row& row, const TermsTask& task) {
  const bool ranked = task.measure == kTermsBM25;
  const double norm = ranked ? normOf(row.length, task.mean) : 0;
  double score = 0;
  uint32_t common = 0;
  for (uint32_t first = 0; first < row.terms; first += 32) {
    const uint32_t i = first + laneOf();
    const uint32_t place = i < row.terms ? asked.find(__ldg(row.words + i)) : kNoTerm;
    if (!ranked) {
      if (place != kNoTerm) common += asked.weights[place];
      continue;
    }
    const double own = place != kNoTerm ? termOf(asked.gains[place], row.frequency(i), norm) : 0;
    for (uint32_t found = __ballot_sync(~0u, place != kNoTerm); found != 0; found &= found - 1)
      score = __dadd_rn(score, __shfl_sync(~0u, own, __ffs(found) - 1));
  }
  if (ranked) return __double_as_longlong(score);
  common = __reduce_add_sync(~0u, common);
  return uint64_t{common} << 32 | (task.measure == kTermsSummed ? row.sum : row.terms);
}

}  // namespace

// blockIdx.x is the task, blockIdx.y says which of its ranks.
extern "C" __global__ void __launch_bounds__(kTermsThreads) score_terms(const Terms t) {
  __shared__ Asked asked;
  const TermsTask task = t.tasks[t.firstTask + blockIdx.x];
  const uint32_t first = blockIdx.y * t.ranks, end = min(task.ranks, first + t.ranks);
  if (first >= end) return;
  const uint32_t kept = t.states[task.query].kept;
  Row row;
  const auto open = [&](uint32_t i) {
    const uint32_t rank = task.rank + i;
    return i < end && rank < kept && row.open(t, ~uint32_t(t.out[task.answer + kept - 1 - rank]) - t.base);
  };
  uint32_t i = first + threadIdx.x / t.lanes;
  bool opened = open(i);  // memory is asked for the first row before it is asked for the terms
  asked.build(t.asked + task.first, task.terms);
  for (; i < end; opened = open(i)) {
    uint64_t score = kNotComputed;
    if (opened) score = t.lanes == 1 ? scoreOf(asked, row, task) : warpScoreOf(asked, row, task);
    if (threadIdx.x % t.lanes == 0) t.scores[task.scores + task.rank + i] = score;
    i += kTermsThreads / t.lanes;
  }
}

namespace {

constexpr uint32_t kOrderLoads = 4;  // that a thread has in flight
constexpr uint32_t kLeastRoom = 1024;
constexpr uint32_t kBinBits = 9;
constexpr uint32_t kBins = 1 << kBinBits;
static_assert(kLeastRoom >= 2 * kOrderLoads * kOrderThreads && kMostOrdered >= kOrderLoads * kOrderThreads && kBins == 4 * kOrderThreads);

// For how many candidates there is room: for those that are wanted and for all that are loaded. The host knows it too (rescoring.Orders).
__device__ uint32_t orderRoom(uint32_t wanted) {
  uint32_t room = kLeastRoom;
  while (room < 2 * wanted) room *= 2;
  return room;
}

struct OrderShared {
  uint32_t bins[kBins];
  uint32_t scratch[2][32];
  unsigned long long low, high;  // of all scores
};

// Objects that may be hits. Scores are not negative, so that their bits ascend as they do; where they are equal the larger entry is the better one
// (count descending, id ascending). No two entries are equal, and none is 0.
struct Order {
  OrderShared& shared;
  uint64_t *scores, *entries;

  __device__ static bool precedes(uint64_t score, uint64_t entry, uint64_t otherScore, uint64_t other) {
    return score > otherScore || score == otherScore && entry > other;
  }

  // Puts the first n in order, the best one first. All threads call it.
  __device__ void sort(uint32_t n) {
    uint32_t size = 1;
    while (size < n) size *= 2;
    for (uint32_t i = n + threadIdx.x; i < size; i += kOrderThreads) scores[i] = entries[i] = 0;
    for (uint32_t block = 2; block <= size; block *= 2) {
      for (uint32_t step = block / 2; step > 0; step /= 2) {
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < size / 2; i += kOrderThreads) {
          const uint32_t a = 2 * i - (i & (step - 1)), b = a + step;
          const uint64_t x = scores[a], y = scores[b], xEntry = entries[a], yEntry = entries[b];
          if (precedes(y, yEntry, x, xEntry) == ((a & block) == 0)) {
            scores[a] = y, entries[a] = yEntry;
            scores[b] = x, entries[b] = xEntry;
          }
        }
      }
    }
    __syncthreads();
  }

  // A score that at least so many of n > wanted candidates reach, and most others do not: the bits of scores, less those of the least, are cut into
  // stretches of equal length. All threads call it.
  __device__ uint64_t floorOf(const uint64_t* all, uint32_t n, uint32_t wanted) {
    for (uint32_t i = threadIdx.x; i < kBins; i += kOrderThreads) shared.bins[i] = 0;
    if (threadIdx.x == 0) shared.low = ~0ull, shared.high = 0;
    __syncthreads();
    unsigned long long least = ~0ull, most = 0;
    for (uint32_t i = threadIdx.x; i < n; i += kOrderThreads) {
      const unsigned long long score = all[i];
      least = min(least, score);
      most = max(most, score);
    }
    for (int d = 16; d > 0; d /= 2) {
      least = min(least, __shfl_xor_sync(~0u, least, d));
      most = max(most, __shfl_xor_sync(~0u, most, d));
    }
    if (laneOf() == 0) atomicMin(&shared.low, least), atomicMax(&shared.high, most);
    __syncthreads();
    const uint64_t from = shared.low;
    const uint64_t range = shared.high - from;
    const uint32_t shift = range < kBins ? 0 : 64 - __clzll(range) - kBinBits;
    for (uint32_t i = threadIdx.x; i < n; i += kOrderThreads) atomicAdd(&shared.bins[(all[i] - from) >> shift], 1);
    __syncthreads();
    // Thread i looks at the four bins below 4 i others.
    const uint32_t top = kBins - 1 - 4 * threadIdx.x;
    uint32_t total, reached = blockPlace<kOrderThreads>(shared.bins[top] + shared.bins[top - 1] + shared.bins[top - 2] + shared.bins[top - 3], shared.scratch[0], total);
    for (uint32_t bin = top; bin + 4 > top; bin--) {
      if (reached < wanted && reached + shared.bins[bin] >= wanted) shared.low = from + (uint64_t{bin} << shift);
      reached += shared.bins[bin];
    }
    __syncthreads();
    return shared.low;
  }
};

}  // namespace

// The hits of a query in the order of scores. A block goes through its candidates, which come in any order, keeps those that may be hits and precede the last
// hit of all before, and puts them in order when there is no room for more. blockIdx.x is the order.
extern "C" __global__ void __launch_bounds__(kOrderThreads) order_terms(const TermsOrders o) {
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ OrderShared shared;
  const TermsOrder own = o.orders[blockIdx.x];
  const uint32_t n = o.states[own.query].kept, room = orderRoom(own.wanted);
  uint64_t* const kept = reinterpret_cast<uint64_t*>(memory);
  Order s{shared, kept, kept + room};
  const uint64_t *const entries = o.out + own.answer, *const scores = o.scores + own.scores;
  uint64_t lastScore = 0, last = 0;  // to be preceded
  if (n > own.wanted && (lastScore = s.floorOf(scores, n, own.wanted)) > 0) lastScore--, last = ~0ull;
  uint32_t held = 0, turn = 0, least = ~0u;
  bool compared = true;
  for (uint32_t first = threadIdx.x; first - threadIdx.x < n; first += kOrderLoads * kOrderThreads, turn ^= 1) {
    uint64_t score[kOrderLoads], entry[kOrderLoads];
    uint32_t mine = 0;
#pragma unroll
    for (uint32_t j = 0; j < kOrderLoads; j++) {
      const uint32_t rank = first + j * kOrderThreads;
      score[j] = rank < n ? scores[rank] : 0;
      entry[j] = rank < n ? entries[n - 1 - rank] : 0;
    }
#pragma unroll
    for (uint32_t j = 0; j < kOrderLoads; j++) {
      compared = compared && score[j] != kNotComputed;
      if (entry[j] != 0) least = min(least, uint32_t(entry[j] >> 32));
      mine += Order::precedes(score[j], entry[j], lastScore, last);
    }
    uint32_t some;
    uint32_t place = held + blockPlace<kOrderThreads>(mine, shared.scratch[turn], some);
#pragma unroll
    for (uint32_t j = 0; j < kOrderLoads; j++) {
      if (!Order::precedes(score[j], entry[j], lastScore, last)) continue;
      s.scores[place] = score[j];
      s.entries[place++] = entry[j];
    }
    held += some;
    if (held + kOrderLoads * kOrderThreads <= room) continue;
    s.sort(held);
    held = own.wanted;  // there are more, by the size of the room
    lastScore = s.scores[held - 1];
    last = s.entries[held - 1];
  }
  s.sort(held);
  held = min(held, own.wanted);
  for (uint32_t i = threadIdx.x; i < own.wanted; i += kOrderThreads)
    o.hits[own.hits + i] = i < held ? OrderedHit{s.scores[i], s.entries[i]} : OrderedHit{};
  const bool all = blockSum<kOrderThreads>(!compared, shared.scratch[turn]) == 0;
  least = __reduce_min_sync(~0u, least);
  if (laneOf() == 0) shared.bins[warpOf()] = least;
  __syncthreads();
  for (uint32_t w = 0; w < kOrderThreads / 32; w++) least = min(least, shared.bins[w]);
  if (threadIdx.x == 0) o.heads[blockIdx.x] = {n > 0 ? least : 0, all};
}

}  // namespace geniemq
