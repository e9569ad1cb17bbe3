// Decoding of the shared-decode kernel: from planes of an attribute to rows of a stage. sliced.cuh says what these are.
#pragma once
#include "block.cuh"
#include "sliced.cuh"

namespace geniemq {

// Stores four rows, a word of each a lane. at: the address of the first plus rowOffset().
__device__ __forceinline__ void storeRows(uint32_t at, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
#else
  asm volatile(
      "st.shared.u32 [%0], %1; st.shared.u32 [%0+128], %2; st.shared.u32 [%0+256], %3; st.shared.u32 [%0+384], %4;" ::"r"(at),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
#endif
}
__device__ __forceinline__ uint32_t rowOffset() {
#if __CUDA_ARCH__ >= 900
  return laneOf() / 8 * kRowBytes + laneOf() % 8 * 16;  // stmatrix: 16 bytes of one row a lane
#else
  return laneOf() * 4;
#endif
}

// How the digits above an attribute's eighth compare with those of a unit.
struct Prefix {
  uint32_t equal, less;  // a bit an object

  // Takes another digit into account, a higher one; value: the unit's, in bit 0.
  __device__ __forceinline__ void add(uint32_t value, uint32_t plane) {
    const uint32_t digit = 0u - (value & 1), same = ~(digit ^ plane);
    less = (digit & ~plane) | (same & less);
    equal &= same;
  }
};

// Decodes octets of a unit. x: the first eight planes of its attribute, 0 where it has fewer, at the lane's word. at: the
// address of the first row plus rowOffset().
//
// With code = 256 prefix + 8 octet + low, E is the mask of the objects of an octet and L[low] compares the lowest three
// digits. A row is C | E & L[low]: C = 0 for equal; the objects of lower octets for less; of higher ones for atLeast.
__device__ __forceinline__ void decodeTask(uint32_t kind, uint32_t octets, const uint32_t (&x)[8], const Prefix& prefix,
                                           uint32_t at) {
  const uint32_t H = prefix.equal;
  uint32_t C = prefix.less;
  const auto digits = [](uint32_t y0, uint32_t y1, uint32_t y2, uint32_t value) {
    return (value & 1 ? y0 : ~y0) & (value & 2 ? y1 : ~y1) & (value & 4 ? y2 : ~y2);
  };
  uint32_t L[kOctetRows];
  if (kind == kRowEqual) {
#pragma unroll
    for (uint32_t v = 0; v < kOctetRows; v++) L[v] = digits(x[0], x[1], x[2], v);
#pragma unroll
    for (uint32_t high = 0; high < 8; high++) {
      if (octets >> high * 4 == 0) break;
      if ((octets >> high * 4 & 15) == 0) continue;
      const uint32_t T = H & digits(x[5], x[6], x[7], high);
#pragma unroll
      for (uint32_t low = 0; low < 4; low++) {
        if (!(octets >> (high * 4 + low) & 1)) continue;
        const uint32_t E = T & (low & 1 ? x[3] : ~x[3]) & (low & 2 ? x[4] : ~x[4]);
#pragma unroll
        for (uint32_t v = 0; v < kOctetRows; v += 4)
          storeRows(at + v * kRowBytes, E & L[v], E & L[v + 1], E & L[v + 2], E & L[v + 3]);
        at += kOctetBytes;
      }
    }
    return;
  }
  const uint32_t least = kind == kRowAtLeast ? ~0u : 0;
#pragma unroll
  for (uint32_t v = 0; v < kOctetRows; v++) {
    L[v] = least;  // ^ (the lowest digits are less than v)
#pragma unroll
    for (uint32_t u = 0; u < v; u++) L[v] ^= digits(x[0], x[1], x[2], u);
  }
#pragma unroll
  for (uint32_t high = 0; high < 8; high++) {
    if (octets >> high * 4 == 0) break;
    const uint32_t T = H & digits(x[5], x[6], x[7], high);
    if ((octets >> high * 4 & 15) == 0) {
      C |= T;
      continue;
    }
#pragma unroll
    for (uint32_t low = 0; low < 4; low++) {
      const uint32_t E = T & (low & 1 ? x[3] : ~x[3]) & (low & 2 ? x[4] : ~x[4]);
      if (octets >> (high * 4 + low) & 1) {
        const uint32_t outside = least & ~E ^ C;  // C, or for atLeast what is neither in C nor in E
#pragma unroll
        for (uint32_t v = 0; v < kOctetRows; v += 4)
          storeRows(at + v * kRowBytes, outside | (E & L[v]), outside | (E & L[v + 1]), outside | (E & L[v + 2]),
                    outside | (E & L[v + 3]));
        at += kOctetBytes;
      }
      C |= E;
    }
  }
}

}  // namespace geniemq
