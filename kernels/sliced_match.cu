// The shared-decode kernel: match counts of the queries of a block over groups of 1,024 objects, and the Gate. Layouts
// and programs are described in sliced.cuh, waves and bounds in gate.cuh.
//
// A block holds the counters of all its queries in registers while it goes through the program once for a group: a
// query's counts of 1,024 objects are bit planes, a word a lane. Its warps have two roles:
//   Decoders   decode the octets of a chunk into a stage of shared memory: a LOP3 and a store a row.
//   Counters   add, for each of their queries, eight rows of the stage by a tree of carry-save adders: 2 ldmatrix,
//              2 dp2a for their addresses, 14 or 21 LOP3.
// Stages form a ring. full[s] completes when all decoders have stored their rows, empty[s] when all counters have read
// theirs. Nobody waits for the block as a whole: decoders are up to a ring ahead, also over the end of a group, and the
// Gate of one warp overlaps with the counting of others. A scheduler has two counters at most to fill its slots, and they go
// through more code than its instruction cache holds: between trees every branch and every latency costs. So what a tree
// needs is loaded before the tree before it is finished, and what few groups need is out of the way.
#include "barrier.cuh"
#include "block.cuh"
#include "sliced.cuh"
#include "sliced_adders.cuh"
#include "sliced_decode.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kMaxCounters = 12;  // warps of a block that count
constexpr uint32_t kMaxStages = 4;
constexpr uint32_t kTickets = 8;       // see take
constexpr uint32_t kRecords = 3;       // of a counter: the current one and two on their way
constexpr uint32_t kNoGroup = ~0u;
static_assert(kTickets >= kMaxStages + 4, "a ticket is read while its place in the ring is written again");
constexpr uint32_t kPlanesAhead = 11;  // of a task, loaded while the one before it is decoded: all of 2,047 codes

// Of a counter: the group that it counts and its ticket, and the first group for which its thresholds do not hold.
struct GateState { uint32_t ticket, group, until; };

// Shared memory: this, then records of each counter, then the digits that counters are compared with, then stages.
struct alignas(128) Shared {
  Barrier full[kMaxStages], empty[kMaxStages];
  Barrier taken[kTickets];     // the group of a ticket is known
  uint32_t tickets[kTickets];  // it
  GateState gate[kMaxCounters];
  uint32_t most[kMaxCounters][kMaxSlots];  // entries of a group that may pass
  uint32_t bins[kMaxCounters][KeepLargest::kBins];
};
__host__ __device__ constexpr uint32_t recordsBytes(uint32_t counters, uint32_t slots) {
  return counters * kRecords * recordBytes(slots);
}
// The digits of a query: a word a plane, all ones where threshold + bias - 1 has that digit.
__host__ __device__ constexpr uint32_t fixedBytes(uint32_t counters, uint32_t slots, uint32_t planes) {
  return (sizeof(Shared) + recordsBytes(counters, slots) + counters * slots * planes * 4 + 127) / 128 * 128;
}
__device__ __forceinline__ uint32_t stageBytes(uint32_t octets) { return kRowBytes + octets * kOctetBytes; }

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
template <int PLANES, int SLOTS, int COUNTERS>
__device__ __noinline__ void enterWave(const Sliced& s, Shared& shared, uint32_t* digits, uint32_t warp, uint32_t group) {
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
    // What is not reached is less than the threshold: threshold - 1 in PLANES digits, or more than any count.
    uint32_t below = threshold + bias - 1 < threshold - 1 ? ~0u : threshold + bias - 1;
    if (PLANES < 32 && below >> (PLANES % 32) != 0) below = ~0u;
#pragma unroll
    for (int p = 0; p < PLANES; p++) digits[lane * PLANES + p] = 0u - (below >> p & 1);
    shared.most[warp][lane] = i < queries ? min(s.queries[firstQuery + i].k, kGroupObjects) : 0;
  }
  if (lane == 0) shared.gate[warp].until = s.firstGroup + s.firstWave + wave * s.waveGroups;
  __syncwarp();
}

// FILTERED: queries may have filters, which what reaches their thresholds has to pass too.
template <int PLANES, int SLOTS, int COUNTERS, int DECODERS, bool FILTERED>
struct Match : Meets<FILTERED> {
  static constexpr uint32_t kRecordBytes = recordBytes(SLOTS);
  static constexpr uint32_t kThreads = (COUNTERS + DECODERS) * 32;

