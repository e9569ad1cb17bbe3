// Matrix products of PTX: mma.sync, and those of wgmma that kernels use.
#pragma once

namespace emulated::ptx {

// A fragment is what the 32 lanes of a warp hold of a matrix. Of A (16 rows) register i of a lane has row lane / 4 + 8 (i % 2), of
// B (8 columns) column lane / 4; along K the registers of a lane have elements lane % 4 of 4 groups, then the same of the next 4.
// Of C and D registers 2 h + j have row lane / 4 + 8 h, column 2 (lane % 4) + j.

inline float ofHalf(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16, exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | fraction << 13);
  const float v = exponent == 0 ? std::ldexp(float(fraction), -24) : std::ldexp(float(1024 + fraction), int(exponent) - 25);
  return sign ? -v : v;
}
inline float ofBfloat(uint16_t b) { return __uint_as_float(uint32_t{b} << 16); }

// A sum as tensor cores may make it: products are exact; all addends are aligned to the largest of them, cut off (not rounded)
// below 24 bits and summed, and the sum is cut off again. Hardware keeps some more bits; who relies on them fails here.
inline float truncatedSum(const float* addends, int n) {
  int top = INT_MIN;
  for (int i = 0; i < n; i++) {
    if (!std::isfinite(addends[i])) {
      float sum = 0;
      for (int j = 0; j < n; j++) sum += addends[j];
      return sum;
    }
    if (addends[i] != 0) top = std::max(top, std::ilogb(addends[i]));
  }
  if (top == INT_MIN) return 0;
  const int unit = top - 23;
  int64_t sum = 0;
  for (int i = 0; i < n; i++) sum += int64_t(std::trunc(std::ldexp(double(addends[i]), -unit)));
  while (std::abs(sum) >= 1 << 24) {  // to the 24 bits of a float
    int shift = 0;
    while (std::abs(sum) >> shift >= 1 << 24) shift++;
    sum = (sum < 0 ? -1 : 1) * (std::abs(sum) >> shift << shift);
    if ((std::abs(sum) >> shift) < 1 << 24) return float(std::ldexp(double(sum), unit));
  }
  return float(std::ldexp(double(sum), unit));
}

// The product of fragments of N registers of A, N / 2 of B and 4 of C. dot(a, b, c): a and b are the words of a row and a column,
// in the order of K.
template <size_t N, class C, class Dot>
inline std::array<C, 4> product(const std::array<uint32_t, N>& a, const std::array<uint32_t, N / 2>& b, const std::array<C, 4>& c,
                                const char* name, Dot dot, At at) {
  struct In {
    std::array<uint32_t, N> a;
    std::array<uint32_t, N / 2> b;
    std::array<C, 4> c;
  };
  constexpr size_t K = N * 2;  // words
  return collect<In, std::array<C, 4>>(
      name, ~0u, In{a, b, c},
      [&](auto** slots, uint32_t) {
        for (uint32_t row = 0; row < 16; row++)
          for (uint32_t column = 0; column < 8; column++) {
            uint32_t x[K], y[K];
            for (uint32_t k = 0; k < K; k++) {
              x[k] = slots[row % 8 * 4 + k % 4]->in.a[k / 4 * 2 + row / 8];
              y[k] = slots[column * 4 + k % 4]->in.b[k / 4];
            }
            const uint32_t lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
            slots[lane]->out[i] = dot(x, y, slots[lane]->in.c[i]);
          }
      },
      at);
}

