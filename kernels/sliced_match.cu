// The shared-decode kernel: match counts of the queries of a block over groups of 1,024 objects, and the Gate. Layouts
// and programs are described in sliced.cuh, waves and bounds in gate.cuh.
//
// A block holds the counters of all its queries in registers while it goes through the program once for a group: a
// query's counts of 1,024 objects are bit planes, a word a lane. Its warps have two roles:
//   Decoders   decode the octets of a chunk into a stage of shared memory: a LOP3 and a store a row.
//   Counters   add, for each of their queries, eight rows of the stage by a tree of carry-save adders: 2 ldmatrix,
//              2 dp2a for their addresses, 14 to 23 LOP3.
// Stages form a ring. full[s] completes when all decoders have stored their rows, empty[s] when all counters have read
// theirs. Nobody waits for the block as a whole: decoders are up to a ring ahead, also over the end of a group, and the
// Gate of one warp overlaps with the counting of others.
//
// Why ldmatrix: each lane gives the address of 16 bytes, so one instruction fetches four rows, and the row numbers
// of a query need not be broadcast to all lanes before their addresses can be formed.
//
// Counter planes. c[p] is the plane of 2^p. A tree adds eight rows into planes 0 to 2 and has a carry of weight 8.
// The first tree of a pair leaves it in `open`; the second adds both to plane 3 and ripples upwards: half as many ripples.
#include "barrier.cuh"
#include "block.cuh"
#include "sliced.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kMaxCounters = 12;  // warps of a block that count
constexpr uint32_t kMaxStages = 4;
constexpr uint32_t kTickets = 8;       // at least kMaxStages + 4; see take
constexpr uint32_t kRecords = 3;       // of a counter: the current one and two on their way
constexpr uint32_t kNoGroup = ~0u;

// The ticket of the group that a counter counts, and the first group for which its thresholds do not hold.
struct GateState { uint32_t ticket, until; };

// Shared memory: this, then records of each counter, then stages.
struct alignas(128) Shared {
  Barrier full[kMaxStages], empty[kMaxStages];
  Barrier taken[kTickets];     // the group of a ticket is known
  uint32_t tickets[kTickets];  // it
  GateState gate[kMaxCounters];
  uint32_t thresholds[kMaxCounters][kMaxSlots];  // threshold + bias, what counters are compared with
  uint32_t most[kMaxCounters][kMaxSlots];        // entries of a group that may pass
  uint32_t bins[kMaxCounters][KeepLargest::kBins];
};
__host__ __device__ constexpr uint32_t fixedBytes(uint32_t counters, uint32_t slots) {
  return sizeof(Shared) + counters * kRecords * recordBytes(slots);
}
__device__ __forceinline__ uint32_t stageBytes(uint32_t octets) { return kRowBytes + octets * kOctetBytes; }

// ------------------------------------------------------------------------------------------------------ decoding

