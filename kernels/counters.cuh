// Bitmap Counters: the packed counters of one query in one group of objects, in shared memory.
//
// A word holds 32 / BITS counters, lower bits first, so that ids ascend from low bits to high and from word to word. No
// counter overflows into its neighbour: the host chooses BITS from Query::bound, which no object's count exceeds.
#pragma once
#include <cstdint>

namespace geniemq {

template <int BITS>
struct Counters {
  static constexpr uint32_t kPerWord = 32 / BITS;
  static constexpr uint32_t kMax = BITS == 32 ? ~0u : (1u << (BITS % 32)) - 1;
  // One bit at the top, and one at the bottom, of each counter.
  static constexpr uint32_t kHigh = BITS == 4 ? 0x88888888u : BITS == 8 ? 0x80808080u : BITS == 16 ? 0x80008000u : 0x80000000u;
  static constexpr uint32_t kLow = kHigh >> (BITS - 1);

  uint32_t* words;

  __device__ __forceinline__ static uint32_t shift(uint32_t id) { return BITS == 32 ? 0 : id % kPerWord * BITS; }

  __device__ __forceinline__ void add(uint32_t id, uint32_t weight) const {
    atomicAdd(words + id / kPerWord, weight << shift(id));
  }

  // As add; returns the count before.
  __device__ __forceinline__ uint32_t fetchAdd(uint32_t id, uint32_t weight) const {
    return atomicAdd(words + id / kPerWord, weight << shift(id)) >> shift(id) & kMax;
  }

  __device__ __forceinline__ uint32_t get(uint32_t id) const { return words[id / kPerWord] >> shift(id) & kMax; }

  // Marks, by its top bit, each counter of a word that is at least a threshold: x >= t, with the top bits apart, is
  // a carry out of the lower bits of x + (2^(BITS-1) - t mod 2^(BITS-1)), which never reaches the next counter.
  struct AtLeast {
    uint32_t addend, either;
    bool none;
    __device__ __forceinline__ explicit AtLeast(uint32_t t) {
      constexpr uint32_t half = 1u << (BITS - 1);
      none = t > kMax;
      either = t <= half ? ~0u : 0;
      addend = (t <= half ? half - t : (half << 1) - t) * kLow;
    }
    __device__ __forceinline__ uint32_t operator()(uint32_t x) const {
      const uint32_t carry = (x & ~kHigh) + addend;
      return none ? 0 : ((x & carry) | ((x | carry) & either)) & kHigh;
    }
  };
};

}  // namespace geniemq
