// The Gate of the shared-decode kernel: entries, waves inside one launch, and settling a query by one warp.
//
// An entry is one object with its final count, count << 32 | ~id, so that a larger entry is a better hit in the total
// order (count descending, object id ascending) and the entries of a query are distinct. "The k largest" is therefore
// one well-defined set whatever the order in which entries are stored, and whatever else is stored: results do not
// depend on scheduling.
//
// Dropping. An entry may be dropped only when k stored entries of its query precede it. Objects are counted in groups,
// groups run in waves of ascending ids, and State::threshold is fixed while a wave runs. Between waves it rises to the
// count of the k-th entry plus one once k are stored: they all have lower ids than what comes, so an equal count is not
// enough. It starts at max(1, min_count). MC_k of the paper is threshold - 1 at the end (Theorem 3.1).
//
// Bound of the candidate buffer. At most g = min(k, objects of a group) entries of a group pass, those that the total
// order puts first, so a wave of w groups adds at most w x g. settle runs between waves and leaves at most 2k entries, so by
// induction never more than entryCapacity = 2k + w x g are stored. (k + w x g would do; with 2k a query is settled only
// after k new entries, at constant cost an entry.)
//
// Waves inside one launch. Blocks take the groups of a query in ascending order and pass the Gate group by group. A Wave
// counts the groups that passed; when the last one is complete the warps that need the next wave settle the queries,
// each another one, and then go on. A block takes a group once it runs and in ascending order, so a warp only ever waits for
// groups of lower ids that blocks which run have taken: nothing waits for ever, however many blocks are resident at a time.
#pragma once
#include <cstdint>

#include "batch.cuh"

