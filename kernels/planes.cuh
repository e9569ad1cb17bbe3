// Bit-sliced attributes in the (query, tile) kernel: spans of codes against planes (sliced.cuh says how these lie).
//
// Used where an attribute has no postings on the device: in an index that is streamed or that only fits without them, for
// queries that the shared-decode kernel does not execute, as those that also ask for other attributes. A thread owns the
// counters of 32 consecutive objects, a word of each plane, so nothing here is atomic: what the spans add is summed up in
// registers and stored, which also clears the counters for the postings that are added after.
#pragma once
#include "batch.cuh"
#include "counters.cuh"

namespace geniemq {

// A span of codes [lo, hi), in Span::attribute the attribute's planes: first of the group << 8 | number.
__host__ __device__ constexpr uint32_t planeOf(const Span& span) { return span.attribute >> 8; }
__host__ __device__ constexpr uint32_t planesOf(const Span& span) { return span.attribute & 0xff; }

// The objects of a word whose codes lie in [lo, hi). planes: the word of the first plane.
//
// From the lowest digit up, less = "the digits so far are less than those of the bound": where a digit of the bound is 1, an
// object's 0 makes it less and its 1 leaves it as it was; where it is 0, an object's 1 makes it not less. That is the
// majority of the three. The code of a missing keyword is no less than any hi, nor is a wrong one.
__device__ __forceinline__ uint32_t codesWithin(const uint32_t* planes, uint32_t count, uint32_t lo, uint32_t hi) {
  uint32_t lessLo = 0, lessHi = 0;
#pragma unroll 4
  for (uint32_t p = 0; p < count; p++) {
    const uint32_t zero = ~__ldg(planes + p * 32), a = 0u - (lo >> p & 1), b = 0u - (hi >> p & 1);
    lessLo = (zero & a) | (zero & lessLo) | (a & lessLo);
    lessHi = (zero & b) | (zero & lessHi) | (b & lessHi);
  }
  return lessHi & ~lessLo;
}

// Counts spans of codes over the objects of one block: words [first, first + words) of the tile's planes, of which the
// first `present` of the tile exist. counters gets the counts of all these objects. All threads call it; each returns
// how many (span, object) pairs it has added.
template <int BITS, int THREADS>
struct PlaneCounts {
  using C = Counters<BITS>;

  const uint32_t* planes;  // of the tile's first group
  uint32_t planesOfGroup;
  uint32_t first, words, present;

  __device__ uint32_t run(const Span* spans, uint32_t count, const C counters) const {
    uint32_t pairs = 0;
    for (uint32_t word = threadIdx.x; word < words; word += THREADS) {
      uint32_t sum[BITS] = {};  // 32 counters, as C packs them
      const uint32_t at = first + word;
      if (at < present) {
        const uint32_t* group = planes + size_t{at / 32} * planesOfGroup * 32 + at % 32;
        for (uint32_t i = 0; i < count; i++) {
          const uint4 s = __ldg(reinterpret_cast<const uint4*>(spans) + i);
          const Span span = {s.x, s.y, s.z, s.w};
          const uint32_t in = codesWithin(group + planeOf(span) * 32, planesOf(span), span.lo, span.hi);
          pairs += __popc(in);
#pragma unroll
          for (uint32_t j = 0; j < BITS; j++) sum[j] += C::spread(in, j) * span.weight;
        }
      }
      uint4* to = reinterpret_cast<uint4*>(counters.words + word * BITS);
#pragma unroll
      for (uint32_t j = 0; j < BITS; j += 4) to[j / 4] = make_uint4(sum[j], sum[j + 1], sum[j + 2], sum[j + 3]);
    }
    return pairs;
  }
};

}  // namespace geniemq
