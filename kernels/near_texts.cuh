// Pairs of a query and a text under edit distance (edit.cuh), for searches by distance in which the lanes of a warp compare for different queries, or objects from a list.
//
// The masks of patterns are not in shared memory: the host makes them, and they are a query's `vector`, Near::dims words of 64 bits: the length of the pattern, then its masks, by
// symbol where symbols are bytes, hashed where they are not. How many lanes compare a pair is the column's, by its longest text: each has 64 rows of the pattern. Who asks with
// a longer pattern is answered by the host (gpuexec/cuda/nearest, patterns).
#pragma once
#include "edit.cuh"
#include "near.cuh"

namespace geniemq {
namespace {

using Word = unsigned long long;

constexpr uint32_t kNarrow = 256;  // symbols that one byte tells apart: abi.MaxNarrow

// As DenseMasks and HashedMasks have them.
template <int kLanes>
struct AskedDense {
  using Symbol = uint8_t;
  const Word* masks;
  __device__ __forceinline__ uint64_t find(uint32_t block, uint32_t symbol) const { return __ldg(masks + symbol * kLanes + block); }
};
template <int kLanes>
struct AskedHashed {
  using Symbol = uint16_t;
  const Word* masks;
  __device__ __forceinline__ uint64_t find(uint32_t block, uint32_t symbol) const {
    const uint32_t* keys = reinterpret_cast<const uint32_t*>(masks + kSlots * kLanes);
    for (uint32_t slot = HashedMasks<kLanes>::slotOf(symbol);; slot = (slot + 1) % kSlots) {
      const uint32_t key = __ldg(keys + block * kSlots + slot);
      if (key == symbol) return __ldg(masks + block * kSlots + slot);
      if (key == HashedMasks<kLanes>::kEmpty) return 0;
    }
  }
};

// Some texts, whose bytes are Near::rows.
struct NearTexts {
  const uint32_t* starts;  // by object: its first unit of 16 bytes
  uint32_t symbols;        // that occur

  // The value of a pair, for all its lanes; the lanes of a warp call it together.
  template <int kLanes>
  __device__ double value(const Near& n, uint32_t q, uint32_t object, bool real) const {
    return symbols <= kNarrow ? compared<kLanes, AskedDense<kLanes>>(n, q, object, real) : compared<kLanes, AskedHashed<kLanes>>(n, q, object, real);
  }

  template <int kLanes, class Masks>
  __device__ double compared(const Near& n, uint32_t q, uint32_t object, bool real) const {
    const Word* asked = reinterpret_cast<const Word*>(n.vectors) + size_t{q} * n.dims;
    const uint32_t m = uint32_t(__ldg(asked)), last = (max(m, 1u) - 1) / 64;
    Reader<typename Masks::Symbol> text;
    const uint32_t length = real ? text.open(n.rows + size_t{16} * __ldg(starts + object)) : 0;
    int32_t d = distanceBy<kLanes>(Masks{asked + 1}, text, length, max(m, 1u), real && m > 0, kNoLimit);
    if (kLanes > 1) d = __shfl_sync(~0u, d, laneOf() / kLanes * kLanes + last);
    return m > 0 ? d : length;
  }
};

}  // namespace
}  // namespace geniemq