// Stores four rows, a word of each a lane. at: the address of the first plus rowOffset().
__device__ __forceinline__ void storeRows(uint32_t at, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
#else
  asm volatile(
      "st.shared.u32 [%0], %1; st.shared.u32 [%0+128], %2; st.shared.u32 [%0+256], %3; st.shared.u32 [%0+384], %4;" ::"r"(at),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
#endif
}
__device__ __forceinline__ uint32_t rowOffset() {
#if __CUDA_ARCH__ >= 900
  return laneOf() / 8 * kRowBytes + laneOf() % 8 * 16;  // stmatrix: 16 bytes of one row a lane
#else
  return laneOf() * 4;
#endif
}

// Decodes a task. x: the first eight planes of its attribute, 0 where it has fewer; planes: all of them; both at the
// lane's word. to: the address of row 0 of the stage plus rowOffset().
//
// With code = 256 prefix + 8 octet + low, E is the mask of the objects of an octet and L[low] compares the lowest three
// digits. A row is C | E & L[low]: C = 0 for equal; the objects of lower octets for less; of higher ones for atLeast.
__device__ __forceinline__ void decodeTask(const uint4& task, const uint32_t (&x)[8], const uint32_t* planes, uint32_t to) {
  const uint32_t count = task.y & 0xff, kind = task.y >> 8 & 0x7f;
  const uint32_t octets = __reduce_or_sync(~0u, task.z);  // the same in all lanes: now the compiler knows
  // Digits above the eighth: H where they equal the prefix, C where they are less.
  uint32_t H = ~0u, C = 0;
  for (uint32_t p = 8; p < count; p++) {
    const uint32_t y = __ldg(planes + p * kGroupWords), digit = 0u - (task.w >> (p - 8) & 1);
    C = (digit & ~y) | (~(digit ^ y) & C);
    H &= ~(digit ^ y);
  }
  uint32_t at = to + (task.y >> 16) * kRowBytes;
  const auto digits = [](uint32_t y0, uint32_t y1, uint32_t y2, uint32_t value) {
    return (value & 1 ? y0 : ~y0) & (value & 2 ? y1 : ~y1) & (value & 4 ? y2 : ~y2);
  };
  uint32_t L[kOctetRows];
  if (kind == kRowEqual) {
#pragma unroll
    for (uint32_t v = 0; v < kOctetRows; v++) L[v] = digits(x[0], x[1], x[2], v);
#pragma unroll
    for (uint32_t high = 0; high < 8; high++) {
      if (octets >> high * 4 == 0) break;
      if ((octets >> high * 4 & 15) == 0) continue;
      const uint32_t T = H & digits(x[5], x[6], x[7], high);
#pragma unroll
      for (uint32_t low = 0; low < 4; low++) {
        if (!(octets >> (high * 4 + low) & 1)) continue;
        const uint32_t E = T & (low & 1 ? x[3] : ~x[3]) & (low & 2 ? x[4] : ~x[4]);
#pragma unroll
        for (uint32_t v = 0; v < kOctetRows; v += 4) storeRows(at + v * kRowBytes, E & L[v], E & L[v + 1], E & L[v + 2], E & L[v + 3]);
        at += kOctetBytes;
      }
    }
    return;
  }
  const uint32_t least = kind == kRowAtLeast ? ~0u : 0;
#pragma unroll
  for (uint32_t v = 0; v < kOctetRows; v++) {
    L[v] = least;  // ^ (the lowest digits are less than v)
#pragma unroll
    for (uint32_t u = 0; u < v; u++) L[v] ^= digits(x[0], x[1], x[2], u);
  }
#pragma unroll
  for (uint32_t high = 0; high < 8; high++) {
    if (octets >> high * 4 == 0) break;
    const uint32_t T = H & digits(x[5], x[6], x[7], high);
    if ((octets >> high * 4 & 15) == 0) {
      C |= T;
      continue;
    }
#pragma unroll
    for (uint32_t low = 0; low < 4; low++) {
      const uint32_t E = T & (low & 1 ? x[3] : ~x[3]) & (low & 2 ? x[4] : ~x[4]);
      if (octets >> (high * 4 + low) & 1) {
        const uint32_t outside = least & ~E ^ C;  // C, or for atLeast what is neither in C nor in E
#pragma unroll
        for (uint32_t v = 0; v < kOctetRows; v += 4)
          storeRows(at + v * kRowBytes, outside | (E & L[v]), outside | (E & L[v + 1]), outside | (E & L[v + 2]), outside | (E & L[v + 3]));
        at += kOctetBytes;
      }
      C |= E;
    }
  }
}

// ------------------------------------------------------------------------------------------------------ counting

// sum + a + b: the sum stays, the carry is returned.
__device__ __forceinline__ uint32_t addTwo(uint32_t& sum, uint32_t a, uint32_t b) {
  const uint32_t carry = (sum & a) | (sum & b) | (a & b);
  sum ^= a ^ b;
  return carry;
}

// Loads eight rows of the stage. pair: two row numbers; lanes 8 i to 8 i + 7 have those of rows i and i + 4. stage: the
// address of row 0, plus 16 bytes for each lane of its eight.
__device__ __forceinline__ void loadRows(uint32_t (&x)[8], uint32_t pair, uint32_t stage) {
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const uint32_t address = __dp2a_lo(pair, kRowBytes << i * 2, stage);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[i]), "=r"(x[i + 1]), "=r"(x[i + 2]), "=r"(x[i + 3]) : "r"(address));
  }
}

