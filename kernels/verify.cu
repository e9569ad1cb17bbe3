// Edit distances of candidates, once the answers stand (edit.cuh). Nothing is bounded: a pair is computed to its end, for a
// warp waits for its slowest pair anyway.
#include "edit.cuh"

namespace geniemq {

// What one warp does: some entries of an answer, at most 32 / lanes. Rank 0 is the best one, which is the last.
struct VerifyTask {
  uint32_t answer, places;   // out[answer .. answer + places)
  uint32_t rank, ranks;      // rank .. rank + ranks, below places
  uint32_t distances;        // distances[distances + rank] is that of an entry
  uint32_t pattern, length;  // patterns[pattern .. pattern + length)
};

struct Verify {
  const uint8_t* texts;
  const uint32_t* starts;  // of each object's text, in units of 16 bytes
  const uint64_t* out;     // the answers: count << 32 | ~id, and 0 in the places left over at the end
  const uint16_t* patterns;
  const VerifyTask* tasks;
  int32_t* distances;         // -1: not computed
  uint32_t firstTask, lanes;  // blockIdx.x counts from here; lanes a pair
  uint32_t symbols, base;     // symbols that occur in the texts; id of the first object
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(VerifyTask) == 28 && sizeof(Verify) == 64);

namespace {

// How many places of an answer are taken.
__device__ uint32_t storedOf(const uint64_t* answer, uint32_t places) {
  uint32_t lo = 0, hi = places;
  while (lo < hi) {
    const uint32_t stride = (hi - lo + 31) / 32, i = lo + threadIdx.x * stride;
    const uint32_t taken = __popc(__ballot_sync(~0u, i < hi && answer[i] != 0));
    if (taken == 0) return lo;
    hi = min(hi, lo + taken * stride);
    lo += (taken - 1) * stride + 1;
  }
  return lo;
}

template <template <int> class Masks, int kLanes>
__device__ void verify(const Verify& v) {
  const VerifyTask task = v.tasks[v.firstTask + blockIdx.x];
  const uint32_t block = threadIdx.x % kLanes, pair = threadIdx.x / kLanes, rank = task.rank + pair;
  const uint32_t m = task.length, last = max(m, 1u) - 1;

  Masks<kLanes>::build(v.symbols, v.patterns + task.pattern, m);
  Reader<typename Masks<kLanes>::Symbol> text;
  uint32_t n = 0;
  const uint64_t* answer = v.out + task.answer;
  const uint32_t stored = storedOf(answer, task.places);
  const bool mine = pair < task.ranks;
  const uint64_t entry = mine && rank < stored ? answer[stored - 1 - rank] : 0;
  if (entry != 0) n = text.open(v.texts + size_t{16} * v.starts[~uint32_t(entry) - v.base]);
  const bool real = entry != 0 && n <= kMaxText;
  const int32_t d = distance<Masks, kLanes>(text, n, m, real, kNoLimit);
  if (block == last / 64 && mine) v.distances[task.distances + rank] = real ? d : -1;
}

template <template <int> class Masks>
__device__ void verify(const Verify& v) {
  switch (v.lanes) {
    case 1: return verify<Masks, 1>(v);
    case 2: return verify<Masks, 2>(v);
    case 4: return verify<Masks, 4>(v);
    case 8: return verify<Masks, 8>(v);
    case 16: return verify<Masks, 16>(v);
    case 32: return verify<Masks, 32>(v);
  }
}

}  // namespace

extern "C" __device__ const uint32_t verify_max_pattern = kMaxPattern;

// A block is a warp and does a task.
extern "C" __global__ void __launch_bounds__(32) verify_narrow(const Verify v) { verify<DenseMasks>(v); }
extern "C" __global__ void __launch_bounds__(32) verify_wide(const Verify v) { verify<HashedMasks>(v); }

}  // namespace geniemq
