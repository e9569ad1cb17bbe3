// The sieve's differences of bytes (near_sieve.cu) by binary tensor cores first, where a device has such products: capability 9.0.
//
// A byte b has a level, b / 8, of which the middle is no farther than 3.5 from it. Of levels m the word ~0 << m has 32 - m bits, and two words have 32 - max(m, n) in
// common, so that products of bits add up the larger ones, and |m - n| = 2 max(m, n) - m - n. By the triangle inequality the sum H of the absolute differences of bytes is
//
//   2 H >= 16 sum |m - n| - lost(object) - lost(query), lost the sum of |2 (b mod 8) - 7|.
//
// An object passes near_sieve.cu where begin + H is no larger than the query's floor. So it cannot where fewer than (X + Y) / 16 bits are in common, of elements filled up:
//
//   X = begin - 8 sum m - lost / 2 of the object (near_levels_of; a sixteenth is kept, rounded down), Y = 512 elements - 8 sum n - lost / 2 - floor of the query.
//
// What this leaves, some in a thousand, is compared by its bytes here, so that lists are those of near_sieve.cu.
//
// A product of 64 objects and all queries of a block takes tensor cores 64 clocks for 8 elements, where absolute differences take four times as long. A lane makes the words of
// its two rows from bytes as bound_match.cu does, with two shifts each; their elements are dealt out so that it loads four bytes for a word of each of four products.
//
// In early waves much is left, and near_sieve.cu is faster (profile.NearWaves.Levelled), and so it is for few elements (LevelSteps).
#include "mma.cuh"
#include "near_product.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kLevelThreads = 4 * 128;           // groups of four warps
constexpr uint32_t kProducts = 4;                     // that are added between two loads
constexpr uint32_t kWordsBytes = kSieveQueries * 32;  // of queries, for a product: [half][query] 16 bytes

// Of four bytes: the sum of their levels, and what is lost by them.
__device__ __forceinline__ int levelsOf(uint32_t bytes, int sum) { return int(__dp4a(bytes >> 3 & 0x1f1f1f1fu, 0x01010101u, uint32_t(sum))); }
__device__ __forceinline__ int lostOf(uint32_t bytes, int sum) { return differ((bytes & 0x07070707u) << 1, 0x07070707u, sum); }

// Where step s of an object lies among words.
__device__ __forceinline__ size_t wordOf(uint32_t object, uint32_t steps, uint32_t s) { return (size_t{object / 8} * steps + s) * 8 + object % 8; }

struct alignas(8) AskedBytes {  // pairs of `least` are read at once
  int floors[kSieveQueries];
  uint32_t passing[kSieveQueries];
  int least[kSieveQueries];  // Y / 16, rounded down
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr uint32_t kRows = 16;             // objects of a warp
constexpr uint32_t kLoad = 2 * kProducts;  // steps of four bytes that the products between two loads have

// ~0 << n % 32
__device__ __forceinline__ uint32_t above(uint32_t n) {
  uint32_t word;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(0), "r"(~0), "r"(n));
  return word;
}

struct Levels {
  const NearLevels& v;
  const NearSieve& sieve;
  AskedBytes& asked;
  const uint32_t* const few;
  const uint32_t first;  // query
  const NearPieces pieces;
  const uint32_t* const queries;
  const uint32_t loads = (sieve.steps + kLoad - 1) / kLoad, lane = laneOf();

  __device__ Levels(const NearLevels& levels, AskedBytes& s)
      : v(levels), sieve(levels.sieve), asked(s), few(reinterpret_cast<const uint32_t*>(levels.sieve.few)), first(levels.sieve.near.firstQuery + blockIdx.x * kSieveQueries),
        pieces(first, levels.sieve.near.queriesOfBatch), queries(levels.sieve.queries + pieces.begin(levels.sieve.steps)) {}

  // Four bytes of a query of the block; of none there are none.
  __device__ __forceinline__ uint32_t bytesOf(uint32_t q, uint32_t s) const {
    return q < pieces.queries && s < sieve.steps ? __ldg(queries + pieces.at(s, q)) : 0;
  }

