// What products of the sieve (near_sieve.cuh) have in common: what is known of queries, floors of float16s and bytes, and lists.
#pragma once
#include "near_sieve.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kWarps = 8;
constexpr uint32_t kThreads = 32 * kWarps;

// What is known of the queries of a block.
template <class Product>
struct Asked {
  typename Product::Sum floors[kSieveQueries];
  uint32_t passing[kSieveQueries];
};

// Adds terms of which each is right within 2^-51 of itself; the sum is no less than the truth.
__device__ __forceinline__ double sumUp(double a, double b, double c, double d) {
  return a + b + c + d + (fabs(a) + fabs(b) + fabs(c) + fabs(d)) * 0x1p-49;
}

// bound.L2: objects of a tile of which the sum is below it, which is -tau/2, have values above that of `limit`. Of angles the value is made a squared chord first, which is
// 2 + 2v but for what metric.Slack allows.
__device__ float halvesFloorOf(const NearSieve& v, uint64_t limit, const NearSieved& q, const NearReach& x) {
  const double dims = v.near.dims, least = v.near.norms != nullptr ? -1.0 : 0.0;
  if (limit < orderedOf(least)) return __int_as_float(0x7f800000);  // nothing is wanted any more
  double t = valueOf(limit);
  if (v.near.norms != nullptr) t = fmax(0.0, 2 + 2 * t) + (dims / 2 + 32) * 0x1p-51;
  t = fmax(0.0, t) * v.scale;
  const double reach = __dsqrt_rn(t * (1 + (dims / 8 + 16) * 0x1p-51)) * (1 + 0x1p-51) + q.remainder + x.remainder, both = q.norm + x.norm;
  return -0.5f * __double2float_ru(sumUp(reach * reach, -q.square, 2 * v.gamma * q.norm * x.norm, 0x1p-22 * both * both));
}

// The same of bytes, where objects of which the sum is above it have values above that of `limit`: these are right but for (dims/8 + 5) 2^-53 of themselves.
__device__ int bytesFloorOf(const NearSieve& v, uint64_t limit, const NearSieved& q) {
  if (limit < orderedOf(0.0)) return -2 * kSieveNever;
  const double reach = fmax(0.0, valueOf(limit)) * v.scale * (1 + (double(v.near.dims) / 8 + 16) * 0x1p-51) + q.remainder;
  return __double2int_rd(fmin(reach * (1 + 0x1p-50), double(kSieveMost)));
}

// c and the absolute differences of four bytes.
__device__ __forceinline__ int differ(uint32_t a, uint32_t b, int c) {
  uint32_t d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return int(d);
}

// Puts an object on the list of a query, if it may be a hit. The count goes on when there is no room, which near_gate.cu sees.
__device__ __forceinline__ void list(const NearSieve& v, uint32_t q, uint32_t passing, uint32_t object) {
  const Near& n = v.near;
  if (q >= n.queriesOfBatch || object >= n.end || n.present != nullptr && !hasBit(n.present, object)) return;
  if (passing != kNoFilter && !hasBit(n.sets + size_t{passing} * n.passingWords, object)) return;
  const uint32_t place = atomicAdd(&n.states[q].list, 1);
  if (place < n.listRoom) n.lists[size_t{q} * n.listRoom + place] = object;
}

}  // namespace
}  // namespace geniemq