  const Sliced& s;
  Shared& shared;
  const uint32_t warp;  // counters are the first ones
  uint32_t lane = 0;  // see run

  __device__ __forceinline__ Match(const Sliced& args, const Meets<FILTERED>& meets, uint8_t* memory)
      : Meets<FILTERED>(meets), s(args), shared(*reinterpret_cast<Shared*>(memory)), warp(__shfl_sync(~0u, warpOf(), 0)) {}

  __device__ __forceinline__ uint32_t stageAt(uint32_t stage) const {
    return sharedAddress(&shared) + fixedBytes(COUNTERS, SLOTS, PLANES) + stage * stageBytes(s.stageOctets);
  }

  __device__ __forceinline__ void run() {
    const Program program = s.programs[blockIdx.x];
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kMaxStages; i++) shared.full[i].init(DECODERS), shared.empty[i].init(COUNTERS);
      for (uint32_t i = 0; i < kTickets; i++) shared.taken[i].init(1);
    }
    for (uint32_t i = threadIdx.x; i < s.stages * kGroupWords; i += kThreads)
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(stageAt(i / kGroupWords) + i % kGroupWords * 4), "r"(0) : "memory");
    __syncthreads();
    // From a shuffle, so that the compiler keeps it rather than to read it again wherever it is needed.
    if (warp < COUNTERS) {
      shareRegisters<true>();
      lane = __shfl_sync(~0u, laneOf(), laneOf());
      count(program.trees);
    } else {
      shareRegisters<false>();
      lane = __shfl_sync(~0u, laneOf(), laneOf());
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

  // The group of a ticket, or kNoGroup. Only the lane that arrives for its warp, lane 0, looks into the ring, so that it has looked
  // when it arrives.
  __device__ __forceinline__ uint32_t groupOf(uint32_t ticket) {
    awaitTicket(ticket);
    return shared.tickets[ticket % kTickets];
  }

  // Of a whole warp. All lanes wait, since it is slower by 2 % when the others wait for one that waits.
  __device__ __forceinline__ uint32_t groupForAll(uint32_t ticket) {
    awaitTicket(ticket);
    return __shfl_sync(~0u, lane == 0 ? shared.tickets[ticket % kTickets] : 0, 0);
  }

  __device__ __forceinline__ void awaitTicket(uint32_t ticket) {
    Barrier::wait(sharedAddress(&shared.taken[ticket % kTickets]), ticket / kTickets & 1);
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

  // Plane P of an attribute that has so many, or 0.
  template <uint32_t P>
  __device__ __forceinline__ static uint32_t loadPlane(const uint32_t* planes, uint32_t count) {
    uint32_t v;
    asm volatile("{ .reg .pred p; setp.gt.u32 p, %2, %3; mov.u32 %0, 0; @p ld.global.nc.u32 %0, [%1 + %4]; }"
                 : "=r"(v) : "l"(planes), "r"(count), "n"(P), "n"(P * kRowBytes));
    return v;
  }

  // A decoder goes through its list of tasks once a group. While it decodes one, the first planes of the next and the task
  // after that are on their way.
  __device__ __forceinline__ void decode(uint32_t decoder) {
    // lane / 32 is 0. The compiler would move what it knows to be the same in all lanes to uniform registers, for which it
    // waits at once.
    const uint4* list =
        reinterpret_cast<const uint4*>(s.lists + (size_t{blockIdx.x} * DECODERS + decoder) * s.maxList) + lane / 32;
    const uint32_t length = s.lengths[blockIdx.x * DECODERS + decoder];
    const bool takes = decoder == 0 && lane == 0;
    if (takes) take(0), take(1);
    uint32_t ticket = 0, group = groupForAll(0), stage = 0, parity = 1;  // of the planes that are on their way
    if (group == kNoGroup) return;
    uint32_t next = 0;  // the task that is on its way
    uint4 task, coming = __ldg(list);
    uint32_t y[kPlanesAhead];
    const uint32_t *planes, *planesOfGroup = s.planes + size_t{group - s.residentGroup} * s.planesOfGroup * kGroupWords + lane;
    const auto advance = [&] {  // the task that was on its way has come: its planes are next, and another task
      task = coming;
      planes = planesOfGroup + task.x * kGroupWords;
      const uint32_t count = task.y & 0xff;
      y[0] = loadPlane<0>(planes, count), y[1] = loadPlane<1>(planes, count), y[2] = loadPlane<2>(planes, count);
      y[3] = loadPlane<3>(planes, count), y[4] = loadPlane<4>(planes, count), y[5] = loadPlane<5>(planes, count);
      y[6] = loadPlane<6>(planes, count), y[7] = loadPlane<7>(planes, count), y[8] = loadPlane<8>(planes, count);
      y[9] = loadPlane<9>(planes, count), y[10] = loadPlane<10>(planes, count);
      next = next + 1 == length ? 0 : next + 1;
      coming = __ldg(list + next);
    };
    advance();
    bool first = true;  // of its chunk
    while (true) {
      const uint4 now = task;
      const uint32_t shape = __reduce_or_sync(~0u, now.y);  // the same in all lanes: now the compiler knows
      const uint32_t* from = planes;
      uint32_t x[8];
#pragma unroll
      for (uint32_t p = 0; p < 8; p++) x[p] = y[p];
      Prefix prefix = {~0u, 0};
      if ((shape & 0xff) > 8) {
#pragma unroll
        for (uint32_t p = 8; p < kPlanesAhead; p++) prefix.add(now.w >> (p - 8), y[p]);
      }
      bool end = false;
      if (next == 0) {  // the task that is on its way is the first again
        if (takes) take(ticket + 2);
        group = groupForAll(++ticket);
        end = group == kNoGroup;
        planesOfGroup = s.planes + size_t{group - s.residentGroup} * s.planesOfGroup * kGroupWords + lane;
      }
      if (!end) advance();
      if (first) Barrier::wait(sharedAddress(&shared.empty[stage]), parity);
      for (uint32_t p = kPlanesAhead; p < (shape & 0xff); p++) prefix.add(now.w >> (p - 8), __ldg(from + p * kGroupWords));
      const uint32_t octets = __reduce_or_sync(~0u, now.z);
      decodeTask(shape >> 8 & 0x7f, octets, x, prefix, stageAt(stage) + (shape >> 16) * kRowBytes + rowOffset());
      first = shape & kTaskLast;
      if (first) {
        __syncwarp();
        Barrier::arriveIf(lane == 0, sharedAddress(&shared.full[stage]));
        if (++stage == s.stages) stage = 0, parity ^= 1;
      }
      if (end) break;
    }
  }

  // ---- Counters

  // A tree as a counter reads it: from the head of its record, and the row numbers of its first two slots.
  struct Tree {
    uint32_t flags, numbers[2];
    bool ready;  // its rows have been seen in their stage
  };

  // What a counter is about to read.
  struct Cursor {
    uint32_t stage;   // of the ring, x 2, and the parity of full[stage] with that
    uint32_t record;  // of the tree at hand; two more are on their way, to a ring in shared memory
    uint32_t next;    // the record to be fetched next, in bytes from the program's first
    uint32_t end;     // of the program
  };

  __device__ __forceinline__ uint32_t ring() const { return sharedAddress(&shared + 1) + warp * kRecords * kRecordBytes; }
  // Where the lane's row numbers of slot 0 are.
  __device__ __forceinline__ uint32_t rowsAt(const Cursor& c) const { return c.record + 16 + lane / 8 * 4; }

  // Starts to copy the next record, to a place.
  __device__ __forceinline__ void fetch(Cursor& c, uint32_t to) {
    const uint8_t* program = s.records + (size_t{blockIdx.x} * s.maxTrees * COUNTERS + warp) * kRecordBytes;
    asm volatile(
        "{ .reg .pred p; setp.le.u32 p, %2, %3; @p cp.async.cg.shared.global [%0], [%1], 16; }\n"
        "cp.async.commit_group;" ::"r"(to + lane * 16),
        "l"(program + (c.next + lane * 16)), "r"(lane), "n"(SLOTS)
        : "memory");
    c.next += COUNTERS * kRecordBytes;
    if (c.next == c.end) c.next = 0;
  }

  // From a tree, all of whose rows and row numbers have been loaded, to the next one. flags: its own.
  __device__ __forceinline__ Tree advance(Cursor& c, uint32_t flags) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    Barrier::arriveIf((flags & kTreeLast) != 0 && lane == 0, sharedAddress(&shared.empty[c.stage / 2]));
    if (flags & kTreeLast) c.stage += 2;
    if (c.stage >= 2 * s.stages) c.stage = ~c.stage & 1;
    Tree next;
    next.ready = Barrier::complete(sharedAddress(&shared.full[c.stage / 2]), c.stage & 1);
    const uint32_t done = c.record;
    c.record = done == ring() + (kRecords - 1) * kRecordBytes ? ring() : done + kRecordBytes;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next.flags) : "r"(c.record + 4) : "memory");
    next.numbers[0] = rowsOf(rowsAt(c), 0);
    next.numbers[1] = rowsOf(rowsAt(c), SLOTS > 1 ? 1 : 0);
    fetch(c, done);
    return next;
  }

  __device__ __forceinline__ void count(uint32_t trees) {
    Counters<PLANES> counters[SLOTS];
#pragma unroll
    for (int a = 0; a < SLOTS; a++) counters[a].clear();
    if (lane == 0) shared.gate[warp] = {~0u, kNoGroup, 0};
    if (!enterGroup()) return;
    Cursor c = {0, ring() + (kRecords - 1) * kRecordBytes, 0, trees * (COUNTERS * kRecordBytes)};
    fetch(c, ring());
    fetch(c, ring() + kRecordBytes);
    Tree tree = advance(c, 0);
    while (true) {
      if (!tree.ready) Barrier::wait(sharedAddress(&shared.full[c.stage / 2]), c.stage & 1);
      const uint32_t flags = tree.flags;
      tree = add(counters, tree, c);
      if (!(flags & kTreeEnd)) continue;
      if (!pass(counters)) break;
#pragma unroll
      for (int a = 0; a < SLOTS; a++) counters[a].clear();
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
  }

  // Adds a tree to the counters, and returns the next one. Where most slots have rows, the others add the empty row: without
  // branches between them loads and adders of different queries overlap.
  __device__ __forceinline__ Tree add(Counters<PLANES> (&counters)[SLOTS], const Tree& tree, Cursor& c) {
    const bool pair = tree.flags & kTreePair;
    const uint32_t stage = stageAt(c.stage / 2) + lane % 8 * 16;
    if (tree.flags & kTreeDense) return pair ? addAll<true>(counters, tree, c, stage) : addAll<false>(counters, tree, c, stage);
    for (uint32_t n = tree.flags >> kTreeDoublings; n > 0; n--) {
#pragma unroll
      for (int a = 0; a < SLOTS; a++) counters[a].twice();
    }
    uint32_t queries;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(queries) : "r"(c.record) : "memory");
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      if (!(queries >> a & 1)) {
        if (pair) counters[a].complete(0);
        continue;
      }
      uint32_t x[8];
      loadRows(x, rowsOf(rowsAt(c), a), stage);
      if (pair)
        counters[a].template tree<true>(x);
      else
        counters[a].template tree<false>(x);
    }
    return advance(c, tree.flags);
  }

  // Rows are loaded one query ahead of the adders, and their numbers one more.
  template <bool PAIR>
  __device__ __forceinline__ Tree addAll(Counters<PLANES> (&counters)[SLOTS], const Tree& tree, Cursor& c, uint32_t stage) {
    uint32_t x[2][8], numbers = tree.numbers[1];
    Tree next;
    loadRows(x[0], tree.numbers[0], stage);
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      if (a + 1 < SLOTS) loadRows(x[(a + 1) % 2], numbers, stage);
      if (a + 2 < SLOTS) numbers = rowsOf(rowsAt(c), a + 2);
      if (a + 2 == SLOTS || SLOTS == 1) next = advance(c, tree.flags);
      counters[a].template tree<PAIR>(x[a % 2]);
    }
    return next;
  }

  __device__ __forceinline__ static uint32_t rowsOf(uint32_t rows, int slot) {
    uint32_t v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(rows + slot * 16));
    return v;
  }

  // The Gate, for the group that has been counted. False when it was the last.
  __device__ __forceinline__ bool pass(Counters<PLANES> (&counters)[SLOTS]) {
    const uint32_t group = shared.gate[warp].group;
    uint32_t* const digits =
        reinterpret_cast<uint32_t*>(reinterpret_cast<uint8_t*>(&shared + 1) + recordsBytes(COUNTERS, SLOTS)) +
        warp * SLOTS * PLANES;
    if (group >= shared.gate[warp].until) enterWave<PLANES, SLOTS, COUNTERS>(s, shared, digits, warp, group);
    // What passes; of which slots something does; and in lane a the number of slot a.
    uint32_t passing[SLOTS], some = 0, number = 0;
    [[maybe_unused]] uint32_t filtered[SLOTS];
    if constexpr (FILTERED) loadFiltered(filtered, group);
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      uint32_t d[PLANES];
#pragma unroll
      for (int p = 0; p < PLANES; p += 4) {
        const uint4 v = reinterpret_cast<const uint4*>(digits)[(a * PLANES + p) / 4];
        d[p] = v.x, d[p + 1] = v.y, d[p + 2] = v.z, d[p + 3] = v.w;
      }
      passing[a] = counters[a].above(d);
      if constexpr (FILTERED) passing[a] &= filtered[a];
      some |= passing[a] != 0 ? 1u << a : 0;
    }
    some = __reduce_or_sync(~0u, some);
    if (some != 0) {
      uint32_t many = 0;  // slots of which more pass than may
#pragma unroll
      for (int a = 0; a < SLOTS; a++) {
        if (!(some >> a & 1)) continue;
        const uint32_t n = __reduce_add_sync(~0u, __popc(passing[a]));
        if (lane == a) number = n;
        if (n > shared.most[warp][a]) many |= 1u << a;
      }
      if (many != 0) {
#pragma unroll
        for (int a = 0; a < SLOTS; a++) {
          if (!(many >> a & 1)) continue;
          const uint32_t most = shared.most[warp][a];
          passing[a] = firstOf<PLANES>(counters[a], passing[a], most);
          if (lane == a) number = most;
        }
      }
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
    return enterGroup();
  }

  // What of the group passes the filters of the slots: on its way while thresholds are compared.
  __device__ __forceinline__ void loadFiltered(uint32_t (&filtered)[SLOTS], uint32_t group) const {
    const uint32_t own = lane * COUNTERS + warp;
    uint32_t filter = kNoFilter;
    if (lane < SLOTS && own < min(s.perBlock, s.queriesOfBatch - blockIdx.x * s.perBlock))
      filter = __ldg(this->filters.filterOf + s.firstQuery + blockIdx.x * s.perBlock + own);
    const uint32_t* const words = this->filters.passing + group * kGroupWords + lane;
#pragma unroll
    for (int a = 0; a < SLOTS; a++) {
      const uint32_t of = __shfl_sync(~0u, filter, a);
      filtered[a] = of == kNoFilter ? ~0u : __ldg(words + size_t{of & ~kFilterOnly} * this->filters.passingWords);
    }
  }

  // From here on the counter counts the group of the next ticket. False when there is none.
  __device__ __forceinline__ bool enterGroup() {
    if (lane == 0) shared.gate[warp].group = groupOf(++shared.gate[warp].ticket);
    __syncwarp();
    return shared.gate[warp].group != kNoGroup;
  }
};