namespace geniemq {

constexpr uint32_t kBackoff = 100;  // ns that a warp sleeps between two looks at what it waits for

// Progress of the queries that the warps of one index of one query block hold. The host clears it before each launch.
struct Wave {
  uint32_t passed;     // groups whose entries are stored
  uint32_t claimed;    // the wave that some warp has begun to open
  uint32_t open;       // groups of this wave may pass
  uint32_t unsettled;  // queries that wait for a warp to settle them, a bit each
  uint32_t settling;   // queries that are not settled yet
  uint32_t unused[3];
};
static_assert(sizeof(Wave) == 32);

// Entries that a query's candidate buffer must hold for waves of so many groups of so many objects.
__host__ __device__ constexpr uint64_t entryCapacity(uint32_t k, uint32_t waveGroups, uint32_t groupObjects) {
  return 2 * uint64_t{k} + uint64_t{waveGroups} * (k < groupObjects ? k : groupObjects);
}

__device__ __forceinline__ uint64_t makeEntry(uint32_t count, uint32_t id) { return uint64_t{count} << 32 | uint32_t(~id); }

__device__ __forceinline__ uint32_t loadAcquire(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// Reads what other multiprocessors write during the launch: from L2, and never a value that was read before.
__device__ __forceinline__ uint32_t loadFresh(const uint32_t* p) {
  uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ uint64_t loadFresh(const uint64_t* p) {
  uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void storeRelease(uint32_t* p, uint32_t v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ void addRelease(uint32_t* p, uint32_t v) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

// KeepLargest reduces n > k distinct entries in memory to the k largest, in place, by one warp whose lanes call it
// together.
//
// Up to 256 entries, the usual case, are held in registers and cut by bisection. More are first cut by a radix selection
// from memory, by the count and then, should ties leave too many, by the id.
struct KeepLargest {
  static constexpr uint32_t kDigitBits = 7;
  static constexpr uint32_t kBins = 1 << kDigitBits;  // words of shared memory that a warp needs

  uint64_t* const entries;
  uint32_t* const bins;
  uint32_t n;

  // Returns a count that the k entries kept reach.
  __device__ uint32_t run(uint32_t k) {
    if (n > kCached * 32) keepRadix(k, 32);
    if (n > kCached * 32 && n > k) keepRadix(k, 0);
    if (n <= kCached * 32) return keepCached(k);
    uint32_t least = ~0u;
    for (uint32_t i = lane(); i < n; i += 32) least = min(least, uint32_t(loadFresh(entries + i) >> 32));
    return __reduce_min_sync(~0u, least);
  }

 private:
  static constexpr uint32_t kCached = 8;  // entries of a lane

  __device__ static uint32_t lane() { return threadIdx.x & 31; }

  // The bits in which values, of all lanes, are not all equal.
  __device__ static uint64_t differing(uint64_t all, uint64_t any) {
    const uint32_t high = __reduce_or_sync(~0u, uint32_t(any >> 32)) ^ __reduce_and_sync(~0u, uint32_t(all >> 32));
    const uint32_t low = __reduce_or_sync(~0u, uint32_t(any)) ^ __reduce_and_sync(~0u, uint32_t(all));
    return uint64_t{high} << 32 | low;
  }

  __device__ uint32_t keepCached(uint32_t k) {
    uint64_t mine[kCached], all = ~0ull, any = 0;
#pragma unroll
    for (uint32_t i = 0; i < kCached; i++) {
      const bool in = i * 32 + lane() < n;
      mine[i] = in ? loadFresh(entries + i * 32 + lane()) : 0;  // no entry is 0
      all &= in ? mine[i] : ~0ull;
      any |= mine[i];
    }
    uint64_t open = differing(all, any);
    // Where no bit differs the floor has the common one.
    uint64_t floor = (uint64_t{__reduce_or_sync(~0u, uint32_t(any >> 32))} << 32 | __reduce_or_sync(~0u, uint32_t(any))) & ~open;
    for (uint32_t reach = n; reach > k;) {
      const uint64_t bit = 1ull << (63 - __clzll(open));
      open ^= bit;
      uint32_t own = 0;
#pragma unroll
      for (uint32_t i = 0; i < kCached; i++) own += mine[i] >= (floor | bit);
      const uint32_t upper = __reduce_add_sync(~0u, own);
      if (upper >= k) floor |= bit, reach = upper;
    }
    uint32_t kept = 0, least = ~0u;
#pragma unroll
    for (uint32_t i = 0; i < kCached; i++) {
      const bool in = mine[i] != 0 && mine[i] >= floor;
      const uint32_t stay = __ballot_sync(~0u, in);
      if (in) __stcg(entries + kept + __popc(stay & ((1u << lane()) - 1)), mine[i]);
      if (in) least = min(least, uint32_t(mine[i] >> 32));
      kept += __popc(stay);
    }
    n = kept;
    return __reduce_min_sync(~0u, least);
  }

  // Keeps the entries whose bits from `low` on are not less than those of the k-th largest.
  __device__ void keepRadix(uint32_t k, uint32_t low) {
    uint64_t all = ~0ull, any = 0;
#pragma unroll 8
    for (uint32_t i = lane(); i < n; i += 32) {
      const uint64_t e = loadFresh(entries + i);
      all &= e;
      any |= e;
    }
    const uint64_t open = differing(all, any) >> low << low;
    const uint64_t common = uint64_t{__reduce_or_sync(~0u, uint32_t(any >> 32))} << 32 | __reduce_or_sync(~0u, uint32_t(any));
    uint64_t floor = (common & ~open) >> low << low, decided = ~open >> low << low;
    uint32_t wanted = k;
    while (~decided >> low != 0) {
      const int top = 63 - __clzll(~decided >> low << low);
      const int shift = max(top - int(kDigitBits) + 1, int(low));
      for (uint32_t i = lane(); i < kBins; i += 32) bins[i] = 0;
      __syncwarp();
#pragma unroll 8
      for (uint32_t i = lane(); i < n; i += 32) {
        const uint64_t e = loadFresh(entries + i);
        if (((e ^ floor) & decided) == 0) atomicAdd(&bins[uint32_t(e >> shift) & (kBins - 1)], 1);
      }
      __syncwarp();
      // Lane i has the bins 4 i .. 4 i + 3; `above` are the entries of larger ones.
      uint32_t own = 0, above = 0;
      for (uint32_t j = 0; j < kBins / 32; j++) own += bins[lane() * (kBins / 32) + j];
      uint32_t sum = own;
      for (uint32_t d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_down_sync(~0u, sum, d);
        if (lane() + d < 32) sum += other;
      }
      above = sum - own;
      uint32_t digit = 0, rest = 0;
      const bool here = above < wanted && sum >= wanted;
      if (here) {
        for (int j = kBins / 32 - 1; j >= 0; j--) {
          digit = lane() * (kBins / 32) + j;
          const uint32_t count = bins[digit];
          if (above + count >= wanted) break;
          above += count;
        }
        rest = wanted - above;
      }
      const uint32_t from = __ffs(__ballot_sync(~0u, here)) - 1;
      digit = __shfl_sync(~0u, digit, from);
      wanted = __shfl_sync(~0u, rest, from);
      floor = (floor >> shift >> kDigitBits << kDigitBits | digit) << shift | (floor & ((1ull << shift) - 1));
      decided |= ~0ull << shift;
      __syncwarp();  // the bins have been read
    }
    keep(floor);
  }

  // Keeps the entries that reach floor. A step reads 32 entries before it writes, and writes only where it has read.
  __device__ void keep(uint64_t floor) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i += 128) {
      uint64_t e[4];
#pragma unroll
      for (uint32_t j = 0; j < 4; j++) e[j] = i + j * 32 + lane() < n ? loadFresh(entries + i + j * 32 + lane()) : 0;
#pragma unroll
      for (uint32_t j = 0; j < 4; j++) {
        const bool in = e[j] != 0 && e[j] >= floor;
        const uint32_t stay = __ballot_sync(~0u, in);
        if (in) __stcg(entries + kept + __popc(stay & ((1u << lane()) - 1)), e[j]);
        kept += __popc(stay);
      }
    }
    __syncwarp();
    n = kept;
  }
};

// settle makes room for another wave by keeping the k best entries of a query, and raises its threshold. One warp calls
// it while nobody else touches the query; bins: KeepLargest::kBins words of shared memory of its own.
__device__ inline void settle(const Query& query, State& state, uint64_t* entries, uint32_t* bins) {
  const uint32_t stored = loadFresh(&state.stored), k = query.k;
  const uint32_t least = KeepLargest{entries + query.entries, bins, stored}.run(k);
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&state.passed), (unsigned long long)(stored - loadFresh(&state.kept)));
    __stcg(&state.kept, k);
    __stcg(&state.stored, k);
    // At the largest count of all the threshold lags by one, which lets through what is dropped later.
    __stcg(&state.threshold, max(loadFresh(&state.threshold), least == ~0u ? least : least + 1));
  }
  __syncwarp();
}

