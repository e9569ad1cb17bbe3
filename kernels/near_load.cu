// What is derived of a column when it is loaded for searches by distance, where a thread owns an object, and of queries, where a warp owns one.
#include "near_sieve.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kThreads = 256;

__device__ __forceinline__ uint32_t objectOf() { return blockIdx.x * kThreads + threadIdx.x; }

// An element as the sieve takes it, but for the scale: over the norm for angles, less the mean.
__device__ __forceinline__ double moved(const NearLoad& v, uint32_t object, uint32_t e, double norm) {
  double x = elementOf(v.rows, v.storage, size_t{object} * v.dims + e);
  if (v.norms != nullptr) x = __ddiv_rn(x, norm);
  return __dsub_rn(x, __ldg(v.mean + e));
}

// The float16 nearest to a number of at most 65,504 in size.
__device__ __forceinline__ uint32_t halfOf(double x) {
  const uint64_t bits = uint64_t(__double_as_longlong(fabs(x)));
  const int exponent = max(int(bits >> 52) - 1023, -14);  // below 2^-14 they are evenly spaced
  const double scale = __longlong_as_double((long long)(1023 + 10 - exponent) << 52);
  const uint32_t steps = __double2uint_rn(fabs(x) * scale);  // of 2^(exponent - 10): what is rounded up to the next power of two carries
  return min(steps + (uint32_t(exponent + 14) << 10), 0x7bffu) | (x < 0 ? 0x8000u : 0u);
}

__device__ __forceinline__ double normOf(const NearLoad& v, uint32_t object) { return v.norms != nullptr ? v.norms[object] : 0; }

__device__ __forceinline__ bool isThere(const NearLoad& v, uint32_t object) { return v.present == nullptr || hasBit(v.present, object); }

// bound.Up: what a root or a sum of squares is multiplied by, to be no less than the truth; 2 less that, to be no more. Both are exact.
__device__ __forceinline__ double upOf(uint32_t dims) { return 1 + double(dims + 8) * 0x1p-52; }

// bound.Remainder: the sum of three terms, made no less than the truth.
__device__ __forceinline__ double remainderOf(double rest, double size, double wrong, uint32_t dims) {
  return (__dsqrt_rn(rest) * upOf(dims) + __dsqrt_rn(size) * upOf(dims) * 0x1p-52 + wrong) * (1 + 0x1p-49);
}

// What words are made of, by element; kElements of them are a word. What is lost by it, in steps, is summed up, or the largest. Damaged: some are no finite numbers.
struct Few {
  double lost = 0;
  bool damaged = false;
};

// bound.Level.
template <bool LARGEST>
struct Bytes : Few {
  static constexpr uint32_t kElements = 4, kNever = kSieveNever, kDamaged = uint32_t(-kSieveNever);
  static constexpr bool kLargest = LARGEST;

  __device__ __forceinline__ uint32_t of(double x, double scale, double low) {
    const double y = __dmul_rn(x, scale), z = __dsub_rn(y, low);
    damaged |= !(fabs(z) <= 0x1.fffffffffffffp1023);
    if (!(z > 0)) return 0;
    if (z > 255) return 255;
    const double whole = rint(z), back = __dsub_rn(z, y), wrong = __dsub_rn(__dsub_rn(y, __dsub_rn(z, back)), __dadd_rn(low, back));
    const double own = __dadd_rn(fabs(__dsub_rn(z, whole)), fabs(wrong));
    lost = LARGEST ? fmax(lost, own) : __dadd_rn(lost, own);
    return uint32_t(whole);
  }
};

// bound.Code.
struct Codes : Few {
  static constexpr uint32_t kElements = 4, kNever = kSieveNever, kDamaged = 0;
  static constexpr bool kLargest = true;

  __device__ __forceinline__ uint32_t of(double x, double, double) {
    if (x >= 0 && x < 128 && x == rint(x)) return uint32_t(x);
    const uint64_t bits = uint64_t(__double_as_longlong(__dadd_rn(x, 0.0)));
    return (uint32_t(bits) ^ uint32_t(bits >> 32)) * 0x9e3779b1u >> 25;
  }
};

