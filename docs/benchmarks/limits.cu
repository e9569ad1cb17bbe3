// Measures the rates that bound matching and prints them as JSON, for `geniemq bench engine --limits`.
//   nvcc -O3 -arch=sm_90a limits.cu -o limits && ./limits
// With another -arch the matrix products are left out.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)

constexpr int kAdds = 4096, kLoads = 8192, kLogic = 65536, kProducts = 65536;  // a thread, or a group of four warps

// Additions to counters in shared memory: each lane stays in its own bank, 16 rows at constant
// distances from one that is as good as random, so that next to nothing but additions is issued.
__global__ void atomics(uint32_t* out, uint32_t seed) {
  extern __shared__ uint32_t counters[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) counters[i] = 0;
  __syncthreads();
  uint32_t* bank = counters + (threadIdx.x & 31);
  uint32_t row = seed + blockIdx.x * 977 + (threadIdx.x >> 5) * 131;
  for (int i = 0; i < kAdds; i += 16) {
    uint32_t* rows = bank + (row & 255) * 32;
    row = row * 5 + 12345;
#pragma unroll
    for (int k = 0; k < 16; k++) atomicAdd(rows + (k * 37 % 256) * 32, 256u);
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = counters[seed & 16383];
}

// Reads rows of 128 bytes from shared memory, without bank conflicts, four a load.
__global__ void rows(uint32_t* out, uint32_t seed) {
  extern __shared__ uint32_t counters[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) counters[i] = i * seed;
  __syncthreads();
  const uint4* words = reinterpret_cast<const uint4*>(counters) + (threadIdx.x & 31);
  uint32_t at = seed + (threadIdx.x >> 5) * 7, sum = 0;
  for (int i = 0; i < kLoads; i += 8) {
    const uint4* from = words + (at & 63) * 32;
    at += 5;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      uint4 v = from[k * 8 % 64 * 32];
      sum ^= v.x ^ v.y;  // two instructions of three inputs for four rows: far below what the ALU can do
      sum ^= v.z ^ v.w;
    }
  }
  if (sum == 12345) out[0] = sum;
}

// Nothing but logic of three inputs, in eight chains.
__global__ void logic(uint32_t* out, uint32_t seed) {
  uint32_t x[8];
  for (int k = 0; k < 8; k++) x[k] = seed * (threadIdx.x + k);
  for (int i = 0; i < kLogic; i += 8) {
#pragma unroll
    for (int k = 0; k < 8; k++) asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(x[k]) : "r"(x[(k + 1) & 7]), "r"(seed));
  }
  uint32_t sum = 0;
  for (int k = 0; k < 8; k++) sum ^= x[k];
  if (sum == 12345) out[0] = sum;
}

// Binary matrix products of 64 x 256 and 256 x 128 bits: one operand in registers, the other, 4 KiB, in shared memory, as the
// filter's; four groups of four warps a multiprocessor, 8 products in flight.
__global__ void __launch_bounds__(512, 1) matrix(uint32_t* out, uint32_t seed) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(1024) uint32_t masks[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) masks[i] = i * seed;
  __syncthreads();
  const uint64_t at = uint64_t{(uint32_t)__cvta_generic_to_shared(masks)} >> 4 | uint64_t{2048 >> 4} << 16 | uint64_t{128 >> 4} << 32;
  uint32_t c[64], a = seed * threadIdx.x;
  for (int i = 0; i < 64; i++) c[i] = 0;
  for (int n = 0; n < kProducts; n += 8) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 8; k++)
      asm volatile(
          "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
          "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
          "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
          "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
          "{%64, %64, %64, %64}, %65, 1;"
          : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
            "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]), "+r"(c[16]),
            "+r"(c[17]), "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]), "+r"(c[24]),
            "+r"(c[25]), "+r"(c[26]), "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]), "+r"(c[32]),
            "+r"(c[33]), "+r"(c[34]), "+r"(c[35]), "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]), "+r"(c[40]),
            "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]), "+r"(c[45]), "+r"(c[46]), "+r"(c[47]), "+r"(c[48]),
            "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]), "+r"(c[54]), "+r"(c[55]), "+r"(c[56]),
            "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]), "+r"(c[63])
          : "r"(a), "l"(at));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  uint32_t sum = 0;
  for (int i = 0; i < 64; i++) sum ^= c[i];
  if (sum == 12345) out[0] = sum;
  out[1] = 1;  // says that there are such products
