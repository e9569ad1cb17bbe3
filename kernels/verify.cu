// Edit distances of candidates, once the answers stand: Myers' bit-vector algorithm (J. ACM 1999) with Hyyroe's blocks
// (2003). index/verify/distance.go is the same algorithm in Go, and explains it; here nothing is bounded: a pair is
// computed to its end, for a warp waits for its slowest pair anyway.
//
// A pattern of m symbols is ceil(m / 64) blocks of 64 rows. A pair of pattern and text belongs to as many consecutive lanes,
// the next power of two, a block each. The columns run through the lanes as through a pipeline: at step s lane b
// computes column s - b of its block and hands the text's symbol and the horizontal difference at its last row on to lane
// b + 1. So one shuffle a step is all that lanes exchange, and a warp holds 32 / lanes pairs.
//
// Symbols are numbers of the code points that occur in the index's texts: a byte each where there are at most 256, else two.
// The pattern's masks are in shared memory, a table a block: by symbol where these are bytes, hashed where they are not.
#include <cstdint>

namespace geniemq {

constexpr uint32_t kMaxPattern = 2048;
constexpr uint32_t kMaxText = 4096;   // longer ones are left to the host: a lane would hold up the batch
constexpr uint32_t kSlots = 128;      // of a block's hash table, half of them used at most
constexpr uint32_t kNone = 0xffff;    // a symbol of the pattern that no text has

// What one warp does: some entries of an answer, at most 32 / lanes. An answer that is sorted has its best entry last;
// rank 0 is the best one. The ranks of one that is not are its places.
struct VerifyTask {
  uint32_t answer, places;   // out[answer .. answer + places)
  uint32_t rank, ranks;      // rank .. rank + ranks, below places
  uint32_t distances;        // distances[distances + rank] is that of an entry
  uint32_t sorted;           // or 0
  uint32_t pattern, length;  // patterns[pattern .. pattern + length)
};

struct Verify {
  const uint8_t* texts;    // a text: u32 length, symbols, up to a multiple of 16 bytes
  const uint32_t* starts;  // of each object's text, in units of 16 bytes
  const uint64_t* out;     // the answers: count << 32 | ~id, and 0 in the places left over at the end
  const uint16_t* patterns;
  const VerifyTask* tasks;
  int32_t* distances;         // -1: not computed
  uint32_t firstTask, lanes;  // blockIdx.x counts from here; lanes a pair
  uint32_t symbols, base;     // symbols that occur in the texts; id of the first object
};

// The host has mirrors of these: gpuexec/cuda_verify.go.
static_assert(sizeof(VerifyTask) == 32 && sizeof(Verify) == 64);

namespace {

extern __shared__ unsigned long long shared[];

// Rows in which a symbol stands, by symbol: table[symbol * lanes + block].
template <int kLanes>
struct DenseMasks {
  using Symbol = uint8_t;
  static __device__ void build(const Verify& v, const uint16_t* pattern, uint32_t length) {
    for (uint32_t i = threadIdx.x; i < v.symbols * kLanes; i += 32) shared[i] = 0;
    __syncwarp();
    for (uint32_t i = threadIdx.x; i < length; i += 32) {
      const uint32_t symbol = pattern[i];
      if (symbol < v.symbols) atomicOr(&shared[symbol * kLanes + i / 64], 1ull << i % 64);
    }
  }
  static __device__ uint64_t find(uint32_t block, uint32_t symbol) { return shared[symbol * kLanes + block]; }
};

// The same by open addressing: kSlots masks a block, then as many keys.
template <int kLanes>
struct HashedMasks {
  using Symbol = uint16_t;
  static constexpr uint32_t kEmpty = ~0u;
  static __device__ uint32_t* keys() { return reinterpret_cast<uint32_t*>(shared + kSlots * kLanes); }
  static __device__ uint32_t slotOf(uint32_t symbol) { return symbol * 0x9e3779b1u >> 25; }
  static __device__ void build(const Verify& v, const uint16_t* pattern, uint32_t length) {
    for (uint32_t i = threadIdx.x; i < kSlots * kLanes; i += 32) {
      shared[i] = 0;
      keys()[i] = kEmpty;
    }
    __syncwarp();
    for (uint32_t i = threadIdx.x; i < length; i += 32) {
      const uint32_t symbol = pattern[i], table = i / 64 * kSlots;
      if (symbol == kNone) continue;
      uint32_t slot = slotOf(symbol);
      while (true) {
        const uint32_t key = atomicCAS(&keys()[table + slot], kEmpty, symbol);
        if (key == kEmpty || key == symbol) break;
        slot = (slot + 1) % kSlots;
      }
      atomicOr(&shared[table + slot], 1ull << i % 64);
    }
  }
  static __device__ uint64_t find(uint32_t block, uint32_t symbol) {
    for (uint32_t slot = slotOf(symbol);; slot = (slot + 1) % kSlots) {
      const uint32_t key = keys()[block * kSlots + slot];
      if (key == symbol) return shared[block * kSlots + slot];
      if (key == kEmpty) return 0;
    }
  }
};

// Reads a text's symbols, 16 bytes ahead.
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

// How many places of an answer are taken.
__device__ uint32_t storedOf(const uint64_t* answer, uint32_t places) {
  uint32_t lo = 0, hi = places;
  while (lo < hi) {
    const uint32_t stride = (hi - lo + 31) / 32, i = lo + threadIdx.x * stride;
    const uint32_t taken = __popc(__ballot_sync(~0u, i < hi && answer[i] != 0));
    if (taken == 0) return lo;
    hi = min(hi, lo + taken * stride);
    lo += (taken - 1) * stride + 1;
  }
  return lo;
}

template <template <int> class Masks, int kLanes>
__device__ void verify(const Verify& v) {
  using Symbol = typename Masks<kLanes>::Symbol;
  using Text = Reader<Symbol>;
  const VerifyTask task = v.tasks[v.firstTask + blockIdx.x];
  const uint32_t block = threadIdx.x % kLanes, pair = threadIdx.x / kLanes, rank = task.rank + pair;
  const uint32_t m = task.length, blocks = max(1u, (m + 63) / 64);

  Masks<kLanes>::build(v, v.patterns + task.pattern, m);
  Text text;
  uint32_t n = 0;
  const uint64_t* answer = v.out + task.answer;
  const uint32_t stored = task.sorted ? storedOf(answer, task.places) : task.places;
  const bool mine = pair < task.ranks;
  const uint64_t entry = mine && rank < stored ? answer[task.sorted ? stored - 1 - rank : rank] : 0;
  if (entry != 0) n = text.open(v.texts + size_t{16} * v.starts[~uint32_t(entry) - v.base]);
  const bool computed = entry != 0 && n <= kMaxText;
  __syncwarp();

  int32_t score = m;
  if (m == 0) {
    score = n;
  } else if (kLanes == 1) {
    Column column;
    for (uint32_t j = 0; j < n && computed;) {
      uint32_t word = text.next();
      for (const uint32_t end = min(n, j + Text::kPerWord); j < end; j++) {
        uint32_t up = 1, down = 0;
        column.step(Masks<kLanes>::find(0, Symbol(word)), up, down, m - 1);
        word >>= 8 * sizeof(Symbol);
        score += int32_t(up) - int32_t(down);
      }
    }
  } else {
    Column column;
    const bool own = computed && block < blocks;
    const uint32_t bottom = block == blocks - 1 ? (m - 1) % 64 : 63;
    const uint32_t steps = __reduce_max_sync(~0u, computed ? n + blocks - 1 : 0);
    uint32_t word = 0, handed = 0;  // symbol << 2 | up << 1 | down
    for (uint32_t s = 0; s < steps; s++) {
      uint32_t symbol = __shfl_up_sync(~0u, handed, 1, kLanes), up = symbol >> 1 & 1, down = symbol & 1;
      symbol >>= 2;
      if (!own || s < block || s - block >= n) continue;
      if (block == 0) {
        if (s % Text::kPerWord == 0) word = text.next();
        symbol = Symbol(word);
        word >>= 8 * sizeof(Symbol);
        up = 1;
        down = 0;
      }
      column.step(Masks<kLanes>::find(block, symbol), up, down, bottom);
      score += int32_t(up) - int32_t(down);
      handed = symbol << 2 | up << 1 | down;
    }
  }
  if (block == blocks - 1 && mine) v.distances[task.distances + rank] = computed ? score : -1;
}

template <template <int> class Masks>
__device__ void verify(const Verify& v) {
  switch (v.lanes) {
    case 1: return verify<Masks, 1>(v);
    case 2: return verify<Masks, 2>(v);
    case 4: return verify<Masks, 4>(v);
    case 8: return verify<Masks, 8>(v);
    case 16: return verify<Masks, 16>(v);
    case 32: return verify<Masks, 32>(v);
  }
}

}  // namespace

extern "C" __device__ const uint32_t verify_max_pattern = kMaxPattern;

// A block is a warp and does a task.
extern "C" __global__ void __launch_bounds__(32) verify_narrow(const Verify v) { verify<DenseMasks>(v); }
extern "C" __global__ void __launch_bounds__(32) verify_wide(const Verify v) { verify<HashedMasks>(v); }

}  // namespace geniemq
