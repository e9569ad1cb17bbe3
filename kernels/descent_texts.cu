// Descents (descent.cuh) over texts by edit distance (near_texts.cuh). Trees of texts have pivots and no boxes.
#include "descent_rounds.cuh"
#include "near_texts.cuh"

namespace geniemq {
namespace {

template <int LANES>
struct Texts {
  static constexpr uint32_t kLanes = LANES;
  using Box = NearSquares;  // there are none
  static __device__ double value(const Descent& v, uint32_t q, uint32_t object, bool real) {
    return NearTexts{v.tree->starts, v.tree->symbols}.value<LANES>(v.near, q, object, real);
  }
};

}  // namespace

GENIEMQ_DESCENT(edits_1, Texts<1>)
GENIEMQ_DESCENT(edits_2, Texts<2>)
GENIEMQ_DESCENT(edits_4, Texts<4>)

}  // namespace geniemq
