// What a warp does of a round of a descent (descent.cuh), for any space of objects. A Space says how objects are compared:
//
//   kLanes                                        lanes that compare a pair together, so that a warp compares 32 / kLanes
//   Box                                           what a box adds up
//   value(v, query, object, real)                 the value of a pair, for all its lanes; the lanes of a warp call it together
#pragma once
#include "descent.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kDescentThreads = 128;

__device__ __forceinline__ bool isLeaf(const DescentTree& t, uint32_t node) { return __ldg(t.first + node) == __ldg(t.first + node + 1); }

// Rows of vectors and points: eight lanes a pair, each with one of the partial sums.
template <class Terms>
struct Rows {
  static constexpr uint32_t kLanes = kNearTerms;
  using Box = Terms;
  static __device__ double value(const Descent& v, uint32_t q, uint32_t object, bool real) {
    const Near& n = v.near;
    double sum = 0;
    if (real) {
      const double* vector = n.vectors + size_t{q} * n.dims;
      for (uint32_t e = laneOf() % kLanes; e < n.dims; e += kLanes) Terms::add(sum, __ldg(vector + e), elementOf(n.rows, n.storage, size_t{object} * n.dims + e), n.power);
    }
#pragma unroll
    for (uint32_t d = 1; d < kLanes; d *= 2) sum = Terms::both(sum, __shfl_xor_sync(~0u, sum, d));
    return real ? finished(n, n.queries[q], sum, object) : 0;
  }
};
// Chords: boxes are around unit vectors.
struct Angles : Rows<NearDots> {
  using Box = NearSquares;
};

// The lanes of a warp that have something, as places that follow each other behind a counter.
__device__ __forceinline__ uint32_t placesOf(uint32_t* counter, uint32_t lanes) {
  uint32_t place = 0;
  if (laneOf() == 0 && lanes != 0) place = atomicAdd(counter, __popc(lanes));
  return __shfl_sync(~0u, place, 0) + __popc(lanes & ((1u << laneOf()) - 1));
}

// An entry that is expanded.
struct Expanded {
  uint32_t entry, q, node;
  double bound, limit, distance;
};

// The bound of a child of a node to whose pivot the query has a distance.
template <class Space>
__device__ double childBound(const Descent& v, const DescentTree& t, uint32_t q, uint32_t child, double distance) {
  if (t.boxes != nullptr) return boxOf<typename Space::Box>(v.near, t, q, child);
  return intervalOf(t, distance, __ldg(t.lo + child), __ldg(t.hi + child));
}

// Puts the children of a node that are not passed over into the level below; a warp.
template <class Space>
__device__ void appendChildren(const Descent& v, const DescentTree& t, uint32_t level, const Expanded& e) {
  const DescentLevel above = v.levels[level], below = v.levels[level + 1];
  const uint32_t first = __ldg(t.first + e.node), end = __ldg(t.first + e.node + 1);
  for (uint32_t at = first; at < end; at += 32) {
    const uint32_t child = at + laneOf();
    const double bound = child < end ? fmax(e.bound, childBound<Space>(v, t, e.q, child, e.distance)) : 0;
    const bool enters = child < end && bound <= e.limit;
    const uint32_t entering = __ballot_sync(~0u, enters);
    if (entering == 0) continue;
    const uint32_t place = placesOf(&v.state->counts[level + 1], entering);
    if (!enters) continue;
    below.bounds[place] = bound;
    below.queries[place] = e.q;
    below.nodes[place] = child;
    if (t.boxes != nullptr) continue;
    for (uint32_t l = 0; l < level; l++) below.distances[size_t{l} * below.room + place] = above.distances[size_t{l} * above.room + e.entry];
    below.distances[size_t{level} * below.room + place] = e.distance;
  }
}