template <int PLANES>
struct Counters {
  uint32_t c[PLANES];
  uint32_t open;

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int p = 0; p < PLANES; p++) c[p] = 0;
    open = 0;
  }

  // Adds eight rows.
  template <bool COMPLETE>
  __device__ __forceinline__ void tree(const uint32_t (&x)[8]) {
    const uint32_t t0 = addTwo(c[0], x[0], x[1]), t1 = addTwo(c[0], x[2], x[3]);
    const uint32_t f0 = addTwo(c[1], t0, t1);
    const uint32_t t2 = addTwo(c[0], x[4], x[5]), t3 = addTwo(c[0], x[6], x[7]);
    const uint32_t f1 = addTwo(c[1], t2, t3);
    const uint32_t eights = addTwo(c[2], f0, f1);
    if (COMPLETE)
      complete(eights);
    else
      open = eights;
  }

  __device__ __forceinline__ void complete(uint32_t eights) {
    uint32_t carry = addTwo(c[3], open, eights);
    open = 0;
#pragma unroll
    for (int p = 4; p < PLANES; p++) {
      const uint32_t next = c[p] & carry;
      c[p] ^= carry;
      carry = next;
    }
  }

  __device__ __forceinline__ void twice() {
#pragma unroll
    for (int p = PLANES - 1; p > 0; p--) c[p] = c[p - 1];
    c[0] = 0;
  }

  // The objects whose count is at least t.
  __device__ __forceinline__ uint32_t atLeast(uint32_t t) const {
    uint32_t reach = PLANES < 32 && t >> (PLANES % 32) != 0 ? 0 : ~0u;
#pragma unroll
    for (int p = 0; p < PLANES; p++) {
      const uint32_t digit = 0u - (t >> p & 1);
      reach = (c[p] & reach) | ((c[p] | reach) & ~digit);
    }
    return PLANES < 32 && t >> (PLANES % 32) != 0 ? 0 : reach;
  }
};

// The k of the passing objects that the total order puts first; there are more. Called seldom, as the next one, and not
// inlined: they need registers that the counters of the other queries hold.
template <int PLANES>
__device__ __noinline__ uint32_t firstOf(const Counters<PLANES> counters, uint32_t passing, uint32_t k) {
  // The k-th largest count, digit by digit: `sure` are above it, `ties` have its digits so far.
  uint32_t sure = 0, ties = passing, wanted = k;
#pragma unroll
  for (int p = PLANES - 1; p >= 0; p--) {
    const uint32_t ones = ties & counters.c[p], n = __reduce_add_sync(~0u, __popc(ones));
    if (n >= wanted) {
      ties = ones;
    } else {
      sure |= ones;
      ties &= ~ones;
      wanted -= n;
    }
  }
  // Of the ties the first by id: ids ascend with the lane, then with the bit.
  uint32_t all;
  const uint32_t before = warpPlace(__popc(ties), all);
  for (uint32_t keep = before < wanted ? wanted - before : 0; keep > 0 && ties != 0; keep--, ties &= ties - 1)
    sure |= ties & (0u - ties);
  return sure;
}

// Stores the entries of the passing objects. firstId: the id of the group's first object.
template <int PLANES>
__device__ __noinline__ void storeEntries(const Counters<PLANES> counters, uint32_t passing, uint32_t bias, uint64_t* to,
                                          uint32_t firstId) {
  uint32_t all;
  to += warpPlace(__popc(passing), all);
  for (; passing != 0; passing &= passing - 1) {
    const uint32_t bit = __ffs(passing) - 1;
    uint32_t count = 0;
#pragma unroll
    for (int p = 0; p < PLANES; p++) count |= (counters.c[p] >> bit & 1) << p;
    __stcg(to++, makeEntry(count - bias, firstId + laneOf() * 32 + bit));
  }
}

