// The (query, tile) kernel: match counts of one query over one tile, and the Gate.
//
// A block owns a query and a group of objects: a tile, or a part of one where the counters of a whole tile do not fit
// into shared memory. So it counts its objects completely, and each object meets the Gate once, with its final
// count. Blocks share nothing but the query's State.
//
//   1. Plan: every span of the query becomes a segment, a run of the tile's postings, by two directory loads.
//   2. Scan: the segments lie end to end in units of 16 bytes; each warp takes an equal stretch of these units,
//      whatever the lengths of the lists.
//   3. Gate: of the objects that reached the threshold A at most k, the first in the total order, are appended to the
//      query's candidate buffer.
//
// The threshold does not change while a wave of groups runs (select.cu moves it), all groups before the wave have lower
// ids, and at most min(k, objects) entries of a group pass. So a candidate buffer of k + groups x min(k, objects)
// entries never overflows: kept by the last compaction, plus the wave's.
#include "batch.cuh"
#include "block.cuh"
#include "counters.cuh"

namespace geniemq {
namespace {

// A run of postings in the tile, as 16-byte units. The first unit may begin with postings of another list.
struct alignas(16) Segment {
  uint32_t unit;    // number of its first unit in the resident index
  uint32_t first;   // units of the segments before this one
  uint32_t length;  // postings
  uint32_t weight;  // << 3 | postings of the first unit that come before the segment
};

// Crossing a threshold is noted as it happens where the postings are few: reading all counters would cost more.
constexpr uint32_t kNoted = 512;
constexpr uint32_t kNoteUnits = 4096;

template <int BITS, int THREADS, int PARTS>
struct Match {
  using C = Counters<BITS>;
  static constexpr uint32_t kObjects = kTileObjects / PARTS;  // of a group
  static constexpr uint32_t kWords = kObjects / C::kPerWord;
  static constexpr uint32_t kWarps = THREADS / 32;
  static_assert(kWords % 4 == 0 && kTileObjects % PARTS == 0);

  struct Shared {
    uint32_t counters[kWords];
    Segment segments[THREADS + 1];
    uint16_t noted[kNoted];
    uint32_t scratch[2][32];
    uint32_t notes, passed, place;
  };

  const Batch& batch;
  Shared& shared;
  const Query query;
  State& state;
  const C counters;
  const uint32_t tile, lowest;  // the group is [lowest, lowest + kObjects) of the tile
  const uint32_t threshold;

  __device__ Match(const Batch& b, Shared& s)
      : batch(b),
        shared(s),
        query(b.queries[b.firstQuery + blockIdx.x]),
        state(b.states[b.firstQuery + blockIdx.x]),
        counters{s.counters},
        tile(b.firstTile + blockIdx.y / PARTS),
        lowest(blockIdx.y % PARTS * kObjects),
        threshold(state.threshold) {}

  __device__ void run() {
    if (threshold > query.bound) return;
    if (threadIdx.x == 0) shared.notes = shared.passed = 0;
    uint64_t scanned = 0;
    bool clear = false, note = false;
    for (uint32_t base = 0; base < query.spans; base += THREADS) {
      const uint32_t count = min(query.spans - base, (uint32_t)THREADS);
      uint32_t postings;
      const uint32_t units = plan(base, count, postings);
      if (units == 0) {
        __syncthreads();
        continue;
      }
      if (!clear) {
        clear = true;
        note = query.spans <= THREADS && units <= kNoteUnits && threshold > 1;
        for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS)
          reinterpret_cast<uint4*>(shared.counters)[i] = make_uint4(0, 0, 0, 0);
        __syncthreads();
      }
      scanned += postings;
      if (note)
        scan<true>(count, units);
      else
        scan<false>(count, units);
      __syncthreads();
    }
    if (!clear) return;
    if (threadIdx.x == 0) atomicAdd(reinterpret_cast<unsigned long long*>(&state.postings), (unsigned long long)scanned);
    gate(note);
  }

  // Makes the segments of spans [base, base + count), count <= THREADS, and returns their units. The caller must
  // __syncthreads between the last use of the segments and the next plan.
  __device__ uint32_t plan(uint32_t base, uint32_t count, uint32_t& postings) {
    uint32_t units = 0, length = 0;
    Segment s = {};
    if (threadIdx.x < count) {
      const Span span = batch.spans[query.first + base + threadIdx.x];
      const Section section = batch.sections[(tile - batch.residentTile) * (size_t)batch.attributes + span.attribute];
      const uint64_t* words = reinterpret_cast<const uint64_t*>(batch.data + section.words * size_t{16});
      const uint32_t lo = rank(words, span.lo), hi = rank(words, span.hi);
      if (lo != hi) {
        const uint32_t* starts = reinterpret_cast<const uint32_t*>(batch.data + section.starts * size_t{16});
        const uint32_t begin = __ldg(starts + lo);
        length = __ldg(starts + hi) - begin;
        units = ((begin & 7) + length + 7) >> 3;
        s.unit = section.ids + (begin >> 3);
        s.length = length;
        s.weight = span.weight << 3 | (begin & 7);
      }
    }
    uint32_t total;
    s.first = blockPlace<THREADS>(units, shared.scratch[0], total);
    postings = blockSum<THREADS>(length, shared.scratch[1]);
    if (threadIdx.x < count) shared.segments[threadIdx.x] = s;
    if (threadIdx.x == 0) shared.segments[count].first = ~0u;
    __syncthreads();
    return total;
  }