// Whether a query must be settled before the next wave: entryCapacity leaves room for a wave beyond 2k entries.
__device__ __forceinline__ bool mustSettle(const Query& query, const State& state) {
  return loadFresh(&state.stored) > 2 * uint64_t{query.k};
}

// openWave returns when groups of a wave may pass; `before` is the number of groups of all earlier waves. The first warp
// that finds them complete says by mustSettle(i), i = its lane, which of its up to 32 queries are to be settled; then all
// warps that wait do that, by settle(i). The lanes of a warp call it together.
template <class MustSettle, class Settle>
__device__ inline void openWave(Wave& state, uint32_t wave, uint32_t before, MustSettle must, Settle settle) {
  const bool first = (threadIdx.x & 31) == 0;
  while (true) {
    // What lane 0 finds: 0: nothing to do yet, 1: open, 2: this warp says what to settle, 3 + i: it settles query i.
    uint32_t found = 0;
    if (first) {
      if (loadAcquire(&state.open) >= wave) {
        found = 1;
      } else if (const uint32_t queries = loadAcquire(&state.unsettled)) {
        const uint32_t one = queries & (0u - queries);
        if (atomicAnd(&state.unsettled, ~one) & one) found = 3 + __ffs(one) - 1;
      } else if (loadAcquire(&state.passed) >= before && atomicCAS(&state.claimed, wave - 1, wave) == wave - 1) {
        found = 2;
      }
      __threadfence();
    }
    found = __shfl_sync(~0u, found, 0);
    if (found == 1) return;
    if (found == 0) {
      __nanosleep(kBackoff);
      continue;
    }
    if (found == 2) {
      const uint32_t queries = __ballot_sync(~0u, must(threadIdx.x & 31));
      if (first) {
        // An access of its own for each word: helpers begin when they see unsettled, and the last opens the wave.
        atomicExch(&state.settling, __popc(queries));
        if (queries == 0)
          storeRelease(&state.open, wave);
        else
          storeRelease(&state.unsettled, queries);
      }
      continue;
    }
    settle(found - 3);
    __threadfence();
    __syncwarp();
    if (first && atomicSub(&state.settling, 1) == 1) {
      __threadfence();
      storeRelease(&state.open, loadAcquire(&state.claimed));  // which may be a wave before the one wanted here
    }
  }
}

// passGroup says that this warp has stored its entries of one more group.
__device__ __forceinline__ void passGroup(Wave& state) {
  __syncwarp();
  if ((threadIdx.x & 31) == 0) addRelease(&state.passed, 1);
}

}  // namespace geniemq
