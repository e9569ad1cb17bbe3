// The recount of the bound: bound.cuh says what it does and where things lie. Its two variants are modules of their own, since the compiler
// makes other code of the one where the other is beside it.
#pragma once
#include "block.cuh"
#include "bound.cuh"
#include "gate.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kMarkWords = kBoundMarks / 32;
constexpr uint32_t kRecountThreads = 128;
constexpr uint32_t kRecountBlocks = 8;   // of a multiprocessor, so that a batch of a thousand queries runs at once
constexpr uint32_t kRowLanes = 16;       // lanes of one row, 16 bytes each
constexpr uint32_t kRowsAhead = 4;       // rows of such a half warp that are on their way
constexpr uint32_t kMarksAhead = 4;      // 128 marks each of a thread that are on their way
// Marks of a list. It is emptied when it may be more than half full, and at most half a list is added at a time: in the dense
// case 16 marks of each thread.
constexpr uint32_t kListed = kRecountThreads * 32;
static_assert(kRecountThreads * 16 <= kListed / 2);

// Which bytes of a word are in their spans: even and odd ones apart, in halves of a word with room for a carry into bit 8.
struct Within {
  uint32_t least[2], most[2];
  __device__ __forceinline__ Within(uint32_t lo, uint32_t width) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const uint32_t first = lo >> odd * 8 & 0x00ff00ff;
      least[odd] = 0x01000100 - first;
      most[odd] = 0x01000100 + first + (width >> odd * 8 & 0x00ff00ff);
    }
  }
  // Adds the number of them, to bits 8 .. and 24 .. of sum.
  __device__ __forceinline__ void add(uint32_t codes, uint32_t& sum) const {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const uint32_t code = codes >> odd * 8 & 0x00ff00ff;
      sum += (code + least[odd]) & (most[odd] - code) & 0x01000100;
    }
  }
};

constexpr uint32_t kHeld = 20;  // entries of a thread, when a block keeps the best of them

// Keeps the k best of n >= k distinct entries, n <= kHeld x kRecountThreads, and returns the least of their counts. All threads
// call it. As KeepLargest of gate.cuh, which one warp executes, but many entries are in the registers of a block.
__device__ __noinline__ uint32_t keepBest(uint64_t* entries, uint32_t n, uint32_t k, uint32_t (&scratch)[2][32]) {
  uint64_t mine[kHeld], all = ~0ull, any = 0;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++) {
    const uint32_t at = i * kRecountThreads + threadIdx.x;
    mine[i] = at < n ? __ldcg(reinterpret_cast<const unsigned long long*>(entries) + at) : 0;  // no entry is 0
    if (at < n) all &= mine[i], any |= mine[i];
  }
  const uint32_t parts[4] = {__reduce_and_sync(~0u, uint32_t(all)), __reduce_and_sync(~0u, uint32_t(all >> 32)),
                             __reduce_or_sync(~0u, uint32_t(any)), __reduce_or_sync(~0u, uint32_t(any >> 32))};
  if (laneOf() == 0) {
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) scratch[0][warpOf() * 4 + i] = parts[i];
  }
  __syncthreads();
  for (uint32_t w = 0; w < kRecountThreads / 32; w++) {
    all &= uint64_t{scratch[0][w * 4 + 1]} << 32 | scratch[0][w * 4];
    any |= uint64_t{scratch[0][w * 4 + 3]} << 32 | scratch[0][w * 4 + 2];
  }
  // The k-th largest, bit by bit from the highest; bits that do not differ are those of all.
  uint64_t open = all ^ any, floor = all & any;
  uint32_t turn = 1;
  for (uint32_t reach = n; reach > k; turn ^= 1) {
    const uint64_t bit = 1ull << (63 - __clzll(open));
    open ^= bit;
    uint32_t own = 0;
#pragma unroll
    for (uint32_t i = 0; i < kHeld; i++) {
      if (i * kRecountThreads >= n) break;
      own += mine[i] >= (floor | bit);
    }
    const uint32_t upper = blockSum<kRecountThreads>(own, scratch[turn]);
    if (upper >= k) floor |= bit, reach = upper;
  }
  uint32_t own = 0, least = ~0u, total;
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++) {
    const bool in = mine[i] != 0 && mine[i] >= floor;
    own += in;
    if (in) least = min(least, uint32_t(mine[i] >> 32));
  }
  uint32_t place = blockPlace<kRecountThreads>(own, scratch[turn], total);
