// Counting of the shared-decode kernel: trees of carry-save adders, and counters as bit planes, a word a lane.
//
// Why ldmatrix: each lane gives the address of 16 bytes, so one instruction fetches four rows, and the row numbers
// of a query need not be broadcast to all lanes before their addresses can be formed.
//
// Counter planes. c[p] is the plane of 2^p. A tree adds eight rows into planes 0 to 2, four adders deep, and has a carry of
// weight 8. The first tree of a pair leaves it in `open`; the second adds both to plane 3 and ripples upwards: half as
// many ripples.
#pragma once
#include "block.cuh"
#include "sliced.cuh"

namespace geniemq {

// sum + a + b: the sum stays, the carry is returned.
__device__ __forceinline__ uint32_t addTwo(uint32_t& sum, uint32_t a, uint32_t b) {
  const uint32_t carry = (sum & a) | (sum & b) | (a & b);
  sum ^= a ^ b;
  return carry;
}

// Loads eight rows of the stage. pair: two row numbers; lanes 8 i to 8 i + 7 have those of rows i and i + 4. stage: the
// address of row 0, plus 16 bytes for each lane of its eight.
__device__ __forceinline__ void loadRows(uint32_t (&x)[8], uint32_t pair, uint32_t stage) {
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const uint32_t address = __dp2a_lo(pair, kRowBytes << i * 2, stage);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[i]), "=r"(x[i + 1]), "=r"(x[i + 2]), "=r"(x[i + 3]) : "r"(address));
  }
}

template <int PLANES>
struct Counters {
  uint32_t c[PLANES];
  uint32_t open;

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int p = 0; p < PLANES; p++) c[p] = 0;
    open = 0;
  }

  // Adds eight rows.
  template <bool COMPLETE>
  __device__ __forceinline__ void tree(const uint32_t (&x)[8]) {
    uint32_t s0 = x[0], s1 = x[3];
    uint32_t t0 = addTwo(s0, x[1], x[2]);
    const uint32_t t1 = addTwo(s1, x[4], x[5]), t2 = addTwo(c[0], x[6], x[7]), t3 = addTwo(c[0], s0, s1);
    const uint32_t f0 = addTwo(t0, t1, t2), f1 = addTwo(c[1], t0, t3);
    const uint32_t eights = addTwo(c[2], f0, f1);
    if (COMPLETE)
      complete(eights);
    else
      open = eights;
  }

  __device__ __forceinline__ void complete(uint32_t eights) {
    uint32_t carry = addTwo(c[3], open, eights);
    open = 0;
#pragma unroll
    for (int p = 4; p < PLANES; p++) {
      const uint32_t next = c[p] & carry;
      c[p] ^= carry;
      carry = next;
    }
  }

  __device__ __forceinline__ void twice() {
#pragma unroll
    for (int p = PLANES - 1; p > 0; p--) c[p] = c[p - 1];
    c[0] = 0;
  }

  // The objects whose count is larger than what has these digits.
  __device__ __forceinline__ uint32_t above(const uint32_t (&digits)[PLANES]) const {
    uint32_t larger = 0;
#pragma unroll
    for (int p = 0; p < PLANES; p++) larger = (c[p] & larger) | ((c[p] | larger) & ~digits[p]);
    return larger;
  }
};

}  // namespace geniemq