// Float32s, times a power of two.
struct Floats : Few {
  static constexpr uint32_t kElements = 1, kNever = 0x7f800000, kDamaged = 0;
  static constexpr bool kLargest = true;

  __device__ __forceinline__ uint32_t of(double x, double scale, double) { return __float_as_uint(__double2float_rn(__dmul_rn(x, scale))); }
};

// A word of the elements from one on.
template <class Made, class Element>
__device__ __forceinline__ uint32_t wordOf(Made& made, uint32_t first, uint32_t dims, double scale, const double* mean, Element element) {
  uint32_t word = 0;
#pragma unroll
  for (uint32_t j = 0; j < Made::kElements; j++)
    if (first + j < dims) word |= made.of(element(first + j), scale, __ldg(mean + first + j)) << 32 / Made::kElements % 32 * j;
  return word;
}

// What a sieve of float16s wants of a query.
__device__ __forceinline__ void askHalves(const NearAsk& v, uint32_t q, const float* asked, double norm) {
  const NearPieces pieces(q, v.queriesOfBatch);
  uint16_t* const few = reinterpret_cast<uint16_t*>(v.few) + pieces.begin(v.steps * 2) * 8;
  double rest = 0, size = 0, square = 0;
  bool damaged = false;
  for (uint32_t e = laneOf(); e < v.steps * 16; e += 32) {
    double x = 0;
    if (e < v.dims) {
      x = double(__ldg(asked + e));
      if (v.angles) x = __ddiv_rn(x, norm);
      x = __dmul_rn(__dsub_rn(x, __ldg(v.mean + e)), v.scale);
    }
    const bool fits = fabs(x) <= 65504.0;
    damaged |= !fits;
    const uint32_t half = fits ? halfOf(x) : 0;
    const double kept = floatOf(half), d = __dsub_rn(x, kept);
    rest = __dadd_rn(rest, __dmul_rn(d, d));
    size = __dadd_rn(size, __dmul_rn(x, x));
    square = __dadd_rn(square, __dmul_rn(kept, kept));
    few[pieces.at(e / 8, q) * 8 + e % 8] = uint16_t(half);
  }
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) {
    rest = __dadd_rn(rest, __shfl_xor_sync(~0u, rest, d));
    size = __dadd_rn(size, __shfl_xor_sync(~0u, size, d));
    square = __dadd_rn(square, __shfl_xor_sync(~0u, square, d));
  }
  damaged = __any_sync(~0u, damaged);
  if (laneOf() != 0) return;
  v.sieved[q] = {__dsqrt_rn(square) * upOf(v.dims), square * (2 - upOf(v.dims)), remainderOf(rest, size, v.wrong, v.dims)};
  if (damaged) v.states[q].given = 1;
}

// The same of words. None is damaged: what is asked has been checked.
template <class Made>
__device__ __forceinline__ void askWords(const NearAsk& v, uint32_t q, const float* asked) {
  const NearPieces pieces(q, v.queriesOfBatch);
  uint32_t* const few = v.few + pieces.begin(v.steps);
  Made made;
  for (uint32_t step = laneOf(); step < v.steps; step += 32)
    few[pieces.at(step, q)] = wordOf(made, step * Made::kElements, v.dims, v.scale, v.mean, [&](uint32_t e) { return double(__ldg(asked + e)); });
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) {
    const double other = __shfl_xor_sync(~0u, made.lost, d);
    made.lost = Made::kLargest ? fmax(made.lost, other) : __dadd_rn(made.lost, other);
  }
  if (laneOf() == 0) v.sieved[q] = {0, 0, (made.lost + v.wrong) * upOf(v.dims)};
}