  __device__ static uint32_t rank(const uint64_t* words, uint32_t keyword) {
    const uint64_t w = __ldg(reinterpret_cast<const unsigned long long*>(words) + keyword / 32);
    return uint32_t(w >> 32) + __popc(uint32_t(w) & ((1u << keyword % 32) - 1));
  }

  // Adds all postings of the segments to the counters.
  template <bool NOTE>
  __device__ void scan(uint32_t count, uint32_t units) {
    const uint32_t from = uint64_t{units} * warpOf() / kWarps, to = uint64_t{units} * (warpOf() + 1) / kWarps;
    uint32_t u = from + laneOf();
    if (u >= to) return;
    // The last segment that begins at or before u.
    uint32_t at = 0;
    for (uint32_t n = count; n > 1;) {
      const uint32_t half = n / 2;
      if (shared.segments[at + half].first <= u) at += half;
      n -= half;
    }
    Segment s = shared.segments[at];
    uint32_t next = shared.segments[at + 1].first;
    for (; u < to; u += 32) {
      while (u >= next) {
        at++;
        s = shared.segments[at];
        next = shared.segments[at + 1].first;
      }
      const uint32_t k = u - s.first;
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(batch.data) + s.unit + k);
      const uint32_t head = s.weight & 7, left = head + s.length - k * 8;
      uint32_t valid = left >= 8 ? 0xff : (1u << left) - 1;
      if (k == 0) valid &= 0xffu << head;
      const uint32_t weight = s.weight >> 3;
      const uint32_t pair[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
      for (int j = 0; j < 8; j++) {
        uint32_t id = j % 2 ? pair[j / 2] >> 16 : pair[j / 2] & 0xffff;
        bool in = valid >> j & 1;
        if (PARTS > 1) {
          id -= lowest;
          in = in && id < kObjects;
        }
        if (!in) continue;
        if (NOTE) {
          const uint32_t before = counters.fetchAdd(id, weight);
          if (before < threshold && before + weight >= threshold) {
            const uint32_t place = atomicAdd(&shared.notes, 1);
            if (place < kNoted) shared.noted[place] = id;
          }
        } else {
          counters.add(id, weight);
        }
      }
    }
  }

