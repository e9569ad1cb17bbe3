// Edit distances: Myers' bit-vector algorithm (J. ACM 1999) with Hyyroe's blocks (2003). index/verify/distance.go is the same
// algorithm in Go, and explains it.
//
// A pattern of m symbols is ceil(m / 64) blocks of 64 rows. A pair of pattern and text belongs to as many consecutive lanes,
// the next power of two, a block each. The columns run through the lanes as through a pipeline: at step s lane b
// computes column s - b of its block and hands the text's symbol and the horizontal difference at its last row on to lane
// b + 1. So one shuffle a step is all that lanes exchange, and a warp holds 32 / lanes pairs, of one pattern.
//
// Symbols are numbers of the code points that occur in the index's texts: a byte each where there are at most 256, else two.
// The pattern's masks are in shared memory, a table a block of rows: by symbol where these are bytes, hashed where they are not.
#pragma once
#include <cstdint>

namespace geniemq {

constexpr uint32_t kMaxPattern = 2048;
constexpr uint32_t kMaxText = 4096;   // longer ones are left to the host: a lane would hold up the batch
constexpr uint32_t kSlots = 128;      // of a block's hash table, half of them used at most
constexpr uint32_t kSlotShift = 25;   // of a 32-bit hash
static_assert(kSlots == 1u << (32 - kSlotShift));
constexpr uint32_t kNone = 0xffff;    // a symbol of the pattern that no text has

namespace {

extern __shared__ unsigned long long masks[];

// Rows in which a symbol stands, by symbol: masks[symbol * lanes + block]. All threads of a block call build.
template <int kLanes>
struct DenseMasks {
  using Symbol = uint8_t;
  static __device__ void build(uint32_t symbols, const uint16_t* pattern, uint32_t length) {
    for (uint32_t i = threadIdx.x; i < symbols * kLanes; i += blockDim.x) masks[i] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < length; i += blockDim.x) {
      const uint32_t symbol = pattern[i];
      if (symbol < symbols) atomicOr(&masks[symbol * kLanes + i / 64], 1ull << i % 64);
    }
    __syncthreads();
  }
  static __device__ uint64_t find(uint32_t block, uint32_t symbol) { return masks[symbol * kLanes + block]; }
};

// The same by open addressing: kSlots masks a block of rows, then as many keys.
template <int kLanes>
struct HashedMasks {
  using Symbol = uint16_t;
  static constexpr uint32_t kEmpty = ~0u;
  static __device__ uint32_t* keys() { return reinterpret_cast<uint32_t*>(masks + kSlots * kLanes); }
  static __device__ uint32_t slotOf(uint32_t symbol) { return symbol * 0x9e3779b1u >> kSlotShift; }
  static __device__ void build(uint32_t, const uint16_t* pattern, uint32_t length) {
    for (uint32_t i = threadIdx.x; i < kSlots * kLanes; i += blockDim.x) {
      masks[i] = 0;
      keys()[i] = kEmpty;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < length; i += blockDim.x) {
      const uint32_t symbol = pattern[i], table = i / 64 * kSlots;
      if (symbol == kNone) continue;
      uint32_t slot = slotOf(symbol);
      while (true) {
        const uint32_t key = atomicCAS(&keys()[table + slot], kEmpty, symbol);
        if (key == kEmpty || key == symbol) break;
        slot = (slot + 1) % kSlots;
      }
      atomicOr(&masks[table + slot], 1ull << i % 64);
    }
    __syncthreads();
  }
  static __device__ uint64_t find(uint32_t block, uint32_t symbol) {
    for (uint32_t slot = slotOf(symbol);; slot = (slot + 1) % kSlots) {
      const uint32_t key = keys()[block * kSlots + slot];
      if (key == symbol) return masks[block * kSlots + slot];
      if (key == kEmpty) return 0;
    }
  }
};

// Reads a text's symbols, 16 bytes ahead. A text is u32 length, symbols, and zeros up to a multiple of 16 bytes.
template <class Symbol>
struct Reader {
  static constexpr uint32_t kPerWord = 4 / sizeof(Symbol);
  const uint4* units;
  uint4 now, ahead;
  uint32_t words, word, at;

