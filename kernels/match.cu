// The (query, tile) kernel: match counts of one query over one tile, and the Gate.
//
// A block owns a query and a group of objects: a tile, or a part of one where the counters of a whole tile do not fit
// into shared memory. So it counts its objects completely, and each object meets the Gate once, with its final
// count. Blocks share nothing but the query's State.
//
//   1. Plan: every span of the query becomes a segment, a run of the tile's postings, by two directory loads.
//   2. Planes: spans on bit planes set the counters, which are cleared else.
//   3. Scan: the segments lie end to end in units of 16 bytes; each warp takes an equal stretch of these units, in
//      whole steps of 32, whatever the lengths of the lists. Then the rare lists are searched for the group's objects.
//   4. Gate: of the objects that reached the threshold A at most k, the first in the total order, are appended to the
//      query's candidate buffer.
//
// The threshold does not change while a wave of groups runs (select.cu moves it), all groups before the wave have lower
// ids, and at most min(k, objects) entries of a group pass. So a candidate buffer of k + groups x min(k, objects)
// entries never overflows: kept by the last compaction, plus the wave's.
#include "batch.cuh"
#include "block.cuh"
#include "counters.cuh"
#include "listed.cuh"
#include "planes.cuh"
#include "rare.cuh"

namespace geniemq {
namespace {

// A run of postings in the tile. The segments of a scan lie end to end in units of 8 postings, 16 bytes, aligned as the
// lists are in the index: so a segment's first and last unit may also hold postings of its neighbours. Positions are in
// postings; the first unit of a segment is begin / 8.
struct alignas(16) Segment {
  uint32_t begin, end;  // positions of its postings in the scan
  uint32_t unit;        // of the resident index, minus begin / 8 (modulo 2^32): unit + u is where unit u of the scan lies
  uint32_t weight;
};

constexpr uint32_t kShortSpans = 64;  // up to so many spans one warp plans
constexpr uint32_t kNoted = 512;      // objects that can be noted
constexpr uint32_t kFewPassing = kTileObjects / 8;  // of a tile, see gatePassing

// Up to so many units noting is cheaper than reading all counters, which are twice the bytes with twice the bits.
template <int BITS>
constexpr uint32_t kNoteUnits = BITS <= 4 ? 1024 : 2048;

// What of a group passes: a bit an object, or a list of the tile's; null: all of it.
template <bool FILTERED>
struct Passing : Meets<FILTERED> {};
template <>
struct Passing<true> : Meets<true> {
  const uint32_t* passing;
  uint32_t passingOfTile;  // how many objects
  const uint16_t* list;    // unless null: of them, and passing is no bits
};
static_assert(kMostListed <= kNoted);

// FILTERED: queries may have filters. What does not pass its query's is not noted, or its counter is cleared before the Gate, so that
// the Gate is the same.
template <int BITS, int THREADS, int PARTS, bool FILTERED>
struct Match : Passing<FILTERED> {
  using C = Counters<BITS>;
  static constexpr uint32_t kObjects = kTileObjects / PARTS;  // of a group
  static constexpr uint32_t kWords = kObjects / C::kPerWord;
  static constexpr uint32_t kWarps = THREADS / 32;
  static_assert(kWords % 4 == 0 && kTileObjects % PARTS == 0);

  struct Shared {
    uint32_t counters[kWords];
    Segment segments[THREADS + 1];  // and a sentinel
    uint16_t noted[kNoted];
    uint32_t scratch[2][32];
    uint32_t notes, place;
    uint32_t units;               // of a short query's segments
    unsigned long long postings;  // counted here: of runs by the first part of a tile, since every part reads them
  };

  const Batch& batch;
  Shared& shared;
  const Query query;
  State& state;
  const C counters;
  const uint32_t tile, lowest;  // the group is [lowest, lowest + kObjects) of the tile
  const uint32_t threshold;

  __device__ Match(const Batch& b, Shared& s, const Passing<FILTERED>& p)
      : Passing<FILTERED>(p),
        batch(b),
        shared(s),
        query(b.queries[b.firstQuery + blockIdx.x]),
        state(b.states[b.firstQuery + blockIdx.x]),
        counters{s.counters},
        tile(b.firstTile + blockIdx.y / PARTS),
        lowest(blockIdx.y % PARTS * kObjects),
        threshold(state.threshold) {}

