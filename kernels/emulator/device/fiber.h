// Threads of a block as fibers: what kernels and the driver share of them.
//
// A CUDA thread is a fiber: a stack of its own, and a hand-written switch from one to another. One runs at a time, so no memory
// access of a kernel is torn and atomics are plain. A fiber runs until it waits: at a collective of its warp, at a barrier, for an
// mbarrier. So there is no preemption between two plain accesses; with GENIEMQ_EMULATED_SEED=n it is random which fiber goes on,
// and fibers also let go at atomics and at accesses that are written in PTX.
//
// Misuse that hardware leaves undefined is an error here, with the place in the source: lanes of a mask that are at different
// collectives, masks that name a lane that has exited, barriers at which nobody comes any more, shared addresses that are out of
// bounds, mbarriers that were never initialised.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

struct uint3 {
  unsigned int x, y, z;
};
struct dim3 {
  unsigned int x, y, z;
};

namespace emulated {

struct Place {
  const char* file;
  int line;
};
#define EMULATED_HERE ::emulated::Place at = {__builtin_FILE(), __builtin_LINE()}

struct Warp;
struct Block;
struct Fiber;

// A copy that cp.async has begun.
struct Copy {
  void* to;
  const void* from;
  uint32_t bytes, zeros;
};

struct Fiber {
  void* stack;  // where it goes on
  uint3 thread;
  uint32_t lane;
  Warp* warp;
  Block* block;
  // What it waits for, or was last seen at.
  const char* waits;
  Place at;
  uint32_t mask;
  const void* polls;  // an mbarrier
  void* slot;         // of its collective
  uint32_t sum;       // of __syncthreads_count and its like
  std::vector<Copy> copies;      // not yet committed
  std::vector<std::vector<Copy>> groups;  // committed, not yet waited for
};

struct Warp {
  Fiber lanes[32];
  // A bit a lane.
  uint32_t live, ready;  // ready: not waiting
  uint32_t joined;       // at a collective
  uint32_t polling;
  uint32_t barred;       // at a barrier of the block
  uint32_t number;
};

// A barrier of the block (bar.sync).
struct Named {
  uint32_t arrived, wanted, sum;  // wanted: 0 for all threads
  const char* name;               // by which it was called
};

// A copy of the copy engine.
struct Bulk {
  void* to;
  const void* from;
  uint32_t bytes;
  uint64_t* barrier;
};

struct Block {
  uint3 index;
  uint32_t live;      // threads
  uint32_t warps;
  uint32_t at;        // the warp that ran last
  uint32_t turns;     // left until another block may run
  Named barriers[16];
  std::vector<Bulk> bulks;
  uint8_t* dynamic;   // shared memory
  uint32_t dynamicBytes;
  std::vector<uint8_t> saved;  // static shared memory while another block runs
  Warp* warp;         // its warps
};

// What runs. All of it belongs to the thread that holds the driver's lock.
struct Running {
  Fiber* fiber;
  Block* block;
  dim3 grid, dim;
  uint8_t* statics;      // where the window of shared memory begins: a little before the module's static shared memory
  uint32_t staticBytes;  // and where it goes on with dynamic shared memory
  bool random;
  bool deferred;         // cp.async copies as late as it may
  uint8_t garbage;       // of which shared memory is full at first
  uint64_t state;        // of the random numbers
  uint64_t progress;     // steps that others may wait for
};
extern Running running;

// Ends the launch with an error of the driver and a text, which begins with the kernel, the block and the thread.
[[noreturn]] void fail(int error, const Place& at, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Lets others run; the fiber must have left what is ready where it waits.
void away();
// Lets others run before this one goes on, until something happens. mbarrier: what it waits for, or null.
void poll(const void* mbarrier, const char* waits, const Place& at);
// The same at random.
void preempt();
inline void mayPreempt() {
  if (__builtin_expect(running.random, 0)) preempt();
}
uint64_t randomNumber();
void wake(const void* mbarrier);

// A barrier of the block. arrive alone does not wait.
uint32_t barrier(uint32_t id, uint32_t threads, bool wait, uint32_t sum, const char* name, const Place& at);

// A pointer to shared memory from its address in the window, and back.
void* shared(uint32_t address, uint32_t bytes, uint32_t aligned, const Place& at);
uint32_t sharedAddress(const void* p, const Place& at);
void* dynamicShared();

[[noreturn]] void diverged(const char* name, uint32_t mask, const Place& at);

inline uint32_t bit(uint32_t lane) { return 1u << lane; }

// What a lane brings to a collective, and takes from it.
template <class In, class Out>
struct Slot {
  In in;
  Out out;
};

// Meets the other lanes of the mask. The last one calls combine(slots, mask), slots by lane, for all.
template <class In, class Out, class Combine>
inline Out collect(const char* name, uint32_t mask, const In& in, Combine combine, const Place& at) {
  mayPreempt();
  Fiber* const f = running.fiber;
  Warp& w = *f->warp;
  const uint32_t own = bit(f->lane);
  Slot<In, Out> slot{in, {}};
  f->waits = name;
  f->at = at;
  f->mask = mask;
  f->slot = &slot;
  if (!(mask & own) || (mask & ~w.live)) diverged(name, mask, at);
  w.joined |= own;
  const uint32_t there = mask & w.joined;
  if (const uint32_t others = there & ~own) {
    const Fiber& other = w.lanes[__builtin_ctz(others)];
    if (other.mask != mask || (other.waits != name && strcmp(other.waits, name) != 0)) diverged(name, mask, at);
  }
  if (mask & w.barred) diverged(name, mask, at);
  if (there != mask) {
    w.ready &= ~own;
    away();
    return slot.out;
  }
  Slot<In, Out>* slots[32];
  for (uint32_t i = 0; i < 32; i++) {
    if (!(mask >> i & 1)) continue;
    Fiber& other = w.lanes[i];
    if (other.mask != mask || (other.waits != name && strcmp(other.waits, name) != 0)) diverged(name, mask, at);
    slots[i] = static_cast<Slot<In, Out>*>(other.slot);
    other.waits = nullptr;
  }
  combine(slots, mask);
  w.joined &= ~mask;
  w.ready |= mask;
  mayPreempt();
  return slot.out;
}

// Kernels of a module, found by name. A module is one translation unit.
struct Kernel {
  const char* name;
  void (*call)(void** parameters);
  const size_t* bytes;        // of each parameter
  uint32_t parameters, most;  // most: threads of a block, 0: any
  const Kernel* next;
};
static const Kernel* kernels __attribute__((section(".data.emulated")));
struct Module {
  const Kernel* kernels;
  uint8_t* statics;  // its static shared memory
  uint32_t staticBytes;
};

template <class F>
struct Thunk;
template <class... A>
struct Thunk<void (*)(A...)> {
  template <void (*F)(A...), size_t... I>
  static void spread(void** p, std::index_sequence<I...>) {
    F(*static_cast<std::remove_const_t<std::remove_reference_t<A>>*>(p[I])...);
  }
  template <void (*F)(A...)>
  static void call(void** p) {
    spread<F>(p, std::make_index_sequence<sizeof...(A)>());
  }
  static constexpr uint32_t parameters = sizeof...(A);
  static constexpr size_t bytes[sizeof...(A) + 1] = {sizeof(A)..., 0};
};
struct Registered {
  Kernel kernel;
  Registered(const char* name, void (*call)(void**), const size_t* bytes, uint32_t parameters, uint32_t most)
      : kernel{name, call, bytes, parameters, most, kernels} {
    kernels = &kernel;
  }
};

// Dynamic shared memory that is declared in a namespace.
template <class T>
struct Dynamic {
  operator T*() const { return static_cast<T*>(dynamicShared()); }
};

}  // namespace emulated
