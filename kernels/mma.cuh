// Products of small matrices on tensor cores, as functions. A lane of a warp holds pieces of each; all lanes call together.
#pragma once
#include <cstdint>

namespace geniemq {

// c += a b, of 16 x 16 float16s and 16 x 8, added up in float32. Lane l holds of a the rows l / 4 and l / 4 + 8: of columns 2 (l % 4) and the next in x and y,
// of those 8 further in z and w; of b column l / 4, rows 2 (l % 4) and the next in x, those 8 further in y; of c the rows of a, columns 2 (l % 4) and the next.
__device__ __forceinline__ void multiplyHalves(float (&c)[4], const uint4& a, const uint2& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

// d = c + a b, so that nothing has to be copied or cleared before.
__device__ __forceinline__ void multiplyHalvesFrom(float (&d)[4], const uint4& a, const uint2& b, const float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

}  // namespace geniemq