  __device__ uint32_t open(const uint8_t* text) {
    units = reinterpret_cast<const uint4*>(text);
    now = __ldg(units);
    const uint32_t length = now.x;
    words = 1 + (length + kPerWord - 1) / kPerWord;  // with the length
    at = 0;
    if (words > 4) ahead = __ldg(++units);
    return length;
  }
  // The next word of symbols; there must be one.
  __device__ uint32_t next() {
    at++;
    if (at % 4 == 0) {
      now = ahead;
      if (at + 4 < words) ahead = __ldg(++units);
    } else {
      now.x = now.y;
      now.y = now.z;
      now.z = now.w;
    }
    return now.x;
  }
};

// A column of a block of 64 rows.
struct Column {
  uint64_t plus = ~0ull, minus = 0;  // vertical differences

  // up, down: the horizontal difference above the first row is +1, -1; afterwards the same of row bottom.
  __device__ void step(uint64_t eq, uint32_t& up, uint32_t& down, uint32_t bottom) {
    const uint64_t xv = eq | minus;
    eq |= down;
    const uint64_t xh = (((eq & plus) + plus) ^ plus) | eq;
    uint64_t ph = minus | ~(xh | plus), mh = plus & xh;
    const uint32_t upBelow = uint32_t(ph >> bottom) & 1, downBelow = uint32_t(mh >> bottom) & 1;
    ph = ph << 1 | up;
    mh = mh << 1 | down;
    plus = mh | ~(xv | ph);
    minus = ph & xv;
    up = upBelow;
    down = downBelow;
  }
};

constexpr int32_t kNoLimit = INT32_MAX;

// The distance of a pattern of m symbols by its masks, and a text of n symbols that has been opened, for the lanes of
// a warp whose pair is real. The last lane of a pair with a block of rows gets it, or any number above limit where it is
// above: it can fall by one a column at most, and a warp ends when all its pairs are beyond hope.
template <int kLanes, class Masks>
__device__ int32_t distanceBy(const Masks& masks, Reader<typename Masks::Symbol>& text, uint32_t n, uint32_t m, bool real, int32_t limit) {
  using Symbol = typename Masks::Symbol;
  constexpr uint32_t kPerWord = Reader<Symbol>::kPerWord;
  if (m == 0) return n;
  int32_t score = m;
  Column column;
  if (kLanes == 1) {
    const uint32_t columns = __reduce_max_sync(~0u, real ? n : 0);
    for (uint32_t j = 0; j < columns; j += kPerWord) {
      if (real && j < n) {
        uint32_t word = text.next();
        for (uint32_t i = j; i < min(n, j + kPerWord); i++) {
          uint32_t up = 1, down = 0;
          column.step(masks.find(0, Symbol(word)), up, down, m - 1);
          word >>= 8 * sizeof(Symbol);
          score += int32_t(up) - int32_t(down);
        }
      }
      if (limit == kNoLimit) continue;
      const int32_t left = max(0, int32_t(n - j) - int32_t(kPerWord));
      if (__all_sync(~0u, !real || score - left > limit)) break;
    }
    return score;
  }
  const uint32_t block = threadIdx.x % kLanes, last = (m - 1) / 64;
  const bool own = real && block <= last;
  const uint32_t bottom = block == last ? (m - 1) % 64 : 63;
  const uint32_t steps = __reduce_max_sync(~0u, real ? n + last : 0);
  uint32_t word = 0, handed = 0;  // symbol << 2 | up << 1 | down
  for (uint32_t s = 0; s < steps; s++) {
    if (limit != kNoLimit && s % 32 == 31) {
      const int32_t left = max(0, int32_t(n) - max(0, int32_t(s - block)));
      if (__all_sync(~0u, !own || block != last || score - left > limit)) break;
    }
    uint32_t symbol = __shfl_up_sync(~0u, handed, 1, kLanes), up = symbol >> 1 & 1, down = symbol & 1;
    symbol >>= 2;
    if (!own || s < block || s - block >= n) continue;
    if (block == 0) {
      if (s % kPerWord == 0) word = text.next();
      symbol = Symbol(word);
      word >>= 8 * sizeof(Symbol);
      up = 1;
      down = 0;
    }
    column.step(masks.find(block, symbol), up, down, bottom);
    score += int32_t(up) - int32_t(down);
    handed = symbol << 2 | up << 1 | down;
  }
  return score;
}

// The same of a pattern whose masks are in shared memory, built by the block.
template <template <int> class Masks, int kLanes>
__device__ int32_t distance(Reader<typename Masks<kLanes>::Symbol>& text, uint32_t n, uint32_t m, bool real, int32_t limit) {
  return distanceBy<kLanes>(Masks<kLanes>{}, text, n, m, real, limit);
}

}  // namespace
}  // namespace geniemq