  // What is known of queries, and their words: [product][half][query] 16 bytes. A product has two bytes of each of four steps: one a word of the first half, one of the other.
  __device__ void prepare(uint8_t* memory) {
    const Wanted wanted(sieve, first);
    if (threadIdx.x < kSieveQueries) {
      asked.floors[threadIdx.x] = wanted.any ? bytesFloorOf(sieve, wanted.limit, wanted.sieved) : -2 * kSieveNever;
      asked.passing[threadIdx.x] = wanted.passing, asked.least[threadIdx.x] = 0;
    }
    __syncthreads();
    {
      const uint32_t q = threadIdx.x % kSieveQueries;
      int levels = 0, lost = 0;
      for (uint32_t s = threadIdx.x / kSieveQueries; s < sieve.steps; s += kLevelThreads / kSieveQueries) {
        const uint32_t bytes = bytesOf(q, s);
        levels = levelsOf(bytes, levels), lost = lostOf(bytes, lost);
      }
      atomicAdd(&asked.least[q], -16 * levels - lost);
    }
    constexpr uint32_t kPiece = 2 * kSieveQueries;  // 16 bytes each
    for (uint32_t i = threadIdx.x; i < loads * kProducts * kPiece; i += kLevelThreads) {
      const uint32_t product = i / kPiece, byte = product % 2 * 2 + i / kSieveQueries % 2, q = i % kSieveQueries;
      uint32_t word[4];
#pragma unroll
      for (uint32_t t = 0; t < 4; t++) {
        const uint32_t s = product / 2 * 4 + t;
        word[t] = q < pieces.queries && s < sieve.steps ? above(bytesOf(q, s) >> (byte * 8 + 3)) : 0;
      }
      reinterpret_cast<uint4*>(memory)[i] = {word[0], word[1], word[2], word[3]};
    }
    showProducts();
    __syncthreads();
    if (threadIdx.x < kSieveQueries)
      asked.least[threadIdx.x] = int((int64_t{asked.least[threadIdx.x]} + 2 * (2048 * int64_t{sieve.steps} - asked.floors[threadIdx.x])) >> 5);
    __syncthreads();
  }

  // Words of the lane's two rows: of each four steps the lane % 4-th one.
  struct Bytes {
    uint32_t row[2][2];
  };
  __device__ __forceinline__ Bytes load(const uint32_t* at, uint32_t s) const {
    Bytes b;
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
      const bool there = s + i * 4 + lane % 4 < sieve.steps;
      b.row[0][i] = there ? __ldg(at + i * 32) : 0;
      b.row[1][i] = there ? __ldg(at + i * 32 + size_t{sieve.steps} * 8) : 0;
    }
    return b;
  }

  __device__ void run(const uint8_t* memory) {
    const Stretch stretch(sieve);
    const uint32_t from = stretch.from, to = stretch.to;
    constexpr uint32_t kStride = kLevelThreads / 32 * kRows;
    const uint32_t behind = warpOf() % 4 * kRows;  // the group's first object; what is beyond `to` is there, and not listed
    const uint64_t words = matrixOf(memory, kWordsBytes / 2, 128);
    for (uint32_t object = from + warpOf() * kRows; object - behind < to; object += kStride) {
      const uint32_t* at = few + wordOf(object, sieve.steps, lane % 4) + lane / 4;
      Bytes next = load(at, 0);
      int sums[kGroupSums];
      begin(sums, object);
      uint64_t word = words;
#pragma unroll 1
      for (uint32_t s = 0; s < sieve.steps; s += kLoad) {
        const Bytes now = next;
        at += kLoad * 8;
        next = load(at, s + kLoad);
        add(sums, now, word);
        word += kProducts * (kWordsBytes >> 4);
      }
      int all = -1;
#pragma unroll
      for (int i = 0; i < kGroupSums; i++) all &= sums[i];
      if (!__any_sync(~0u, all >= 0)) continue;
      uint64_t passed = 0;
#pragma unroll
      for (uint32_t half = 0; half < 2; half++) {
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t i = 0; i < 32; i++) bits |= sums[half * 32 + i] >= 0 ? 1u << i : 0u;
        passed |= uint64_t{bits} << 32 * half;
      }
      compare(passed, object);
      __syncwarp();  // the next products want the warp together
    }
  }

  // Sums begin with what is too few.
  __device__ __forceinline__ void begin(int (&sums)[kGroupSums], uint32_t object) const {
    const int x[2] = {-__ldg(v.least + object + lane / 4), -__ldg(v.least + object + lane / 4 + 8)};
#pragma unroll
    for (uint32_t j = 0; j < kGroupSums / 4; j++) {
      const int2 y = *reinterpret_cast<const int2*>(&asked.least[j * 8 + lane % 4 * 2]);
      sums[j * 4] = x[0] - y.x, sums[j * 4 + 1] = x[0] - y.y;
      sums[j * 4 + 2] = x[1] - y.x, sums[j * 4 + 3] = x[1] - y.y;
    }
  }

  __device__ __forceinline__ void add(int (&sums)[kGroupSums], const Bytes& bytes, uint64_t word) const {
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
      uint32_t a[2][4];
#pragma unroll
      for (uint32_t e = 0; e < 2; e++)
#pragma unroll
        for (uint32_t r = 0; r < 4; r++) a[e][r] = above(bytes.row[r % 2][i] >> ((2 * e + r / 2) * 8 + 3));
      beginProducts();
      multiplyBits(sums, a[0], word + 2 * i * (kWordsBytes >> 4));
      multiplyBits(sums, a[1], word + (2 * i + 1) * (kWordsBytes >> 4));
      commitProducts();
      awaitProducts<1>();  // so that the registers of the words before can be written again
    }
    awaitProducts<0>();  // in the turn of the loop in which they began, see bound_match.cu
  }

  // Compares what has passed by its bytes, a pair by eight lanes, and puts what passes on lists.
  __device__ void compare(uint64_t passed, uint32_t object) const {
    for (uint32_t some; (some = __ballot_sync(~0u, passed != 0)) != 0;) {
      uint32_t owner = 32;
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        if (i == lane / 8 && some != 0) owner = __ffs(some) - 1;
        some &= some - 1;  // of none there is none
      }
      const uint32_t mine = __shfl_sync(~0u, __ffsll((long long)passed) - 1, owner % 32);
      const uint32_t drawn = __ballot_sync(~0u, lane % 8 == 0 && owner < 32);
      // Who owns a pair that is compared now: the first lanes that have some, as many as there are groups of eight.
      bool compared = false;
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) compared |= __shfl_sync(~0u, owner, i * 8) == lane;
      if (compared) passed &= passed - 1;
      const uint32_t q = mine / 4 * 8 + owner % 4 * 2 + mine % 2, row = object + mine % 4 / 2 * 8 + owner % 32 / 4;
      int sum = 0;
      if (owner < 32)
