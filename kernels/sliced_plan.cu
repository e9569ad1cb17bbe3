// Plans the query blocks of the shared-decode kernel: from spans of keywords to programs. See sliced.cuh.
//
// A block plans one query block. Every span becomes one or two rows (a unit, a code, a query, a weight). Then, for
// each bit of the weights that occurs, the highest first:
//   1. Mark the octets that some query needs, and count the rows of each query in each unit.
//   2. One warp deals units to chunks in their order, each chunk as full as eight rows a query and the stage allow. The
//      counts become the place of the unit's first row among the query's rows of the chunk.
//   3. Write rows into records, and tasks.
// Order within a chunk does not matter, sums commute: rows take their places by atomics.
#include "block.cuh"
#include "sliced.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kThreads = 512;
constexpr uint32_t kBatch = 4;  // rows that a thread handles at a time, so that their accesses overlap
constexpr uint32_t kMaxQueries = kMaxBlockQueries;
constexpr uint32_t kLaneQueries = kMaxQueries / 32;
constexpr uint32_t kChunkBatch = 256;
constexpr uint32_t kDenseSlots = 3;  // of 4 slots: a tree that more of them add rows of is dense
constexpr uint64_t kNoRow = ~0ull;

// A row, packed into a u64: unit << 40 | code & 255 << 32 | query << 24 | weight - 1.
struct Row {
  uint32_t unit, code, query, weight;
  __device__ static uint64_t pack(uint32_t unit, uint32_t code, uint32_t query, uint32_t weight) {
    return uint64_t{unit} << 40 | uint64_t{code & 255} << 32 | query << 24 | (weight - 1);
  }
  __device__ explicit Row(uint64_t p)
      : unit(uint32_t(p >> 40)), code(uint32_t(p >> 32) & 255), query(uint32_t(p) >> 24), weight((uint32_t(p) & 0xffffff) + 1) {}
  __device__ uint32_t octet() const { return code / kOctetRows; }
};

// Where a unit went. In memory a uint4.
struct Unit {
  uint32_t octets;  // needed
  uint32_t row;     // of the stage: its first
  uint32_t tree;    // first of its chunk
  uint32_t task;    // its first
};

struct Planner {
  struct Shared {
    uint32_t first[kMaxQueries + 1];  // spans of a query, counted from the block's first
    uint32_t biases[kMaxQueries];
    uint32_t rows, weights;
    uint32_t trees, chunks, tasks;
    uint32_t heads[32];
    Chunk batch[kChunkBatch];
  };

  const Plan& plan;
  Shared& shared;
  const uint32_t block, firstQuery, queries;
  const uint32_t units;  // of all kinds
  uint64_t* const rows;
  uint32_t* const counts;
  uint4* const unit;
  uint8_t* const records;

  __device__ Planner(const Plan& p, Shared& s)
      : plan(p),
        shared(s),
        block(blockIdx.x),
        firstQuery(p.firstQuery + block * p.perBlock),
        queries(min(p.perBlock, p.queriesOfBatch - block * p.perBlock)),
        units(kRowKinds * p.unitsOfKind),
        rows(p.rows + size_t{block} * p.maxRows),
        counts(p.counts + size_t{block} * units * kMaxQueries),
        unit(p.units + size_t{block} * units),
        records(p.records + size_t{block} * p.maxTrees * p.warps * recordBytes(p.slots)) {}

  __device__ void run() {
    flatten();
    uint32_t weights = shared.weights, level = weights == 0 ? 0 : 31 - __clz(weights);
    weights |= 1;  // the counters' last doubling is before a tree of bit 0
    while (weights != 0) {
      const uint32_t bit = 31 - __clz(weights);
      weights ^= 1u << bit;
      mark(bit);
      const uint32_t firstTree = shared.trees;
      __syncthreads();
      if (warpOf() == 0) deal(bit, level);
      __syncthreads();
      write(bit, firstTree);
      __syncthreads();
    }
    list();
    if (threadIdx.x == 0) plan.programs[block] = {shared.trees, shared.chunks, shared.tasks};
    for (uint32_t i = threadIdx.x; i < plan.warps * plan.slots; i += kThreads)
      plan.biases[size_t{block} * plan.warps * plan.slots + i] = shared.biases[i];
  }

