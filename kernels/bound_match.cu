// Bound and recount: bound.cuh says what they do and where things lie.
//
// How bound_match keeps the tensor cores busy. A k-step of a tile and a query block takes them 64 clocks, and all else must
// fit beside that. Masks stay in shared memory for the whole launch. Codes come from global memory straight into the
// registers that the matrix instruction reads: a lane loads 16 bytes, which are its words of 8 k-steps, and makes a word of a
// byte by one or two shifts. So there is no producer, no ring and no barrier: a group of four warps works alone, on its own
// tiles, and while one group is at the end of a tile the others go on. One group keeps the tensor cores busy for 75 % of the
// time, four for 96 %, which is what registers allow. Every chunk of 8 k-steps ends by awaiting its products: where
// registers of operands are written while products of another turn of a loop are in flight, the compiler serialises all.
#include "barrier.cuh"
#include "block.cuh"
#include "bound.cuh"
#include "gate.cuh"

namespace geniemq {
namespace {

constexpr uint32_t kGroups = 4;  // of four warps
constexpr uint32_t kMatchThreads = kGroups * 128;
constexpr uint32_t kMarkWords = kBoundMarks / 32;

struct Shared {
  int negated[kBoundQueries];  // thresholds
  Barrier masks;                // have been copied
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr int kTogether = 2;          // k-steps whose words are made together
constexpr int kCounts = 64;         // of a lane: of j = 0 .. 15 and its two rows, queries 8 j + 2 (lane % 4) and the next
constexpr int kNever = -(1 << 30);  // a threshold that no count reaches, negated

// Adds to each count the number of bits that a row has in common with a mask, in one k-step.
__device__ __forceinline__ void multiply(int (&c)[kCounts], const uint32_t (&a)[4], uint64_t masks) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, 1;"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]), "+r"(c[4]), "+r"(c[5]), "+r"(c[6]), "+r"(c[7]), "+r"(c[8]),
        "+r"(c[9]), "+r"(c[10]), "+r"(c[11]), "+r"(c[12]), "+r"(c[13]), "+r"(c[14]), "+r"(c[15]), "+r"(c[16]), "+r"(c[17]),
        "+r"(c[18]), "+r"(c[19]), "+r"(c[20]), "+r"(c[21]), "+r"(c[22]), "+r"(c[23]), "+r"(c[24]), "+r"(c[25]), "+r"(c[26]),
        "+r"(c[27]), "+r"(c[28]), "+r"(c[29]), "+r"(c[30]), "+r"(c[31]), "+r"(c[32]), "+r"(c[33]), "+r"(c[34]), "+r"(c[35]),
        "+r"(c[36]), "+r"(c[37]), "+r"(c[38]), "+r"(c[39]), "+r"(c[40]), "+r"(c[41]), "+r"(c[42]), "+r"(c[43]), "+r"(c[44]),
        "+r"(c[45]), "+r"(c[46]), "+r"(c[47]), "+r"(c[48]), "+r"(c[49]), "+r"(c[50]), "+r"(c[51]), "+r"(c[52]), "+r"(c[53]),
        "+r"(c[54]), "+r"(c[55]), "+r"(c[56]), "+r"(c[57]), "+r"(c[58]), "+r"(c[59]), "+r"(c[60]), "+r"(c[61]), "+r"(c[62]),
        "+r"(c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(masks));
}
__device__ __forceinline__ void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most so many groups of products are not complete.
template <int N>
__device__ __forceinline__ void awaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Has the copy engine copy masks, which completes a phase of the barrier.
__device__ __forceinline__ void copyMasks(uint8_t* to, const uint8_t* from, uint32_t bytes, Barrier& done) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(sharedAddress(&done)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   sharedAddress(to)),
               "l"(from), "r"(bytes), "r"(sharedAddress(&done))
               : "memory");
}

// 1 << code % 32
__device__ __forceinline__ uint32_t bitOf(uint32_t code) {
  uint32_t bit;
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(bit) : "r"(0), "r"(1), "r"(code));
  return bit;
}

