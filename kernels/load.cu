// What is derived from the index when it is loaded.
#include "batch.cuh"

namespace geniemq {

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
// blockIdx.x is the section; its lists are dealt to gridDim.y x 8 warps.
extern "C" __global__ void __launch_bounds__(256) survey_repeats(const Survey survey) {
  const Section section = survey.sections[blockIdx.x];
  const uint32_t attribute = blockIdx.x % survey.attributes;
  const uint32_t* starts = reinterpret_cast<const uint32_t*>(survey.data + section.starts * size_t{16});
  const uint16_t* ids = reinterpret_cast<const uint16_t*>(survey.data + section.ids * size_t{16});
  const uint32_t warps = gridDim.y * 8;
  uint32_t longest = 1;
  for (uint32_t list = blockIdx.y * 8 + threadIdx.x / 32; list < section.lists; list += warps) {
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

}  // namespace geniemq