// Waits until the wave of a group is open, and reads its thresholds. Called once a wave and warp, and not inlined.
template <int SLOTS, int COUNTERS>
__device__ __noinline__ void enterWave(const Sliced& s, Shared& shared, uint32_t warp, uint32_t group) {
  const uint32_t lane = laneOf();
  const uint32_t firstQuery = s.firstQuery + blockIdx.x * s.perBlock;
  const uint32_t queries = min(s.perBlock, s.queriesOfBatch - blockIdx.x * s.perBlock);
  // The first wave is short: it stores the most, and the thresholds that it yields spare the others that.
  const uint32_t index = group - s.firstGroup;
  const uint32_t wave = index < s.firstWave ? 0 : 1 + (index - s.firstWave) / s.waveGroups;
  openWave(
      s.waves[blockIdx.x * COUNTERS + warp], wave, s.firstWave + (wave - 1) * s.waveGroups,
      [&](uint32_t a) {
        const uint32_t i = a * COUNTERS + warp;
        return a < SLOTS && i < queries && mustSettle(s.queries[firstQuery + i], s.states[firstQuery + i]);
      },
      [&](uint32_t a) {
        const uint32_t i = a * COUNTERS + warp;
        settle(s.queries[firstQuery + i], s.states[firstQuery + i], s.entries, shared.bins[warp]);
      });
  __syncwarp();  // all lanes have read what is written now
  const uint32_t i = lane * COUNTERS + warp;
  if (lane < SLOTS) {
    const uint32_t threshold = i < queries ? loadFresh(&s.states[firstQuery + i].threshold) : ~0u;
    const uint32_t bias = i < queries ? __ldg(s.biases + size_t{blockIdx.x} * COUNTERS * SLOTS + i) : 0;
    shared.thresholds[warp][lane] = threshold + bias < threshold ? ~0u : threshold + bias;
    shared.most[warp][lane] = i < queries ? min(s.queries[firstQuery + i].k, kGroupObjects) : 0;
  }
  if (lane == 0) shared.gate[warp].until = s.firstGroup + s.firstWave + wave * s.waveGroups;
  __syncwarp();
}

template <int PLANES, int SLOTS, int COUNTERS, int DECODERS>
struct Match {
  static constexpr uint32_t kRecordBytes = recordBytes(SLOTS);
  static constexpr uint32_t kThreads = (COUNTERS + DECODERS) * 32;

  const Sliced& s;
  Shared& shared;
  const uint32_t lane, warp;  // counters are the first warps

  __device__ __forceinline__ Match(const Sliced& args, uint8_t* memory)
      : s(args), shared(*reinterpret_cast<Shared*>(memory)), lane(laneOf()), warp(__shfl_sync(~0u, warpOf(), 0)) {}

  __device__ __forceinline__ uint32_t stageAt(uint32_t stage) const {
    return sharedAddress(&shared) + fixedBytes(COUNTERS, SLOTS) + stage * stageBytes(s.stageOctets);
  }

  __device__ __forceinline__ void run() {
    const Program program = s.programs[blockIdx.x];
    if (program.trees == 0) return;
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kMaxStages; i++) shared.full[i].init(DECODERS), shared.empty[i].init(COUNTERS);
      for (uint32_t i = 0; i < kTickets; i++) shared.taken[i].init(1);
    }
    for (uint32_t i = threadIdx.x; i < s.stages * kGroupWords; i += kThreads)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(stageAt(i / kGroupWords) + i % kGroupWords * 4), "r"(0) : "memory");
    __syncthreads();
    if (warp < COUNTERS) {
      shareRegisters<true>();
      count(program.trees);
    } else {
      shareRegisters<false>();
      decode(warp - COUNTERS);
    }
  }

  // Registers are dealt to warps in equal shares. Where the device can, decoders give up most of theirs to the counters.
  template <bool COUNTER>
  __device__ __forceinline__ static void shareRegisters() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr uint32_t kShare = 65536 / kThreads / 8 * 8;
    constexpr uint32_t kDecoder = 56;
    constexpr uint32_t kCounter = (kShare * (COUNTERS + DECODERS) - kDecoder * DECODERS) / COUNTERS / 8 * 8;
    if constexpr (COUNTERS % 4 != 0 || DECODERS % 4 != 0) {
      // Registers move between groups of four warps.
    } else if constexpr (COUNTER) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCounter));
    } else {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kDecoder));
    }