  __device__ void run() {
    if (threshold > query.bound) return;
    if constexpr (FILTERED) {
      const Filters& filters = this->filters;
      if (const uint32_t filter = filters.filterOf[batch.firstQuery + blockIdx.x]; filter != kNoFilter) {
        const size_t number = filter & ~kFilterOnly;
        this->passingOfTile = filters.passingOfTile[number * (filters.passingWords / kTileWords) + tile];
        if (this->passingOfTile == 0) return;
        this->passing = filters.passing + number * filters.passingWords + size_t{tile} * kTileWords;
        if (this->passingOfTile & kListed) {
          this->passingOfTile &= ~kListed;
          if (this->passingOfTile == 0) return;
          this->list = reinterpret_cast<const uint16_t*>(this->passing);
        } else {
          this->passing += lowest / 32;
        }
      }
    }
    if (query.spans <= min(kShortSpans, batch.roundSpans))
      runShort();
    else
      runLong();
  }

  // A query that one warp plans, while the others clear the counters.
  __device__ void runShort() {
    if (warpOf() == 0) planShort();
    const uint32_t inPlanes = start();
    __syncthreads();
    const uint32_t units = shared.units;
    if (units == 0 && query.planeSpans == 0 && query.rareSpans == 0) return;
    // Objects that planes alone bring to the threshold are not noted.
    bool note = units <= kNoteUnits<BITS> && threshold > 1 && query.planeSpans == 0;
    if constexpr (FILTERED) note = note && this->list == nullptr;  // whose few counters are looked at at last
    if (units == 0) {
    } else if (note) {
      scan<true>(shared.segments, query.spans, units);
    } else {
      scan<false>(shared.segments, query.spans, units);
    }
    finish(inPlanes, note, units != 0);
  }

  // A query of any number of spans, some at a time.
  __device__ void runLong() {
    uint64_t scanned = 0;
    uint32_t inPlanes = 0;
    bool started = false;
    if (threadIdx.x == 0) shared.notes = shared.postings = 0;
    if (query.planeSpans + query.rareSpans > 0) {
      started = true;
      inPlanes = start();
      __syncthreads();
    }
    const uint32_t most = min(batch.roundSpans, (uint32_t)THREADS);
    for (uint32_t base = 0; base < query.spans; base += most) {
      const uint32_t count = min(query.spans - base, most);
      uint32_t postings;
      const uint32_t units = plan(base, count, postings);
      if (units != 0) {
        if (!started) {
          started = true;
          start();
          __syncthreads();
        }
        scanned += postings;
        scan<false>(shared.segments, count, units);
      }
      __syncthreads();
    }
    if (!started) return;
    if (threadIdx.x == 0 && lowest == 0) atomicAdd(&shared.postings, (unsigned long long)scanned);
    finish(inPlanes, false, scanned != 0);
  }

  // Sets all counters to what the spans on planes add, or to zero, and returns how many pairs the thread has added.
  __device__ uint32_t start() {
    if (query.planeSpans > 0) {
      const uint32_t left = batch.objects - tile * kTileObjects;
      const PlaneCounts<BITS, THREADS> planes{
          batch.planes + size_t{tile - batch.residentTile} * (kTileObjects / 1024) * batch.planesOfGroup * 32, batch.planesOfGroup,
          lowest / 32, kObjects / 32, (min(left, kTileObjects) + 31) / 32};
      return planes.run(batch.spans + query.first + query.spans, query.planeSpans, counters);
    }
    for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS) reinterpret_cast<uint4*>(shared.counters)[i] = make_uint4(0, 0, 0, 0);
    return 0;
  }

  // The rest of a query whose postings are counted, or being counted by other warps: rare lists, statistics, Gate. pairs:
  // counted on planes by the thread. runs: postings have been counted too.
  __device__ void finish(uint32_t pairs, bool note, bool runs) {
    if (query.rareSpans > 0) {
      pairs += scanRare<THREADS>(batch, batch.spans + query.first + query.spans + query.planeSpans, query.rareSpans,
                                 batch.base + tile * kTileObjects + lowest, kObjects, [&](uint32_t object, uint32_t weight) {
                                   if (!note)
                                     counters.add(object, weight);
                                   else if (counters.addCrosses(object, weight, threshold))
                                     noteObject(object);
                                 });
    }
    if (query.planeSpans + query.rareSpans > 0) {
      pairs = __reduce_add_sync(~0u, pairs);
      if (laneOf() == 0 && pairs > 0) atomicAdd(&shared.postings, (unsigned long long)pairs);
    }
    __syncthreads();
    if (shared.postings == 0 && !runs) return;
    if (threadIdx.x == 0 && shared.postings != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&state.postings), shared.postings);
    if constexpr (FILTERED) {
      if (this->passing != nullptr) return gatePassing(note && shared.notes <= kNoted);
    }
    gate(note && shared.notes <= kNoted);
  }