// The entries of a round: leaves go on the list, the others lead to the level below.
template <class Space>
__device__ void expand(const Descent& v) {
  constexpr uint32_t kPairs = 32 / Space::kLanes;
  const DescentTree& t = *v.tree;
  const DescentWork& work = *v.work;
  DescentState& s = *v.state;
  const uint32_t taken = s.taken, level = s.level;
  if (taken == 0) return;
  const DescentLevel own = v.levels[level];
  uint32_t* list = work.lists + s.current * work.listRoom;
  const uint32_t warps = gridDim.x * kDescentThreads / 32, warp = blockIdx.x * (kDescentThreads / 32) + warpOf();
  for (uint32_t first = warp * kPairs; first < taken; first += warps * kPairs) {
    const uint32_t i = first + laneOf() / Space::kLanes;
    const bool real = i < taken, speaks = laneOf() % Space::kLanes == 0;
    Expanded e = {s.begin + i, 0, 0, 0, 0, 0};
    bool alive = false, leaf = false;
    if (real) {
      e.q = own.queries[e.entry];
      e.node = own.nodes[e.entry];
      e.bound = own.bounds[e.entry];
      e.limit = limitOf(t, wanted(v.near.queries[e.q], v.near.states[e.q]));
      alive = e.bound <= e.limit;
      leaf = isLeaf(t, e.node);
    }
    const uint32_t leaves = __ballot_sync(~0u, alive && leaf && speaks), inner = __ballot_sync(~0u, alive && !leaf && speaks);
    if (leaves != 0) {
      const uint32_t place = placesOf(&s.listed[s.current], leaves);
      if (alive && leaf && speaks) list[place] = e.entry;
    }
    if (inner == 0) continue;
    if (t.boxes == nullptr) {
      const bool wants = alive && !leaf;
      e.distance = distanceOf(t, Space::value(v, e.q, wants ? t.objects[t.pivots[e.node]] : 0, wants));
      if (wants && speaks) atomicAdd(reinterpret_cast<unsigned long long*>(&v.near.states[e.q].listed), 1ull);
    }
    for (uint32_t left = inner; left != 0; left &= left - 1) {
      const uint32_t lane = __ffs(left) - 1;
      appendChildren<Space>(v, t, level, {__shfl_sync(~0u, e.entry, lane), __shfl_sync(~0u, e.q, lane), __shfl_sync(~0u, e.node, lane),
        __shfl_sync(~0u, e.bound, lane), __shfl_sync(~0u, e.limit, lane), __shfl_sync(~0u, e.distance, lane)});
    }
  }
}

// The objects of a leaf that a query is compared with, by a warp.
template <class Space>
struct Leaf {
  static constexpr uint32_t kPairs = 32 / Space::kLanes;

  const Descent& v;
  const DescentTree& t;
  uint32_t q, leaf;
  uint32_t* near;  // 64 words of shared memory: objects that are to be compared, less than kPairs and 32 that come

  // The cells of the levels of the path, of level l in lane l; of an entry of a level, or of none.
  __device__ Cells cells(uint32_t level, uint32_t entry, double limit) const {
    Cells own = {0, 255};
    uint32_t child = leaf, mine = leaf;
    for (uint32_t l = level; l-- > 0; child = __ldg(t.parent + child))
      if (l == laneOf()) mine = child;
    if (laneOf() < level) {
      const DescentLevel& of = v.levels[level];
      const double d = of.distances[size_t{laneOf()} * of.room + entry], lo = __ldg(t.lo + mine), hi = __ldg(t.hi + mine);
      const double reach = __dadd_rn(limit, slackOf(t, d, hi));
      own = cellsOf(lo, hi, __dsub_rn(d, reach), __dadd_rn(d, reach));
    }
    return own;
  }

  // Compares the last objects of the list.
  __device__ void compare(const NearQuery& query, NearState& state, uint64_t most, uint32_t count, uint32_t pairs) const {
    const uint32_t pair = laneOf() / Space::kLanes;
    const bool real = pair < pairs;
    const uint32_t object = real ? near[count + pair] : 0;
    const double d = Space::value(v, q, object, real);
    const bool own = real && laneOf() % Space::kLanes == 0;
    const uint64_t value = own ? orderedOf(d) : ~0ull;
    passGate(v.near, query, state, min(query.most, state.limit + 1), own && value <= most, value, object);
  }

  // The path says nothing where level is 0.
  __device__ void run(uint32_t level, uint32_t entry) const {
    const NearQuery query = v.near.queries[q];
    NearState& state = v.near.states[q];
    const uint64_t most = wanted(query, state);
    const double limit = limitOf(t, most);
    if (t.boxes != nullptr || limit > 0x1.fffffffffffffp+1023) level = 0;  // without a limit it says nothing
    const Cells own = cells(level, entry, limit);
    const uint32_t begin = __ldg(t.begin + leaf), all = __ldg(t.count + leaf);
    const uint8_t* path = t.path + size_t{begin} * t.height;
    uint32_t count = 0, compared = 0;
    for (uint32_t at = 0; at < all; at += 32) {
      const uint32_t i = at + laneOf();
      bool alive = i < all;
      for (uint32_t l = 0; l < level; l++) {
        const int first = __shfl_sync(~0u, own.first, l), last = __shfl_sync(~0u, own.last, l);
        if (first == 0 && last == 255) continue;
        if (alive) {
          const int cell = __ldg(path + size_t{l} * all + i);
          alive = cell >= first && cell <= last;
        }
      }
      const uint32_t object = alive ? __ldg(t.objects + begin + i) : 0;
      alive = alive && mayHit(v.near, query, object);
      const uint32_t some = __ballot_sync(~0u, alive);
      if (alive) near[count + __popc(some & ((1u << laneOf()) - 1))] = object;
      count += __popc(some);
      compared += __popc(some);
      __syncwarp();
      while (count >= kPairs || count > 0 && at + 32 >= all) {
        const uint32_t pairs = min(count, kPairs);
        count -= pairs;
        compare(query, state, most, count, pairs);
      }
      __syncwarp();
    }
    if (laneOf() != 0) return;
    atomicAdd(reinterpret_cast<unsigned long long*>(&state.listed), (unsigned long long)compared);
    atomicAdd(&state.list, 1);
  }
};

