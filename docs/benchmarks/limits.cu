// Measures the rates that bound matching and prints them as JSON, for `geniemq bench engine --limits`.
//   nvcc -O3 -arch=native limits.cu -o limits && ./limits
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { fprintf(stderr, "%s: %s\n", #x, cudaGetErrorString(e)); return 1; } } while (0)

constexpr int kAdds = 4096, kLoads = 8192, kLogic = 65536;  // a thread

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
  printf("{\"shared_atomics_per_s\":%.4g,\"shared_rows_per_s\":%.4g,\"logic_per_s\":%.4g,\"l2_bytes_per_s\":%.4g,\"hbm_bytes_per_s\":%.4g,\"source\":\"limits.cu on %s, same run\"}\n",
         adds, reads, logics, l2, copy, p.name);
}
