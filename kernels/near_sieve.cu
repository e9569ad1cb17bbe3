// The sieve's product: near_sieve.cuh says what lies where.
//
// A block owns kSieveQueries queries, whose float16s it keeps in shared memory as registers want them, and a stretch of objects. A warp takes 32 objects and 64
// queries at a time: 64 sums a lane. Objects come from global memory straight into registers, 16 bytes a lane, two steps before they are wanted; so there is no
// barrier in the loop, and warps that are at the end of their objects leave the tensor cores to others. For 32 elements a pair costs the tensor cores 1/16 clock of
// a multiprocessor, so little else may be done with it: a sum begins with what is known of the object, and is compared.
//
// Of words, four bytes or a float32 each, a lane has the same number of sums, and all else is the same: a product is a struct of what differs, and one of words an Op.
//
// What passes is rare, but of the first waves; there it is what takes the time. So a lane first collects what passes of its sums, and a warp what its lanes found
// (Found).
#include "near_halves.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kAcross = kSieveQueries / (8 * kColumns);  // warps that share objects
static_assert(kWarps / kAcross * 16 * kRows == kSieveObjects);

// The same where nothing was lost: what is as far as the k-th need not be compared, of whole numbers often most of all.
__device__ int exactFloorOf(const NearSieve& v, uint64_t limit) {
  if (limit < orderedOf(0.0)) return -2 * kSieveNever;
  return __double2int_rd(fmin(fmax(0.0, valueOf(limit)) * v.scale, double(kSieveMost)));
}

// The same of powers (bound.Powers), where sums are float32s.
__device__ float powersFloorOf(const NearSieve& v, uint64_t limit, uint32_t p) {
  if (limit < orderedOf(0.0)) return -1;
  const double dims = v.near.dims, t = fmax(0.0, valueOf(limit)) * v.scale;
  return __double2float_ru((t * (1 + (dims + 2 * p) * 0x1p-23) + dims * 0x1p-146) * (1 + 0x1p-40));
}

// A product of words: what an Op makes of a word of an object and one of a query, of the sums of a lane: [rows][columns][4] of four objects and a query. A lane has 8
// objects and 8 queries of its own; lanes of 8 objects are next to each other.
template <class Op>
struct Words {
  using Sum = typename Op::Sum;
  using Column = uint32_t;  // of a query
  static constexpr uint32_t kOfQuery = Op::kOfQuery;  // words of a query for each of an object
  static constexpr uint32_t kStepColumns = kOfQuery * kSieveQueries;
  static constexpr uint32_t kStep = 2, kFloors = 1;
  static constexpr Sum kNone = Op::kNone;

  static __device__ __forceinline__ const uint4* rowsOf(const NearSieve& v, uint32_t object) {
    return reinterpret_cast<const uint4*>(v.few) + size_t{object / 8 + laneOf() / 8} * v.steps * 2;
  }
  static __device__ __forceinline__ size_t objects(uint32_t steps, uint32_t n) { return size_t{n / 8} * steps * 2; }
  static __device__ __forceinline__ void fetch(uint4 (&a)[kRows], const uint4* rows, uint32_t) {
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) a[r] = __ldg(rows + r);
  }

  using Begins = uint4[kRows];
  static __device__ __forceinline__ void fetch(Begins& begins, const uint32_t* of) {
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) begins[r] = __ldg(reinterpret_cast<const uint4*>(of + laneOf() / 8 * 8) + r);
  }
  static __device__ __forceinline__ Sum begin(const Begins& begins, uint32_t r, uint32_t i) {
    return Op::begin(i == 0 ? begins[r].x : i == 1 ? begins[r].y : i == 2 ? begins[r].z : begins[r].w);
  }

  // Queries in shared memory: [step][word][query].
  static __device__ __forceinline__ Column columnOf(const NearSieve& v, const NearPieces& pieces, uint32_t i) {
    const uint32_t step = i / kStepColumns, q = i % kSieveQueries;
    return q < pieces.queries ? __ldg(v.queries + pieces.begin(v.steps) + pieces.at(step, q)) : 0;
  }
  static __device__ __forceinline__ const Column* columnsOf(const Column* columns, uint32_t column) { return columns + column * 8 + laneOf() % 8 * 4; }

  // 8 lanes read 32 queries at once, without conflicts.
  static __device__ __forceinline__ uint32_t queryOf(uint32_t t, uint32_t) { return t / 4 * 32 + laneOf() % 8 * 4 + t % 4; }
  static __device__ __forceinline__ uint32_t objectOf(uint32_t r, uint32_t i) { return laneOf() / 8 * 8 + r * 4 + i; }

  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const Stretch&) { return Op::floorOf(v, limit, q); }
  static __device__ __forceinline__ bool passes(Sum sum, Sum floor) { return Op::passes(sum, floor); }

  template <bool FIRST>
  static __device__ __forceinline__ void multiply(Sum (&sums)[kRows][kColumns][4], const uint4 (&a)[kRows], const Column* columns, const Sum (&begin)[kRows][4]) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++)