// Words of objects, and what their sums begin with: the sum of what bytes lose. Memory was cleared before. Of what else is lost the largest of all objects is kept.
template <class Made>
__device__ __forceinline__ void makeWords(const NearLoad& v) {
  const uint32_t object = objectOf();
  if (object >= (v.objects + kSieveObjects - 1) / kSieveObjects * kSieveObjects) return;  // whole warps
  Made made;
  if (object >= v.objects || !isThere(v, object)) {
    v.begins[object] = Made::kNever;
  } else {
    for (uint32_t step = 0; step * Made::kElements < v.dims; step++) {
      const uint32_t word = wordOf(made, step * Made::kElements, v.dims, v.scale, v.mean, [&](uint32_t e) { return elementOf(v.rows, v.storage, size_t{object} * v.dims + e); });
      reinterpret_cast<uint32_t*>(v.few)[(size_t{object / 8} * v.steps + step) * 8 + object % 8] = word;
    }
    v.begins[object] = made.damaged ? Made::kDamaged : Made::kLargest ? 0 : uint32_t(-int(ceil(made.lost * upOf(v.dims))));
  }
  if (!Made::kLargest) return;
  double lost = made.lost;
#pragma unroll
  for (uint32_t d = 16; d > 0; d /= 2) lost = fmax(lost, __shfl_xor_sync(~0u, lost, d));
  if (laneOf() == 0 && lost > 0) atomicMax(reinterpret_cast<unsigned long long*>(v.largest), (unsigned long long)__double_as_longlong(lost));
}

}  // namespace

// The norms of objects, to the bit those of index/metric.
extern "C" __global__ void __launch_bounds__(kThreads) near_norms(const NearLoad v) {
  const uint32_t object = objectOf();
  if (object >= v.objects) return;
  double sums[kNearTerms] = {};
  for (uint32_t first = 0; first < v.dims; first += kNearTerms) {
#pragma unroll
    for (uint32_t j = 0; j < kNearTerms; j++) {
      const double x = first + j < v.dims ? elementOf(v.rows, v.storage, size_t{object} * v.dims + first + j) : 0.0;
      NearDots::add(sums[j], x, x, 0);
    }
  }
  const double sum = __dadd_rn(__dadd_rn(__dadd_rn(sums[0], sums[1]), __dadd_rn(sums[2], sums[3])),
                               __dadd_rn(__dadd_rn(sums[4], sums[5]), __dadd_rn(sums[6], sums[7])));
  v.norms[object] = __dsqrt_rn(sum);
}

// The size of the largest element that the sieve takes; what is damaged does not count.
extern "C" __global__ void __launch_bounds__(kThreads) near_size(const NearLoad v) {
  const uint32_t object = objectOf();
  double largest = 0;
  if (object < v.objects && isThere(v, object)) {
    const double norm = normOf(v, object);
    for (uint32_t e = 0; e < v.dims; e++) {
      const double x = fabs(moved(v, object, e, norm));
      if (x > largest && x < __longlong_as_double(0x7ff0000000000000ll)) largest = x;
    }
  }
  uint64_t bits = uint64_t(__double_as_longlong(largest));
#pragma unroll
  for (int d = 16; d > 0; d /= 2) bits = max(bits, __shfl_xor_sync(~0u, bits, d));
  if (laneOf() == 0) atomicMax(reinterpret_cast<unsigned long long*>(v.largest), (unsigned long long)bits);
}

