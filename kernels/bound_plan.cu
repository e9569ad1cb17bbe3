// What the bound reads: codes of objects, masks and ranges of queries. See bound.cuh.
#include "block.cuh"
#include "bound.cuh"

namespace geniemq {
namespace {
constexpr uint32_t kThreads = 256;
}

// Derives rows of codes from planes, when the index is loaded. A thread writes a chunk of one object's row: blockIdx.x counts
// 256 objects, blockIdx.y chunks.
extern "C" __global__ void __launch_bounds__(kThreads) bound_codes(const BoundCodes f) {
  const uint32_t object = blockIdx.x * kThreads + threadIdx.x;
  if (object >= f.objects) return;
  const uint32_t* const group = f.planes + size_t{object / 1024} * f.planesOfGroup * 32 + object / 32 % 32;
  uint8_t* const to = f.codes + size_t{object} * f.rowBytes + blockIdx.y * kBoundChunk;
#pragma unroll 1
  for (uint32_t lane = 0; lane < 4; lane++) {  // of those that load the chunk
    uint32_t words[4] = {};
#pragma unroll
    for (uint32_t i = 0; i < 16; i++) {  // columnByte of the column is i of these 16
      const uint32_t column = blockIdx.y * kBoundChunk + i * 4 + lane;
      if (column >= f.columnCount) continue;
      const uint32_t of = __ldg(f.columns + column), planes = of & 0xff;
      const uint32_t* const from = group + size_t{of >> 8} * 32;
      uint32_t code = 0;
      for (uint32_t p = 0; p < planes; p++) code |= (__ldg(from + p * 32) >> object % 32 & 1) << p;
      words[i / 4] |= code << i % 4 * 8;
    }
    *reinterpret_cast<uint4*>(to + lane * 16) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

// Writes masks and ranges, a warp a query.
extern "C" __global__ void __launch_bounds__(kThreads) bound_plan(const BoundPlan f) {
  const uint32_t q = blockIdx.x * (kThreads / 32) + warpOf();
  if (q >= f.queriesOfBatch) return;
  uint8_t* const masks = f.masks + size_t{q / kBoundQueries} * f.kSteps * kBoundStepBytes + q % kBoundQueries * 16;
  uint8_t* const ranges = f.ranges + size_t{q} * 2 * f.rowBytes;
  for (uint32_t i = laneOf(); i < f.rowBytes / 8; i += 32)
    reinterpret_cast<uint4*>(ranges)[i] = i < f.rowBytes / 16 ? make_uint4(~0u, ~0u, ~0u, ~0u) : make_uint4(0, 0, 0, 0);
  __syncwarp();
  const Query query = f.queries[f.firstQuery + q];
#pragma unroll 4
  for (uint32_t i = laneOf(); i < query.spans; i += 32) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(f.spans + query.first + i));
    const Span span = {v.x, v.y, v.z, v.w};
    const uint32_t* const codeOf = f.codeOf[span.attribute];
    const uint32_t column = __ldg(f.columnOf + span.attribute), lo = __ldg(codeOf + span.lo), hi = __ldg(codeOf + span.hi);
    if (lo >= hi) continue;
    // The bits lo % 32 .. of so many codes, around the end of the word.
    const uint32_t codes = hi - lo, bits = codes >= 32 ? ~0u : (1u << codes) - 1;
    *reinterpret_cast<uint32_t*>(masks + size_t{column / 4} * (kBoundStepBytes / 2) + column % 4 * 4) =
        __funnelshift_l(bits, bits, lo);
    ranges[columnByte(column)] = lo;
    ranges[f.rowBytes + columnByte(column)] = codes - 1;
  }
}

extern "C" __device__ const uint32_t bound_plan_threads = kThreads;

}  // namespace geniemq