  // Turns spans into rows.
  __device__ void flatten() {
    const uint32_t firstSpan = plan.queries[firstQuery].first;
    for (uint32_t i = threadIdx.x; i < kMaxQueries; i += kThreads) shared.biases[i] = 0;
    for (uint32_t i = threadIdx.x; i < queries; i += kThreads) shared.first[i] = plan.queries[firstQuery + i].first - firstSpan;
    if (threadIdx.x == 0) {
      const Query last = plan.queries[firstQuery + queries - 1];
      shared.first[queries] = last.first + last.spans - firstSpan;
      shared.rows = shared.weights = shared.trees = shared.chunks = shared.tasks = 0;
    }
    __syncthreads();
    uint32_t weights = 0;
    const uint32_t spans = shared.first[queries];
    for (uint32_t base = 0; base < spans; base += kThreads * kBatch) {
      Span span[kBatch];
      uint32_t lo[kBatch], hi[kBatch], unit[kBatch], n = 0;
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) {
        const uint32_t i = base + j * kThreads + threadIdx.x;
        const uint4 v = i < spans ? __ldg(reinterpret_cast<const uint4*>(plan.spans + firstSpan + i)) : make_uint4(0, 0, 0, 0);
        span[j] = {v.x, v.y, v.z, v.w};
      }
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) {
        const SlicedAttribute* a = plan.attributes + span[j].attribute;
        const uint32_t* codeOf = reinterpret_cast<const uint32_t*>(__ldg(reinterpret_cast<const unsigned long long*>(&a->codeOf)));
        unit[j] = __ldg(&a->unit);
        lo[j] = span[j].weight != 0 ? __ldg(codeOf + span[j].lo) : 0;
        hi[j] = span[j].weight != 0 ? __ldg(codeOf + span[j].hi) : 0;
        n += rowsOf(lo[j], hi[j]);
      }
      uint32_t total, place = 0;
      const uint32_t before = warpPlace(n, total);
      if (laneOf() == 0) place = atomicAdd(&shared.rows, total);
      place = __shfl_sync(~0u, place, 0) + before;
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) {
        if (lo[j] >= hi[j]) continue;
        const uint32_t i = base + j * kThreads + threadIdx.x;
        // The last query whose spans begin at or before i; queries without spans begin where their successor does.
        uint32_t q = 0;
        for (uint32_t left = queries; left > 1;) {
          const uint32_t half = left / 2;
          if (shared.first[q + half] <= i) q += half;
          left -= half;
        }
        const auto add = [&](RowKind kind, uint32_t code) {
          if (place < plan.maxRows)
            rows[place] = Row::pack(kind * plan.unitsOfKind + unit[j] + code / kUnitCodes, code, q, span[j].weight);
          place++;
        };
        weights |= span[j].weight;
        if (hi[j] == lo[j] + 1) {
          add(kRowEqual, lo[j]);
          continue;
        }
        add(kRowLess, hi[j]);
        if (lo[j] == 0) continue;
        add(kRowAtLeast, lo[j]);
        atomicAdd(&shared.biases[q], span[j].weight);
      }
    }
    if (weights != 0) atomicOr(&shared.weights, weights);
    __syncthreads();
    if (shared.rows > plan.maxRows) __trap();
  }

  // Rows that the codes [lo, hi) become.
  __device__ static uint32_t rowsOf(uint32_t lo, uint32_t hi) { return lo >= hi ? 0 : hi == lo + 1 || lo == 0 ? 1 : 2; }

  // Calls work(rows, in) for all rows whose weight has the bit, a few at a time.
  template <class Work>
  __device__ void eachRow(uint32_t bit, Work work) {
    for (uint32_t base = threadIdx.x; base < shared.rows; base += kThreads * kBatch) {
      uint64_t packed[kBatch];
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) packed[j] = base + j * kThreads < shared.rows ? rows[base + j * kThreads] : kNoRow;
      bool in[kBatch];
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) in[j] = packed[j] != kNoRow && Row(packed[j]).weight >> bit & 1;
      work(packed, in);
    }
  }

  // Fills octets and counts of the units.
  __device__ void mark(uint32_t bit) {
    for (uint32_t u = threadIdx.x; u < units; u += kThreads) unit[u].x = 0;
    __syncthreads();
    eachRow(bit, [&](const uint64_t (&packed)[kBatch], const bool (&in)[kBatch]) {
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++)
        if (in[j]) atomicOr(&unit[Row(packed[j]).unit].x, 1u << Row(packed[j]).octet());
    });
    __syncthreads();
    for (uint32_t u = warpOf(); u < units; u += kThreads / 32) {
      if (unit[u].x == 0) continue;
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) counts[u * kMaxQueries + j * 32 + laneOf()] = 0;
    }
    __syncthreads();
    eachRow(bit, [&](const uint64_t (&packed)[kBatch], const bool (&in)[kBatch]) {
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++)
        if (in[j]) atomicAdd(&counts[Row(packed[j]).unit * kMaxQueries + Row(packed[j]).query], 1);
    });
    __syncthreads();
  }

  // Deals the marked units to chunks and writes the heads of their records. Warp 0.
  __device__ void deal(uint32_t bit, uint32_t& level) {
    uint32_t fill[kLaneQueries] = {};  // rows of query lane + 32 j in the chunk
    uint32_t octets = 0, rowsAllowed = 0, firstTask = shared.tasks;
    uint32_t trees = shared.trees, chunks = shared.chunks, tasks = shared.tasks;
    const uint32_t firstTree = trees;
    bool begun = false, full = false;
    uint32_t heads = 0, lastFlags = 0;  // of the last tree, by the lane of its warp

    const auto close = [&] {
      uint32_t most = 0;
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) most = max(most, fill[j]);
      most = __reduce_max_sync(~0u, most);
      const uint32_t count = max(1u, (most + kTreeRows - 1) / kTreeRows);
      if (trees + count > plan.maxTrees || chunks >= plan.maxChunks || tasks > plan.maxTasks || tasks + chunks >= plan.maxList) {
        full = true;
        return;
      }
      for (uint32_t t = 0; t < count; t++) {
        shared.heads[laneOf()] = 0;
        __syncwarp();
#pragma unroll
        for (uint32_t j = 0; j < kLaneQueries; j++) {
          if (fill[j] <= t * kTreeRows) continue;
          const uint32_t query = laneOf() + j * 32;
          atomicOr(&shared.heads[query % plan.warps], 1u << query / plan.warps);
        }
        __syncwarp();
        heads = shared.heads[laneOf()];
        lastFlags = (t == 0 ? (level - bit) << kTreeDoublings : 0) | (t == count - 1 ? kTreeLast : 0) |
                    ((trees + t - firstTree) % 2 != 0 ? kTreePair : 0);
        if (t == 0) level = bit;
        head(trees + t, heads, lastFlags);
      }
      if (laneOf() == 0) plan.chunks[size_t{block} * plan.maxChunks + chunks] = {firstTask, tasks - firstTask};
      chunks++;
      trees += count;
      begun = false;
    };
    const auto begin = [&] {
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) fill[j] = 0;
      octets = 0;
      firstTask = tasks;
      rowsAllowed = kTreeRows;
      begun = true;
    };

    uint32_t count[kLaneQueries], ahead[kLaneQueries];
    const auto load = [&](uint32_t u) {
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) ahead[j] = j * 32 < queries ? counts[u * kMaxQueries + j * 32 + laneOf()] : 0;
    };
    uint32_t base = 0, mine = 0, marked = 0;
    // The next marked unit, or units.
    const auto next = [&] {
      if (marked != 0) marked &= marked - 1;
      while (marked == 0 && base < units) {
        mine = base + laneOf() < units ? unit[base + laneOf()].x : 0;
        marked = __ballot_sync(~0u, mine != 0);
        base += 32;
      }
      return marked == 0 ? units : base - 32 + __ffs(marked) - 1;
    };
    uint32_t u = next();
    if (u < units) load(u);
    while (u < units) {
      const uint32_t needed = __shfl_sync(~0u, mine, u % 32), current = u;
      uint32_t most = 0;
      bool fits = octets + __popc(needed) <= plan.stageOctets;
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) {
        count[j] = ahead[j];
        most = max(most, count[j]);
        fits = fits && fill[j] + count[j] <= rowsAllowed;
      }
      u = next();
      if (u < units) load(u);
      if (begun && !__all_sync(~0u, fits)) close();
      if (full) break;
      if (!begun) {
        begin();
        // A unit that alone has more rows than a tree takes is a chunk of several trees.
        rowsAllowed = max(rowsAllowed, (__reduce_max_sync(~0u, most) + kTreeRows - 1) / kTreeRows * kTreeRows);
      }