// The float16s of objects, and what is known of them (bound.Remainder, bound.Up, bound.Down). Memory was cleared before.
template <bool PRODUCTS>
__device__ __forceinline__ void makeHalves(const NearLoad& v) {
  const uint32_t object = objectOf();
  if (object >= (v.objects + kSieveObjects - 1) / kSieveObjects * kSieveObjects) return;
  if (object >= v.objects || !isThere(v, object)) {
    v.begins[object] = 0xff800000;
    return;
  }
  const double norm = normOf(v, object);
  double rest = 0, size = 0, square = 0;
  bool damaged = false;
  for (uint32_t e = 0; e < v.dims; e++) {
    const double x = __dmul_rn(moved(v, object, e, norm), v.scale);
    damaged |= !(fabs(x) <= 65504.0);
    const uint32_t few = damaged ? 0 : halfOf(x);
    const double kept = floatOf(few), d = __dsub_rn(x, kept);
    rest = __dadd_rn(rest, __dmul_rn(d, d));
    size = __dadd_rn(size, __dmul_rn(x, x));
    square = __dadd_rn(square, __dmul_rn(kept, kept));
    const uint32_t row = object % 16, column = e % 16;
    const size_t block = size_t{object / 16} * v.steps + e / 16;
    const uint32_t lane = row % 8 * 4 + column % 8 / 2, part = row / 8 + 2 * (column / 8);
    reinterpret_cast<uint16_t*>(v.few)[((block * 32 + lane) * 4 + part) * 2 + column % 2] = uint16_t(few);
  }
  if (damaged) {
    v.begins[object] = 0x7fc00000;
    return;
  }
  const double up = upOf(v.dims), remainder = remainderOf(rest, size, v.wrong, v.dims);
  v.begins[object] = PRODUCTS ? 0 : __float_as_uint(-__double2float_rd(square * (2 - up) / (2 * (1 + v.gamma)) * (1 - 0x1p-50)));
  NearReach& reach = v.reaches[object / kTileObjects];
  atomicMax(reinterpret_cast<unsigned long long*>(&reach.norm), (unsigned long long)__double_as_longlong(__dsqrt_rn(square) * up));
  atomicMax(reinterpret_cast<unsigned long long*>(&reach.remainder), (unsigned long long)__double_as_longlong(remainder));
}

#define GENIEMQ_NEAR_HALVES(name, PRODUCTS) \
  extern "C" __global__ void __launch_bounds__(kThreads) name(const NearLoad v) { makeHalves<PRODUCTS>(v); }
GENIEMQ_NEAR_HALVES(near_halves, false)
GENIEMQ_NEAR_HALVES(near_halves_products, true)
#undef GENIEMQ_NEAR_HALVES

#define GENIEMQ_NEAR_WORDS(name, Made) \
  extern "C" __global__ void __launch_bounds__(kThreads) name(const NearLoad v) { makeWords<Made>(v); }
GENIEMQ_NEAR_WORDS(near_bytes, Bytes<false>)
GENIEMQ_NEAR_WORDS(near_boxes, Bytes<true>)
GENIEMQ_NEAR_WORDS(near_codes, Codes)
GENIEMQ_NEAR_WORDS(near_floats, Floats)
#undef GENIEMQ_NEAR_WORDS

// Queries: float64s, norms to the bit those of index/metric, and what the sieve wants. A query that float16s do not hold is given up.
extern "C" __global__ void __launch_bounds__(kThreads) near_ask(const NearAsk v) {
  const uint32_t q = blockIdx.x * (kThreads / 32) + warpOf();
  if (q >= v.queriesOfBatch) return;
  const float* const asked = v.asked + size_t{q} * v.dims;
  for (uint32_t e = laneOf(); e < v.dims; e += 32) v.vectors[size_t{q} * v.dims + e] = double(__ldg(asked + e));
  double norm = 0;
  if (v.angles) {
    double sum = 0;
    for (uint32_t e = laneOf() % kNearTerms; e < v.dims; e += kNearTerms) NearDots::add(sum, double(__ldg(asked + e)), double(__ldg(asked + e)), 0);
#pragma unroll
    for (uint32_t d = 1; d < kNearTerms; d *= 2) sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, d));
    norm = __dsqrt_rn(sum);
    if (laneOf() == 0) v.queries[q].norm = norm;
  }
  if (v.steps == 0) return;
  switch (v.product) {
    case kNearHalves: return askHalves(v, q, asked, norm);
    case kNearBytes: return askWords<Bytes<false>>(v, q, asked);
    case kNearBoxes: return askWords<Bytes<true>>(v, q, asked);
    case kNearCodes: return askWords<Codes>(v, q, asked);
    case kNearFloats: return askWords<Floats>(v, q, asked);
  }
}

extern "C" __device__ const uint32_t near_load_threads = kThreads;

}  // namespace geniemq