// Shared memory of the kernels that compare leaves: kernels declare it.
struct Listed {
  uint32_t near[kDescentThreads / 32][64];  // by warp
};

// The leaves that were admitted, in the order of their groups.
template <class Space>
__device__ void compareLeaves(const Descent& v, Listed& listed) {
  const DescentState& s = *v.state;
  const DescentLevel own = v.levels[s.level];
  const uint32_t warps = gridDim.x * kDescentThreads / 32, warp = blockIdx.x * (kDescentThreads / 32) + warpOf();
  for (uint32_t i = warp; i < s.admitted; i += warps) {
    const uint32_t entry = v.work->grouped[i];
    Leaf<Space>{v, *v.tree, own.queries[entry], own.nodes[entry], listed.near[warpOf()]}.run(s.level, entry);
  }
}

// The leaves that seem best.
template <class Space>
__device__ void compareSeeds(const Descent& v, Listed& listed) {
  const uint32_t all = v.near.queriesOfBatch * v.seeds;
  const uint32_t warps = gridDim.x * kDescentThreads / 32, warp = blockIdx.x * (kDescentThreads / 32) + warpOf();
  for (uint32_t i = warp; i < all; i += warps) {
    const uint32_t q = i / v.seeds, leaf = v.work->seeds[q * kDescentSeeds + v.firstSeed + i % v.seeds];
    if (leaf != kDescentNone) Leaf<Space>{v, *v.tree, q, leaf, listed.near[warpOf()]}.run(0, 0);
  }
}

// Of the children of a node the one with the least (bound, node) that follows another one; a leaf's if leaves is set. kDescentNone: there is none.
template <class Space>
__device__ uint32_t bestChild(const Descent& v, const DescentTree& t, uint32_t q, uint32_t node, double distance, bool leaves, double& after, uint32_t afterNode) {
  double least = __longlong_as_double(0x7ff0000000000000ll);
  uint32_t best = kDescentNone;
  for (uint32_t child = __ldg(t.first + node) + laneOf(); child < __ldg(t.first + node + 1); child += 32) {
    if (leaves && !isLeaf(t, child)) continue;
    const double bound = childBound<Space>(v, t, q, child, distance);
    if (afterNode != kDescentNone && !(bound > after || bound == after && child > afterNode)) continue;
    if (bound < least || bound == least && child < best) least = bound, best = child;
  }
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) {
    const double other = __shfl_xor_sync(~0u, least, d);
    const uint32_t of = __shfl_xor_sync(~0u, best, d);
    if (other < least || other == least && of < best) least = other, best = of;
  }
  after = least;
  return best;
}

// Goes down to the leaf that seems best, by a warp, and notes it and leaves beside it.
template <class Space>
__device__ void seed(const Descent& v) {
  const DescentTree& t = *v.tree;
  const uint32_t q = blockIdx.x * (kDescentThreads / 32) + warpOf();
  if (q >= v.near.queriesOfBatch) return;
  const NearQuery& query = v.near.queries[q];
  const double limit = limitOf(t, wanted(query, v.near.states[q]));
  uint32_t found = 0, node = 0;
  uint32_t* seeds = v.work->seeds + q * kDescentSeeds;
  while (found == 0 && query.k > 0 && !query.counts && query.k < t.positions && !isLeaf(t, node)) {
    double distance = 0, bound = 0;
    if (t.boxes == nullptr) {
      const bool real = laneOf() < Space::kLanes;
      distance = distanceOf(t, __shfl_sync(~0u, Space::value(v, q, real ? t.objects[t.pivots[node]] : 0, real), 0));
    }
    const uint32_t best = bestChild<Space>(v, t, q, node, distance, false, bound, kDescentNone);
    if (best == kDescentNone || !(bound <= limit)) break;
    if (!isLeaf(t, best)) {
      node = best;
      continue;
    }
    for (uint32_t leaf = best; found < kDescentSeeds && leaf != kDescentNone && bound <= limit;) {
      if (laneOf() == 0) seeds[found] = leaf;
      found++;
      leaf = bestChild<Space>(v, t, q, node, distance, true, bound, leaf);
    }
  }
  for (uint32_t i = found + laneOf(); i < kDescentSeeds; i += 32) seeds[i] = kDescentNone;
}

}  // namespace

// The kernels of a space.
#define GENIEMQ_DESCENT(name, Space)                                                                                      \
  extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_seed_##name(const Descent v) { seed<Space>(v); }  \
  extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_seeds_##name(const Descent v) {                   \
    __shared__ Listed s;                                                                                                  \
    compareSeeds<Space>(v, s);                                                                                            \
  }                                                                                                                       \
  extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_expand_##name(const Descent v) { expand<Space>(v); } \
  extern "C" __global__ void __launch_bounds__(kDescentThreads) descent_leaves_##name(const Descent v) {                  \
    __shared__ Listed s;                                                                                                  \
    compareLeaves<Space>(v, s);                                                                                           \
  }

}  // namespace geniemq
