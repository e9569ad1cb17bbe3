// What is derived from the index when it is loaded.
#include "batch.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kWarps = 8;    // of a block
constexpr uint32_t kThreads = 32 * kWarps;
constexpr uint32_t kUnit = 8;     // postings that a lane of the match kernel takes at a time
constexpr uint32_t kBanks = 32;   // of shared memory
constexpr uint32_t kStretch = kUnit * kBanks;  // postings that are arranged together

// The bank of an object's 8-bit counter.
__device__ uint32_t bankOf(uint32_t id) { return id / 4 % kBanks; }

}  // namespace

struct Survey {
  const uint8_t* data;
  const Section* sections;
  uint32_t* repeats;  // an attribute, at least 1
  uint32_t attributes;
  uint32_t unused;
};
static_assert(sizeof(Survey) == 32);

// The most times that one object has one keyword of an attribute: the longest run of one id in a list, where ids
// ascend. It makes count bounds tight: an item that is one keyword adds no more than that to any object.
// blockIdx.x is the section; its lists are dealt to gridDim.y x kWarps warps.
extern "C" __global__ void __launch_bounds__(kThreads) survey_repeats(const Survey survey) {
  const Section section = survey.sections[blockIdx.x];
  const uint32_t attribute = blockIdx.x % survey.attributes;
  const uint32_t* starts = reinterpret_cast<const uint32_t*>(survey.data + section.starts * size_t{16});
  const uint16_t* ids = reinterpret_cast<const uint16_t*>(survey.data + section.ids * size_t{16});
  const uint32_t warps = gridDim.y * kWarps;
  uint32_t longest = 1;
  for (uint32_t list = blockIdx.y * kWarps + threadIdx.x / 32; list < section.lists; list += warps) {
    const uint32_t begin = starts[list], end = starts[list + 1];
    for (uint32_t i = begin + threadIdx.x % 32; i < end; i += 32) {
      const uint16_t id = ids[i];
      if (i + 1 < end && ids[i + 1] == id) continue;
      uint32_t run = 1;
      while (i - begin >= run && ids[i - run] == id) run++;
      longest = max(longest, run);
    }
  }
  if (longest > 1) atomicMax(&survey.repeats[attribute], longest);
}

// Arranges the postings of each list for the match kernel, in place. There the lanes of a warp take consecutive units of
// 8 postings and add posting j of each at the same time. Ids in ascending order hit random banks of shared memory, 3 to
// 4 lanes the same one; so in each stretch of 32 units the ids are sorted by the bank of their 8-bit counter. Then lane i
// has ids of bank i or near it, wherever the warp begins. Shorter lists spread over the banks: each of their units covers
// several, and begins at another of them depending on its place, so that neighbouring lists interleave. Unlike
// striping by padding this costs no memory; the ids are the same, and their order in a list means nothing to counts.
extern "C" __global__ void __launch_bounds__(kThreads) arrange(const Survey survey) {
  __shared__ uint32_t histograms[kWarps][kBanks];
  __shared__ uint16_t sorted[kWarps][kStretch];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Section section = survey.sections[blockIdx.x];
  const uint32_t* starts = reinterpret_cast<const uint32_t*>(survey.data + section.starts * size_t{16});
  uint16_t* ids = reinterpret_cast<uint16_t*>(const_cast<uint8_t*>(survey.data) + section.ids * size_t{16});
  for (uint32_t list = blockIdx.y * kWarps + warp; list < section.lists; list += gridDim.y * kWarps) {
    const uint32_t end = starts[list + 1];
    for (uint32_t begin = starts[list]; begin < end;) {
      const uint32_t stop = min(end, (begin & ~(kUnit - 1)) + kStretch), n = stop - begin;
      histograms[warp][lane] = 0;
      __syncwarp();
      uint32_t id[kStretch / 32], place[kStretch / 32];
#pragma unroll
      for (uint32_t i = 0; i < kStretch / 32; i++) {
        const uint32_t at = i * 32 + lane;
        id[i] = at < n ? ids[begin + at] : 0;
        if (at < n) place[i] = atomicAdd(&histograms[warp][bankOf(id[i])], 1);
      }
      __syncwarp();
      uint32_t sum = histograms[warp][lane];
      const uint32_t here = sum;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
      }
      __syncwarp();
      histograms[warp][lane] = sum - here;
      __syncwarp();
#pragma unroll
      for (uint32_t i = 0; i < kStretch / 32; i++)
        if (i * 32 + lane < n) sorted[warp][histograms[warp][bankOf(id[i])] + place[i]] = id[i];
      __syncwarp();
      const uint32_t turn = begin / kUnit % kBanks / 4;
      for (uint32_t at = lane; at < n; at += 32) {
        const uint32_t unit = (begin + at) & ~(kUnit - 1);
        const bool full = unit >= begin && unit + kUnit <= stop;
        ids[begin + at] = sorted[warp][full ? unit - begin + (begin + at + turn) % kUnit : at];
      }
      __syncwarp();
      begin = stop;
    }
  }
}

}  // namespace geniemq
