// Products of small matrices on tensor cores, as functions. A lane of a warp holds pieces of each; all lanes call together.
#pragma once
#include <cstdint>

#include "barrier.cuh"

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

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Products of a group of four warps, which run while the group does other things: begun, committed, awaited. All lanes call together. Registers that were written before
// are seen behind beginProducts.
__device__ __forceinline__ void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most so many groups of products are not complete.
template <int N>
__device__ __forceinline__ void awaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Shows products what this thread has written to shared memory; a barrier follows.
__device__ __forceinline__ void showProducts() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The descriptor of a matrix in shared memory, without swizzle, of matrices of 8 rows of 16 bytes: those of the next 16 bytes lie `along` bytes further, those of the next 8
// rows `down` bytes. Addresses count 16 bytes.
__device__ __forceinline__ uint64_t matrixOf(const void* memory, uint32_t along, uint32_t down) {
  return uint64_t{sharedAddress(memory)} >> 4 | uint64_t{along >> 4} << 16 | uint64_t{down >> 4} << 32;
}

// Sums of a lane, of 64 rows and 128 columns: of j = 0 .. 15 and its two rows, columns 8 j + 2 (lane % 4) and the next.
constexpr int kGroupSums = 64;

// c += popc(a & b), of 64 x 256 bits, of which each warp holds 16 rows, words in place of pairs of float16s, and 128 x 256 in shared memory.
__device__ __forceinline__ void multiplyBits(int (&c)[kGroupSums], const uint32_t (&a)[4], uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1;"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
        "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]), "+r"(c[16]), "+r"(c[17]),
        "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]), "+r"(c[24]), "+r"(c[25]), "+r"(c[26]),
        "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]), "+r"(c[32]), "+r"(c[33]), "+r"(c[34]), "+r"(c[35]),
        "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]), "+r"(c[40]), "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]),
        "+r"(c[45]), "+r"(c[46]), "+r"(c[47]), "+r"(c[48]), "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]),
        "+r"(c[54]), "+r"(c[55]), "+r"(c[56]), "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]),
        "+r"(c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// c += a b, of 64 x 16 float16s, of which each warp holds 16 rows as above, and 16 x 128 in shared memory.
__device__ __forceinline__ void multiplyHalves(float (&c)[16][4], const uint4& a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1, 1, 1, 0;"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b));
}

#endif

}  // namespace geniemq
