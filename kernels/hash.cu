// Hash functions of vectors: index/lsh on the device, with the same bits.
//
// What a keyword is, operation by operation, says index/lsh/block; what becomes of a bucket, index/lsh. Rows and grids lie as block.Matrix and
// block.Grids lay them, and are copied as they are. Every product and sum rounds by itself: the intrinsics below are never fused.
//
// A block owns kVectors vectors and kFunctions functions, a thread one of each; blockIdx.x counts the functions' blocks, blockIdx.y those of vectors. It takes the vectors through shared memory in pieces of kPiece elements, since they may have tens of
// thousands; rows come from the caches, where all blocks of a column want the same ones. That is enough: 1,024 queries by 237 functions of 128 dimensions are 62
// million operations, where matching them takes billions.
#include <cstdint>

namespace geniemq {

// What becomes of a bucket (lsh.Functions.Tables).
enum HashKind : uint32_t { kHashClamp, kHashRehash, kHashSign };

struct Hash {
  const float* vectors;     // count vectors of dim elements
  const float* panels;      // kernel hash_rows: rows; kernel hash_cells: grids
  const float* offsets;     // hash_rows: of each row
  const uint32_t* seeds;    // of each function; hash_rows: only where buckets are re-hashed
  const int32_t* low;       // of each function, where buckets are clamped: keyword 0
  uint32_t* keywords;       // [vector][function][asked]
  uint32_t count, dim;
  uint32_t functions, buckets;
  uint32_t asked, kind;     // asked: 1, or 2 reach + 1 where a query's buckets are re-hashed
};
static_assert(sizeof(Hash) == 72);

namespace {

constexpr uint32_t kLanes = 8;             // partial sums of a product, and grids of a panel
constexpr uint32_t kRows = 4;              // of a panel
constexpr uint32_t kVectors = 16;          // of a block
constexpr uint32_t kFunctions = 16;        // of a block
constexpr uint32_t kThreads = kVectors * kFunctions;
constexpr uint32_t kPiece = 256;           // elements
constexpr uint32_t kStride = kPiece + 4;   // floats, so that neighbouring vectors lie in other banks
constexpr float kLeast = -2147483648.0f, kMost = 2147483520.0f;
static_assert(kFunctions % kRows == 0 && kFunctions % kLanes == 0 && kPiece % kLanes == 0);

// Rounds down, to the nearest number of 32 bits.
__device__ int32_t whole(float v) { return __float2int_rz(fminf(kMost, fmaxf(kLeast, floorf(v)))); }

// MurmurHash3, x86, 32 bits.
struct Murmur3 {
  uint32_t hash;

  static __device__ uint32_t rotate(uint32_t x, uint32_t by) { return x << by | x >> (32 - by); }
  __device__ void mix(uint32_t word) {
    hash ^= rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u;
    hash = rotate(hash, 13) * 5 + 0xe6546b64u;
  }
  __device__ uint32_t finish(uint32_t words) const {
    uint32_t h = hash ^ 4 * words;
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
  }
};

// A hash becomes a keyword.
__device__ uint32_t keywordOf(uint32_t hash, uint32_t buckets) { return uint32_t(uint64_t(hash) * buckets >> 32); }

// What a thread has to do, and its block's vectors in shared memory.
struct Block {
  const Hash& h;
  float (&piece)[kVectors][kStride];
  uint32_t vector, function, firstVector;

  __device__ Block(const Hash& hash, float (&shared)[kVectors][kStride])
      : h(hash), piece(shared), vector(threadIdx.x / kFunctions), function(blockIdx.x * kFunctions + threadIdx.x % kFunctions),
        firstVector(blockIdx.y * kVectors) {}

