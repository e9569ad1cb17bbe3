// Bit-sliced attributes and the shared-decode kernel: what lies where on the device.
//
// For queries all of whose spans are on attributes with at most one keyword an object. Their cost does not depend on how
// many objects a keyword has: a query costs the same few instructions for each of its spans and each 1,024 objects.
//
// Planes (those of the index file, but of a group all attributes' together)
//   Keywords of an attribute that occur are numbered densely, in their order: codes 0 .. V-1. codeOf[keyword], for
//   0 .. keywords, is the number of smaller keywords that occur, so the keywords [lo, hi) are the codes
//   [codeOf[lo], codeOf[hi]). Code V says that the object has no keyword here, and objects beyond the last one have it
//   too: no span contains it. An attribute has P = bits(V) planes, the binary digits of its objects' codes.
//   A group is 1,024 objects, 32 words of 32 bits: object = group x 1024 + word x 32 + bit. Planes are group-major:
//   plane p of attribute a of group g is the 32 words (128 bytes) at
//       planes + ((g - residentGroup) x planesOfGroup + attributes[a].plane + p) x 32.
//
// Rows. What a warp adds to the counters of a query is always a row: the mask of the group's objects x with
//       equal    x == c              less    x < c              atLeast    x >= c
//   one word a lane. A span of one code is an equal row. [0, hi) is a less row. Any other [lo, hi) is the rows less hi and
//   atLeast lo: together they count 1 + [x in span], for a missing x too, and the 1 is the query's bias, which is taken
//   off its counts at the Gate. So a value, a range and a set of spans are the same thing to the inner loop: unit rows,
//   eight of them a tree of carry-save adders. A weight is binary: rows are added in the order of descending bits
//   of their weights, and counters double from bit to bit (Horner's rule).
//
// Program of a query block (sliced_plan.cu writes it): which rows are decoded together, and which each query adds.
//   A query block is up to warps x slots queries; query i of it is held in slot i / warps of warp i % warps.
//   Rows are decoded eight at a time, an octet: the codes that differ in their lowest three bits, of one kind. Only octets
//   that some query of the block needs are decoded. A unit is 32 octets of one attribute and kind, a word of a bit set;
//   attribute a has units attributes[a].unit .. + V / 256 for each kind, kind x unitsOfKind apart.
//   A chunk is what is decoded into one stage of shared memory: row 0, which is empty, then its octets, at most
//   stageOctets. A tree adds up to eight rows of a chunk to every query. A record is one tree for one warp: RecordHead, then
//   for each slot 4 words: word j holds row j of the query in its low half and row j + 4 in its high half (0: none).
//   Trees of a block are consecutive, trees of a chunk are consecutive. The tasks of a chunk are dealt to the decoders in
//   turn: a decoder has one list for the whole program, in which each chunk ends with a task marked kTaskLast, be it an
//   empty one.
//
// Bounds that the host provides for (n queries, s spans of a block, bits: distinct weight bits of the batch):
//   rows of a block    2 s x (bits of the weight), in Plan::rows: at most 2 s entries, a span's weight goes with it
//   units              kinds x unitsOfKind
//   chunks, trees      a chunk is closed when the next unit would give some query more than 8 rows or overfill the
//                      stage, and has as many trees as the unit that it begins with needs, or one. Each unit, per weight bit,
//                      begins at most one chunk, and a unit that gives a query r rows adds ceil(r / 8) - 1 trees. With u
//                      units in use and c the sum of these over units and queries: at most bits x u + 1 chunks and
//                      bits x (u + c) + 1 trees, u <= min(kinds x unitsOfKind, 2 s). c is 0 where no query has more than 8
//                      spans on an attribute.
//   tasks              at most 4 a unit: bits x 4 u; a list has at most tasks + chunks
//   records            maxTrees x warps x recordBytes(slots) of a block, less than 2^32
//   The planner checks each against the maxima it is given, writes nothing beyond, and traps, which the host sees as an error;
//   with maxima by the formulas above that cannot happen.
//
// Launches, for queries [firstQuery, firstQuery + queriesOfBatch) of a batch, which all fit the kernel's counters:
//   sliced_plan      grid (blocks), 512 threads, blocks = ceil(queriesOfBatch / perBlock)
//   clear Sliced::waves and Sliced::tickets
//   sliced_match_N   grid (blocks, columns), 32 x (counters + decoders) threads; N = 8, 16 or 32 planes. columns =
//                    multiprocessors / blocks, at least 1: a block fills a multiprocessor, and more of them would wait for
//                    one. N holds when the largest raw count, which is the sum over a query's spans of weight x (1, or 2
//                    with both bounds), is less than 2^N.
//   answer           of select.cu, or compact_wave where more groups follow in another launch
// Kernel constants (of the loaded module, they differ by device): sliced_match_N_slots, _counters, _decoders, _shared.
// Shared memory: _shared + stages x (128 + stageOctets x 1,024) bytes; stages 2 to 4, stageOctets 32 to 511. 3 stages of as
// much as fits are best: a stage that holds eight attributes keeps the trees full.
// firstWave = columns and waveGroups = some times columns keep a query's candidates small and the waits rare.
#pragma once
#include <cstdint>

