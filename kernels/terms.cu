// Scores of candidates by the terms that they hold in a column, once the answers stand: what they have in common with the query's, for measures
// of sets, and BM25. gpuexec/cuda/rescoring says where everything lies and what the host makes of it.
//
// The bits are the host's (index/similarity): common weights are integers, and of BM25 each product, quotient and sum is rounded by
// itself, and terms are added in ascending order.
//
// A block has a table of the query's terms in shared memory and compares some entries of its answer. Objects lie anywhere, so what it costs is
// two dependent accesses to memory for each: its record, then its terms. Short rows are read by a lane each; long ones by a warp, a
// term a lane.
#include "batch.cuh"
#include "block.cuh"

namespace geniemq {

constexpr uint32_t kTermsThreads = 128;
constexpr uint32_t kMaxAskedTerms = 256;      // of a query; of more the host compares
constexpr uint32_t kMaxObjectTerms = 1 << 16; // a longer object would hold up the batch
enum TermsMeasure : uint32_t { kTermsCounted, kTermsSummed, kTermsBM25 };

// A term of a query.
struct AskedTerm {
  uint32_t term, weight;  // of measures of sets
  double gain;            // of BM25: idf (k1 + 1)
};

// What one block does: some entries of an answer. Rank 0 is the best one, which is the last.
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
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(AskedTerm) == 16 && sizeof(TermsTask) == 48 && sizeof(Terms) == 72);

namespace {

constexpr uint32_t kSlots = 2 * kMaxAskedTerms;  // at most half of them taken
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
    while (slots < 2 * terms) slots *= 2, bits++;
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

// The score of an object, by the lane that reads its row.
__device__ uint64_t scoreOf(const Asked& asked, const Row& row, const TermsTask& task) {
  if (task.measure == kTermsBM25) {
    const double norm = normOf(row.length, task.mean);
    double score = 0;
    for (uint32_t i = 0; i < row.terms; i++) {
      const uint32_t place = asked.find(__ldg(row.words + i));
      if (place != kNoTerm) score = __dadd_rn(score, termOf(asked.gains[place], row.frequency(i), norm));
    }
    return __double_as_longlong(score);
  }
  uint32_t common = 0;
  for (uint32_t i = 0; i < row.terms; i++) {
    const uint32_t place = asked.find(__ldg(row.words + i));
    if (place != kNoTerm) common += asked.weights[place];
  }
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

// A block does a task.
extern "C" __global__ void __launch_bounds__(kTermsThreads) score_terms(const Terms t) {
  __shared__ Asked asked;
  const TermsTask task = t.tasks[t.firstTask + blockIdx.x];
  asked.build(t.asked + task.first, task.terms);
  const uint32_t kept = t.states[task.query].kept;
  for (uint32_t i = threadIdx.x / t.lanes; i < task.ranks; i += kTermsThreads / t.lanes) {
    const uint32_t rank = task.rank + i;
    uint64_t score = kNotComputed;
    Row row;
    if (rank < kept && row.open(t, ~uint32_t(t.out[task.answer + kept - 1 - rank]) - t.base))
      score = t.lanes == 1 ? scoreOf(asked, row, task) : warpScoreOf(asked, row, task);
    if (threadIdx.x % t.lanes == 0) t.scores[task.scores + rank] = score;
  }
}

}  // namespace geniemq
