// Searches by cells of so many queries that most cells are visited by several (near_cells.cu): each cell is read once for up to kVisitQueries of them.
//
// A query has visited its nearest cell, whose k-th value bounds what is a candidate elsewhere. Of the other cells, queries are put together: counted by cell, given a place, and put there. A
// block has a group of queries of one cell, and goes through its objects by a product of float16s, as the sieve does (near_sieve.cuh); what that does not prove to be too far becomes the list
// of a query, which near_gate.cu compares.
//
// Objects of a query's other cells would be read once for each query: of 16,384 queries that visit a hundred cells each that is a hundred times the column. Here it is read once, in half
// the bytes.
//
// The order of a group, or of a list, matters nowhere: the k first of all candidates are one set.
#include "near_halves.cuh"
#include "near_visits.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kNoQuery = ~0u;
constexpr uint32_t kVisiting = 128;              // threads that visit a cell
constexpr uint32_t kStepColumns = kVisitQueries * 4;
constexpr uint32_t kTogether = kVisiting / 32 * 16 * kRows;  // objects of a block at a time
static_assert(kVisitQueries == 8 * kColumns && kVisitObjects == 16 * kRows);

// Calls something with each cell that a query visits but the nearest; a lane has a cell.
template <class Visit>
__device__ __forceinline__ void otherCells(const NearVisits& v, uint32_t q, Visit visit) {
  if (v.found[q].given != 0 || v.states[q].given != 0) return;
  const NearEntry* const cells = v.cells + v.asked[q].entries;
  const uint32_t count = v.found[q].kept, nearest = nearestOf(cells, count);
  for (uint32_t i = laneOf(); i < count; i += 32)
    if (const uint32_t cell = cells[i].id; cell != nearest) visit(cell);
}

__device__ __forceinline__ uint32_t sizeOf(const NearVisits& v, uint32_t cell) { return __ldg(v.starts + cell + 1) - __ldg(v.starts + cell); }

// What is known of a block's queries.
struct Group {
  float floors[kVisitQueries];
  uint32_t queries[kVisitQueries];
};

// The objects of a cell, of which a warp takes kVisitObjects at a time.
__device__ void visited(const NearVisits& v, const NearGroup& g, uint2* columns, Group& group) {
  const uint32_t from = __ldg(v.padded + g.cell), to = __ldg(v.padded + g.cell + 1), own = warpOf() * 16 * kRows;
  uint32_t object = from + own;
  const uint4* rows = reinterpret_cast<const uint4*>(v.few) + size_t{object / 16} * v.steps * 32 + laneOf();
  uint4 a[2][kRows] = {};
  Halves::Begins begins = {};
  if (object < to) { // before the group is there, so that a block waits for both together
    Halves::fetch(a[0], rows, v.steps);
    Halves::fetch(a[1], rows + Halves::kStep, v.steps);
    Halves::fetch(begins, v.begins + object);
  }
  if (threadIdx.x < kVisitQueries) {
    const uint32_t q = threadIdx.x < g.queries ? v.pairs[g.first + threadIdx.x] : kNoQuery;
    group.queries[threadIdx.x] = q;
    group.floors[threadIdx.x] = q != kNoQuery ? halvesFloorOf(Halved{v.dims, v.angles != 0, v.scale, v.gamma}, v.states[q].limit, v.sieved[q], *v.reach) : Halves::kNone;
  }
  __syncthreads();
  fill<kVisiting>(columns, v.steps * kStepColumns, [&](uint32_t i) {
    const uint32_t q = group.queries[i / 4 % kVisitQueries];
    if (q == kNoQuery) return uint2{0, 0};
    const NearPieces pieces(q, v.queriesOfBatch);
    const uint32_t* of = v.halves + (pieces.begin(v.steps * 2) + pieces.at(i / kStepColumns * 2, q)) * 4 + i % 4;
    return uint2{__ldg(of), __ldg(of + pieces.queries * 4)};
  });
  __syncthreads();
  const uint2* const ofLane = Halves::columnsOf(columns, 0);
  float floors[kColumns][Halves::kFloors];
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
    for (uint32_t i = 0; i < Halves::kFloors; i++) floors[t][i] = group.floors[Halves::queryOf(t, i)];
  for (; object < to; object += kTogether) {
    const bool more = object + kTogether < to;
    const uint4* const next = more ? rows + Halves::objects(v.steps, kTogether) : rows;
    float sums[kRows][kColumns][4], begin[kRows][4];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) begin[r][i] = Halves::begin(begins, r, i);
    if (more) Halves::fetch(begins, v.begins + object + kTogether);
    multiplyAll<Halves, kStepColumns>(sums, a, rows, next, v.steps, ofLane, begin);
    rows = next;
    for (uint64_t passed = passedOf<Halves>(sums, floors); passed != 0; passed &= passed - 1) {
      const uint32_t bit = __ffsll((long long)passed) - 1, behind = object + Halves::objectOf(bit / 32, bit % 4) - from;
      if (behind >= sizeOf(v, g.cell)) continue; // there is nothing
      const uint32_t q = group.queries[Halves::queryOf(bit % 32 / 4, bit % 4)];
      if (q == kNoQuery) continue;
      const uint32_t place = atomicAdd(&v.states[q].list, 1);
      if (place < v.listRoom) v.lists[size_t{q} * v.listRoom + place] = __ldg(v.order + __ldg(v.starts + g.cell) + behind);
    }
    __syncwarp();  // the next products want the warp together
  }
}

}  // namespace

