// Bound and recount: bound.cuh says what they do and where things lie.
//
// How bound_match keeps the tensor cores busy. A k-step of a tile and a query block takes them 64 clocks, and all else must
// fit beside that. Masks stay in shared memory for the whole launch. Codes come from global memory straight into the
// registers that the matrix instruction reads: a lane loads 16 bytes, which are its words of 8 k-steps, and makes a word of a
// byte by one or two shifts. So there is no producer, no ring and no barrier: a group of four warps works alone, on its own
// tiles, and while one group is at the end of a tile the others go on. One group keeps the tensor cores busy for 75 % of the
// time, four for 96 %, which is what registers allow. Every chunk of 8 k-steps ends by awaiting its products: where
// registers of operands are written while products of another turn of a loop are in flight, the compiler serialises all.
#include "barrier.cuh"
#include "block.cuh"
#include "bound.cuh"
#include "bound_recount.cuh"
#include "mma.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kGroups = 4;  // of four warps
constexpr uint32_t kMatchThreads = kGroups * 128;

struct Shared {
  int negated[kBoundQueries];  // thresholds
  Barrier masks;                // have been copied
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr int kTogether = 2;          // k-steps whose words are made together
constexpr int kNever = -(1 << 30);  // a threshold that no count reaches, negated

// Has the copy engine copy masks, which completes a phase of the barrier.
__device__ __forceinline__ void copyMasks(uint8_t* to, const uint8_t* from, uint32_t bytes, Barrier& done) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(sharedAddress(&done)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   sharedAddress(to)),
               "l"(from), "r"(bytes), "r"(sharedAddress(&done))
               : "memory");
}

// 1 << code % 32
__device__ __forceinline__ uint32_t bitOf(uint32_t code) {
  uint32_t bit;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(bit) : "r"(0), "r"(1), "r"(code));
  return bit;
}

// What a lane holds of its two rows.
struct Words {
  uint32_t row[2][4];
  __device__ __forceinline__ void load(const uint8_t* at, uint32_t rowBytes) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(at + h * 8 * rowBytes));
      row[h][0] = v.x, row[h][1] = v.y, row[h][2] = v.z, row[h][3] = v.w;
    }
  }
  // Register i of the operand of k-step s: row half i % 2, word half i / 2.
  __device__ __forceinline__ uint32_t operand(int s, int i) const {
    const int byte = 2 * s + i / 2;
    return bitOf(row[i % 2][byte / 4] >> byte % 4 * 8);
  }
};

struct Match {
  const BoundMatch& f;
  Shared& shared;
  const uint32_t shift = markShift(f.objects);
  const uint32_t lane = laneOf(), warp = warpOf() % 4;
  uint64_t masks;  // matrix descriptor of k-step 0
  int counts[kGroupSums];

  __device__ Match(const BoundMatch& bound, const uint8_t* memory, Shared& s) : f(bound), shared(s) {
    masks = matrixOf(memory, kBoundStepBytes / 2, 128);
  }

  // LAST: k-steps of the last chunk of a row.
  template <int LAST>
  __device__ __forceinline__ void run() {
    const uint32_t tiles = (f.objects + kBoundTile - 1) / kBoundTile, stride = gridDim.y * kGroups;
    const uint32_t before = f.rowBytes / kBoundChunk - 1;  // chunks before the last
    uint32_t tile = blockIdx.y + threadIdx.x / 128 * gridDim.y;
    if (tile >= tiles) return;
    const size_t tileBytes = size_t{kBoundTile} * f.rowBytes, nextTile = stride * tileBytes - before * kBoundChunk;
    const uint8_t* at =
        f.codes + (size_t{f.firstObject} + warp * 16 + lane / 4) * f.rowBytes + tile * tileBytes + lane % 4 * 16;
    Words next;
    next.load(at, f.rowBytes);
    Barrier::wait(sharedAddress(&shared.masks), 0);
    for (; tile < tiles; tile += stride) {
      begin();
      uint64_t step = masks;
#pragma unroll 1
      for (uint32_t chunk = 0; chunk < before; chunk++) {
        const Words now = next;
        at += kBoundChunk;
        next.load(at, f.rowBytes);
        add<8>(now, step);
        step += 8 * (kBoundStepBytes >> 4);
      }
      const Words now = next;
      if (tile + stride < tiles) at += nextTile;  // else they are loaded again
      next.load(at, f.rowBytes);
      add<LAST>(now, step);
      mark(tile);
      __syncwarp();  // lanes have marked for different queries; the next products want the warp together
    }
  }

