// Compaction of candidate buffers after a wave, and the answer after the last one.
//
// An entry is count << 32 | ~id, so that the k best objects of the total order (count descending, id ascending) are the
// k largest entries, and no two entries are equal. A block owns a query.
//
// Where another kernel makes an order of its own of the k best (order_terms), they are not sorted here (choose).
//
// After a compaction the k best of all objects so far are stored, and the threshold is the count of the k-th plus one:
// later objects have greater ids, so k entries precede any of them with the same count. Results do not depend on
// the order in which blocks appended their entries, because entries are a set and the k largest are unique.
#include "batch.cuh"
#include "block.cuh"

namespace geniemq {
namespace {

constexpr int kThreads = 256;
constexpr int kLoads = 4;  // that a thread has in flight

struct Select {
  uint32_t histogram[256];
  uint32_t scratch[2][32];
  uint64_t floor;
  uint32_t rest;
  uint32_t least;
};

// The k-th largest of n > k entries, or a smaller value that exactly k of them reach.
__device__ uint64_t kthLargest(const uint64_t* entries, uint32_t n, uint32_t k, uint32_t bound, Select& s) {
  uint64_t prefix = 0, mask = 0;
  uint32_t rest = k;  // of the entries with this prefix, so many are wanted
  // Counts have no bits above those of the bound.
  int digit = 4 + (bound > 0xff) + (bound > 0xffff) + (bound > 0xffffff);
  for (; digit >= 0; digit--) {
    for (uint32_t i = threadIdx.x; i < 256; i += kThreads) s.histogram[i] = 0;
    __syncthreads();
    for (uint32_t first = threadIdx.x; first < n; first += kLoads * kThreads) {
      uint64_t e[kLoads];
#pragma unroll
      for (int j = 0; j < kLoads; j++) e[j] = first + j * kThreads < n ? entries[first + j * kThreads] : 0;
#pragma unroll
      for (int j = 0; j < kLoads; j++) {
        if (first + j * kThreads < n && (e[j] & mask) == prefix) atomicAdd(&s.histogram[uint32_t(e[j] >> digit * 8) & 255], 1);
      }
    }
    __syncthreads();
    // Thread i looks at value 255 - i: the first at which the sum reaches rest.
    const uint32_t value = 255 - threadIdx.x, here = s.histogram[value];
    uint32_t total;
    const uint32_t above = blockPlace<kThreads>(here, s.scratch[0], total);
    if (above < rest && above + here >= rest) {
      s.floor = prefix | uint64_t{value} << digit * 8;
      s.rest = rest - above;
      s.least = here;
    }
    __syncthreads();
    prefix = s.floor;
    mask |= 0xffull << digit * 8;
    rest = s.rest;
    if (rest == s.least) break;  // all entries with this prefix are wanted
  }
  return prefix;
}

// Moves the k largest of n entries to the front, n > k.
__device__ void keepLargest(uint64_t* entries, uint32_t n, uint32_t k, uint32_t bound, Select& s) {
  const uint64_t floor = kthLargest(entries, n, k, bound, s);
  // In place: a chunk is read before what is kept of it is written, and that is never further than the chunk.
  uint32_t kept = 0;
  for (uint32_t first = threadIdx.x; first - threadIdx.x < n; first += kLoads * kThreads) {
    uint64_t e[kLoads];
    uint32_t mine = 0;
#pragma unroll
    for (int j = 0; j < kLoads; j++) {
      const uint32_t i = first + j * kThreads;
      e[j] = i < n ? entries[i] : 0;
      mine += i < n && e[j] >= floor;
    }
    __syncthreads();
    uint32_t total;
    uint32_t place = kept + blockPlace<kThreads>(mine, s.scratch[0], total);
#pragma unroll
    for (int j = 0; j < kLoads; j++) {
      if (first + j * kThreads < n && e[j] >= floor) entries[place++] = e[j];
    }
    kept += total;
  }
  __syncthreads();
}

// Compacts a query's buffer and moves its threshold; returns the number of entries.
__device__ uint32_t compact(const Batch& batch, const Query& query, State& state, Select& s) {
  const uint32_t n = state.stored, k = query.k;
  uint64_t* entries = batch.entries + query.entries;
  __syncthreads();
  if (threadIdx.x == 0) state.passed += n - state.kept;
  if (n > k) keepLargest(entries, n, k, query.bound, s);
  if (n >= k && n != state.kept) {
    uint32_t least = ~0u;
    for (uint32_t i = threadIdx.x; i < k; i += kThreads) least = min(least, uint32_t(entries[i] >> 32));
    least = __reduce_min_sync(~0u, least);
    if (laneOf() == 0) s.scratch[1][warpOf()] = least;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < kThreads / 32; w++) least = min(least, s.scratch[1][w]);
      // At the largest count of all the threshold lags by one, which lets through what the next compaction drops.
      state.threshold = max(state.threshold, least == ~0u ? least : least + 1);
    }
  }
  __syncthreads();
  const uint32_t kept = min(n, k);
  if (threadIdx.x == 0) state.stored = state.kept = kept;
  return kept;
}

}  // namespace