#endif
}

// Reads n words of 16 bytes, a power of two, again and again.
__global__ void read(const uint4* in, size_t n, int repeats, uint32_t* out) {
  uint32_t sum = 0;
  size_t step = (size_t)gridDim.x * blockDim.x;
  for (int r = 0; r < repeats; r++) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x + (size_t)r * 4096 * 7;
#pragma unroll 8
    for (size_t k = 0; k < n / step; k++, i += step) {
      uint4 v = __ldcg(in + (i & (n - 1)));
      sum += v.x ^ v.y ^ v.z ^ v.w;
    }
  }
  if (sum == 12345) out[0] = sum;
}

template <class F> static float median(F f) {
  cudaEvent_t a, b;
  cudaEventCreate(&a); cudaEventCreate(&b);
  std::vector<float> t;
  for (int i = 0; i < 9; i++) {
    cudaEventRecord(a); f(); cudaEventRecord(b);
    cudaEventSynchronize(b);
    float ms; cudaEventElapsedTime(&ms, a, b);
    if (i > 1) t.push_back(ms);
  }
  std::sort(t.begin(), t.end());
  return t[t.size() / 2] * 1e-3f;
}

int main() {
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  uint32_t* out;
  CHECK(cudaMalloc(&out, 1 << 20));
  CHECK(cudaFuncSetAttribute(atomics, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  CHECK(cudaFuncSetAttribute(rows, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
  int blocks = p.multiProcessorCount * 3 * 4;
  double adds = (double)blocks * 512 * kAdds / median([&] { atomics<<<blocks, 512, 65536>>>(out, 1); });
  double reads = (double)blocks * 16 * kLoads * 4 / median([&] { rows<<<blocks, 512, 65536>>>(out, 1); });
  double logics = (double)blocks * 16 * kLogic / median([&] { logic<<<blocks, 512>>>(out, 1); });
  CHECK(cudaMemset(out, 0, 8));
  double products = (double)p.multiProcessorCount * 4 * kProducts / median([&] { matrix<<<p.multiProcessorCount, 512>>>(out, 1); });
  uint32_t has[2];
  CHECK(cudaMemcpy(has, out, 8, cudaMemcpyDeviceToHost));
  CHECK(cudaDeviceSynchronize());

  const size_t small = 16 << 20, large = 4ull << 30;
  uint4 *a, *b;
  CHECK(cudaMalloc(&a, large)); CHECK(cudaMalloc(&b, large));
  CHECK(cudaMemset(a, 7, large)); CHECK(cudaMemset(b, 5, large));
  blocks = p.multiProcessorCount * 2;
  size_t n = small / 16, step = (size_t)blocks * 1024;
  const int repeats = 200;
  double l2 = (double)repeats * (n / step) * step * 16 / median([&] { read<<<blocks, 1024>>>(a, n, repeats, out); });
  double copy = 2.0 * large / median([&] { cudaMemcpyAsync(b, a, large, cudaMemcpyDeviceToDevice); });
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGetLastError());
  printf("{\"shared_atomics_per_s\":%.4g,\"shared_rows_per_s\":%.4g,\"logic_per_s\":%.4g,", adds, reads, logics);
  if (has[1]) printf("\"matrix_per_s\":%.4g,", products);
  printf("\"l2_bytes_per_s\":%.4g,\"hbm_bytes_per_s\":%.4g,\"source\":\"limits.cu on %s, same run\"}\n",
         l2, copy, p.name);
}