  // Loads elements first .. of all vectors, zeros where there are none. Returns how many, filled up to whole groups of kLanes.
  __device__ uint32_t load(uint32_t first) {
    const uint32_t width = min(kPiece, (h.dim - first + kLanes - 1) / kLanes * kLanes);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kVectors * width; i += kThreads) {
      const uint32_t v = i / width, e = i % width;
      const bool there = firstVector + v < h.count && first + e < h.dim;
      piece[v][e] = there ? __ldg(h.vectors + size_t(firstVector + v) * h.dim + first + e) : 0.0f;
    }
    __syncthreads();
    return width;
  }
  __device__ bool owns() const { return firstVector + vector < h.count && function < h.functions; }
  __device__ uint32_t* out() const { return h.keywords + (size_t(firstVector + vector) * h.functions + function) * h.asked; }
};

// Adds four products to four sums.
__device__ void add(float* s, const float4& a, const float4& b) {
  s[0] = __fadd_rn(s[0], __fmul_rn(a.x, b.x));
  s[1] = __fadd_rn(s[1], __fmul_rn(a.y, b.y));
  s[2] = __fadd_rn(s[2], __fmul_rn(a.z, b.z));
  s[3] = __fadd_rn(s[3], __fmul_rn(a.w, b.w));
}

// Writes the keywords of a bucket.
__device__ void put(const Block& block, int32_t bucket) {
  const Hash& h = block.h;
  uint32_t* out = block.out();
  switch (h.kind) {
    case kHashSign:
      *out = bucket >= 0;
      break;
    case kHashClamp: {
      const int64_t keyword = int64_t(bucket) - h.low[block.function];
      *out = uint32_t(min(max(keyword, int64_t(0)), int64_t(h.buckets) - 1));
      break;
    }
    case kHashRehash:
      for (uint32_t j = 0; j < h.asked; j++) {  // 0, -1, 1, -2, 2, ...
        const uint32_t step = (j + 1) / 2;
        Murmur3 m{h.seeds[block.function]};
        m.mix(uint32_t(bucket) + (j % 2 ? 0 - step : step));
        out[j] = keywordOf(m.finish(1), h.buckets);
      }
  }
}

}  // namespace

// l2, l1 and cosine. blockIdx.x counts functions, blockIdx.y vectors.
extern "C" __global__ void __launch_bounds__(kThreads) hash_rows(const Hash h) {
  __shared__ __align__(16) float shared[kVectors][kStride];
  Block block(h, shared);
  // Threads of rows that are not there compute with those of the last panel, and write nothing.
  const uint32_t row = min(block.function, h.functions - 1);
  const uint32_t groups = (h.dim + kLanes - 1) / kLanes;
  const float* panel = h.panels + size_t(row / kRows) * groups * kRows * kLanes + row % kRows * kLanes;
  float s[kLanes] = {};
  for (uint32_t first = 0; first < h.dim; first += kPiece) {
    const uint32_t width = block.load(first);
    for (uint32_t e = 0; e < width; e += kLanes, panel += kRows * kLanes) {
      const float4* x = reinterpret_cast<const float4*>(&block.piece[block.vector][e]);
      add(s, __ldg(reinterpret_cast<const float4*>(panel)), x[0]);
      add(s + kLanes / 2, __ldg(reinterpret_cast<const float4*>(panel) + 1), x[1]);
    }
  }
  if (!block.owns()) return;
  const float low = __fadd_rn(__fadd_rn(s[0], s[1]), __fadd_rn(s[2], s[3]));
  const float high = __fadd_rn(__fadd_rn(s[4], s[5]), __fadd_rn(s[6], s[7]));
  put(block, whole(__fadd_rn(__fadd_rn(low, high), h.offsets[row])));
}

// laplacian. blockIdx.x counts functions, blockIdx.y vectors.
extern "C" __global__ void __launch_bounds__(kThreads) hash_cells(const Hash h) {
  __shared__ __align__(16) float shared[kVectors][kStride];
  Block block(h, shared);
  const uint32_t grid = min(block.function, h.functions - 1);
  const float* panel = h.panels + size_t(grid / kLanes) * h.dim * 2 * kLanes + grid % kLanes;
  Murmur3 m{h.seeds[grid]};
  for (uint32_t first = 0; first < h.dim; first += kPiece) {
    const uint32_t width = min(block.load(first), h.dim - first);
    for (uint32_t e = 0; e < width; e++, panel += 2 * kLanes)
      m.mix(uint32_t(whole(__fadd_rn(__fmul_rn(block.piece[block.vector][e], __ldg(panel)), __ldg(panel + kLanes)))));
  }
  if (block.owns()) *block.out() = keywordOf(m.finish(h.dim), h.buckets);
}

extern "C" __device__ const uint32_t hash_threads = kThreads, hash_functions = kFunctions, hash_vectors = kVectors;

}  // namespace geniemq