#pragma unroll
  for (uint32_t i = 0; i < kHeld; i++)
    if (mine[i] != 0 && mine[i] >= floor) __stcg(reinterpret_cast<unsigned long long*>(entries) + place++, mine[i]);
  least = __reduce_min_sync(~0u, least);
  if (laneOf() == 0) scratch[turn ^ 1][warpOf()] = least;
  __syncthreads();
  least = __reduce_min_sync(~0u, scratch[turn ^ 1][laneOf() % (kRecountThreads / 32)]);
  __syncthreads();
  return least;
}

// Apart from the rest, so that its registers are not needed there.
__device__ __noinline__ void settleApart(const Query* query, State* state, uint64_t* entries, uint32_t* bins) {
  settle(*query, *state, entries, bins);
}

// Counts the marked objects of one query. FILTERED: queries may have filters, and marks that stand for no object that passes are taken
// back before they are listed.
template <bool FILTERED>
struct Passing : Meets<FILTERED> {};
template <>
struct Passing<true> : Meets<true> {
  const uint32_t* passing;  // of the wave, a bit an object; null: all pass
};

template <bool FILTERED>
struct Recount : Passing<FILTERED> {
  struct Shared {
    uint32_t list[kListed];  // marks
    uint32_t listed, stored, threshold;
    uint32_t scratch[2][32];
    uint32_t bins[KeepLargest::kBins];
  };

  const BoundMatch& f;
  Shared& shared;
  State& state;
  uint64_t* const entries;
  const uint32_t k;
  const uint8_t* const lo;
  const uint8_t* const width;
  const uint32_t shift;

  __device__ Recount(const BoundMatch& bound, Shared& s, const Passing<FILTERED>& p)
      : Passing<FILTERED>(p),
        f(bound),
        shared(s),
        state(bound.states[bound.firstQuery + blockIdx.x]),
        entries(bound.entries + bound.queries[bound.firstQuery + blockIdx.x].entries),
        k(bound.queries[bound.firstQuery + blockIdx.x].k),
        lo(bound.ranges + size_t{blockIdx.x} * 2 * bound.rowBytes),
        width(lo + bound.rowBytes),
        shift(markShift(bound.objects)) {}

  __device__ void run() {
    if (state.threshold == kBoundGivenUp) return;
    if constexpr (FILTERED) {
      const Filters& filters = this->filters;
      const uint32_t filter = filters.filterOf[f.firstQuery + blockIdx.x];
      if (filter != kNoFilter) this->passing = filters.passing + size_t{filter & ~kFilterOnly} * filters.passingWords + f.firstObject / 32;
    }
    if (threadIdx.x == 0) {
      shared.listed = 0;
      shared.stored = state.stored;
      shared.threshold = state.threshold;
    }
    uint32_t* const marks = f.marks + size_t{blockIdx.x} * kMarkWords;
    const uint32_t pieces = ((f.objects + kBoundTile - 1) / kBoundTile * kBoundTile - 1 >> shift) / 128 + 1;
    uint32_t listed = 0, marked = 0, turn = 0;  // listed: at least as many as are
    for (uint32_t base = 0; base < pieces; base += kRecountThreads * kMarksAhead, turn ^= 1) {
      if (listed > kListed / 2) count(listed);
      uint4 v[kMarksAhead];
      uint32_t n = 0;
#pragma unroll
      for (uint32_t i = 0; i < kMarksAhead; i++) {
        const uint32_t at = base + i * kRecountThreads + threadIdx.x;
        v[i] = at < pieces ? __ldcg(reinterpret_cast<const uint4*>(marks) + at) : make_uint4(0, 0, 0, 0);
        if constexpr (FILTERED) {
          if (this->passing != nullptr && (v[i].x | v[i].y | v[i].z | v[i].w) != 0) {
            v[i] = {passed(v[i].x, at * 128), passed(v[i].y, at * 128 + 32), passed(v[i].z, at * 128 + 64), passed(v[i].w, at * 128 + 96)};
            __stcg(reinterpret_cast<uint4*>(marks) + at, v[i]);  // it may be read again below
          }
        }
        n += __popc(v[i].x) + __popc(v[i].y) + __popc(v[i].z) + __popc(v[i].w);
      }
      const uint32_t total = blockSum<kRecountThreads>(n, shared.scratch[turn]);
      marked += total;
      if (marked << shift > max(f.most, kBoundPatience + 16 * k)) return giveUp();
      if (total <= kListed / 2) {
        listed += total;
        uint32_t place = placeOf(n);
        if (n == 0) continue;
#pragma unroll
        for (uint32_t i = 0; i < kMarksAhead; i++) {
          const uint32_t at = base + i * kRecountThreads + threadIdx.x, words[4] = {v[i].x, v[i].y, v[i].z, v[i].w};
#pragma unroll
          for (uint32_t j = 0; j < 4; j++) list(words[j], at * 128 + j * 32, place);
          if ((words[0] | words[1] | words[2] | words[3]) != 0)
            __stcg(reinterpret_cast<uint4*>(marks) + at, make_uint4(0, 0, 0, 0));
        }
        continue;
      }
      // More than half a list: 16 marks of each thread at a time.
      const uint32_t end = min(pieces, base + kRecountThreads * kMarksAhead) * 8;
      for (uint32_t first = base * 8; first < end; first += kRecountThreads) {
        if (listed > kListed / 2) count(listed);
        const uint32_t at = first + threadIdx.x;
        const uint32_t word = at < end ? __ldcg(reinterpret_cast<const uint16_t*>(marks) + at) : 0;
        uint32_t place = placeOf(__popc(word));
        list(word, at * 16, place);
        if (word != 0) __stcg(reinterpret_cast<uint16_t*>(marks) + at, uint16_t{0});
        listed += kListed / 2;
      }
    }
    if (marked == 0) return;
    count(listed);
    // Once the threshold holds for k objects it is raised when a part of them would be others.
    const uint32_t stored = shared.stored, kept = loadFresh(&state.kept);
    __syncthreads();
    if (stored >= k && (stored - kept) * 8 > k)
      keep(stored);
    else if (threadIdx.x == 0)
      __stcg(&state.stored, stored);
  }