// What a lane holds of its two rows.
struct Words {
  uint32_t row[2][4];
  __device__ __forceinline__ void load(const uint8_t* at, uint32_t rowBytes) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(at + h * 8 * rowBytes));
      row[h][0] = v.x, row[h][1] = v.y, row[h][2] = v.z, row[h][3] = v.w;
    }
  }
  // Register i of the operand of k-step s: row half i % 2, word half i / 2.
  __device__ __forceinline__ uint32_t operand(int s, int i) const {
    const int byte = 2 * s + i / 2;
    return bitOf(row[i % 2][byte / 4] >> byte % 4 * 8);
  }
};

struct Match {
  const BoundMatch& f;
  Shared& shared;
  const uint32_t shift = markShift(f.objects);
  const uint32_t lane = laneOf(), warp = warpOf() % 4;
  uint64_t masks;  // matrix descriptor of k-step 0
  int counts[kCounts];

  __device__ Match(const BoundMatch& bound, const uint8_t* memory, Shared& s) : f(bound), shared(s) {
    // No swizzle. Of the matrices of 8 queries x 16 bytes the two of a k-step lie half of its bytes apart, those of the next 8
    // queries 128 bytes. Addresses count 16 bytes.
    masks = uint64_t{sharedAddress(memory)} >> 4 | uint64_t{kBoundStepBytes / 2 >> 4} << 16 | uint64_t{128 >> 4} << 32;
  }

  // LAST: k-steps of the last chunk of a row.
  template <int LAST>
  __device__ __forceinline__ void run() {
    const uint32_t tiles = (f.objects + kBoundTile - 1) / kBoundTile, stride = gridDim.y * kGroups;
    const uint32_t before = f.rowBytes / kBoundChunk - 1;  // chunks before the last
    uint32_t tile = blockIdx.y + threadIdx.x / 128 * gridDim.y;
    if (tile >= tiles) return;
    const size_t tileBytes = size_t{kBoundTile} * f.rowBytes, nextTile = stride * tileBytes - before * kBoundChunk;
    const uint8_t* at =
        f.codes + (size_t{f.firstObject} + warp * 16 + lane / 4) * f.rowBytes + tile * tileBytes + lane % 4 * 16;
    Words next;
    next.load(at, f.rowBytes);
    Barrier::wait(sharedAddress(&shared.masks), 0);
    for (; tile < tiles; tile += stride) {
      begin();
      uint64_t step = masks;
#pragma unroll 1
      for (uint32_t chunk = 0; chunk < before; chunk++) {
        const Words now = next;
        at += kBoundChunk;
        next.load(at, f.rowBytes);
        add<8>(now, step);
        step += 8 * (kBoundStepBytes >> 4);
      }
      const Words now = next;
      if (tile + stride < tiles) at += nextTile;  // else they are loaded again
      next.load(at, f.rowBytes);
      add<LAST>(now, step);
      mark(tile);
      __syncwarp();  // lanes have marked for different queries; the next products want the warp together
    }
  }

  // Adds the columns of some k-steps, the first of a chunk.
  template <int STEPS>
  __device__ __forceinline__ void add(const Words& words, uint64_t step) {
#pragma unroll
    for (int s = 0; s < STEPS; s += kTogether) {
      uint32_t operands[kTogether][4];
#pragma unroll
      for (int e = 0; e < kTogether; e++)
#pragma unroll
        for (int i = 0; i < 4; i++) operands[e][i] = words.operand(s + e, i);
      beginProducts();
#pragma unroll
      for (int e = 0; e < kTogether; e++) multiply(counts, operands[e], step + (s + e) * (kBoundStepBytes >> 4));
      commitProducts();
      awaitProducts<1>();  // so that the registers of the words before can be written again
    }
    awaitProducts<0>();
  }