  // The Gate for objects that pass. noted: of these every one that may pass the Gate has been noted. Where few pass their counters
  // alone are looked at.
  __device__ void gatePassing(bool noted) {
    if (this->list != nullptr) {
      noteListed();
      if (shared.notes > query.k) keepNoted();
      return gate(true);
    }
    if (!noted && this->passingOfTile <= kFewPassing) {
      notePicked();
      noted = true;
    }
    // Where more are noted than may pass, or than can be noted, all counters are read.
    if (!noted || shared.notes > min(query.k, kNoted)) clearOthers();
    gate(noted);
  }

  // Notes of the objects that pass those that reach the threshold.
  __device__ void notePicked() {
    __syncthreads();  // notes has been read
    if (threadIdx.x == 0) shared.notes = 0;
    __syncthreads();
    for (uint32_t w = threadIdx.x; w < kObjects / 32; w += THREADS) {
      for (uint32_t bits = __ldg(this->passing + w); bits != 0; bits &= bits - 1) {
        const uint32_t id = w * 32 + __ffs(bits) - 1;
        if (counters.get(id) < threshold) continue;
        const uint32_t place = atomicAdd(&shared.notes, 1);
        if (place < kNoted) shared.noted[place] = id;
      }
    }
    __syncthreads();
  }