  // The mark of object o of 64 is its bit here: markOrder, of all at a time.
  __device__ __forceinline__ static uint64_t inMarkOrder(uint64_t x) {
    uint64_t t = (x ^ x >> 7) & 0x00aa00aa00aa00aaull;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccull;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ t << 28;
  }

  // The marks of a word, the first of them mark `first`, that stand for an object that passes.
  __device__ __forceinline__ uint32_t passed(uint32_t word, uint32_t first) const {
    uint32_t left = 0;
    for (; word != 0; word &= word - 1) {
      const uint32_t bit = __ffs(word) - 1, at = first + bit << shift;  // in the order of marks; not all of them are objects
      if (at >= (f.objects + 63 & ~63u)) continue;
      const uint64_t low = __ldg(this->passing + at / 64 * 2), high = __ldg(this->passing + at / 64 * 2 + 1);
      const uint64_t own = inMarkOrder(high << 32 | low) >> at % 64;
      if (shift >= 6 ? own != 0 : (own & ((1ull << (1u << shift)) - 1)) != 0) left |= 1u << bit;
    }
    return left;
  }

  __device__ void giveUp() {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __stcg(&state.stored, min(shared.stored, k));
    __stcg(&state.threshold, kBoundGivenUp);
  }

  // Where a thread lists n marks. The lanes of a warp call it together.
  __device__ __forceinline__ uint32_t placeOf(uint32_t n) {
    uint32_t total, place = 0;
    const uint32_t before = warpPlace(n, total);
    if (laneOf() == 0 && total != 0) place = atomicAdd(&shared.listed, total);
    return __shfl_sync(~0u, place, 0) + before;
  }

  __device__ __forceinline__ void list(uint32_t word, uint32_t at, uint32_t& place) {
    for (; word != 0; word &= word - 1) shared.list[place++] = at + __ffs(word) - 1;
  }