  // Sets the counts to what they are above the thresholds.
  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int j = 0; j < kCounts / 4; j++) {
      const int2 v = *reinterpret_cast<const int2*>(&shared.negated[j * 8 + lane % 4 * 2]);
      counts[j * 4] = counts[j * 4 + 2] = v.x;
      counts[j * 4 + 1] = counts[j * 4 + 3] = v.y;
    }
  }

  // Marks the objects whose counts are not negative.
  __device__ __forceinline__ void mark(uint32_t tile) {
    int all = -1;
#pragma unroll
    for (int i = 0; i < kCounts; i++) all &= counts[i];
    if (all < 0) return;  // all are negative: nearly always
    uint32_t* const marks = f.marks + size_t{blockIdx.x * kBoundQueries + lane % 4 * 2} * kMarkWords;
    const uint32_t mark = markOrder(tile * kBoundTile + warp * 16 + lane / 4) >> shift, other = mark + (1 >> shift);
#pragma unroll
    for (int j = 0; j < kCounts / 4; j++) {
      if ((counts[j * 4] & counts[j * 4 + 1] & counts[j * 4 + 2] & counts[j * 4 + 3]) < 0) continue;
#pragma unroll
      for (int q = 0; q < 2; q++) {
        const bool first = counts[j * 4 + q] >= 0, second = counts[j * 4 + 2 + q] >= 0;
        if (first || second)
          atomicOr(marks + (j * 8 + q) * kMarkWords + mark / 32,
                   uint32_t{first} << mark % 32 | uint32_t{second} << other % 32);
      }
    }
  }
};

#endif

}  // namespace

// blockIdx.x is the query block; blocks that differ in blockIdx.y share its objects.
extern "C" __global__ void __launch_bounds__(kMatchThreads, 1) bound_match(const __grid_constant__ BoundMatch f) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) uint8_t memory[];
  if (blockIdx.y * kBoundTile >= f.objects) return;  // else some group awaits the copy before the block ends
  const uint32_t bytes = f.kSteps * kBoundStepBytes, first = blockIdx.x * kBoundQueries;
  Shared& shared = *reinterpret_cast<Shared*>(memory + bytes);
  if (threadIdx.x == 0) {
    shared.masks.init(1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    copyMasks(memory, f.masks + size_t{blockIdx.x} * bytes, bytes, shared.masks);
  }
  for (uint32_t i = threadIdx.x; i < kBoundQueries; i += kMatchThreads)
    shared.negated[i] = first + i >= f.queriesOfBatch
                            ? kNever
                            : -int(min(f.states[f.firstQuery + first + i].threshold, uint32_t(-kNever)));
  __syncthreads();
  Match match(f, memory, shared);
  switch (f.kSteps % 8) {
    case 0: return match.run<8>();
    case 2: return match.run<2>();
    case 4: return match.run<4>();
    default: return match.run<6>();
  }
#endif
}

extern "C" __device__ const uint32_t bound_match_threads = kMatchThreads;
extern "C" __device__ const uint32_t bound_match_shared = sizeof(Shared);
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __device__ const uint32_t bound_match_queries = kBoundQueries;
#else
extern "C" __device__ const uint32_t bound_match_queries = 0;
#endif

// ------------------------------------------------------------------------------------------------------ recount

namespace {

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

// Counts the marked objects of one query.
struct Recount {
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

  __device__ Recount(const BoundMatch& bound, Shared& s)
      : f(bound),
        shared(s),
        state(bound.states[bound.firstQuery + blockIdx.x]),
        entries(bound.entries + bound.queries[bound.firstQuery + blockIdx.x].entries),
        k(bound.queries[bound.firstQuery + blockIdx.x].k),
        lo(bound.ranges + size_t{blockIdx.x} * 2 * bound.rowBytes),
        width(lo + bound.rowBytes),
        shift(markShift(bound.objects)) {}

  __device__ void run() {
    if (state.threshold == kBoundGivenUp) return;
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
      if (laneOf() % kRowLanes == j && object[j] < f.objects && sum[j] >= shared.threshold)
        __stcg(entries + atomicAdd(&shared.stored, 1), makeEntry(sum[j], f.base + f.firstObject + object[j]));
    }
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

// blockIdx.x is the query.
extern "C" __global__ void __launch_bounds__(kRecountThreads, kRecountBlocks)
    bound_recount(const __grid_constant__ BoundMatch f) {
  __shared__ Recount::Shared shared;
  Recount(f, shared).run();
}
extern "C" __device__ const uint32_t bound_recount_threads = kRecountThreads;

}  // namespace geniemq