#pragma unroll
      for (uint32_t j = 0; j < kLaneQueries; j++) {
        if (j * 32 < queries) counts[current * kMaxQueries + j * 32 + laneOf()] = fill[j];
        fill[j] += count[j];
      }
      if (laneOf() == 0) unit[current] = make_uint4(needed, 1 + octets * kOctetRows, trees, tasks);
      octets += __popc(needed);
      tasks += (__popc(needed) + kTaskOctets - 1) / kTaskOctets;
    }
    if (begun && !full) close();
    if (bit == 0 && level != 0 || bit == 0 && trees == 0) {
      // Nothing has a weight of bit 0, or there is nothing at all: an empty tree, so that there is one.
      begin();
      if (!full) close();
    }
    if (trees > firstTree && !full) head(trees - 1, heads, lastFlags | kTreePair | (bit == 0 ? kTreeEnd : 0));
    if (full) __trap();
    if (laneOf() == 0) shared.trees = trees, shared.chunks = chunks, shared.tasks = tasks;
  }

  // Writes the heads of a tree's records: lane i that of warp i.
  __device__ void head(uint32_t tree, uint32_t heads, uint32_t flags) {
    const uint32_t dense = __popc(heads) > plan.slots * kDenseSlots / 4 && flags >> kTreeDoublings == 0 ? kTreeDense : 0;
    if (laneOf() < plan.warps)
      *reinterpret_cast<RecordHead*>(record(tree, laneOf())) = {heads, flags | dense, {0, 0}};
  }

  __device__ uint8_t* record(uint32_t tree, uint32_t warp) const {
    return records + (size_t{tree} * plan.warps + warp) * recordBytes(plan.slots);
  }

  // Writes the rows of the trees from firstTree on, and the tasks.
  __device__ void write(uint32_t bit, uint32_t firstTree) {
    uint4* begin = reinterpret_cast<uint4*>(record(firstTree, 0));
    const uint32_t pieces = (shared.trees - firstTree) * plan.warps * (1 + plan.slots);
    for (uint32_t i = threadIdx.x; i < pieces; i += kThreads)
      if (i % (1 + plan.slots) != 0) begin[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
    eachRow(bit, [&](const uint64_t (&packed)[kBatch], const bool (&in)[kBatch]) {
      uint4 u[kBatch];
      uint32_t place[kBatch];
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) {
        const Row row(packed[j]);
        if (in[j]) u[j] = unit[row.unit];
        if (in[j]) place[j] = atomicAdd(&counts[row.unit * kMaxQueries + row.query], 1);
      }
#pragma unroll
      for (uint32_t j = 0; j < kBatch; j++) {
        if (!in[j]) continue;
        const Row row(packed[j]);
        const uint32_t i = place[j] % kTreeRows;
        uint8_t* at = record(u[j].z + place[j] / kTreeRows, row.query % plan.warps) + 16 + row.query / plan.warps * 16;
        reinterpret_cast<uint16_t*>(at)[i % 4 * 2 + i / 4] =
            u[j].y + __popc(u[j].x & ((1u << row.octet()) - 1)) * kOctetRows + row.code % kOctetRows;
      }
    });
    for (uint32_t i = threadIdx.x; i < units; i += kThreads) {
      uint4 u = unit[i];
      if (u.x == 0) continue;
      const uint32_t kind = i / plan.unitsOfKind, local = i % plan.unitsOfKind;
      const SlicedAttribute a = plan.attributes[plan.unitAttribute[local]];
      Task* task = plan.tasks + size_t{block} * plan.maxTasks + u.w;
      while (u.x != 0) {
        uint32_t rest = u.x;
        for (uint32_t n = 0; n < kTaskOctets; n++) rest &= rest - 1;
        *task++ = {a.plane, a.planes | kind << 8 | u.y << 16, u.x ^ rest, local - a.unit};
        u.y += kTaskOctets * kOctetRows;
        u.x = rest;
      }
    }
  }

  // Deals the tasks of each chunk to the decoders' lists: task i of the block is decoder i % decoders's, so that all have
  // about as many.
  __device__ void list() {
    const uint32_t decoder = threadIdx.x % plan.decoders;
    const size_t at = size_t{block} * plan.decoders + decoder;
    uint32_t length = 0;  // of the list of `decoder`, in every thread
    for (uint32_t base = 0; base < shared.chunks; base += kChunkBatch) {
      const uint32_t chunks = min(kChunkBatch, shared.chunks - base);
      __syncthreads();
      for (uint32_t c = threadIdx.x; c < chunks; c += kThreads) shared.batch[c] = plan.chunks[size_t{block} * plan.maxChunks + base + c];
      __syncthreads();
      // A thread copies the part of its decoder of every so many chunks; it counts the parts between.
      const uint32_t step = kThreads / plan.decoders, mine = threadIdx.x / plan.decoders;
      for (uint32_t c = 0; c < chunks; c++) {
        const Chunk chunk = shared.batch[c];
        const uint32_t first = (decoder + plan.decoders - chunk.firstTask % plan.decoders) % plan.decoders;
        const uint32_t tasks = first < chunk.tasks ? (chunk.tasks - first - 1) / plan.decoders + 1 : 0;
        if (c % step == mine) {
          Task* to = plan.lists + at * plan.maxList + length;
          if (tasks == 0) to[0] = {0, kTaskLast, 0, 0};
          for (uint32_t i = 0; i < tasks; i++) {
            Task task = plan.tasks[size_t{block} * plan.maxTasks + chunk.firstTask + first + i * plan.decoders];
            if (i == tasks - 1) task.shape |= kTaskLast;
            to[i] = task;
          }
        }
        length += max(tasks, 1u);
      }
    }
    if (threadIdx.x < plan.decoders) plan.lengths[at] = length;
  }
};

}  // namespace

// blockIdx.x is the query block.
extern "C" __global__ void __launch_bounds__(kThreads) sliced_plan(const Plan plan) {
  __shared__ Planner::Shared shared;
  Planner(plan, shared).run();
}

}  // namespace geniemq