template <int PLANES, int SLOTS, int COUNTERS, int DECODERS, bool FILTERED>
__device__ __forceinline__ void match(const Sliced& s, const Meets<FILTERED>& meets) {
  extern __shared__ __align__(128) uint8_t memory[];
  Match<PLANES, SLOTS, COUNTERS, DECODERS, FILTERED>(s, meets, memory).run();
}

}  // namespace

// blockIdx.x is the query block; blocks that differ in blockIdx.y share its groups. One block a multiprocessor. The count
// bound plus the biases must be less than 2^PLANES.
// Dynamic shared memory: sliced_match_N_shared + stages x (128 + stageOctets x 1,024) bytes.
#define GENIEMQ_SLICED(PLANES, SLOTS, COUNTERS, DECODERS)                                                     \
  extern "C" __global__ void __launch_bounds__((COUNTERS + DECODERS) * 32, 1)                                 \
      sliced_match_##PLANES(const __grid_constant__ Sliced s) {                                               \
    match<PLANES, SLOTS, COUNTERS, DECODERS, false>(s, {});                                                   \
  }                                                                                                           \
  extern "C" __global__ void __launch_bounds__((COUNTERS + DECODERS) * 32, 1)                                 \
      sliced_filtered_##PLANES(const __grid_constant__ FilteredSliced f) {                                    \
    match<PLANES, SLOTS, COUNTERS, DECODERS, true>(f.sliced, {f.filters});                                    \
  }                                                                                                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_slots = SLOTS;                                 \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_counters = COUNTERS;                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_decoders = DECODERS;                           \
  extern "C" __device__ const uint32_t sliced_match_##PLANES##_shared = fixedBytes(COUNTERS, SLOTS, PLANES);

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
