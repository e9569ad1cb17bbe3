// The product of float16s, and what becomes of any product, as near_sieve.cu and near_visits.cu have it: of a warp, 32 objects and 64 queries at a time.
#pragma once
#include "mma.cuh"
#include "near_product.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kRows = 2;     // of 16 objects, of a warp
constexpr uint32_t kColumns = 8;  // of 8 queries, of a warp

// A product of float16s by tensor cores, of the sums of a lane: [rows][columns][4] of two objects and two queries.
struct Halves {
  using Sum = float;
  using Column = uint2;                                    // of shared memory, for a lane and 8 queries
  static constexpr uint32_t kStepColumns = kSieveQueries * 4;
  static constexpr uint32_t kStep = 32, kFloors = 2;       // uint4s from step to step; floors of a column
  static constexpr Sum kNone = __builtin_inff();           // a floor below which all sums are

  // Where the objects of a lane lie, from a warp's first one on, and how far behind one another.
  static __device__ __forceinline__ const uint4* rowsOf(const NearSieve& v, uint32_t object) {
    return reinterpret_cast<const uint4*>(v.few) + size_t{object / 16} * v.steps * 32 + laneOf();
  }
  static __device__ __forceinline__ size_t objects(uint32_t steps, uint32_t n) { return size_t{n / 16} * steps * 32; }
  static __device__ __forceinline__ void fetch(uint4 (&a)[kRows], const uint4* rows, uint32_t steps) {
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) a[r] = __ldg(rows + r * steps * 32);
  }

  // What sums begin with.
  using Begins = float[kRows][2];
  static __device__ __forceinline__ void fetch(Begins& begins, const uint32_t* of) {
#pragma unroll
    for (uint32_t r = 0; r < kRows; r++) begins[r][0] = __uint_as_float(__ldg(of + laneOf() / 4 + r * 16)), begins[r][1] = __uint_as_float(__ldg(of + laneOf() / 4 + r * 16 + 8));
  }
  static __device__ __forceinline__ Sum begin(const Begins& begins, uint32_t r, uint32_t i) { return begins[r][i / 2]; }

  // Queries in shared memory: [step][8 queries][lane].
  static __device__ __forceinline__ Column columnOf(const NearSieve& v, const NearPieces& pieces, uint32_t i) {
    const uint32_t step = i / kStepColumns, q = i / 4 % kSieveQueries;
    if (q >= pieces.queries) return {0, 0};
    const uint32_t* of = v.queries + (pieces.begin(v.steps * 2) + pieces.at(step * 2, q)) * 4 + i % 4;
    return {__ldg(of), __ldg(of + pieces.queries * 4)};
  }
  static __device__ __forceinline__ const Column* columnsOf(const Column* columns, uint32_t column) { return columns + column * 32 + laneOf(); }

  // Of the sum i of a column: its query, and with its row its object, behind the warp's first ones.
  static __device__ __forceinline__ uint32_t queryOf(uint32_t t, uint32_t i) { return t * 8 + laneOf() % 4 * 2 + i % 2; }
  static __device__ __forceinline__ uint32_t objectOf(uint32_t r, uint32_t i) { return r * 16 + i / 2 * 8 + laneOf() / 4; }

  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const Stretch& stretch) {
    return halvesFloorOf(v, limit, q, stretch.reach(v.reaches));
  }
  static __device__ __forceinline__ bool passes(Sum sum, Sum floor) { return !(sum < floor); }

  // A step of the products of a warp; the first one begins with something.
  template <bool FIRST>
  static __device__ __forceinline__ void multiply(Sum (&sums)[kRows][kColumns][4], const uint4 (&a)[kRows], const Column* columns, const Sum (&begin)[kRows][4]) {
#pragma unroll
    for (uint32_t t = 0; t < kColumns; t++) {
      const uint2 b = columns[t * 32];
#pragma unroll
      for (uint32_t r = 0; r < kRows; r++) {
        if (FIRST)
          multiplyHalvesFrom(sums[r][t], a[r], b, begin[r]);
        else
          multiplyHalves(sums[r][t], a[r], b);
      }
    }
  }
};

// The same where values are products.
struct Products : Halves {
  static __device__ __forceinline__ Sum floorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const Stretch& stretch) {
    return productsFloorOf(v, limit, q, stretch.reach(v.reaches));
  }
};

// The sums of objects, by all steps. `a` has the first two of these objects, and then those of the next ones, which lie at `next`; steps of queries lie kStepColumns apart.
template <class Product, uint32_t kStepColumns>
__device__ __forceinline__ void multiplyAll(typename Product::Sum (&sums)[kRows][kColumns][4], uint4 (&a)[2][kRows], const uint4* rows, const uint4* next, uint32_t steps,
                                            const typename Product::Column* own, const typename Product::Sum (&begin)[kRows][4]) {
  constexpr uint32_t kStep = Product::kStep;
  Product::template multiply<true>(sums, a[0], own, begin);
  Product::fetch(a[0], steps > 2 ? rows + 2 * kStep : next, steps);
  Product::template multiply<false>(sums, a[1], own + kStepColumns, begin);
  Product::fetch(a[1], steps > 2 ? rows + 3 * kStep : next + kStep, steps);
#pragma unroll 1
  for (uint32_t step = 2; step < steps; step += 2) {
    const uint4* const after = step + 2 < steps ? rows + (step + 2) * kStep : next;
    Product::template multiply<false>(sums, a[0], own + step * kStepColumns, begin);
    Product::fetch(a[0], after, steps);
    Product::template multiply<false>(sums, a[1], own + (step + 1) * kStepColumns, begin);
    Product::fetch(a[1], after + kStep, steps);
  }
}

// Which sums pass: a bit each, of a row 32.
template <class Product>
__device__ __forceinline__ uint64_t passedOf(const typename Product::Sum (&sums)[kRows][kColumns][4], const typename Product::Sum (&floors)[kColumns][Product::kFloors]) {
  uint64_t passed = 0;
#pragma unroll
  for (uint32_t r = 0; r < kRows; r++) {
    uint32_t bits = 0;
#pragma unroll
    for (uint32_t t = 0; t < kColumns; t++)
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) bits |= Product::passes(sums[r][t][i], floors[t][i % Product::kFloors]) ? 1u << (t * 4 + i) : 0u;
    passed |= uint64_t{bits} << 32 * r;
  }
  return passed;
}

}  // namespace
}  // namespace geniemq
