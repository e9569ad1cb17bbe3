// Barriers in shared memory at which some warps of a block arrive and others wait.
#pragma once
#include <cstdint>

namespace geniemq {

__device__ __forceinline__ uint32_t sharedAddress(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

// A barrier in shared memory that completes a phase when so many warps have arrived.
struct Barrier {
  uint64_t word;

  __device__ void init(uint32_t warps) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(sharedAddress(&word)), "r"(warps) : "memory");
  }
  // One lane of a warp arrives for all, after __syncwarp.
  __device__ __forceinline__ static void arrive(uint32_t address) {
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(address) : "memory");
  }
  // The same where yes.
  __device__ __forceinline__ static void arriveIf(bool yes, uint32_t address) {
    asm volatile("{ .reg .pred p; .reg .b64 t; setp.ne.u32 p, %1, 0; @p mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(address),
                 "r"(uint32_t{yes})
                 : "memory");
  }
  // Whether the phase of this parity is complete. Of a new barrier the phase of parity 1 is.
  __device__ __forceinline__ static bool complete(uint32_t address, uint32_t parity) {
    uint32_t done;
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address), "r"(parity) : "memory");
#else
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address), "r"(parity) : "memory");
#endif
    return done;
  }
  // Returns when it is.
  __device__ __forceinline__ static void wait(uint32_t address, uint32_t parity) {
    while (!complete(address, parity)) {
    }
  }
};

}  // namespace geniemq
