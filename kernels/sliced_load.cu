// Makes bit-sliced attributes from the canonical postings of a resident index, when it is loaded. See sliced.cuh.
#include "block.cuh"
#include "sliced.cuh"

namespace geniemq {

struct SlicedLoad {
  const uint8_t* data;
  const Section* sections;      // by tile x attributes + attribute
  const uint32_t* keywords;     // by attribute
  SlicedAttribute* table;       // by attribute; codeOf, plane, planes, unit are the host's, codes is counted here
  uint32_t* planes;             // of tiles firstTile .. firstTile + gridDim.x
  const uint32_t* attributesOf; // the attributes to make; blockIdx.y selects
  uint32_t attributes, planesOfGroup;
  uint32_t firstTile, tiles, objects, unused;
};
static_assert(sizeof(SlicedLoad) == 72);

namespace {

constexpr int kThreads = 512;
constexpr uint32_t kBatchPlanes = 11;  // so many planes of a tile are made at a time: 88,704 bytes of shared memory

__device__ const uint64_t* directory(const SlicedLoad& load, uint32_t tile, uint32_t attribute, Section& section) {
  section = load.sections[size_t{tile} * load.attributes + attribute];
  return reinterpret_cast<const uint64_t*>(load.data + section.words * size_t{16});
}

}  // namespace

// Numbers the keywords that occur in any tile: fills codeOf and counts codes. A block an attribute of attributesOf.
extern "C" __global__ void __launch_bounds__(kThreads) sliced_codes(const SlicedLoad load) {
  __shared__ uint32_t scratch[32];
  const uint32_t attribute = load.attributesOf[blockIdx.x];
  const uint32_t keywords = load.keywords[attribute], words = (keywords + 31) / 32;
  uint32_t* codeOf = const_cast<uint32_t*>(load.table[attribute].codeOf);
  uint32_t before = 0;
  for (uint32_t first = 0; first < words; first += kThreads) {
    const uint32_t word = first + threadIdx.x;
    uint32_t present = 0;
    if (word < words) {
      for (uint32_t tile = 0; tile < load.tiles; tile++) {
        Section section;
        present |= uint32_t(directory(load, tile, attribute, section)[word]);
      }
    }
    uint32_t total;
    const uint32_t place = before + blockPlace<kThreads>(__popc(present), scratch, total);
    if (word < words) {
      const uint32_t n = min(32u, keywords - word * 32);
      for (uint32_t i = 0; i < n; i++) codeOf[word * 32 + i] = place + __popc(present & ((1u << i) - 1));
    }
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    codeOf[keywords] = before;
    load.table[attribute].codes = before;
  }
}

// Makes the planes of tile firstTile + blockIdx.x of attribute attributesOf[blockIdx.y]. Dynamic shared memory:
// min(planes, kBatchPlanes) x 8,064 bytes.
//
// Every object starts as missing, code V, and each posting flips the bits in which its code differs from V: an object
// has at most one posting here, so no flip meets another.
extern "C" __global__ void __launch_bounds__(kThreads) sliced_planes(const SlicedLoad load) {
  extern __shared__ uint32_t bits[];  // [plane][word of the tile]
  constexpr uint32_t kTileWords = kTileObjects / 32;
  const uint32_t tile = load.firstTile + blockIdx.x, attribute = load.attributesOf[blockIdx.y];
  const SlicedAttribute a = load.table[attribute];
  Section section;
  const uint64_t* words = directory(load, tile, attribute, section);
  const uint32_t* starts = reinterpret_cast<const uint32_t*>(load.data + section.starts * size_t{16});
  const uint16_t* ids = reinterpret_cast<const uint16_t*>(load.data + section.ids * size_t{16});
  const uint32_t lists = section.lists, postings = starts[lists];
  const uint32_t wordsOf = (load.keywords[attribute] + 31) / 32;
  // Threads take equal stretches of the postings.
  const uint32_t from = uint64_t{postings} * threadIdx.x / kThreads, to = uint64_t{postings} * (threadIdx.x + 1) / kThreads;

  for (uint32_t plane = 0; plane < a.planes; plane += kBatchPlanes) {
    const uint32_t planes = min(kBatchPlanes, a.planes - plane);
    for (uint32_t p = 0; p < planes; p++)
      for (uint32_t i = threadIdx.x; i < kTileWords; i += kThreads) bits[p * kTileWords + i] = a.codes >> (plane + p) & 1 ? ~0u : 0;
    __syncthreads();
    if (from < to) {
      // The list of the first posting: the last that starts at or before it; and the keyword of that list.
      uint32_t list = 0;
      for (uint32_t n = lists; n > 1;) {
        const uint32_t half = n / 2;
        if (starts[list + half] <= from) list += half;
        n -= half;
      }
      uint32_t word = 0;
      for (uint32_t n = wordsOf; n > 1;) {
        const uint32_t half = n / 2;
        if (uint32_t(words[word + half] >> 32) <= list) word += half;
        n -= half;
      }
      uint32_t present = uint32_t(words[word]);
      for (uint32_t rank = uint32_t(words[word] >> 32); rank < list; rank++) present &= present - 1;
      uint32_t end = starts[list + 1];
      uint32_t flips = a.codeOf[word * 32 + __ffs(present) - 1] ^ a.codes;
      for (uint32_t i = from; i < to; i++) {
        while (i >= end) {
          list++;
          end = starts[list + 1];
          present &= present - 1;
          while (present == 0) present = uint32_t(words[++word]);
          flips = a.codeOf[word * 32 + __ffs(present) - 1] ^ a.codes;
        }
        const uint32_t id = ids[i];
        for (uint32_t f = flips >> plane & ((1u << planes) - 1); f; f &= f - 1)
          atomicXor(&bits[(__ffs(f) - 1) * kTileWords + id / 32], 1u << id % 32);
      }
    }
    __syncthreads();
    for (uint32_t p = 0; p < planes; p++) {
      for (uint32_t i = threadIdx.x; i < kTileWords; i += kThreads) {
        const size_t group = size_t{blockIdx.x} * kTileGroups + i / kGroupWords;
        if (tile * kTileGroups + i / kGroupWords <= (load.objects - 1) / kGroupObjects)
          load.planes[(group * load.planesOfGroup + a.plane + plane + p) * kGroupWords + i % kGroupWords] = bits[p * kTileWords + i];
      }
    }
    __syncthreads();
  }
}

}  // namespace geniemq