#pragma unroll
      for (uint32_t word = 0; word < kOfQuery; word++) {
        const uint4 four = *reinterpret_cast<const uint4*>(columns + word * kSieveQueries + half * 32);
        const uint32_t b[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (uint32_t j = 0; j < 4; j++)
#pragma unroll
          for (uint32_t r = 0; r < kRows; r++) {
            const bool begins = FIRST && word == 0;
            Sum(&s)[4] = sums[r][half * 4 + j];
            s[0] = Op::add(a[r].x, b[j], begins ? begin[r][0] : s[0]);
            s[1] = Op::add(a[r].y, b[j], begins ? begin[r][1] : s[1]);
            s[2] = Op::add(a[r].z, b[j], begins ? begin[r][2] : s[2]);
            s[3] = Op::add(a[r].w, b[j], begins ? begin[r][3] : s[3]);
          }
      }
  }
};

// Sums that are whole numbers, above which an object is too far.
struct Whole {
  using Sum = int;
  static constexpr uint32_t kOfQuery = 1;
  static constexpr Sum kNone = -2 * kSieveNever;
  static __device__ __forceinline__ Sum begin(uint32_t word) { return int(word); }
  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q) { return bytesFloorOf(v, limit, q); }
  static __device__ __forceinline__ bool passes(Sum sum, Sum floor) { return sum <= floor; }
};

// Absolute differences of bytes, for l1.
struct Differences : Whole {
  static __device__ __forceinline__ Sum add(uint32_t a, uint32_t b, Sum s) { return differ(a, b, s); }
};

// Absolute differences of bytes to both ends of what a query leaves them, for linf: their sum is the widths of that where all bytes are within, and larger elsewhere. A floor is
// first how far bytes may be, and the widths' sum once those ends are in shared memory.
struct Boxes : Differences {
  static constexpr uint32_t kOfQuery = 2;
  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q) {
    return q.remainder > 0 ? bytesFloorOf(v, limit, q) : exactFloorOf(v, limit);
  }
};

// Bytes that differ, none above 127, for hamming: each is 128 of the sum.
struct Unequal : Whole {
  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved&) { return exactFloorOf(v, limit); }
  static __device__ __forceinline__ Sum add(uint32_t a, uint32_t b, Sum s) {
    return int(__dp4a(((a ^ b) + 0x7f7f7f7fu) & 0x80808080u, 0x01010101u, uint32_t(s)));
  }
};

// Powers of differences of float32s, for lp. What is NaN passes.
template <uint32_t P>
struct Powers {
  using Sum = float;
  static constexpr uint32_t kOfQuery = 1;
  static constexpr Sum kNone = -1;
  static __device__ __forceinline__ Sum begin(uint32_t word) { return __uint_as_float(word); }
  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved&) { return powersFloorOf(v, limit, P); }
  static __device__ __forceinline__ bool passes(Sum sum, Sum floor) { return !(sum > floor); }
  static __device__ __forceinline__ Sum add(uint32_t a, uint32_t b, Sum s) {
    const float d = __fsub_rn(__uint_as_float(b), __uint_as_float(a)), d2 = __fmul_rn(d, d);
    if (P == 3) return __fmaf_rn(d2, fabsf(d), s);
    if (P == 4) return __fmaf_rn(d2, d2, s);
    const float some = P == 6 || P == 7 ? __fmul_rn(d2, fabsf(d)) : __fmul_rn(d2, d2);
    return __fmaf_rn(some, P == 5 ? fabsf(d) : P == 7 ? __fmul_rn(d2, d2) : some, s);
  }
};