  // Notes of the listed objects those of the group that reach the threshold.
  __device__ void noteListed() {
    __syncthreads();  // notes has been read
    if (threadIdx.x == 0) shared.notes = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < this->passingOfTile; i += THREADS) {
      const uint32_t id = __ldg(this->list + i) - lowest;
      if (PARTS > 1 && id >= kObjects || counters.get(id) < threshold) continue;
      shared.noted[atomicAdd(&shared.notes, 1)] = id;
    }
    __syncthreads();
  }

  // Clears all counters but those of noted objects, so that those alone are found by reading all.
  __device__ void keepNoted() {
    constexpr uint32_t kEach = (kMostListed + THREADS - 1) / THREADS;
    uint32_t own[kEach];
#pragma unroll
    for (uint32_t j = 0; j < kEach; j++) {
      const uint32_t i = j * THREADS + threadIdx.x;
      own[j] = i < shared.notes ? counters.get(shared.noted[i]) : 0;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS) reinterpret_cast<uint4*>(shared.counters)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < kEach; j++) {
      const uint32_t i = j * THREADS + threadIdx.x;
      if (i < shared.notes) counters.add(shared.noted[i], own[j]);
    }
    __syncthreads();
  }

  // Clears the counters of objects that do not pass.
  __device__ void clearOthers() {
    __syncthreads();  // notes has been read
    for (uint32_t i = threadIdx.x; i < kWords; i += THREADS) {
      const uint32_t ones = C::spread(__ldg(this->passing + i / BITS), i % BITS);
      shared.counters[i] &= BITS == 32 ? 0u - ones : ones * C::kMax;
    }
    __syncthreads();
  }

  __device__ __forceinline__ static uint32_t unitsOf(const Run& run) { return run.length == 0 ? 0 : ((run.begin & 7) + run.length + 7) >> 3; }

  // The segment of a run whose first unit of the scan is first.
  __device__ __forceinline__ static Segment segmentOf(const Run& run, uint32_t first, uint32_t weight) {
    const uint32_t at = first * 8 + (run.begin & 7);
    return {at, at + run.length, run.ids + (run.begin >> 3) - first, weight};
  }

  // Plans up to kShortSpans spans by one warp, two a lane.
  __device__ void planShort() {
    Run run[2] = {};
    uint32_t weight[2] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t at = i * 32 + laneOf();
      if (at < query.spans) {
        const Span span = batch.spans[query.first + at];
        run[i] = findRun(batch, tile, span);
        weight[i] = span.weight;
      }
    }
    const uint32_t postings = __reduce_add_sync(~0u, run[0].length + run[1].length);
    uint32_t first = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint32_t at = i * 32 + laneOf();
      uint32_t total;
      const uint32_t before = first + warpPlace(unitsOf(run[i]), total);
      if (at < query.spans) shared.segments[at] = segmentOf(run[i], before, weight[i]);
      first += total;
    }
    if (laneOf() == 0) {
      shared.segments[query.spans].begin = ~0u;
      shared.notes = 0;
      shared.units = first;
      shared.postings = lowest == 0 ? postings : 0;
    }
  }

  // Makes segments of spans [base, base + count), count <= THREADS, by the whole block, and returns their units. The
  // caller must __syncthreads between the last use of the segments and the next plan.
  __device__ uint32_t plan(uint32_t base, uint32_t count, uint32_t& postings) {
    Run run = {};
    uint32_t weight = 0;
    if (threadIdx.x < count) {
      const Span span = batch.spans[query.first + base + threadIdx.x];
      run = findRun(batch, tile, span);
      weight = span.weight;
    }
    uint32_t total;
    const uint32_t first = blockPlace<THREADS>(unitsOf(run), shared.scratch[0], total);
    postings = blockSum<THREADS>(run.length, shared.scratch[1]);
    if (threadIdx.x < count) shared.segments[threadIdx.x] = segmentOf(run, first, weight);
    if (threadIdx.x == 0) shared.segments[count].begin = ~0u;
    __syncthreads();
    return total;
  }

  // Adds all postings of the segments to the counters. With NOTE, objects are noted as they reach the threshold.
  template <bool NOTE>
  __device__ void scan(const Segment* segments, uint32_t count, uint32_t units) {
    // A stretch is whole steps of a warp, so that only the last step of all has lanes without a unit.
    const uint32_t steps = (units + 31) / 32;
    const uint32_t from = uint64_t{steps} * warpOf() / kWarps * 32, to = min(units, uint32_t(uint64_t{steps} * (warpOf() + 1) / kWarps) * 32);
    if (from >= to) return;
    // The last segment that begins at or before unit u.
    uint32_t u = from + laneOf(), at = 0;
    for (uint32_t n = count; n > 1;) {
      const uint32_t half = n / 2;
      if (segments[at + half].begin / 8 <= u) at += half;
      n -= half;
    }
    Segment s = segments[at];
    uint32_t next = segments[at + 1].begin / 8;
    for (uint32_t first = from; first < to; first += 32, u += 32) {
      // Lanes beyond the end add 0, each to a word of its own.
      const uint32_t idle = laneOf() * C::kPerWord * 0x10001;
      uint4 v = make_uint4(idle, idle, idle, idle);
      uint32_t valid = 0;  // bit j: posting j of the unit belongs to the segment
      if (u < to) {
        if (u >= next) {
          do {
            at++;
            next = segments[at + 1].begin / 8;
          } while (u >= next);
          s = segments[at];
        }
        v = __ldg(reinterpret_cast<const uint4*>(batch.data) + (s.unit + u));
        const int before = s.begin - u * 8, left = s.end - u * 8;
        valid = 0xffu << max(before, 0) & 0xffu >> max(8 - left, 0);
      }
      const uint32_t crossed = __all_sync(~0u, valid == 0xff) ? add<NOTE, true>(v, valid, s.weight) : add<NOTE, false>(v, valid, s.weight);
      if (NOTE && crossed) note(v, crossed);
    }
  }

  // Adds the postings of a unit. What is not valid adds 0, which takes fewer instructions than a branch around it.
  template <bool NOTE, bool ALL>
  __device__ __forceinline__ uint32_t add(const uint4& v, uint32_t valid, uint32_t weight) {
    const uint32_t pair[4] = {v.x, v.y, v.z, v.w};
    uint32_t crossed = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) {
      uint32_t id = j % 2 ? pair[j / 2] >> 16 : pair[j / 2];
      uint32_t w = ALL || valid & 1 << j ? weight : 0;
      if (PARTS > 1) {
        id = (id & 0xffff) - lowest;
        if (id >= kObjects) id = w = 0;
      }
      if (NOTE) {
        if (counters.addCrosses(id, w, threshold)) crossed |= 1 << j;
      } else {
        counters.add(id, w);
      }
    }
    return crossed;
  }

  // Notes the postings of a unit that crossed marks.
  __device__ __forceinline__ void note(const uint4& v, uint32_t crossed) {
    for (; crossed; crossed &= crossed - 1) {
      const int j = __ffs(crossed) - 1;
      const uint32_t word = j < 4 ? (j < 2 ? v.x : v.y) : (j < 6 ? v.z : v.w);
      noteObject((word >> j % 2 * 16 & 0xffff) - lowest);
    }
  }

  __device__ __forceinline__ void noteObject(uint32_t object) {
    if constexpr (FILTERED) {
      if (this->passing != nullptr && !(__ldg(this->passing + object / 32) >> object % 32 & 1)) return;
    }
    const uint32_t place = atomicAdd(&shared.notes, 1);
    if (place < kNoted) shared.noted[place] = object;
  }

  // Appends what passes to the candidate buffer. noted: every object that may pass has been noted.
  __device__ void gate(bool noted) {
    const uint32_t passing = noted ? shared.notes : notePassing();
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

  // Notes what passes, by reading all counters, and returns how many do; when more than kNoted do, noted is incomplete.
  __device__ uint32_t notePassing() {
    __syncthreads();  // notes has been read
    if (threadIdx.x == 0) shared.notes = 0;
    __syncthreads();
    const typename C::AtLeast passes(threshold);
    uint32_t found = 0;
    for (uint32_t i = threadIdx.x; i < kWords / 4; i += THREADS) {
      const uint4 x = reinterpret_cast<const uint4*>(shared.counters)[i];
      uint32_t mask[4] = {passes(x.x), passes(x.y), passes(x.z), passes(x.w)};
      if ((mask[0] | mask[1] | mask[2] | mask[3]) == 0) continue;
      const uint32_t here = __popc(mask[0]) + __popc(mask[1]) + __popc(mask[2]) + __popc(mask[3]);
      found += here;
      if (*reinterpret_cast<volatile uint32_t*>(&shared.notes) > kNoted) continue;
      uint32_t place = atomicAdd(&shared.notes, here);
#pragma unroll
      for (int j = 0; j < 4; j++)
        for (; mask[j]; mask[j] &= mask[j] - 1, place++)
          if (place < kNoted) shared.noted[place] = (i * 4 + j) * C::kPerWord + (__ffs(mask[j]) - 1) / BITS;
    }
    __syncthreads();
    if (shared.notes <= kNoted) return shared.notes;
    return blockSum<THREADS>(found, shared.scratch[0]);
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

template <int BITS, int THREADS, int PARTS, bool FILTERED>
__device__ __forceinline__ void match(const Batch& batch, const Passing<FILTERED>& passing) {
  using M = Match<BITS, THREADS, PARTS, FILTERED>;
  extern __shared__ __align__(16) uint8_t memory[];
  M(batch, *reinterpret_cast<typename M::Shared*>(memory), passing).run();
}

}  // namespace

// The host chooses by count bound and shared memory: policy.go. Threads are such that a multiprocessor is full with the
// blocks that its shared memory holds (sm_90: 6, 3 and 1 blocks).
#define GENIEMQ_MATCH(BITS, THREADS, PARTS, BLOCKS)                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) match_##BITS##_##PARTS(const Batch batch) { \
    match<BITS, THREADS, PARTS, false>(batch, {});                                                        \
  }                                                                                                       \
  extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) filtered_##BITS##_##PARTS(const FilteredBatch f) { \
    match<BITS, THREADS, PARTS, true>(f.batch, {{f.filters}, nullptr, 0, nullptr});                                \
  }                                                                                                       \
  extern "C" __device__ const uint32_t match_##BITS##_##PARTS##_threads = THREADS;                        \
  extern "C" __device__ const uint32_t match_##BITS##_##PARTS##_shared = sizeof(Match<BITS, THREADS, PARTS, false>::Shared);

GENIEMQ_MATCH(4, 256, 1, 6)
GENIEMQ_MATCH(8, 512, 1, 3)
GENIEMQ_MATCH(16, 1024, 1, 1)
GENIEMQ_MATCH(16, 512, 2, 1)
GENIEMQ_MATCH(32, 1024, 2, 1)
GENIEMQ_MATCH(32, 512, 4, 1)

}  // namespace geniemq
