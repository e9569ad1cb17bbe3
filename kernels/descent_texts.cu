// Descents (descent.cuh) over texts by edit distance (edit.cuh). Trees of texts have pivots and no boxes.
//
// The lanes of a warp compare for different queries, so the masks of patterns are not in shared memory: the host makes them, and they are a query's `vector`,
// Near::dims words of 64 bits: the length of the pattern, then its masks, by symbol where symbols are bytes, hashed where they are not.
//
// How many lanes compare a pair is the column's, by its longest text: each has 64 rows of the pattern. Who asks with a longer pattern is answered by the host.
#include "descent_rounds.cuh"
#include "edit.cuh"

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

template <int LANES>
struct Texts {
  static constexpr uint32_t kLanes = LANES;
  using Box = NearSquares;  // there are none

  static __device__ double value(const Descent& v, uint32_t q, uint32_t object, bool real) {
    return v.tree->symbols <= kNarrow ? compared<AskedDense<LANES>>(v, q, object, real) : compared<AskedHashed<LANES>>(v, q, object, real);
  }

  template <class Masks>
  static __device__ double compared(const Descent& v, uint32_t q, uint32_t object, bool real) {
    const Word* asked = reinterpret_cast<const Word*>(v.near.vectors) + size_t{q} * v.near.dims;
    const uint32_t m = uint32_t(__ldg(asked)), last = (max(m, 1u) - 1) / 64;
    Reader<typename Masks::Symbol> text;
    const uint32_t n = real ? text.open(v.near.rows + size_t{16} * __ldg(v.tree->starts + object)) : 0;
    int32_t d = distanceBy<LANES>(Masks{asked + 1}, text, n, max(m, 1u), real && m > 0, kNoLimit);
    if (LANES > 1) d = __shfl_sync(~0u, d, laneOf() / LANES * LANES + last);
    return m > 0 ? d : n;
  }
};

}  // namespace

GENIEMQ_DESCENT(edits_1, Texts<1>)
GENIEMQ_DESCENT(edits_2, Texts<2>)
GENIEMQ_DESCENT(edits_4, Texts<4>)

}  // namespace geniemq