  // Adds the columns of some k-steps, the first of a chunk.
  template <int STEPS>
  __device__ __forceinline__ void add(const Words& words, uint64_t step) {
#pragma unroll
    for (int s = 0; s < STEPS; s += kTogether) {
      uint32_t operands[kTogether][4];
#pragma unroll
      for (int e = 0; e < kTogether; e++)
#pragma unroll
        for (int i = 0; i < 4; i++) operands[e][i] = words.operand(s + e, i);
      beginProducts();
#pragma unroll
      for (int e = 0; e < kTogether; e++) multiplyBits(counts, operands[e], step + (s + e) * (kBoundStepBytes >> 4));
      commitProducts();
      awaitProducts<1>();  // so that the registers of the words before can be written again
    }
    awaitProducts<0>();
  }

  // Sets the counts to what they are above the thresholds.
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int j = 0; j < kGroupSums / 4; j++) {
      const int2 v = *reinterpret_cast<const int2*>(&shared.negated[j * 8 + lane % 4 * 2]);
      counts[j * 4] = counts[j * 4 + 2] = v.x;
      counts[j * 4 + 1] = counts[j * 4 + 3] = v.y;
    }
  }

  // Marks the objects whose counts are not negative.
  __device__ __forceinline__ void mark(uint32_t tile) {
    int all = -1;
#pragma unroll
    for (int i = 0; i < kGroupSums; i++) all &= counts[i];
    if (all < 0) return;  // all are negative: nearly always
    uint32_t* const marks = f.marks + size_t{blockIdx.x * kBoundQueries + lane % 4 * 2} * kMarkWords;
    const uint32_t mark = markOrder(tile * kBoundTile + warp * 16 + lane / 4) >> shift, other = mark + (1 >> shift);
#pragma unroll
    for (int j = 0; j < kGroupSums / 4; j++) {
      if ((counts[j * 4] & counts[j * 4 + 1] & counts[j * 4 + 2] & counts[j * 4 + 3]) < 0) continue;
#pragma unroll
      for (int q = 0; q < 2; q++) {
        const bool first = counts[j * 4 + q] >= 0, second = counts[j * 4 + 2 + q] >= 0;
        if (first || second)
          atomicOr(marks + (j * 8 + q) * kMarkWords + mark / 32,
                   uint32_t{first} << mark % 32 | uint32_t{second} << other % 32);
      }
    }
  }
};

#endif

}  // namespace

// blockIdx.x is the query block; blocks that differ in blockIdx.y share its objects.
extern "C" __global__ void __launch_bounds__(kMatchThreads, 1) bound_match(const __grid_constant__ BoundMatch f) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  if (blockIdx.y * kBoundTile >= f.objects) return;  // else some group awaits the copy before the block ends
  const uint32_t bytes = f.kSteps * kBoundStepBytes, first = blockIdx.x * kBoundQueries;
  Shared& shared = *reinterpret_cast<Shared*>(memory + bytes);
  if (threadIdx.x == 0) {
    shared.masks.init(1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    copyMasks(memory, f.masks + size_t{blockIdx.x} * bytes, bytes, shared.masks);
  }
  for (uint32_t i = threadIdx.x; i < kBoundQueries; i += kMatchThreads)
    shared.negated[i] = first + i >= f.queriesOfBatch
                            ? kNever
                            : -int(min(f.states[f.firstQuery + first + i].threshold, uint32_t(-kNever)));
  __syncthreads();
  Match match(f, memory, shared);
  switch (f.kSteps % 8) {
    case 0: return match.run<8>();
    case 2: return match.run<2>();
    case 4: return match.run<4>();
    default: return match.run<6>();
  }
#endif
}

extern "C" __device__ const uint32_t bound_match_threads = kMatchThreads;
extern "C" __device__ const uint32_t bound_match_shared = sizeof(Shared);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __device__ const uint32_t bound_match_queries = kBoundQueries;
#else
extern "C" __device__ const uint32_t bound_match_queries = 0;
#endif

// blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kRecountThreads, kRecountBlocks)
    bound_recount(const __grid_constant__ BoundMatch f) {
  __shared__ Recount<false>::Shared shared;
  Recount<false>(f, shared, {}).run();
}

extern "C" __device__ const uint32_t bound_recount_threads = kRecountThreads;

}  // namespace geniemq
