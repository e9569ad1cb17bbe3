// Searches by distance: what their kernels read and write, values as integers, and the Gate of candidates.
//
// What a value is, to the bit, index/metric and index/metric/sums say: elements are widened to float64, term i is added to the partial sum i mod 8, i ascending,
// and nothing is fused. Terms of elements beyond the last are +0, which changes no partial sum: none is ever -0.
//
// The order of hits is (value, id), ascending. A value is kept as an unsigned integer that has its order, so that selection is by digits.
//
// The Gate. Objects run in waves of ascending ids. An object is within when its value is at most the query's `most`, the largest within the radius; it is a
// candidate when it is at most State's limit, which begins with `most`. Between waves candidates are cut to the k first, and once there are k the limit
// becomes the k-th value less one (or before all waves that of a sample, near_gate.cu): k objects with lower ids precede whatever comes with an equal value. So no hit is lost, and nothing depends on the order in
// which blocks append.
//
// Bound of the candidates. An object is appended once at most in its wave, by whoever compares it, and a wave begins with k candidates at most: so k + the
// objects of a wave are room enough for a scan, and k + the room of a query's list where only listed objects are compared (near_sieve.cu).
#pragma once
#include <cstdint>

#include "batch.cuh"
#include "block.cuh"

namespace geniemq {

// How elements are stored.
enum NearStorage : uint32_t { kNearF32, kNearF16, kNearU8, kNearF64 };

struct NearEntry {
  uint64_t value;
  uint32_t id, unused;
};

struct NearQuery {
  uint64_t most;            // of a value within the radius
  uint64_t entries, out;    // its candidates are Near::entries[entries ..), its answer Near::out[out .. out + k)
  double norm;              // of angles
  uint32_t k, passing;      // k may be 0; the set of objects that may be hits, kNoFilter: all
  uint32_t counts, unused;  // all within are counted
};

// State of a query between kernels. The host writes {most, 0 ...}.
struct NearState {
  uint64_t limit;   // of a candidate's value
  uint64_t within;  // objects that were counted
  uint64_t passed;  // candidates so far
  uint64_t listed;  // objects that were compared from lists
  uint32_t stored, kept;
  uint32_t list, given;  // objects on the list; it had no room for all: the host asks anew
};

// Some objects of a column, and some queries. Kernels take this by value.
struct Near {
  const uint8_t* rows;       // by object of the range, elements one after the other
  const double* norms;       // of objects, for angles
  const double* vectors;     // of queries, dims elements each
  const NearQuery* queries;
  NearState* states;
  NearEntry* entries;
  NearEntry* out;
  const uint32_t* sets;      // passingWords each
  const uint32_t* present;   // objects that have a value; null: all
  uint32_t* lists;           // by query listRoom objects
  const uint32_t* cells;     // by object its cell, where sets are of cells; null: they are of objects
  uint32_t dims, storage, power, passingWords;
  uint32_t firstQuery, queriesOfBatch;  // blockIdx.x counts from here; the queries' end
  uint32_t first, end, base;            // objects of the wave; id of object 0
  uint32_t listRoom;
};

// The host has mirrors of these: gpuexec/cuda/abi.
static_assert(sizeof(NearEntry) == 16 && sizeof(NearQuery) == 48 && sizeof(NearState) == 48 && sizeof(Near) == 128);

constexpr uint32_t kNearTerms = 8;  // partial sums

#ifdef __CUDACC__

// A value as an integer, in the order of values; none is NaN.
__device__ __forceinline__ uint64_t orderedOf(double v) {
  const uint64_t bits = uint64_t(__double_as_longlong(v));
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ double valueOf(uint64_t ordered) {
  return __longlong_as_double((long long)(ordered >> 63 ? ordered ^ 1ull << 63 : ~ordered));
}

// A float16 as a float32.
__device__ __forceinline__ float floatOf(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16, rest = half & 0x7fff;
  if (rest >= 0x7c00) return __uint_as_float(sign | 0xffu << 23 | (rest - 0x7c00) << 13);
  if (rest < 1 << 10) return __uint_as_float(__float_as_uint(float(rest) * 0x1p-24f) | sign);
  return __uint_as_float(sign | ((rest << 13) + (112u << 23)));
}

// Elements, whatever they are stored as: exact float64s, those that are there. at says where an element lies.
//
// All are loaded before any is widened, and the storage is asked for once: between a load and what waits for it stand the others. Asked for by each element, its
// branches keep the loads apart, and a thread waits for memory as often as it has elements.
template <class Stored, class Widen, uint32_t N>
__device__ __forceinline__ void loadElements(double (&x)[N], const uint8_t* rows, const size_t (&at)[N], const bool (&there)[N], Widen widen) {
  Stored raw[N];
#pragma unroll
  for (uint32_t i = 0; i < N; i++) raw[i] = there[i] ? __ldg(reinterpret_cast<const Stored*>(rows) + at[i]) : Stored(0);
#pragma unroll
  for (uint32_t i = 0; i < N; i++) x[i] = widen(raw[i]);
}
template <uint32_t N>
__device__ __forceinline__ void elementsOf(double (&x)[N], const uint8_t* rows, uint32_t storage, const size_t (&at)[N], const bool (&there)[N]) {
  switch (storage) {
    case kNearF32: return loadElements<float>(x, rows, at, there, [](float v) { return double(v); });
    case kNearU8: return loadElements<uint8_t>(x, rows, at, there, [](uint32_t v) { return double(v); });
    case kNearF64: return loadElements<double>(x, rows, at, there, [](double v) { return v; });
  }
  loadElements<uint16_t>(x, rows, at, there, [](uint32_t v) { return double(floatOf(v)); });
}
__device__ __forceinline__ double elementOf(const uint8_t* rows, uint32_t storage, size_t at) {
  double x[1];
  elementsOf<1>(x, rows, storage, {at}, {true});
  return x[0];
}

__device__ __forceinline__ bool hasBit(const uint32_t* set, uint32_t i) { return __ldg(set + i / 32) >> i % 32 & 1; }

// Whether an object of the range may be a hit, of a query for which that set passes.
__device__ __forceinline__ bool passes(const Near& n, uint32_t passing, uint32_t object) {
  if (n.present != nullptr && !hasBit(n.present, object)) return false;
  return passing == kNoFilter || hasBit(n.sets + size_t{passing} * n.passingWords, n.cells != nullptr ? __ldg(n.cells + object) : object);
}
__device__ __forceinline__ bool mayHit(const Near& n, const NearQuery& query, uint32_t object) { return passes(n, query.passing, object); }

// Counts and appends one object per lane, for those lanes that are within the query's radius; the lanes of a warp call it together, for one query.
__device__ __forceinline__ void passGate(const Near& n, const NearQuery& query, NearState& state, uint64_t limit, bool within, uint64_t value, uint32_t object) {
  const uint32_t all = __ballot_sync(~0u, within);
  if (all == 0) return;
  const bool candidate = within && value <= limit && query.k > 0;
  const uint32_t stay = __ballot_sync(~0u, candidate);
  uint32_t place = 0;
  if (laneOf() == 0) {
    if (query.counts) atomicAdd(reinterpret_cast<unsigned long long*>(&state.within), (unsigned long long)__popc(all));
    if (stay != 0) place = atomicAdd(&state.stored, __popc(stay));
  }
  place = __shfl_sync(~0u, place, 0) + __popc(stay & ((1u << laneOf()) - 1));
  if (candidate) n.entries[query.entries + place] = {value, object + n.base, 0};
}

// The ways to compare. What they add up, elements alone, is in package sums; what becomes of it, in package metric.
struct NearSquares {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) {
    const double d = __dsub_rn(q, o);
    s = __dadd_rn(s, __dmul_rn(d, d));
  }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};
struct NearDifferences {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) { s = __dadd_rn(s, fabs(__dsub_rn(q, o))); }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};
struct NearDots {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) { s = __dadd_rn(s, __dmul_rn(q, o)); }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};
// The same with the other sign, to the bit: what is subtracted is rounded as what is added.
struct NearProducts {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) { s = __dsub_rn(s, __dmul_rn(q, o)); }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};
struct NearPowers {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t p) {
    const double d = fabs(__dsub_rn(q, o));
    double power = d;
    for (uint32_t i = 1; i < p; i++) power = __dmul_rn(power, d);
    s = __dadd_rn(s, power);
  }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};
// What is NaN is passed over.
struct NearLargest {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) {
    const double d = fabs(__dsub_rn(q, o));
    if (d > s) s = d;
  }
  static __device__ __forceinline__ double both(double a, double b) { return a > b ? a : b; }
};
struct NearUnequal {
  static __device__ __forceinline__ void add(double& s, double q, double o, uint32_t) { s = __dadd_rn(s, q != o ? 1.0 : 0.0); }
  static __device__ __forceinline__ double both(double a, double b) { return __dadd_rn(a, b); }
};

// The value of what was added up. NaN comes of damaged vectors alone.
__device__ __forceinline__ double finished(const Near& n, const NearQuery& query, double sum, uint32_t object) {
  if (n.norms != nullptr) {
    const double both = __dmul_rn(__ldg(n.norms + object), query.norm);
    if (both == 0) return 0;
    const double v = __ddiv_rn(-sum, both);
    sum = v != v ? v : __dadd_rn(v < -1 ? -1.0 : v > 1 ? 1.0 : v, 0.0);
  }
  return sum != sum ? __longlong_as_double(0x7ff0000000000000ll) : sum;
}

#endif

}  // namespace geniemq