#endif
  }

  // The group of a ticket, or kNoGroup.
  __device__ __forceinline__ uint32_t groupOf(uint32_t ticket) {
    Barrier::wait(sharedAddress(&shared.taken[ticket % kTickets]), ticket / kTickets & 1);
    return shared.tickets[ticket % kTickets];
  }

  // ---- Decoders

  // Takes the next group of the query block; one thread of the block does, one group ahead of the planes that it fetches.
  // The ring holds: when chunk c is decoded all counters have counted chunk c - kMaxStages - 1 and entered its group, and
  // all decoders are beyond it, so nobody needs a group more than kMaxStages + 1 before the one whose place is taken.
  __device__ __forceinline__ void take(uint32_t ticket) {
    const uint32_t n = atomicAdd(&s.tickets[blockIdx.x], 1);
    shared.tickets[ticket % kTickets] = n < s.groups ? s.firstGroup + n : kNoGroup;
    Barrier::arrive(sharedAddress(&shared.taken[ticket % kTickets]));
  }

  // A decoder goes through its list of tasks once a group. While it decodes one, the planes of the next and the task
  // after that are on their way.
  __device__ __forceinline__ void decode(uint32_t decoder) {
    const uint4* list = reinterpret_cast<const uint4*>(s.lists + (size_t{blockIdx.x} * DECODERS + decoder) * s.maxList);
    const uint32_t length = s.lengths[blockIdx.x * DECODERS + decoder];
    const bool takes = decoder == 0 && lane == 0;
    if (takes) take(0), take(1);
    uint32_t ticket = 0, group = groupOf(0), stage = 0, parity = 1;  // of the planes that are on their way
    if (group == kNoGroup) return;
    uint32_t next = 0;  // the task that is on its way
    uint4 task, coming = __ldg(list);
    uint32_t x[8], y[8];
    const uint32_t *planes, *planesOfGroup = s.planes + size_t{group - s.residentGroup} * s.planesOfGroup * kGroupWords + lane;
    const auto advance = [&] {  // the task that was on its way has come: its planes are next, and another task
      task = coming;
      planes = planesOfGroup + task.x * kGroupWords;
#pragma unroll
      for (uint32_t p = 0; p < 8; p++) y[p] = p < (task.y & 0xff) ? __ldg(planes + p * kGroupWords) : 0;
      next = next + 1 == length ? 0 : next + 1;
      coming = __ldg(list + next);
    };
    advance();
    bool first = true;  // of its chunk
    while (true) {
      const uint4 now = task;
      const uint32_t* from = planes;
#pragma unroll
      for (uint32_t p = 0; p < 8; p++) x[p] = y[p];
      bool end = false;
      if (next == 0) {  // the task that is on its way is the first again
        if (takes) take(ticket + 2);
        group = groupOf(++ticket);
        end = group == kNoGroup;
        planesOfGroup = s.planes + size_t{group - s.residentGroup} * s.planesOfGroup * kGroupWords + lane;
      }
      if (!end) advance();
      if (first) Barrier::wait(sharedAddress(&shared.empty[stage]), parity);
      decodeTask(now, x, from, stageAt(stage) + rowOffset());
      first = now.y & kTaskLast;
      if (first) {
        __syncwarp();
        if (lane == 0) Barrier::arrive(sharedAddress(&shared.full[stage]));
        if (++stage == s.stages) stage = 0, parity ^= 1;
      }
      if (end) break;
    }
  }

  // ---- Counters

  __device__ __forceinline__ void count(uint32_t trees) {
    Counters<PLANES> counters[SLOTS];
#pragma unroll
    for (int a = 0; a < SLOTS; a++) counters[a].clear();
    if (lane == 0) shared.gate[warp] = {0, 0};
    if (groupOf(0) == kNoGroup) return;
    const uint32_t records = sharedAddress(&shared + 1) + warp * kRecords * kRecordBytes;
    const uint8_t* const program = s.records + (size_t{blockIdx.x} * s.maxTrees * COUNTERS + warp) * kRecordBytes;
    uint32_t tree = 0, stage = 0, parity = 0, record = records;
    fetch(program, 0, record);
    fetch(program, trees > 1 ? 1 : 0, record + kRecordBytes);
    while (true) {
      // The record of this tree is here; the place of the one before it is free for the one after the next.
      asm volatile("cp.async.wait_group 1;" ::: "memory");
      __syncwarp();
      uint32_t queries, flags;
      asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(queries), "=r"(flags) : "r"(record) : "memory");
      const uint32_t rows = record + 16 + lane / 8 * 4;
      const uint32_t first = rowsOf(rows, 0), second = rowsOf(rows, SLOTS > 1 ? 1 : 0);
      fetch(program, tree + 2 < trees ? tree + 2 : (tree + 2) % trees,
            record == records ? record + 2 * kRecordBytes : record - kRecordBytes);
      record = record == records + (kRecords - 1) * kRecordBytes ? records : record + kRecordBytes;
      if (flags & kTreeFirst) Barrier::wait(sharedAddress(&shared.full[stage]), parity);
      for (uint32_t n = flags >> kTreeDoublings; n > 0; n--) {
#pragma unroll
        for (int a = 0; a < SLOTS; a++) counters[a].twice();
      }
      add(counters, queries, flags & kTreePair, rows, first, second, stageAt(stage) + lane % 8 * 16);
      if (flags & kTreeLast) {
        __syncwarp();
        if (lane == 0) Barrier::arrive(sharedAddress(&shared.empty[stage]));
        if (++stage == s.stages) stage = 0, parity ^= 1;
      }
      if (++tree < trees) continue;
      tree = 0;
      if (!pass(counters)) break;
#pragma unroll
      for (int a = 0; a < SLOTS; a++) counters[a].clear();
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }

  // Starts to copy the warp's record of a tree.
  __device__ __forceinline__ void fetch(const uint8_t* program, uint32_t tree, uint32_t to) {
    if (lane <= SLOTS) {
      const uint8_t* from = program + size_t{tree} * (COUNTERS * kRecordBytes) + lane * 16;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + lane * 16), "l"(from) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  // Adds a tree to the counters, the second of a pair or the first. rows: where the lane's row numbers of slot 0 are; first
  // and second: those of slots 0 and 1. Where most slots have rows, the others add the empty row: without branches
  // between them loads and adders of different queries overlap.
  __device__ __forceinline__ void add(Counters<PLANES> (&counters)[SLOTS], uint32_t queries, bool pair, uint32_t rows,
                                      uint32_t first, uint32_t second, uint32_t stage) {
    if (__popc(queries) > SLOTS * 3 / 4) {
      pair ? addAll<true>(counters, rows, first, second, stage) : addAll<false>(counters, rows, first, second, stage);
      return;
    }
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      if (!(queries >> a & 1)) {
        if (pair) counters[a].complete(0);
        continue;
      }
      uint32_t x[8];
      loadRows(x, rowsOf(rows, a), stage);
      if (pair)
        counters[a].template tree<true>(x);
      else
        counters[a].template tree<false>(x);
    }
  }

  // Rows are loaded one query ahead of the adders, and their numbers one more.
  template <bool PAIR>
  __device__ __forceinline__ void addAll(Counters<PLANES> (&counters)[SLOTS], uint32_t rows, uint32_t numbers, uint32_t next,
                                         uint32_t stage) {
    uint32_t x[2][8];
    loadRows(x[0], numbers, stage);
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      if (a + 1 < SLOTS) loadRows(x[(a + 1) % 2], next, stage);
      if (a + 2 < SLOTS) next = rowsOf(rows, a + 2);
      counters[a].template tree<PAIR>(x[a % 2]);
    }
  }

  __device__ __forceinline__ static uint32_t rowsOf(uint32_t rows, int slot) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(rows + slot * 16));
    return v;
  }

  // The Gate, for the group that has been counted. False when it was the last.
  __device__ __forceinline__ bool pass(Counters<PLANES> (&counters)[SLOTS]) {
    const uint32_t ticket = shared.gate[warp].ticket;
    const uint32_t group = groupOf(ticket);
    if (group >= shared.gate[warp].until) enterWave<SLOTS, COUNTERS>(s, shared, warp, group);
    // What passes, and in lane a the number of slot a.
    uint32_t passing[SLOTS], some = 0, number = 0;
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      passing[a] = counters[a].atLeast(shared.thresholds[warp][a]);
      if (!__any_sync(~0u, passing[a] != 0)) continue;
      uint32_t n = __reduce_add_sync(~0u, __popc(passing[a]));
      const uint32_t most = shared.most[warp][a];
      if (n > most) {
        passing[a] = firstOf<PLANES>(counters[a], passing[a], most);
        n = most;
      }
      some |= 1u << a;
      if (lane == a) number = n;
    }
    if (some != 0) {
      // All queries get their places at a time.
      const uint32_t query = s.firstQuery + blockIdx.x * s.perBlock + lane * COUNTERS + warp;
      uint64_t* place = nullptr;
      if (number != 0) place = s.entries + __ldg(&s.queries[query].entries) + atomicAdd(&s.states[query].stored, number);
      const uint32_t bias = number != 0 ? __ldg(s.biases + size_t{blockIdx.x} * COUNTERS * SLOTS + lane * COUNTERS + warp) : 0;
#pragma unroll
      for (int a = 0; a < SLOTS; a++) {
        if (!(some >> a & 1)) continue;
        const uint64_t to = __shfl_sync(~0u, reinterpret_cast<uint64_t>(place), a);
        storeEntries<PLANES>(counters[a], passing[a], __shfl_sync(~0u, bias, a), reinterpret_cast<uint64_t*>(to),
                             s.base + group * kGroupObjects);
      }
    }
    passGroup(s.waves[blockIdx.x * COUNTERS + warp]);
    if (lane == 0) shared.gate[warp].ticket = ticket + 1;
    __syncwarp();
    return groupOf(ticket + 1) != kNoGroup;
  }
};

