// The recount of the bound for queries that may have filters.
#include "bound_recount.cuh"

namespace geniemq {

// blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kRecountThreads, kRecountBlocks)
    bound_recount_filtered(const __grid_constant__ FilteredBound f) {
  __shared__ Recount<true>::Shared shared;
  Recount<true>(f.bound, shared, {{f.filters}, nullptr}).run();
}

}  // namespace geniemq
