// Bound and recount by binary tensor cores: what lies where on the device.
//
// For queries that ask many attributes for one value or range each, as the signatures of approximate nearest neighbour
// search do. Matrix products find the few objects that can be among the k best, and only these are counted.
//
// Codes. A column is a bit-sliced attribute of at most kBoundCodes codes; the host chooses which, and their order. An
//   object is a row of bytes, its codes: rowBytes = 64 x ceil(columns / 64), column c at columnByte(c). A missing keyword is
//   the code V, as in the planes (sliced.cuh). Rows are padded to whole tiles of 64 objects. bound_codes derives them from
//   planes.
//
// Upper bound. Of a code the kernel sees code mod 32, a word with one bit set; of the codes [lo, hi) that a query wants of a
//   column, a mask with all of their bits. A code that is wanted has its bit in the mask, so the number of columns with a
//   bit in common is no less than the object's count, and equal where no column has more than 32 codes, missing included. It
//   is what a binary matrix product adds up (and, popcount), 256 bits or 8 columns in a k-step. Counts begin at minus the
//   query's threshold, so that an object passes when a sign is positive.
//
// Marks. bound_match sets a bit for each object of its wave that passes. There are kBoundMarks bits a query, so their
//   memory is bounded whatever passes: in a wave of more objects a mark stands for 2^markShift of them. bound_recount
//   clears them.
//
// Recount. bound_recount counts what is marked from the codes, exactly, appends what reaches the threshold to the query's
//   candidates, and keeps the k best when there is no room for what it counts next. Hence boundEntries(k) candidates are
//   enough: after keeping there are k, and there is always room for kBoundRoom more. It sees objects in no particular
//   order, so in the middle of a wave an object with the count of the k-th may still precede it, and passes.
//
// Waves. A wave is a range of ascending objects, for which State::threshold is fixed; gate.cuh says why it may rise between
//   waves, and by how much. Each wave should have as many objects as all before it, so that about as many pass in each; in
//   the first nearly all do, so it should be small, some times k.
//
// Giving up. Data may be such that it says nothing: wide ranges, or codes that agree mod 32. When more objects of a
//   wave are marked for a query than max(BoundMatch::most, kBoundPatience + 16 k), it is given up: its threshold becomes
//   kBoundGivenUp, nothing more is marked or counted, and the host has it executed by another kernel. Its marks are stale.
//
// Eligible queries: each span has weight 1 and is on a column, or on an attribute without codes; no two are on the same
// column.
//
// Masks of a query block (kBoundQueries queries), as wgmma reads them: for each k-step, for each half of its 8 columns, 16
//   bytes a query, a word a column. kSteps is even, at least ceil(columns / 8), and what shared memory has room for,
//   kBoundStepBytes a k-step. Ranges of a query: rowBytes with lo, then rowBytes with hi - 1 - lo, by columnByte; lo =
//   kBoundNoCode where it wants nothing.
//
// Launches for queries [firstQuery, firstQuery + queriesOfBatch), in blocks = ceil(queriesOfBatch / kBoundQueries):
//   clear BoundPlan::masks, kSteps x kBoundStepBytes a block, and BoundMatch::marks, kBoundMarks bits a query
//   bound_plan       grid (ceil(queriesOfBatch / 8)), bound_plan_threads
//   for each wave:
//   bound_match      grid (blocks, columns), bound_match_threads; columns = multiprocessors / blocks. Shared memory:
//                    bound_match_shared + kSteps x kBoundStepBytes
//   bound_recount    grid (queriesOfBatch), bound_recount_threads
//   and answer of select.cu. The names of threads and shared memory are constants of the loaded modules, and so is
//   bound_match_queries: kBoundQueries, or 0 where the device has no such matrix product (it is of capability 9.0 only).
#pragma once
#include <cstdint>

#include "batch.cuh"

namespace geniemq {

constexpr uint32_t kBoundCodes = 254;         // V of a column, at most
constexpr uint32_t kBoundNoCode = 255;        // of no object
constexpr uint32_t kBoundQueries = 128;       // of a query block
constexpr uint32_t kBoundTile = 64;           // objects of one matrix product
constexpr uint32_t kBoundMarks = 1 << 18;     // marks of a query
constexpr uint32_t kBoundWave = kBoundMarks * kBoundTile;  // objects of a wave, at most
constexpr uint32_t kBoundGivenUp = ~0u;       // State::threshold of a query that is given up
constexpr uint32_t kBoundPatience = 1024;     // objects marked in a wave, see above
constexpr uint32_t kBoundChunk = 64;          // bytes of a row that four lanes load, 16 each
constexpr uint32_t kBoundStepColumns = 8;     // columns of a k-step
constexpr uint32_t kBoundStepBytes = kBoundQueries * kBoundStepColumns * 4;
constexpr uint32_t kBoundRoom = 256;          // see boundEntries

// Of the four lanes of a row lane t makes the words of columns t and t + 4 of each k-step, those of k-step s of a chunk from
// bytes 2 s and 2 s + 1 of the 16 that it loads.
__host__ __device__ constexpr uint32_t columnByte(uint32_t column) {
  return column / kBoundChunk * kBoundChunk + column % 4 * 16 + column / 4 % 16;
}

// In a wave of so many objects a mark stands for 2^markShift of them.
__host__ __device__ constexpr uint32_t markShift(uint32_t objects) {
  uint32_t shift = 0;
  while (objects - 1 >> shift >= kBoundMarks) shift++;
  return shift;
}
// Numbers the objects of a wave so that the rows that a lane counts, every eighth of a tile, are neighbours, and numbers them
// back. The mark of object o is markOrder(o) >> markShift.
__host__ __device__ constexpr uint32_t markOrder(uint32_t object) {
  return (object & ~63u) | (object & 7) << 3 | (object >> 3 & 7);
}

// Entries that a query's candidate buffer must hold.
__host__ __device__ constexpr uint64_t boundEntries(uint32_t k) { return 2 * uint64_t{k} + kBoundRoom; }

// Kernels take these by value.

struct BoundCodes {
  const uint32_t* planes;   // of the part
  const uint32_t* columns;  // plane << 8 | planes of each column's attribute
  uint8_t* codes;           // of the part
  uint32_t planesOfGroup;
  uint32_t objects;         // of the part, padded to tiles
  uint32_t columnCount;
  uint32_t rowBytes;
};

struct BoundPlan {
  const Query* queries;
  const Span* spans;
  const uint32_t* const* codeOf;  // of each attribute; see sliced.cuh
  const uint32_t* columnOf;       // of each attribute
  uint8_t* masks;
  uint8_t* ranges;
  uint32_t firstQuery, queriesOfBatch;
  uint32_t rowBytes, kSteps;
};

struct BoundMatch {
  const uint8_t* codes;  // of the part
  const uint8_t* masks;
  const uint8_t* ranges;
  const Query* queries;
  State* states;
  uint64_t* entries;
  uint32_t* marks;
  uint32_t rowBytes, kSteps;
  uint32_t firstQuery, queriesOfBatch;
  uint32_t firstObject;  // of the wave, in the part; a multiple of kBoundTile
  uint32_t objects;      // of the wave, at most kBoundWave
  uint32_t base;         // id of the part's object 0
  uint32_t most;         // objects marked in the wave before a query is given up
};

struct FilteredBound {
  BoundMatch bound;
  Filters filters;
};
static_assert(sizeof(BoundCodes) == 40 && sizeof(BoundPlan) == 64 && sizeof(BoundMatch) == 88 && sizeof(FilteredBound) == 120);

}  // namespace geniemq