#include "batch.cuh"
#include "gate.cuh"

namespace geniemq {

constexpr uint32_t kGroupObjects = 1024;
constexpr uint32_t kGroupWords = 32;        // a word a lane
constexpr uint32_t kRowBytes = 128;
constexpr uint32_t kOctetRows = 8;
constexpr uint32_t kOctetBytes = kOctetRows * kRowBytes;
constexpr uint32_t kUnitOctets = 32;
constexpr uint32_t kUnitCodes = kUnitOctets * kOctetRows;
constexpr uint32_t kTreeRows = 8;
constexpr uint32_t kMaxSlots = 24;          // queries a warp, at most
constexpr uint32_t kMaxBlockQueries = 256;  // queries a block, at most

enum RowKind : uint32_t { kRowEqual, kRowLess, kRowAtLeast, kRowKinds };

// A bit-sliced attribute. The table has an entry for each attribute of the index, planes = 0 where it is not sliced.
struct SlicedAttribute {
  const uint32_t* codeOf;  // keywords + 1 codes
  uint32_t plane;          // first of its planes in a group
  uint32_t planes;         // P
  uint32_t codes;          // V
  uint32_t unit;           // first of its units of kind 0
};

struct Program {
  uint32_t trees, chunks, tasks, unused;
};

struct Chunk {
  uint32_t firstTask, tasks;
};

// Decodes up to eight octets of one unit into consecutive rows.
struct Task {
  uint32_t plane;   // of the attribute
  uint32_t shape;   // planes | kind << 8 | kTaskLast | first row << 16
  uint32_t octets;  // of the unit, a bit each
  uint32_t prefix;  // code / 256 of the unit
};
constexpr uint32_t kTaskOctets = 8;      // of a task, at most
constexpr uint32_t kTaskLast = 1 << 15;  // of its chunk, in a decoder's list

struct RecordHead {
  uint32_t queries;  // bit a: slot a adds rows
  uint32_t flags;
  uint32_t unused[2];
};
constexpr uint32_t kTreeLast = 1;      // of its chunk
constexpr uint32_t kTreeEnd = 2;       // of the program
constexpr uint32_t kTreePair = 4;      // the second of a pair, or one alone
constexpr uint32_t kTreeDense = 8;     // most slots add rows, and nothing is doubled
constexpr uint32_t kTreeDoublings = 8; // bits 8 ..: how often counters double before it

__host__ __device__ constexpr uint32_t recordBytes(uint32_t slots) { return 16 * (1 + slots); }

// Kernels take these by value.

struct Plan {
  const Query* queries;
  const Span* spans;
  const SlicedAttribute* attributes;
  const uint32_t* unitAttribute;  // of the units of kind 0
  // Results, of block b: programs[b]; biases + b x warps x slots, by query.
  Program* programs;
  Task* lists;       // (b x decoders + decoder) x maxList
  uint32_t* lengths; // b x decoders + decoder
  uint8_t* records;  // (tree x warps + warp) x recordBytes(slots)
  uint32_t* biases;
  // Scratch, of block b: chunks + b x maxChunks, tasks + b x maxTasks, rows + b x maxRows, counts + b x unitsOfBlock x 256,
  // units + b x unitsOfBlock, for unitsOfBlock = kinds x unitsOfKind.
  Chunk* chunks;
  Task* tasks;
  uint64_t* rows;
  uint32_t* counts;
  uint4* units;
  uint32_t firstQuery, queriesOfBatch;
  uint32_t perBlock;  // queries a block, at most warps x slots and kMaxBlockQueries
  uint32_t warps, slots, decoders;  // of the kernel: its counters, their queries, its decoders
  uint32_t unitsOfKind, stageOctets;
  uint32_t maxRows, maxChunks, maxTrees, maxTasks, maxList;
};

struct Sliced {
  const uint32_t* planes;
  const Program* programs;
  const Task* lists;
  const uint32_t* lengths;
  const uint8_t* records;
  const uint32_t* biases;
  const Query* queries;
  State* states;
  uint64_t* entries;
  Wave* waves;        // warps of a query block, zero
  uint32_t* tickets;  // one a query block, zero: the groups of this launch that are taken
  uint32_t planesOfGroup;
  uint32_t residentGroup;            // the group of planes[0]
  uint32_t firstGroup, groups;       // of this launch
  uint32_t firstWave, waveGroups;    // groups of the first wave and of the others; firstWave >= groups: there is one
  uint32_t base;                     // id of the segment's object 0
  uint32_t firstQuery, queriesOfBatch, perBlock;
  uint32_t stages, stageOctets;
  uint32_t maxTrees, maxList;
};

struct FilteredSliced {
  Sliced sliced;
  Filters filters;
};
static_assert(sizeof(SlicedAttribute) == 24 && sizeof(Program) == 16 && sizeof(Chunk) == 8 && sizeof(Task) == 16 &&
              sizeof(RecordHead) == 16 && sizeof(Plan) == 168 && sizeof(Sliced) == 144 && sizeof(FilteredSliced) == 176);

}  // namespace geniemq