// The ends of what is left to each of four bytes, so far from them.
__device__ __forceinline__ uint32_t least(uint32_t bytes, uint32_t far) {
  uint32_t ends = 0;
#pragma unroll
  for (uint32_t i = 0; i < 32; i += 8) ends |= uint32_t(max(int(bytes >> i & 255) - int(far), 0)) << i;
  return ends;
}
__device__ __forceinline__ uint32_t most(uint32_t bytes, uint32_t far) {
  uint32_t ends = 0;
#pragma unroll
  for (uint32_t i = 0; i < 32; i += 8) ends |= min((bytes >> i & 255) + far, 255u) << i;
  return ends;
}

// Makes boxes in shared memory, [step][least, most][query], and floors of how far bytes may be. The block calls it together, after a barrier and before one.
__device__ void boxes(const NearSieve& v, const NearPieces& pieces, uint32_t* columns, int (&floors)[kSieveQueries]) {
  constexpr uint32_t kShares = kThreads / kSieveQueries;
  static_assert(kThreads % kSieveQueries == 0);
  const uint32_t q = threadIdx.x % kSieveQueries;
  const bool real = q < pieces.queries;
  const uint32_t* const queries = v.queries + pieces.begin(v.steps);
  const uint32_t far = uint32_t(max(0, min(255, floors[q])));
  int widths = 0;
  for (uint32_t step = threadIdx.x / kSieveQueries; step < v.steps; step += kShares) {
    const uint32_t bytes = real ? __ldg(queries + pieces.at(step, q)) : 0;
    const uint32_t lo = least(bytes, far), hi = most(bytes, far);
    uint32_t* const own = columns + step * 2 * kSieveQueries + q;
    own[0] = lo, own[kSieveQueries] = hi;
    widths = differ(hi, lo, widths);
  }
  const bool none = floors[q] == Boxes::kNone;
  __syncthreads();  // all have read how far
  if (threadIdx.x < kSieveQueries && !none) floors[q] = 0;
  __syncthreads();
  if (!none) atomicAdd(&floors[q], widths);
}
static_assert(kColumns == 8 && kRows == 2);

template <class Product>
constexpr bool isBoxes = false;
template <>
constexpr bool isBoxes<Words<Boxes>> = true;

