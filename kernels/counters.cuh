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

  __device__ __forceinline__ static uint32_t shift(uint32_t id) { return id % kPerWord * BITS; }

  // Adds a weight to the counter of an object. Of id, bits 16 and up need not be clean unless BITS is 32.
  __device__ __forceinline__ void add(uint32_t id, uint32_t weight) const {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address(id)), "r"(shifted(id, weight)) : "memory");
  }

  // As add; says whether the counter reached a count by it that it had not reached before.
  __device__ __forceinline__ bool addCrosses(uint32_t id, uint32_t weight, uint32_t reach) const {
    uint32_t old;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(address(id)), "r"(shifted(id, weight)) : "memory");
    const uint32_t before = (BITS == 32 ? old : __funnelshift_r(old, 0, id * BITS)) & kMax;
    if (BITS == 32) return before < reach && reach - before <= weight;
    return reach - 1 - before < weight;  // modulo 2^32, which narrower counters and weights are far from
  }

  __device__ __forceinline__ uint32_t get(uint32_t id) const { return words[id / kPerWord] >> shift(id) & kMax; }

  __device__ __forceinline__ uint32_t address(uint32_t id) const {
    const uint32_t base = __cvta_generic_to_shared(words);
    if (BITS == 4) return base + (id >> 1 & 0x7ffc);
    if (BITS == 8) return base + (id & 0xfffc);
    if (BITS == 16) return base + (id * 2 & 0x1fffc);
    return base + id * 4;
  }

  __device__ __forceinline__ static uint32_t shifted(uint32_t id, uint32_t weight) {
    return BITS == 32 ? weight : __funnelshift_l(0, weight, id * BITS);
  }

  // The counters of 32 consecutive objects are BITS words: word j of them, with a one in each counter whose object's bit
  // is set in mask.
  __device__ __forceinline__ static uint32_t spread(uint32_t mask, uint32_t j) {
    const uint32_t own = mask >> j * kPerWord & (BITS == 32 ? 1 : (1u << kPerWord) - 1);
    if (BITS == 32) return own & 1;
    if (BITS == 16) return (own & 3) * 0x8001 & kLow;
    if (BITS == 8) return (own & 15) * 0x204081 & kLow;
    uint32_t x = (own | own << 12) & 0x000f000f;
    x = (x | x << 6) & 0x03030303;
    return (x | x << 3) & kLow;
  }

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
