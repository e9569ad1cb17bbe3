// Down a tree over the objects of a column (index/metric/tree): the nearest objects, and those within a value, without comparing all.
//
// A tree prunes, it decides nothing: whatever is compared in the end goes through the Gate of near.cuh, and a node is passed over only if its bound is above what is still
// wanted, with what rounding may add (index/metric/tree, measure.go). So answers are those of a scan, to the bit, whatever the order in which nodes are taken.
//
// Positions do not ascend with ids, so an object whose value equals the k-th may still come before it. near_compact makes State::limit the k-th value less one,
// which it is not before there are k: what is still wanted is min(most, limit + 1) as integers (wanted).
//
// # Levels
//
// An entry is a query that is to enter a node. Level d has a buffer of entries for nodes of depth d. A round takes entries of the deepest level that has any, at
// most `most` = floor(B / capacity) of them, of the last level all: each leads to `capacity` entries of the level below at most, which is empty, so B entries hold in every
// level, for any batch and for a single query, as long as B >= capacity. A query enters a node once at most, so a level of N nodes never has more than
// N entries for each query, and its buffer has no more room than that. Queries are fed to the root, as many as its buffer holds, when no level has entries.
// Nothing waits, so nothing locks up.
//
// # Leaves
//
// Entries of leaves that a round takes go on a list, of the entries' numbers: those stay where they are, since a level is appended to only after a round has taken entries of the one
// above, which none does while the list has any. Of each query at most `leaves` of the list are admitted in a round, and the others put on the list of the next round;
// so k + leaves * leaf candidates hold. What is admitted is grouped by block: consecutive leaves, so that the objects that a block of threads reads
// are the same ones for many queries. After that candidates are compacted (near_compact) and what is wanted falls, before the next round prunes by it.
//
// # A round
//
// descent_choose, descent_expand_*, descent_admit, descent_place, descent_group, descent_leaves_*, near_compact: the host launches so many rounds, with grids
// of a fixed size, and asks DescentState::done after them.
//
// The first radius: descent_seed_* goes down to the leaf that seems best and notes it and up to seven leaves beside it; descent_seeds_* compares these before the
// first round, which does not look at them again.
#pragma once
#include <cstdint>

#include "near.cuh"