  // Appends what passes to the candidate buffer. noted: objects at the threshold have been noted.
  __device__ void gate(bool noted) {
    if (!noted || shared.notes > kNoted) {
      // Note what passes, by reading all counters.
      __syncthreads();
      if (threadIdx.x == 0) shared.notes = 0;
      __syncthreads();
      const typename C::AtLeast passes(threshold);
      for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS) {
        const uint4 x = reinterpret_cast<const uint4*>(shared.counters)[i];
        const uint32_t word[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
          uint32_t mask = passes(word[j]);
          if (!mask) continue;
          uint32_t place = atomicAdd(&shared.notes, __popc(mask));
          for (; mask; mask &= mask - 1, place++)
            if (place < kNoted) shared.noted[place] = (i * 4 + j) * C::kPerWord + (__ffs(mask) - 1) / BITS;
        }
      }
      __syncthreads();
    }
    const uint32_t passing = shared.notes;
    if (passing == 0) return;
    if (passing > query.k || passing > kNoted) {
      gateMany(passing);
      return;
    }
    if (threadIdx.x == 0) shared.place = atomicAdd(&state.stored, passing);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < passing; i += THREADS) {
      const uint32_t id = shared.noted[i];
      emit(shared.place + i, counters.get(id), id);
    }
  }

  __device__ void emit(uint32_t place, uint32_t count, uint32_t local) {
    const uint32_t id = batch.base + tile * kTileObjects + lowest + local;
    batch.entries[query.entries + place] = uint64_t{count} << 32 | uint32_t(~id);
  }

  // Counters that are at least t.
  __device__ uint32_t countAtLeast(uint32_t t) {
    const typename C::AtLeast passes(t);
    uint32_t sum = 0;
    for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS) {
      const uint4 x = reinterpret_cast<const uint4*>(shared.counters)[i];
      sum += __popc(passes(x.x)) + __popc(passes(x.y)) + __popc(passes(x.z)) + __popc(passes(x.w));
    }
    __syncthreads();
    return blockSum<THREADS>(sum, shared.scratch[0]);
  }

  // More pass than k, or than can be noted. Let t be the least count that at most k objects reach: these pass, and of
  // those with count t - 1 the first by id, until k have.
  __device__ void gateMany(uint32_t passing) {
    uint32_t below = threshold, t = threshold, reach = passing;
    bool none = false;  // t is beyond what a counter holds
    if (passing > query.k) {
      // More than k reach below; at most k reach t.
      t = min(query.bound, C::kMax);
      reach = below < t ? countAtLeast(t) : passing;
      if (reach > query.k) {
        below = t, reach = 0, none = true;
      } else {
        while (t - below > 1) {
          const uint32_t middle = below + (t - below) / 2;
          const uint32_t n = countAtLeast(middle);
          if (n > query.k)
            below = middle;
          else
            t = middle, reach = n;
        }
      }
    }
    const uint32_t ties = min(query.k, passing) - reach;
    typename C::AtLeast first(t);
    const typename C::AtLeast second(below);
    first.none |= none;
    // Each warp takes consecutive words, in id order.
    constexpr uint32_t kStretch = (kWords + kWarps * 32 - 1) / (kWarps * 32) * 32;
    const uint32_t begin = min(warpOf() * kStretch, kWords), end = min(begin + kStretch, kWords);
    uint32_t firsts = 0, seconds = 0;
    for (uint32_t i = begin + laneOf(); i < end; i += 32) {
      const uint32_t x = shared.counters[i];
      const uint32_t f = first(x);
      firsts += __popc(f);
      seconds += __popc(second(x) & ~f);
    }
    firsts = __reduce_add_sync(~0u, firsts);
    seconds = __reduce_add_sync(~0u, seconds);
    __syncthreads();
    if (laneOf() == 0) {
      shared.scratch[0][warpOf()] = firsts;
      shared.scratch[1][warpOf()] = seconds;
    }
    if (threadIdx.x == 0) shared.place = atomicAdd(&state.stored, reach + ties);
    __syncthreads();
    uint32_t total;
    const uint32_t w = laneOf();
    uint32_t firstPlace = warpPlace(w < kWarps ? shared.scratch[0][w] : 0, total);
    uint32_t secondPlace = warpPlace(w < kWarps ? shared.scratch[1][w] : 0, total);
    firstPlace = shared.place + __shfl_sync(~0u, firstPlace, warpOf());
    secondPlace = __shfl_sync(~0u, secondPlace, warpOf());
    for (uint32_t i = begin; i < end; i += 32) {
      const uint32_t word = i + laneOf();
      const uint32_t x = word < end ? shared.counters[word] : 0;
      uint32_t f = first(x), s = second(x) & ~f;
      if (!__any_sync(~0u, f | s)) continue;
      uint32_t inWarp;
      uint32_t place = firstPlace + warpPlace(__popc(f), inWarp);
      firstPlace += inWarp;
      for (; f; f &= f - 1) pass(place++, word, f);
      place = secondPlace + warpPlace(__popc(s), inWarp);
      secondPlace += inWarp;
      for (; s && place < ties; s &= s - 1) pass(shared.place + reach + place++, word, s);
    }
  }

  // Emits the counter of a word that is marked by the lowest bit of mask.
  __device__ void pass(uint32_t place, uint32_t word, uint32_t mask) {
    const uint32_t id = word * C::kPerWord + (__ffs(mask) - 1) / BITS;
    emit(place, counters.get(id), id);
  }
};

template <int BITS, int THREADS, int PARTS>
__device__ __forceinline__ void match(const Batch& batch) {
  using M = Match<BITS, THREADS, PARTS>;
  extern __shared__ __align__(16) uint8_t memory[];
  M(batch, *reinterpret_cast<typename M::Shared*>(memory)).run();
}

}  // namespace

// The host chooses by count bound and shared memory: policy.go. Threads are such that a multiprocessor is full with the
// blocks that its shared memory holds (sm_90: 6, 3 and 1 blocks).
#define GENIEMQ_MATCH(BITS, THREADS, PARTS, BLOCKS)                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) match_##BITS##_##PARTS(const Batch batch) { \
    match<BITS, THREADS, PARTS>(batch);                                                                   \
  }                                                                                                       \
  extern "C" __device__ const uint32_t match_##BITS##_##PARTS##_threads = THREADS;                        \
  extern "C" __device__ const uint32_t match_##BITS##_##PARTS##_shared = sizeof(Match<BITS, THREADS, PARTS>::Shared);

GENIEMQ_MATCH(4, 256, 1, 6)
GENIEMQ_MATCH(8, 512, 1, 3)
GENIEMQ_MATCH(16, 1024, 1, 1)
GENIEMQ_MATCH(16, 512, 2, 1)
GENIEMQ_MATCH(32, 1024, 2, 1)
GENIEMQ_MATCH(32, 512, 4, 1)

}  // namespace geniemq