template <int PLANES, int SLOTS, int COUNTERS, int DECODERS>
__device__ __forceinline__ void match(const Sliced& s) {
  extern __shared__ __align__(128) uint8_t memory[];
  Match<PLANES, SLOTS, COUNTERS, DECODERS>(s, memory).run();
}

}  // namespace

// blockIdx.x is the query block; blocks that differ in blockIdx.y share its groups. One block a multiprocessor, and no
// more of them than multiprocessors: see gate.cuh. The count bound plus the biases must be less than 2^PLANES.
// Dynamic shared memory: sliced_match_N_shared + stages x (128 + stageOctets x 1,024) bytes.
#define GENIEMQ_SLICED(PLANES, SLOTS, COUNTERS, DECODERS)                                                     \
  extern "C" __global__ void __launch_bounds__((COUNTERS + DECODERS) * 32, 1)                                 \
      sliced_match_##PLANES(const __grid_constant__ Sliced s) {                                               \
    match<PLANES, SLOTS, COUNTERS, DECODERS>(s);                                                              \
  }                                                                                                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_slots = SLOTS;                                 \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_counters = COUNTERS;                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_decoders = DECODERS;                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_shared = fixedBytes(COUNTERS, SLOTS);

#ifndef GENIEMQ_SLICED_VARIANTS  // the measuring harness sets its own
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
GENIEMQ_SLICED(8, 16, 8, 8)
GENIEMQ_SLICED(16, 10, 8, 8)
GENIEMQ_SLICED(32, 5, 8, 8)
#else
GENIEMQ_SLICED(8, 11, 12, 4)
GENIEMQ_SLICED(16, 5, 12, 4)
GENIEMQ_SLICED(32, 2, 12, 4)
#endif
#endif

}  // namespace geniemq