  // Counts what is listed, and empties the list. All threads call it and leave it together.
  __device__ void count(uint32_t& atMost) {
    __syncthreads();
    const uint32_t listed = shared.listed << shift, capacity = boundEntries(k), half = laneOf() / kRowLanes;
    for (uint32_t at = 0; at < listed;) {
      uint32_t stored = shared.stored;
      __syncthreads();  // all have read it
      if (stored > k && capacity - stored < listed - at) {
        keep(stored);
        stored = k;
      }
      const uint32_t end = min(listed, at + capacity - stored);
      for (uint32_t i = at + warpOf() * 2 * kRowsAhead; i < end; i += kRecountThreads / kRowLanes * kRowsAhead)
        rows(i + half * kRowsAhead, end);
      at = end;
      __syncthreads();
    }
    __syncthreads();  // all have read how many are listed, also where none is
    if (threadIdx.x == 0) shared.listed = 0;
    atMost = 0;
    __syncthreads();
  }

  // Counts up to kRowsAhead listed objects from i on, before end, by half a warp. Both halves call it together.
  __device__ __forceinline__ void rows(uint32_t i, uint32_t end) {
    uint32_t object[kRowsAhead], sum[kRowsAhead] = {};
#pragma unroll
    for (uint32_t j = 0; j < kRowsAhead; j++) {
      const uint32_t mark = i + j < end ? shared.list[i + j >> shift] : 0;
      object[j] = i + j < end ? markOrder(mark << shift | (i + j & (1 << shift) - 1)) : ~0u;
    }
    for (uint32_t byte = laneOf() % kRowLanes * 16; byte < f.rowBytes; byte += kRowLanes * 16) {
      uint4 codes[kRowsAhead];
#pragma unroll
      for (uint32_t j = 0; j < kRowsAhead; j++) {
        const uint8_t* const row = f.codes + (size_t{f.firstObject} + object[j]) * f.rowBytes;
        codes[j] = object[j] == ~0u ? make_uint4(0, 0, 0, 0) : __ldg(reinterpret_cast<const uint4*>(row + byte));
      }
      const uint4 l = __ldg(reinterpret_cast<const uint4*>(lo + byte)), w = __ldg(reinterpret_cast<const uint4*>(width + byte));
      const auto add = [&](uint32_t wordLo, uint32_t wordWidth, uint32_t uint4::*word) {
        const Within within(wordLo, wordWidth);
#pragma unroll
        for (uint32_t j = 0; j < kRowsAhead; j++) within.add(codes[j].*word, sum[j]);
      };
      add(l.x, w.x, &uint4::x);
      add(l.y, w.y, &uint4::y);
      add(l.z, w.z, &uint4::z);
      add(l.w, w.w, &uint4::w);
    }
#pragma unroll
    for (uint32_t j = 0; j < kRowsAhead; j++) {
      sum[j] = (sum[j] >> 8 & 0xff) + (sum[j] >> 24);
#pragma unroll
      for (uint32_t d = kRowLanes / 2; d > 0; d /= 2) sum[j] += __shfl_xor_sync(~0u, sum[j], d);
      if (laneOf() % kRowLanes == j && object[j] < f.objects && sum[j] >= shared.threshold) {
        if constexpr (FILTERED) {
          if (!passes(object[j])) continue;
        }
        __stcg(entries + atomicAdd(&shared.stored, 1), makeEntry(sum[j], f.base + f.firstObject + object[j]));
      }
    }
  }

  __device__ __forceinline__ bool passes(uint32_t object) const {
    return this->passing == nullptr || __ldg(this->passing + object / 32) >> object % 32 & 1;
  }

  // Keeps the k best of `stored` entries, which all threads have read. They call it together.
  __device__ void keep(uint32_t stored) {
    if (stored <= kHeld * kRecountThreads) {
      const uint32_t least = keepBest(entries, stored, k, shared.scratch);
      if (threadIdx.x == 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&state.passed), (unsigned long long)(stored - loadFresh(&state.kept)));
        __stcg(&state.kept, k);
        __stcg(&state.threshold, max(shared.threshold, least + 1));
        // In the middle of a wave an object that comes later may have a lower id, so that an equal count is enough.
        shared.threshold = max(shared.threshold, least);
        shared.stored = k;
        __stcg(&state.stored, k);
      }
    } else if (warpOf() == 0) {
      if (laneOf() == 0) __stcg(&state.stored, stored);
      __syncwarp();
      settleApart(f.queries + f.firstQuery + blockIdx.x, &state, f.entries, shared.bins);
      if (laneOf() == 0) {
        shared.threshold = max(shared.threshold, loadFresh(&state.threshold) - 1);
        shared.stored = k;
      }
    }
    __syncthreads();
  }
};

}  // namespace

}  // namespace geniemq