// Where a query visits so much that a scan of all takes less: marks its cells in a set of its own, `pairs` (Near::cells). A block has a query.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_mark(const __grid_constant__ NearVisits v) {
  const uint32_t q = blockIdx.x, words = (v.count + 31) / 32;
  const NearState& found = v.found[q];
  uint32_t* const set = v.pairs + size_t{q} * words;
  for (uint32_t i = threadIdx.x; i < words; i += kThreads) set[i] = 0;
  __syncthreads();
  if (found.given) {
    if (threadIdx.x == 0) v.states[q].given = 1;
    return;
  }
  const NearEntry* const cells = v.cells + v.asked[q].entries;
  for (uint32_t i = threadIdx.x; i < found.kept; i += kThreads) atomicOr(set + cells[i].id / 32, 1u << cells[i].id % 32);
}

// Counts the queries of each cell. Counts were cleared before. A warp has a query.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_count(const __grid_constant__ NearVisits v) {
  const uint32_t q = blockIdx.x * kWarps + warpOf();
  if (q < v.queriesOfBatch) otherCells(v, q, [&](uint32_t cell) { atomicAdd(v.counts + cell, 1); });
}

// Gives the queries of each cell a place, in any order of cells, and divides them into groups. A thread has a cell.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_place(const __grid_constant__ NearVisits v) {
  const uint32_t c = blockIdx.x * kThreads + threadIdx.x, n = c < v.count ? v.counts[c] : 0;
  uint32_t pairs, groups;
  uint32_t at = warpPlace(n, pairs), group = warpPlace((n + kVisitQueries - 1) / kVisitQueries, groups);
  if (laneOf() == 0) pairs = atomicAdd(v.counts + v.count + 1, pairs), groups = atomicAdd(v.counts + v.count, groups);
  at += __shfl_sync(~0u, pairs, 0), group += __shfl_sync(~0u, groups, 0);
  for (uint32_t i = 0; i < n; i += kVisitQueries) v.groups[group++] = {c, at + i, min(kVisitQueries, n - i)};
  if (c < v.count) v.counts[c] = at;
}

// Puts queries there. A warp has a query.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_put(const __grid_constant__ NearVisits v) {
  const uint32_t q = blockIdx.x * kWarps + warpOf();
  if (q < v.queriesOfBatch) otherCells(v, q, [&](uint32_t cell) { v.pairs[atomicAdd(v.counts + cell, 1)] = q; });
}

// A block has a group; there are more blocks than groups.
extern "C" __global__ void __launch_bounds__(kVisiting, 4) near_visits(const __grid_constant__ NearVisits v) {
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ Group group;
  if (blockIdx.x < v.counts[v.count]) visited(v, v.groups[blockIdx.x], reinterpret_cast<uint2*>(memory), group);
}

// The candidates that are left are the answer, and what was compared is all that lies in the cells. A warp has a query.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_answer(const __grid_constant__ NearVisits v) {
  const uint32_t q = blockIdx.x * kWarps + warpOf();
  if (q >= v.queriesOfBatch) return;
  const NearQuery query = v.queries[q];
  const uint32_t kept = v.states[q].kept, count = v.found[q].kept;
  for (uint32_t i = laneOf(); i < query.k; i += 32) v.out[query.out + i] = i < kept ? v.entries[query.entries + i] : NearEntry{};
  const NearEntry* const cells = v.cells + v.asked[q].entries;
  uint32_t compared = 0;
  for (uint32_t i = laneOf(); i < count; i += 32) compared += sizeOf(v, cells[i].id);
  compared = __reduce_add_sync(~0u, compared);
  if (laneOf() == 0) v.states[q].listed = compared;
}

// Copies float16s, and what sums begin with, into the order of cells. A block has a cell; memory was cleared before.
extern "C" __global__ void __launch_bounds__(kThreads) near_visits_order(const NearVisitsOrder v) {
  const uint32_t cell = blockIdx.x, from = __ldg(v.padded + cell), to = __ldg(v.padded + cell + 1), start = __ldg(v.starts + cell), size = __ldg(v.starts + cell + 1) - start;
  const uint32_t words = v.steps * 8;
  const auto wordAt = [&](uint32_t object, uint32_t word) { return ((size_t{object / 16} * v.steps + word / 8) * 32 + object % 8 * 4 + word % 4) * 4 + object % 16 / 8 + 2 * (word % 8 / 4); };
  for (uint32_t place = from + warpOf(); place < to; place += kWarps) {
    const bool real = place - from < size;
    const uint32_t object = real ? __ldg(v.order + start + place - from) : 0;
    if (laneOf() == 0) v.beginsTo[place] = real ? __ldg(v.begins + object) : 0xff800000;
    for (uint32_t w = laneOf(); w < words; w += 32)
      if (real) reinterpret_cast<uint32_t*>(v.fewTo)[wordAt(place, w)] = __ldg(reinterpret_cast<const uint32_t*>(v.few) + wordAt(object, w));
  }
  if (cell != 0 || threadIdx.x != 0) return;
  NearReach all = {0, 0};
  for (uint32_t i = 0; i < v.tiles; i++) all = {fmax(all.norm, v.reaches[i].norm), fmax(all.remainder, v.reaches[i].remainder)};
  *v.reachTo = all;
}

extern "C" __device__ const uint32_t near_visits_threads = kThreads, near_visits_visiting = kVisiting, near_visits_step_bytes = kStepColumns * sizeof(uint2), near_visits_static = sizeof(Group);

}  // namespace geniemq
