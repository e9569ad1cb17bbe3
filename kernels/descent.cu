// Descents (descent.cuh) over vectors and points, and what all descents share: which entries a round takes, which leaves are admitted, and their groups.
// Those over texts are in descent_texts.cu.
#include "descent_rounds.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kThreads = kDescentBins;  // of the kernels of one block

__device__ __forceinline__ uint32_t binOf(const DescentWork& work, uint32_t node) { return min(node >> work.binShift, kDescentBins - 1); }

// Chooses what a round takes; one thread. Returns how many queries are fed to the root, from the one before state.fed on.
__device__ uint32_t choose(const Descent& v) {
  const DescentTree& t = *v.tree;
  DescentState& s = *v.state;
  s.current ^= 1;  // what the last round has put off
  s.listed[s.current ^ 1] = s.taken = s.admitted = 0;
  if (s.done) return 0;
  s.rounds++;
  if (s.listed[s.current] > 0) return 0;
  uint32_t fed = 0;
  int level = t.height;
  while (level >= 0 && s.counts[level] == 0) level--;
  if (level < 0) {
    fed = min(v.near.queriesOfBatch - s.fed, v.levels[0].room);
    if (fed == 0) {
      s.done = 1;
      return 0;
    }
    s.fed += fed;
    s.counts[0] = fed;
    level = 0;
  }
  s.level = level;
  s.taken = uint32_t(level) == t.height ? s.counts[level] : min(s.counts[level], v.work->most);
  s.begin = s.counts[level] -= s.taken;
  return fed;
}

__device__ bool isSeed(const DescentWork& work, uint32_t q, uint32_t leaf) {
  for (uint32_t i = 0; i < kDescentSeeds; i++)
    if (work.seeds[q * kDescentSeeds + i] == leaf) return true;
  return false;
}

}  // namespace

// Begins a round. One block.
extern "C" __global__ void __launch_bounds__(kThreads) descent_choose(const Descent v) {
  __shared__ uint32_t fed;
  if (threadIdx.x == 0) fed = choose(v);
  __syncthreads();
  const DescentWork& work = *v.work;
  work.bins[threadIdx.x] = 0;
  for (uint32_t q = threadIdx.x; q < v.near.queriesOfBatch; q += kThreads) work.admitted[q] = 0;
  const DescentLevel& root = v.levels[0];
  for (uint32_t i = threadIdx.x; i < fed; i += kThreads) {
    root.bounds[i] = -0x1.fffffffffffffp+1023;
    root.queries[i] = v.state->fed - fed + i;
    root.nodes[i] = 0;
  }
}

// Admits entries of the list, at most `leaves` of each query; the others are put off. A leaf that is beyond what is wanted by now, or was compared as a seed, goes.
extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_admit(const Descent v) {
  const DescentTree& t = *v.tree;
  const DescentWork& work = *v.work;
  DescentState& s = *v.state;
  const DescentLevel own = v.levels[s.level];
  const uint32_t *list = work.lists + s.current * work.listRoom, listed = s.listed[s.current];
  uint32_t* later = work.lists + (s.current ^ 1) * work.listRoom;
  for (uint32_t i = blockIdx.x * kDescentThreads + threadIdx.x; i < listed; i += gridDim.x * kDescentThreads) {
    const uint32_t entry = list[i], q = own.queries[entry], leaf = own.nodes[entry];
    uint32_t place = kDescentNone;
    if (own.bounds[entry] <= limitOf(t, wanted(v.near.queries[q], v.near.states[q])) && !isSeed(work, q, leaf)) {
      if (atomicAdd(&work.admitted[q], 1) < work.leaves) {
        place = atomicAdd(&work.bins[binOf(work, leaf)], 1);
      } else {
        later[atomicAdd(&s.listed[s.current ^ 1], 1)] = entry;
      }
    }
    work.places[i] = place;
  }
}

// Finds where groups begin. One block.
extern "C" __global__ void __launch_bounds__(kThreads) descent_place(const Descent v) {
  __shared__ uint32_t scratch[32];
  const DescentWork& work = *v.work;
  uint32_t total;
  const uint32_t place = blockPlace<kThreads>(work.bins[threadIdx.x], scratch, total);
  work.bins[threadIdx.x] = place;
  if (threadIdx.x == 0) v.state->admitted = total;
}

// Puts what is admitted into its groups.
extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_group(const Descent v) {
  const DescentWork& work = *v.work;
  const DescentState& s = *v.state;
  const DescentLevel own = v.levels[s.level];
  const uint32_t *list = work.lists + s.current * work.listRoom, listed = s.listed[s.current];
  for (uint32_t i = blockIdx.x * kDescentThreads + threadIdx.x; i < listed; i += gridDim.x * kDescentThreads) {
    if (work.places[i] == kDescentNone) continue;
    const uint32_t entry = list[i];
    work.grouped[work.bins[binOf(work, own.nodes[entry])] + work.places[i]] = entry;
  }
}

GENIEMQ_DESCENT(squares, Rows<NearSquares>)
GENIEMQ_DESCENT(differences, Rows<NearDifferences>)
GENIEMQ_DESCENT(dots, Angles)
GENIEMQ_DESCENT(powers, Rows<NearPowers>)
GENIEMQ_DESCENT(largest, Rows<NearLargest>)
GENIEMQ_DESCENT(unequal, Rows<NearUnequal>)

extern "C" __device__ const uint32_t descent_threads = kDescentThreads, descent_block = kThreads;

}  // namespace geniemq
