// Descents depth first, over vectors and points of trees with boxes, for queries of few hits.
//
// Rounds (descent.cuh) share what they read among many queries, and take some ten launches a level. A search among few coordinates enters a handful of nodes and compares some
// dozens of objects: so here a warp has a query, from the root to its answer, in one launch. It enters the child that seems best, keeps the others on a stack, and holds
// each against what is still wanted when it comes to it, which is the k-th value so far. Values, order, boxes and what is wanted are those of rounds, and so are answers.
//
// # Bound of the stack
//
// What lies on it are children, not entered yet, of the inner nodes from the root to the one that is at hand: at most `capacity` of each of `height` nodes. So capacity * height
// places hold for any tree and query.
#include "descent_rounds.cuh"
#include "near_hits.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kDepthWarps = 4;  // of a block

// Vectors and points, a lane a pair, the partial sums of Rows in their order.
template <class Terms>
struct Alone {
  using Box = Terms;
  static __device__ double value(const Near& n, const NearQuery& query, uint32_t q, uint32_t object) {
    const double* vector = n.vectors + size_t{q} * n.dims;
    double s[kNearTerms] = {};
    for (uint32_t first = 0; first < n.dims; first += kNearTerms) {
      double x[kNearTerms];
      size_t at[kNearTerms];
      bool there[kNearTerms];
#pragma unroll
      for (uint32_t e = 0; e < kNearTerms; e++) at[e] = size_t{object} * n.dims + first + e, there[e] = first + e < n.dims;
      elementsOf(x, n.rows, n.storage, at, there);
#pragma unroll
      for (uint32_t e = 0; e < kNearTerms; e++)
        if (there[e]) Terms::add(s[e], __ldg(vector + first + e), x[e], n.power);
    }
#pragma unroll
    for (uint32_t d = 1; d < kNearTerms; d *= 2)
#pragma unroll
      for (uint32_t e = 0; e < kNearTerms; e += 2 * d) s[e] = Terms::both(s[e], s[e + d]);
    return finished(n, query, s[0], object);
  }
};
struct AloneAngles : Alone<NearDots> {
  using Box = NearSquares;
};

// A search, by a warp.
template <class Space>
struct Search {
  const DescentDepth& v;
  const DescentTree& t;
  const uint32_t q;
  const NearQuery query;
  Kept kept;
  DescentPlace* const stack;

  uint32_t top = 0;               // places on the stack
  uint64_t within = 0, passed = 0, compared = 0;
  uint32_t leaves = 0;

  __device__ Search(const DescentDepth& depth, uint32_t at, WarpHits& hits)
      : v(depth), t(*depth.tree), q(at), query(depth.near.queries[at]), kept(hits, query.k), stack(depth.stacks + size_t{at} * depth.stackRoom) {}

  // The largest value of which an object may still be wanted.
  __device__ uint64_t most() const { return query.counts || kept.found < query.k ? query.most : min(query.most, kept.last); }

  // Compares the objects of a leaf.
  __device__ void compare(uint32_t leaf) {
    const Near& n = v.near;
    const uint32_t begin = __ldg(t.begin + leaf), all = __ldg(t.count + leaf);
    leaves++;
    for (uint32_t at = 0; at < all; at += 32) {
      const uint32_t i = at + laneOf();
      const uint32_t object = i < all ? __ldg(t.objects + begin + i) : 0;
      const bool alive = i < all && mayHit(n, query, object);
      const uint64_t value = alive ? orderedOf(Space::value(n, query, q, object)) : ~0ull;
      const bool inside = alive && value <= query.most;
      compared += __popc(__ballot_sync(~0u, alive));
      const uint32_t some = __ballot_sync(~0u, inside);
      within += __popc(some);
      if (query.k > 0) passed += kept.offer(inside, value, object + n.base);
    }
  }

  // Puts the children of a node that may hold what is wanted on the stack, and takes the best of them from it; false: there is none.
  __device__ bool enter(DescentPlace& at, uint32_t first, uint32_t end, double limit) {
    double least = __longlong_as_double(0x7ff0000000000000ll);
    uint32_t best = kDescentNone;
    const double above = at.bound;
    for (uint32_t from = first; from < end; from += 32) {
      const uint32_t child = from + laneOf();
      const double bound = child < end ? fmax(above, boxOf<typename Space::Box>(v.near, t, q, child)) : 0;
      const bool enters = child < end && bound <= limit;
      const uint32_t entering = __ballot_sync(~0u, enters), place = top + __popc(entering & ((1u << laneOf()) - 1));
      if (enters) {
        stack[place] = {bound, child, 0};
        if (bound < least) least = bound, best = place;
      }
      top += __popc(entering);
    }
#pragma unroll
    for (uint32_t d = 16; d > 0; d /= 2) {
      const double other = __shfl_xor_sync(~0u, least, d);
      const uint32_t of = __shfl_xor_sync(~0u, best, d);
      if (other < least || other == least && of < best) least = other, best = of;
    }
    if (best == kDescentNone) return false;
    __syncwarp();
    at = stack[best];
    const DescentPlace moved = stack[--top];
    __syncwarp();
    if (laneOf() == 0) stack[best] = moved;
    __syncwarp();
    return true;
  }

  __device__ void run() {
    DescentPlace at = {-0x1.fffffffffffffp+1023, 0, 0};
    while (true) {
      const double limit = valueOf(most());
      bool goesOn = false;
      if (at.bound <= limit) {
        const uint32_t first = __ldg(t.first + at.node), end = __ldg(t.first + at.node + 1);
        if (first == end)
          compare(at.node);
        else
          goesOn = enter(at, first, end, limit);
      }
      if (goesOn) continue;
      if (top == 0) break;
      at = stack[--top];
      __syncwarp();
    }
    answer();
  }

  __device__ void answer() {
    NearEntry* out = v.near.out + query.out;
    for (uint32_t i = laneOf(); i < kept.found; i += 32) out[i] = {kept.hits.values[i], kept.hits.ids[i], 0};
    if (laneOf() != 0) return;
    NearState& state = v.near.states[q];
    state.within = within;
    state.passed = passed;
    state.listed = compared;
    state.list = leaves;
    state.kept = kept.found;
  }
};

template <class Space>
__device__ void search(const DescentDepth& v, WarpHits* hits) {
  const uint32_t q = blockIdx.x * kDepthWarps + warpOf();
  if (q < v.near.queriesOfBatch) Search<Space>(v, q, hits[warpOf()]).run();
}

}  // namespace

extern "C" __device__ const uint32_t descent_depth_threads = 32 * kDepthWarps;

#define GENIEMQ_DEPTH(name, Space)                                                                                \
  extern "C" __global__ void __launch_bounds__(32 * kDepthWarps) descent_depth_##name(const DescentDepth v) {     \
    __shared__ WarpHits hits[kDepthWarps];                                                                            \
    search<Space>(v, hits);                                                                                       \
  }
GENIEMQ_DEPTH(squares, Alone<NearSquares>)
GENIEMQ_DEPTH(differences, Alone<NearDifferences>)
GENIEMQ_DEPTH(dots, AloneAngles)
GENIEMQ_DEPTH(powers, Alone<NearPowers>)
GENIEMQ_DEPTH(largest, Alone<NearLargest>)
GENIEMQ_DEPTH(unequal, Alone<NearUnequal>)

}  // namespace geniemq