// blockIdx.x counts blocks of queries.
template <class Product, bool SAMPLE = false>
__device__ __forceinline__ void sieve(const NearSieve& v, uint8_t* memory, Asked<Product>& asked) {
  using Sum = typename Product::Sum;
  constexpr uint32_t kStepColumns = Product::kStepColumns, kStep = Product::kStep, kFloors = Product::kFloors;
  auto* const columns = reinterpret_cast<typename Product::Column*>(memory);
  const Near& n = v.near;
  const uint32_t first = n.firstQuery + blockIdx.x * kSieveQueries;
  const Stretch stretch = SAMPLE ? Stretch::ofSample(v) : Stretch(v);
  const uint32_t from = stretch.from, to = stretch.to;
  const Wanted wanted(v, first);
  const uint32_t lane = laneOf(), warp = warpOf();
  uint32_t object = from + warp / kAcross * 16 * kRows;
  const uint4* rows = Product::rowsOf(v, object);
  uint4 a[2][kRows] = {};
  typename Product::Begins begins = {};
  if (object < to) {
    Product::fetch(a[0], rows, v.steps);
    Product::fetch(a[1], rows + kStep, v.steps);
    Product::fetch(begins, v.begins + object);
  }
  const NearPieces pieces(first, n.queriesOfBatch);
  if constexpr (!isBoxes<Product>) fill(columns, v.steps * kStepColumns, [&](uint32_t i) { return Product::columnOf(v, pieces, i); });
  if (threadIdx.x < kSieveQueries) {
    asked.floors[threadIdx.x] = wanted.any ? Product::floorOf(v, wanted.limit, wanted.sieved, stretch) : Product::kNone;
    asked.passing[threadIdx.x] = wanted.passing;
  }
  __syncthreads();
  if constexpr (isBoxes<Product>) {
    boxes(v, pieces, columns, asked.floors);
    __syncthreads();
  }
  const uint32_t column = warp % kAcross * kColumns;  // the warp's first, of 8 queries
  const auto* const own = Product::columnsOf(columns, column);
  Sum floors[kColumns][kFloors];
#pragma unroll
  for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
    for (uint32_t i = 0; i < kFloors; i++) floors[t][i] = asked.floors[column * 8 + Product::queryOf(t, i)];
  Found<Product> found(v, asked, to);
  for (; object < to; object += kSieveObjects) {
    const bool more = object + kSieveObjects < to;
    const uint4* const next = more ? rows + Product::objects(v.steps, kSieveObjects) : rows;
    Sum sums[kRows][kColumns][4], begin[kRows][4];
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) begin[r][i] = Product::begin(begins, r, i);
    if (more) Product::fetch(begins, v.begins + object + kSieveObjects);
    multiplyAll<Product, kStepColumns>(sums, a, rows, next, v.steps, own, begin);
    rows = next;
    if constexpr (SAMPLE) {
#pragma unroll
      for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
        for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
          for (uint32_t i = 0; i < 4; i++) putSum(n, first + column * 8 + Product::queryOf(t, i), object - from + Product::objectOf(r, i), sums[r][t][i]);
      continue;
    }
    bool some[4] = {};  // apart, so that a comparison need not wait for the one before
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++)
#pragma unroll
      for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) some[i] |= Product::passes(sums[r][t][i], floors[t][i % kFloors]);
    if (!__any_sync(~0u, some[0] | some[1] | some[2] | some[3])) continue;
    found.keep(passedOf<Product>(sums, floors), [=](uint32_t bit) { return column * 8 + Product::queryOf(bit % 32 / 4, bit % 4); }, [=](uint32_t bit) { return object + Product::objectOf(bit / 32, bit % 4); });
  }
  found.put(found.count);
}

}  // namespace

#define GENIEMQ_NEAR_PRODUCT(name, Product, ...)                                                            \
  extern "C" __global__ void __launch_bounds__(kThreads, 2) name(const __grid_constant__ NearSieve v) {     \
    extern __shared__ __align__(16) uint8_t memory[];                                                       \
    __shared__ Asked<Product> asked;                                                                        \
    sieve<Product __VA_OPT__(, ) __VA_ARGS__>(v, memory, asked);                                            \
  }
#define GENIEMQ_NEAR_SIEVE(name, Product)                                                                   \
  GENIEMQ_NEAR_PRODUCT(name, Product)                                                                       \
  extern "C" __device__ const uint32_t name##_step_bytes = Product::kStepColumns * sizeof(Product::Column);
GENIEMQ_NEAR_SIEVE(near_sieve_halves, Halves)
GENIEMQ_NEAR_PRODUCT(near_sample_halves, Halves, true)
GENIEMQ_NEAR_SIEVE(near_sieve_products, Products)
GENIEMQ_NEAR_SIEVE(near_sieve_bytes, Words<Differences>)
GENIEMQ_NEAR_SIEVE(near_sieve_boxes, Words<Boxes>)
GENIEMQ_NEAR_SIEVE(near_sieve_codes, Words<Unequal>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers3, Words<Powers<3>>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers4, Words<Powers<4>>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers5, Words<Powers<5>>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers6, Words<Powers<6>>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers7, Words<Powers<7>>)
GENIEMQ_NEAR_SIEVE(near_sieve_powers8, Words<Powers<8>>)
#undef GENIEMQ_NEAR_SIEVE
#undef GENIEMQ_NEAR_PRODUCT

extern "C" __device__ const uint32_t near_sieve_threads = kThreads, near_sieve_static = sizeof(Asked<Halves>);
static_assert(sizeof(Asked<Halves>) == sizeof(Asked<Words<Differences>>) && sizeof(Asked<Halves>) == sizeof(Asked<Words<Powers<3>>>));

}  // namespace geniemq