#define EMULATED_MMA(name, N, C, dot)                                                                                     \
  template <class A, class B, class S>                                                                                    \
  inline void name(const Regs<C, 4>& d, const Regs<A, N>& a, const Regs<B, N / 2>& b, const Regs<S, 4>& c, At at) {       \
    const auto sum = product<N, C>(values(a), values(b), values(c), #name, dot, at);                                      \
    for (int i = 0; i < 4; i++) d[i] = sum[i];                                                                            \
  }

// 16-bit floats, eight products at a time.
template <size_t WORDS, class Of>
inline float floatDot(const uint32_t* x, const uint32_t* y, float c, Of of) {
  float addends[9];
  for (size_t first = 0; first < WORDS; first += 4) {
    addends[0] = c;
    for (size_t k = 0; k < 8; k++)
      addends[1 + k] = of(uint16_t(x[first + k / 2] >> k % 2 * 16)) * of(uint16_t(y[first + k / 2] >> k % 2 * 16));
    c = truncatedSum(addends, 9);
  }
  return c;
}
EMULATED_MMA(mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32, 4, float, ([](auto x, auto y, float c) { return floatDot<8>(x, y, c, ofHalf); }))
EMULATED_MMA(mma_sync_aligned_m16n8k8_row_col_f32_f16_f16_f32, 2, float, ([](auto x, auto y, float c) { return floatDot<4>(x, y, c, ofHalf); }))
EMULATED_MMA(mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32, 4, float, ([](auto x, auto y, float c) { return floatDot<8>(x, y, c, ofBfloat); }))
EMULATED_MMA(mma_sync_aligned_m16n8k8_row_col_f32_bf16_bf16_f32, 2, float, ([](auto x, auto y, float c) { return floatDot<4>(x, y, c, ofBfloat); }))

// Bytes, four a word.
template <size_t WORDS, class A, class B, bool SATURATE = false>
inline uint32_t byteDot(const uint32_t* x, const uint32_t* y, uint32_t c) {
  int64_t sum = int32_t(c);
  for (size_t k = 0; k < WORDS * 4; k++) sum += int32_t(A(x[k / 4] >> k % 4 * 8)) * int32_t(B(y[k / 4] >> k % 4 * 8));
  if (SATURATE) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return uint32_t(sum);
}
#define EMULATED_MMA_BYTES(a, A, b, B)                                                                                                    \
  EMULATED_MMA(mma_sync_aligned_m16n8k32_row_col_s32_##a##_##b##_s32, 4, uint32_t, (byteDot<8, A, B>))                                    \
  EMULATED_MMA(mma_sync_aligned_m16n8k32_row_col_satfinite_s32_##a##_##b##_s32, 4, uint32_t, (byteDot<8, A, B, true>))                    \
  EMULATED_MMA(mma_sync_aligned_m16n8k16_row_col_s32_##a##_##b##_s32, 2, uint32_t, (byteDot<4, A, B>))
EMULATED_MMA_BYTES(s8, int8_t, s8, int8_t)
EMULATED_MMA_BYTES(u8, uint8_t, u8, uint8_t)
EMULATED_MMA_BYTES(s8, int8_t, u8, uint8_t)
EMULATED_MMA_BYTES(u8, uint8_t, s8, int8_t)
#undef EMULATED_MMA_BYTES

// Bits.
template <size_t WORDS, bool XOR>
inline uint32_t bitDot(const uint32_t* x, const uint32_t* y, uint32_t c) {
  for (size_t k = 0; k < WORDS; k++) c += uint32_t(__builtin_popcount(XOR ? x[k] ^ y[k] : x[k] & y[k]));
  return c;
}
EMULATED_MMA(mma_sync_aligned_m16n8k256_row_col_s32_b1_b1_s32_and_popc, 4, uint32_t, (bitDot<8, false>))
EMULATED_MMA(mma_sync_aligned_m16n8k256_row_col_s32_b1_b1_s32_xor_popc, 4, uint32_t, (bitDot<8, true>))
EMULATED_MMA(mma_sync_aligned_m16n8k128_row_col_s32_b1_b1_s32_and_popc, 2, uint32_t, (bitDot<4, false>))
EMULATED_MMA(mma_sync_aligned_m16n8k128_row_col_s32_b1_b1_s32_xor_popc, 2, uint32_t, (bitDot<4, true>))
#undef EMULATED_MMA

// ---- wgmma

// A matrix in shared memory by its descriptor, without swizzle: K-major core matrices of 8 rows of 16 bytes.
struct Descriptor {
  uint32_t start, leading, stride;
  Descriptor(uint64_t d, At at)
      : start(uint32_t(d & 0x3fff) << 4), leading(uint32_t(d >> 16 & 0x3fff) << 4), stride(uint32_t(d >> 32 & 0x3fff) << 4) {
    if (d >> 62 != 0) fail(kTrap, at, "wgmma of a matrix with a swizzle, which is not emulated");
  }
  // 16 bytes: of a row, the k-th such piece.
  const uint32_t* piece(uint32_t row, uint32_t k, At at) const {
    return static_cast<const uint32_t*>(shared(start + row / 8 * stride + k * leading + row % 8 * 16, 16, 16, at));
  }
};

// What the lanes of a quad hold of their two rows.
using Fragment = std::array<uint32_t, 4>;
using Quad = std::array<Fragment, 4>;
inline Quad quadOf(const Fragment& own, At at) {
  return collect<Fragment, Quad>(
      "wgmma", ~0u, own,
      [](auto** slots, uint32_t) {
        for (uint32_t i = 0; i < 32; i++)
          for (uint32_t j = 0; j < 4; j++) slots[i]->out[j] = slots[i / 4 * 4 + j]->in;
      },
      at);
}

// m64nNk256 of bits, A in registers. Each of the four warps has 16 rows, and needs nothing of the others. The product is there at
// once: what is written before wgmma.wait_group is not found out.
template <size_t C, class T>
inline void bitProduct(const Regs<T, C>& d, const Fragment& a, uint64_t b, bool add, At at) {
  const Quad quad = quadOf(a, at);
  const Descriptor columns(b, at);
  const uint32_t lane = running.fiber->lane;
  for (uint32_t j = 0; j < C / 4; j++)
    for (uint32_t q = 0; q < 2; q++) {
      const uint32_t column = j * 8 + lane % 4 * 2 + q;
      const uint32_t* const halves[2] = {columns.piece(column, 0, at), columns.piece(column, 1, at)};
      for (uint32_t h = 0; h < 2; h++) {
        uint32_t sum = add ? uint32_t(d[j * 4 + h * 2 + q]) : 0;
        for (uint32_t k = 0; k < 8; k++) sum += uint32_t(__builtin_popcount(quad[k % 4][k / 4 * 2 + h] & halves[k / 4][k % 4]));
        d[j * 4 + h * 2 + q] = T(sum);
      }
    }
}
#define EMULATED_WGMMA(n)                                                                                               \
  template <class T, class A>                                                                                           \
  inline void wgmma_mma_async_sync_aligned_m64n##n##k256_s32_b1_b1_and_popc(const Regs<T, n / 2>& d, const Regs<A, 4>& a, uint64_t b, int add, At at) { \
    bitProduct(d, values(a), b, add != 0, at);                                                                          \
  }
EMULATED_WGMMA(8) EMULATED_WGMMA(16) EMULATED_WGMMA(32) EMULATED_WGMMA(64) EMULATED_WGMMA(128) EMULATED_WGMMA(256)
#undef EMULATED_WGMMA

// m64n128k16 of float16s, likewise.
template <class T, class A>
inline void wgmma_mma_async_sync_aligned_m64n128k16_f32_f16_f16(const Regs<T, 64>& d, const Regs<A, 4>& a, uint64_t b, int add, int, int, int transposed, At at) {
  if (transposed) fail(kTrap, at, "wgmma of a transposed matrix, which is not emulated");
  const auto quad = quadOf(values(a), at);
  const Descriptor columns(b, at);
  const uint32_t lane = running.fiber->lane;
  for (uint32_t j = 0; j < 16; j++)
    for (uint32_t q = 0; q < 2; q++) {
      uint32_t y[8];
      for (uint32_t k = 0; k < 8; k++) y[k] = columns.piece(j * 8 + lane % 4 * 2 + q, k / 4, at)[k % 4];
      for (uint32_t h = 0; h < 2; h++) {
        uint32_t x[8];
        for (uint32_t k = 0; k < 8; k++) x[k] = quad[k % 4][k / 4 * 2 + h];
        float& sum = d[j * 4 + h * 2 + q];
        sum = floatDot<8>(x, y, add ? sum : 0, ofHalf);
      }
    }
}
inline void wgmma_fence_sync_aligned(At at) { __syncwarp(~0u, at); }
inline void wgmma_commit_group_sync_aligned(At at) { __syncwarp(~0u, at); }
inline void wgmma_wait_group_sync_aligned(uint32_t, At at) { __syncwarp(~0u, at); }

}  // namespace emulated::ptx