#pragma unroll 4
        for (uint32_t s = lane % 8; s < sieve.steps; s += 8) sum = differ(__ldg(few + wordOf(row, sieve.steps, s)), bytesOf(q, s), sum);
#pragma unroll
      for (uint32_t d = 1; d < 8; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
      if (drawn >> lane & 1 && sum + int(__ldg(sieve.begins + row)) <= asked.floors[q]) list(sieve, first + q, asked.passing[q], row);
    }
  }
};

#endif

}  // namespace

// X / 16 of objects, filled up to whole kSieveObjects; a thread each.
extern "C" __global__ void __launch_bounds__(kThreads) near_levels_of(const __grid_constant__ NearLevels v) {
  const uint32_t object = blockIdx.x * kThreads + threadIdx.x;
  if (object >= v.sieve.near.end) return;
  int levels = 0, lost = 0;
  for (uint32_t s = 0; s < v.sieve.steps; s++) {
    const uint32_t bytes = __ldg(reinterpret_cast<const uint32_t*>(v.sieve.few) + wordOf(object, v.sieve.steps, s));
    levels = levelsOf(bytes, levels), lost = lostOf(bytes, lost);
  }
  v.least[object] = int((2 * int64_t{int(__ldg(v.sieve.begins + object))} - 16 * int64_t{levels} - lost) >> 5);
}

extern "C" __global__ void __launch_bounds__(kLevelThreads, 1) near_levels(const __grid_constant__ NearLevels v) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint8_t memory[];
  __shared__ AskedBytes asked;
  Levels levels(v, asked);
  levels.prepare(memory);
  levels.run(memory);
#endif
}

// The shared memory of near_levels: for each product of eight elements, of which there are whole near_levels_products, and beside that.
extern "C" __device__ const uint32_t near_levels_product_bytes = kWordsBytes, near_levels_products = kProducts, near_levels_static = sizeof(AskedBytes);
extern "C" __device__ const uint32_t near_levels_of_threads = kThreads;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __device__ const uint32_t near_levels_threads = kLevelThreads;
#else
extern "C" __device__ const uint32_t near_levels_threads = 0;  // there are no such products
#endif

}  // namespace geniemq