// After a wave.
extern "C" __global__ void __launch_bounds__(kThreads) compact_wave(const Batch batch) {
  __shared__ Select s;
  const uint32_t q = batch.firstQuery + blockIdx.x;
  compact(batch, batch.queries[q], batch.states[q], s);
}

// The k best, in any order.
extern "C" __global__ void __launch_bounds__(kThreads) choose(const Batch batch) {
  __shared__ Select s;
  const uint32_t q = batch.firstQuery + blockIdx.x;
  const Query query = batch.queries[q];
  const uint32_t n = compact(batch, query, batch.states[q], s);
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) batch.out[query.out + i] = batch.entries[query.entries + i];
}

namespace {

constexpr uint32_t kChunk = 4096;  // entries that are sorted in shared memory

// Sorts n <= kChunk entries, the largest last: a bitonic sort of the next power of two.
__device__ void sortChunk(const uint64_t* from, uint64_t* to, uint32_t n, uint64_t* chunk) {
  uint32_t size = 1;
  while (size < n) size *= 2;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < size; i += kThreads) chunk[i] = i < n ? from[i] : ~0ull;
  for (uint32_t block = 2; block <= size; block *= 2) {
    for (uint32_t step = block / 2; step > 0; step /= 2) {
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < size / 2; i += kThreads) {
        const uint32_t a = i / step * step * 2 + i % step, b = a + step;
        const uint64_t x = chunk[a], y = chunk[b];
        if (x > y == ((a & block) == 0)) {
          chunk[a] = y;
          chunk[b] = x;
        }
      }
    }
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) to[i] = chunk[i];
}

// How many of the first p entries of two sorted runs, merged, come from a.
__device__ uint32_t fromFirst(const uint64_t* a, uint32_t na, const uint64_t* b, uint32_t nb, uint32_t p) {
  uint32_t lo = p > nb ? p - nb : 0, hi = min(p, na);
  while (lo < hi) {
    const uint32_t middle = (lo + hi) / 2;
    if (a[middle] < b[p - 1 - middle]) {
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  return lo;
}

// Merges two sorted runs; each thread makes a stretch of the result.
__device__ void merge(const uint64_t* a, uint32_t na, const uint64_t* b, uint32_t nb, uint64_t* to) {
  const uint32_t n = na + nb, stretch = (n + kThreads - 1) / kThreads;
  const uint32_t first = min(n, threadIdx.x * stretch), end = min(n, first + stretch);
  uint32_t i = fromFirst(a, na, b, nb, first), j = first - i;
  uint64_t x = i < na ? a[i] : ~0ull, y = j < nb ? b[j] : ~0ull;
  for (uint32_t p = first; p < end; p++) {
    if (j == nb || i < na && x <= y) {
      to[p] = x;
      if (++i < na) x = a[i];
    } else {
      to[p] = y;
      if (++j < nb) y = b[j];
    }
  }
}

}  // namespace

// The k best, sorted, the best last; the host copies all k places. Answers longer than a chunk are merged from sorted
// chunks, to and fro between the query's candidate buffer, which holds k and is no longer needed, and its answer.
extern "C" __global__ void __launch_bounds__(kThreads) answer(const Batch batch) {
  __shared__ union {
    Select select;
    uint64_t chunk[kChunk];
  } s;
  const uint32_t q = batch.firstQuery + blockIdx.x;
  const Query query = batch.queries[q];
  const uint32_t n = compact(batch, query, batch.states[q], s.select);
  uint64_t *to = batch.out + query.out, *other = batch.entries + query.entries;
  for (uint32_t i = n + threadIdx.x; i < query.k; i += kThreads) to[i] = 0;
  const uint64_t* entries = other;
  for (uint32_t width = kChunk; width < n; width *= 2) {  // so that the last round ends in the answer
    uint64_t* const before = to;
    to = other;
    other = before;
  }
  for (uint32_t i = 0; i < n; i += kChunk) sortChunk(entries + i, to + i, min(kChunk, n - i), s.chunk);
  for (uint32_t width = kChunk; width < n; width *= 2) {
    __syncthreads();
    for (uint32_t i = 0; i < n; i += 2 * width) {
      const uint32_t na = min(width, n - i), nb = min(2 * width, n - i) - na;
      merge(to + i, na, to + i + na, nb, other + i);
    }
    uint64_t* const merged = other;
    other = to;
    to = merged;
  }
}

}  // namespace geniemq