namespace geniemq {

constexpr uint32_t kDescentLevels = 33;  // depths of a tree, at most
constexpr uint32_t kDescentSeeds = 8;    // leaves of a query before the first round
constexpr uint32_t kDescentBins = 1024;  // groups of leaves
constexpr uint32_t kDescentNone = ~0u;

// What a Distance is of a value (index/metric): a metric for bounds.
enum DescentMeasure : uint32_t { kDescentValue, kDescentRoot, kDescentChord };

// A tree, as index/metric/tree has it.
struct DescentTree {
  const uint32_t* first;    // by node and one more: its children
  const uint32_t* begin;    // by node: its first position
  const uint32_t* count;    // and how many it has
  const uint32_t* parent;
  const uint32_t* pivots;   // by node: a position
  const float* lo;          // by node: distances to the parent's pivot
  const float* hi;
  const float* boxes;       // by node: the least and the largest coordinates; null: there are pivots
  const uint8_t* path;      // of a leaf: [begin * height ..][level][object]
  const uint32_t* objects;  // by position: the object of the range
  const uint32_t* starts;   // of texts, by object: its first unit of 16 bytes in Near::rows
  double share, lost;       // slack of two distances a, b: share * (a + b) + lost
  double ulps, square;      // of boxes
  uint32_t nodes, height, positions, measure;
  uint32_t symbols, unused;  // that occur in texts
};

// The buffer of a level.
struct DescentLevel {
  double* bounds;
  double* distances;  // to the pivots above, the root's first: [depth][entry]
  uint32_t* queries;
  uint32_t* nodes;
  uint32_t room, unused;
};

// Where a batch is. The host writes zeros.
struct DescentState {
  uint32_t counts[33];        // entries of each level
  uint32_t fed;                     // queries
  uint32_t level, begin, taken;     // the entries of this round
  uint32_t current;                 // the list of this round, 0 or 1
  uint32_t listed[2];               // entries on each list
  uint32_t admitted;                // of the current list
  uint32_t rounds, done;
};

// Memory of a batch.
struct DescentWork {
  uint32_t* lists;    // two, of listRoom each
  uint32_t* places;   // by place of the current list: that in its bin, or kDescentNone
  uint32_t* grouped;  // the entries that are admitted
  uint32_t* bins;     // how many each has, then where each begins
  uint32_t* admitted; // by query
  uint32_t* seeds;    // by query kDescentSeeds leaves
  uint32_t listRoom, most, leaves, binShift;
};

// The argument of the kernels.
struct Descent {
  Near near;
  const DescentTree* tree;
  const DescentLevel* levels;
  DescentState* state;
  const DescentWork* work;
  uint32_t firstSeed, seeds;  // of descent_seeds_*
};

// A node that a query is to enter (descent_depth.cu).
struct DescentPlace {
  double bound;
  uint32_t node, unused;
};

// The argument of descent_depth_*.
struct DescentDepth {
  Near near;
  const DescentTree* tree;
  DescentPlace* stacks;  // by query stackRoom each
  uint32_t stackRoom, unused;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(DescentPlace) == 16 && sizeof(DescentDepth) == 152);
static_assert(sizeof(DescentTree) == 144 && sizeof(DescentLevel) == 40 && sizeof(DescentState) == 172 && sizeof(DescentWork) == 64 && sizeof(Descent) == 168);

#ifdef __CUDACC__

// The largest value that is still wanted, as an integer.
__device__ __forceinline__ uint64_t wanted(const NearQuery& query, const NearState& state) {
  return query.counts ? query.most : min(query.most, state.limit + 1);
}

// A distance of a value.
__device__ __forceinline__ double distanceOf(const DescentTree& t, double v) {
  switch (t.measure) {
    case kDescentRoot: return __dsqrt_rn(fmax(v, 0.0));
    case kDescentChord: return __dsqrt_rn(__dadd_rn(2, __dmul_rn(2, fmax(v, -1.0))));
  }
  return fmax(v, 0.0);
}

// What bounds are held against: a distance where there are pivots, a value where there are boxes.
__device__ __forceinline__ double limitOf(const DescentTree& t, uint64_t wanted) {
  const double v = valueOf(wanted);
  return t.boxes != nullptr ? v : distanceOf(t, v);
}

__device__ __forceinline__ double slackOf(const DescentTree& t, double a, double b) {
  return __dadd_rn(__dmul_rn(t.share, __dadd_rn(a, b)), t.lost);
}

// How far objects with distances lo to hi from a pivot are from a query at distance d from it, at least.
__device__ __forceinline__ double intervalOf(const DescentTree& t, double d, double lo, double hi) {
  double gap = fmax(__dsub_rn(d, hi), __dsub_rn(lo, d));
  if (!(gap > 0)) return 0;
  gap = __dsub_rn(gap, slackOf(t, d, hi));
  return gap > 0 ? gap : 0;
}

// The least value that an object within the box of a node can have. Terms are what the metric adds up; angles are chords of unit vectors.
template <class Terms>
__device__ __forceinline__ double boxOf(const Near& n, const DescentTree& t, uint32_t q, uint32_t node) {
  const double* x = n.vectors + size_t{q} * n.dims;
  const float* box = t.boxes + size_t{node} * 2 * n.dims;
  const bool chords = t.measure == kDescentChord;
  const double norm = chords ? n.queries[q].norm : 1;
  double sum = 0;
  for (uint32_t i = 0; i < n.dims; i++) {
    const double c = chords ? __ddiv_rn(__ldg(x + i), norm) : __ldg(x + i);
    const double gap = fmax(fmax(__dsub_rn(__ldg(box + i), c), __dsub_rn(c, __ldg(box + n.dims + i))), 0.0);
    Terms::add(sum, gap, 0, n.power);
  }
  const double least = __dsub_rn(__dsub_rn(sum, __dmul_rn(sum, t.ulps)), 0x1p-1050);
  if (chords) return __dsub_rn(__dmul_rn(__dsub_rn(least, t.square), 0.5), 1);
  return fmax(least, 0.0);
}

// The cells of a path byte: the ends of a cell, and the first and the last that may hold a distance between from and to (path.go, to the bit).
__device__ __forceinline__ double cellLeast(double lo, double hi, int b) {
  return b == 0 ? lo : __dadd_rn(lo, __dmul_rn(b, __ddiv_rn(__dsub_rn(hi, lo), 256)));
}
__device__ __forceinline__ double cellMost(double lo, double hi, int b) {
  return b == 255 ? hi : __dadd_rn(lo, __dmul_rn(b + 1, __ddiv_rn(__dsub_rn(hi, lo), 256)));
}
struct Cells {
  int first, last;
};
__device__ inline Cells cellsOf(double lo, double hi, double from, double to) {
  if (to < lo || from > hi) return {1, 0};
  Cells c = {0, 255};
  const double width = __ddiv_rn(__dsub_rn(hi, lo), 256);
  if (!(width > 0)) return c;
  double x = __ddiv_rn(__dsub_rn(from, lo), width);
  if (x > 1) c.first = int(fmin(__dsub_rn(x, 1), 255.0));
  x = __ddiv_rn(__dsub_rn(to, lo), width);
  if (x < 254) c.last = int(fmax(x, 0.0)) + 1;
  while (c.first < 255 && cellMost(lo, hi, c.first) < from) c.first++;
  while (c.last > 0 && cellLeast(lo, hi, c.last) > to) c.last--;
  return c;
}

#endif

}  // namespace geniemq
