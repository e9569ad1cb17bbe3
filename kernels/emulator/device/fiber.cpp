// The scheduler: blocks of a launch, their threads as fibers, and what stops them.
#include <cxxabi.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <string>

#include "launch.h"
#include "memory.h"

namespace emulated {

Running running;

namespace {

constexpr uint32_t kThreads = 1024;
constexpr size_t kStack = 64 << 10;
constexpr uint64_t kCanary = 0x5afe5afe5afe5afeull;
constexpr uint32_t kWindow = 1024;           // the first address of shared memory
constexpr uint32_t kShared = 232 << 10;      // of a block, at most, rounded up to pages
constexpr uint32_t kTurns = 4096;            // switches of a block until the next one runs
constexpr uint32_t kPatience = 20000;        // rounds in which everybody polls and nothing happens
constexpr int kSlack = 0xa7;                 // what lies behind dynamic shared memory

// A block that is resident.
struct Seat {
  Block block;
  Warp warps[kThreads / 32];
  uint8_t* stacks = nullptr;
  uint8_t* arena = nullptr;  // pages of dynamic shared memory, between guards
  bool taken = false;
};

// What the driver's thread was doing when it went to the fibers, and what they left it.
struct Main {
  void* stack = nullptr;
  const Launch* launch = nullptr;
  uint64_t launches = 0;
  Seat* loaded = nullptr;  // whose static shared memory is in place
  int error = 0;
  std::string text;
  // A signal.
  volatile int signal = 0;
  void* volatile faulted = nullptr;
  void* volatile pc = nullptr;
} host;

std::vector<Seat*> seats;
thread_local bool inKernel = false;

// ---- Switching

extern "C" void emulated_switch(void** save, void* to);
asm(R"(
.text
.hidden emulated_switch
.type emulated_switch, @function
emulated_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulated_switch, .-emulated_switch
)");

void toMain() { emulated_switch(&running.fiber->stack, host.stack); }

void switchTo(Fiber* next) {
  Fiber* const old = running.fiber;
  if (next == old) return;
  running.fiber = next;
  emulated_switch(&old->stack, next->stack);
}

uint32_t nth(uint32_t bits, uint32_t n) {
  while (n-- > 0) bits &= bits - 1;
  return uint32_t(__builtin_ctz(bits));
}

// The fiber of a block that runs next, or null where none is ready.
Fiber* pick(Block& b) {
  uint32_t w = b.at;
  if (running.random) {
    uint32_t warps = 0;
    for (uint32_t i = 0; i < b.warps; i++) warps |= uint32_t(b.warp[i].ready != 0) << i;
    if (warps == 0) return nullptr;
    const uint64_t r = randomNumber();
    if (!(warps >> w & 1) || (r & 7) == 0) w = nth(warps, uint32_t(r >> 8) % uint32_t(__builtin_popcount(warps)));
    b.at = w;
    const uint32_t lanes = b.warp[w].ready;
    return &b.warp[w].lanes[nth(lanes, uint32_t(r >> 32) % uint32_t(__builtin_popcount(lanes)))];
  }
  for (uint32_t i = 0; b.warp[w].ready == 0; i++) {
    if (i == b.warps) return nullptr;
    w = w + 1 == b.warps ? 0 : w + 1;
  }
  const uint32_t lanes = b.warp[w].ready;
  uint32_t later = lanes;
  if (w == b.at && running.fiber != nullptr && running.fiber->warp == &b.warp[w]) later &= ~1u << running.fiber->lane;
  b.at = w;
  return &b.warp[w].lanes[__builtin_ctz(later != 0 ? later : lanes)];
}

void letGo(Block& b, Named& barrier, uint32_t id) {
  const uint32_t sum = barrier.sum;
  for (uint32_t w = 0; w < b.warps; w++) {
    Warp& warp = b.warp[w];
    for (uint32_t left = warp.barred; left != 0; left &= left - 1) {
      Fiber& f = warp.lanes[__builtin_ctz(left)];
      if (f.mask != id) continue;
      f.sum = sum;
      f.waits = nullptr;
      warp.barred &= ~bit(f.lane);
      warp.ready |= bit(f.lane);
    }
  }
  barrier = {};
  running.progress++;
}

// ---- Failing

std::string placeOf(const Place& at) {
  return at.file != nullptr ? std::string(at.file) + ":" + std::to_string(at.line) : std::string("an unknown place");
}

std::string who(const Fiber* f) {
  std::string s = "kernel " + std::string(host.launch->kernel->name);
  char text[128];
  if (running.block != nullptr) {
    snprintf(text, sizeof text, ", block (%u, %u, %u)", running.block->index.x, running.block->index.y, running.block->index.z);
    s += text;
  }
  if (f != nullptr) {
    const uint32_t thread = f->thread.x + running.dim.x * (f->thread.y + running.dim.y * f->thread.z);
    snprintf(text, sizeof text, ", thread %u (lane %u of warp %u)", thread, f->lane, f->warp->number);
    s += text;
  }
  snprintf(text, sizeof text, ", launch %llu", (unsigned long long)host.launches);
  s += text;
  if (running.random) s += ", seed " + std::to_string(settings().seed);
  return s;
}

// Where threads of a block are, those that are at the same place together.
std::string whereabouts(const Block& b) {
  std::string s;
  std::vector<std::pair<std::string, uint32_t>> places;
  for (uint32_t w = 0; w < b.warps; w++)
    for (uint32_t lane = 0; lane < 32; lane++) {
      if (!(b.warp[w].live >> lane & 1)) continue;
      const Fiber& f = b.warp[w].lanes[lane];
      const std::string at = f.waits == nullptr ? "running" : std::string(f.waits) + " at " + placeOf(f.at);
      bool found = false;
      for (auto& p : places)
        if (p.first == at) p.second++, found = true;
      if (!found) places.push_back({at, 1});
    }
  for (auto& p : places) s += "\n  " + std::to_string(p.second) + " threads: " + p.first;
  return s;
}

void report(int error, const std::string& text) {
  host.error = error;
  host.text = text;
  fprintf(stderr, "geniemq emulated device: %s\n", text.c_str());
  fflush(stderr);
}

// What addr2line says of a place in code.
std::string sourceOf(void* pc) {
  Dl_info info;
  if (!dladdr(pc, &info) || info.dli_fname == nullptr) return "";
  char command[4096];
  const size_t offset = size_t(pc) - size_t(info.dli_fbase);
  snprintf(command, sizeof command, "addr2line -e '%s' %#zx 2>/dev/null", info.dli_fname, offset);
  std::string line;
  if (FILE* f = popen(command, "r")) {
    char text[512];
    if (fgets(text, sizeof text, f)) line = text;
    pclose(f);
  }
  while (!line.empty() && line.back() == '\n') line.pop_back();
  return line.empty() || line[0] == '?' ? std::string(info.dli_sname ? info.dli_sname : "") : line;
}

struct sigaction before[NSIG];

[[noreturn]] void afterSignal() {
  void* here;
  emulated_switch(&here, host.stack);
  __builtin_unreachable();
}

void onSignal(int number, siginfo_t* info, void* context) {
  if (!inKernel || host.signal != 0) {
    const struct sigaction& old = before[number];
    if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(number, info, context);
    if (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN) {
      signal(number, SIG_DFL);
      return;
    }
    return old.sa_handler(number);
  }
  auto* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  host.signal = number;
  host.faulted = info->si_addr;
  host.pc = reinterpret_cast<void*>(registers[REG_RIP]);
  static uint8_t stack[4096] __attribute__((aligned(16)));
  registers[REG_RIP] = reinterpret_cast<greg_t>(&afterSignal);
  registers[REG_RSP] = reinterpret_cast<greg_t>(stack + sizeof stack - 8);
}

void handleSignals() {
  static bool handled = false;
  if (handled) return;
  handled = true;
  struct sigaction own = {};
  own.sa_sigaction = onSignal;
  own.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&own.sa_mask);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(number, &own, &before[number]);
}

// ---- Fibers

void end() {
  Fiber& f = *running.fiber;
  Warp& w = *f.warp;
  Block& b = *f.block;
  const uint32_t own = bit(f.lane);
  f.copies.clear();
  f.groups.clear();
  for (uint32_t left = w.joined; left != 0; left &= left - 1) {
    const Fiber& other = w.lanes[__builtin_ctz(left)];
    if (other.mask & own) fail(719, other.at, "%s with the mask %#x waits for lane %u, which has exited", other.waits, other.mask, f.lane);
  }
  w.live &= ~own;
  w.ready &= ~own;
  b.live--;
  running.progress++;
  for (uint32_t id = 0; id < 16; id++) {
    Named& n = b.barriers[id];
    if (n.arrived != 0 && n.wanted == 0 && n.arrived == b.live) letGo(b, n, id);
  }
  if (b.live == 0) toMain();
  away();
}

[[noreturn]] void enter() {
  host.launch->kernel->call(host.launch->parameters);
  end();
  abort();
}

uint8_t* stackOf(Seat& s, uint32_t thread) { return s.stacks + thread * kStack; }

void prepare(Seat& s, uint32_t thread) {
  uint8_t* const low = stackOf(s, thread);
  *reinterpret_cast<uint64_t*>(low) = kCanary;
  // Stacks begin at different lines of the cache.
  uint64_t* top = reinterpret_cast<uint64_t*>(low + kStack - 128 - thread % 61 * 192);
  *--top = 0;
  *--top = reinterpret_cast<uint64_t>(&enter);
  for (int i = 0; i < 6; i++) *--top = 0;
  Warp& w = s.warps[thread / 32];
  Fiber& f = w.lanes[thread % 32];
  f.stack = top;
  const dim3& d = running.dim;
  f.thread = {thread % d.x, thread / d.x % d.y, thread / d.x / d.y};
  f.lane = thread % 32;
  f.warp = &w;
  f.block = &s.block;
  f.waits = nullptr;
  f.at = {};
  f.copies.clear();
  f.groups.clear();
}

// ---- Blocks

void load(Seat& s) {
  if (host.loaded == &s) return;
  if (host.loaded != nullptr && running.staticBytes != 0) memcpy(host.loaded->block.saved.data(), host.launch->module->statics, host.launch->module->staticBytes);
  host.loaded = &s;
  if (running.staticBytes != 0 && s.block.saved.size() >= host.launch->module->staticBytes)
    memcpy(host.launch->module->statics, s.block.saved.data(), host.launch->module->staticBytes);
}

void begin(Seat& s, uint64_t number) {
  s.taken = true;
  s.block.saved.resize(host.launch->module->staticBytes);
  load(s);
  Block& b = s.block;
  b.index = {uint32_t(number % running.grid.x), uint32_t(number / running.grid.x % running.grid.y),
             uint32_t(number / running.grid.x / running.grid.y)};
  const uint32_t threads = running.dim.x * running.dim.y * running.dim.z;
  b.live = threads;
  b.warps = (threads + 31) / 32;
  b.at = 0;
  b.turns = kTurns;
  memset(b.barriers, 0, sizeof b.barriers);
  b.bulks.clear();
  b.warp = s.warps;
  for (uint32_t w = 0; w < b.warps; w++) {
    Warp& warp = s.warps[w];
    warp.live = warp.ready = threads - w * 32 >= 32 ? ~0u : bit(threads - w * 32) - 1;
    warp.joined = warp.polling = warp.barred = 0;
    warp.number = w;
  }
  for (uint32_t t = 0; t < threads; t++) prepare(s, t);
  memset(host.launch->module->statics, running.garbage, host.launch->module->staticBytes);
  b.dynamicBytes = host.launch->dynamicBytes;
  b.dynamic = s.arena + ((kShared - b.dynamicBytes) & ~1023u);
  memset(b.dynamic, running.garbage, b.dynamicBytes);
  memset(b.dynamic + b.dynamicBytes, kSlack, size_t(s.arena + kShared - b.dynamic - b.dynamicBytes));
  running.progress++;
}

// What a block that has ended leaves behind.
void finish(Seat& s) {
  s.taken = false;
  Block& b = s.block;
  for (uint8_t* p = b.dynamic + b.dynamicBytes; p < s.arena + kShared; p++)
    if (*p != kSlack && host.error == 0)
      report(700, who(nullptr) + ": a byte " + std::to_string(p - b.dynamic - b.dynamicBytes) + " behind its dynamic shared memory was written");
  const uint32_t threads = running.dim.x * running.dim.y * running.dim.z;
  for (uint32_t t = 0; t < threads; t++)
    if (*reinterpret_cast<uint64_t*>(stackOf(s, t)) != kCanary && host.error == 0)
      report(700, who(nullptr) + ": thread " + std::to_string(t) + " needs more than " + std::to_string(kStack) + " bytes of stack");
}

void addSeats(uint32_t wanted) {
  while (seats.size() < wanted) {
    Seat* const s = new Seat;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    s->stacks = static_cast<uint8_t*>(mmap(nullptr, kThreads * kStack, PROT_READ | PROT_WRITE, flags, -1, 0));
    uint8_t* const pages = static_cast<uint8_t*>(mmap(nullptr, kShared + 2 * 65536, PROT_NONE, flags, -1, 0));
    s->arena = pages + 65536;
    if (s->stacks == MAP_FAILED || pages == MAP_FAILED || mprotect(s->arena, kShared, PROT_READ | PROT_WRITE) != 0) {
      perror("geniemq emulated device: memory for the threads of a block");
      abort();
    }
    for (uint32_t t = 0; t < kThreads; t++) isStack(stackOf(*s, t), kStack);
    seats.push_back(s);
  }
}

// The copies that a block has given to the copy engine.
void copyBulks(Block& b) {
  const std::vector<Bulk> all = std::move(b.bulks);
  b.bulks.clear();
  for (const Bulk& c : all) {
    memcpy(c.to, c.from, c.bytes);
    // The layout of ptx.h's Mbarrier: pending 20, initial 20, tx 21, phase 1.
    uint64_t w = *c.barrier;
    const uint64_t tx = ((w >> 40) - c.bytes) & 0x1fffff;
    w = (w & ~(0x1fffffull << 40)) | tx << 40;
    if (tx == 0 && (w & 0xfffff) == 0) w = (w ^ 1ull << 61) | (w >> 20 & 0xfffff);
    *c.barrier = w;
    wake(c.barrier);
    running.progress++;
  }
}

// Makes the fibers of a block that poll ready again. False when there are none.
bool wakeAll(Block& b) {
  bool any = false;
  for (uint32_t w = 0; w < b.warps; w++) {
    Warp& warp = b.warp[w];
    any = any || warp.polling != 0;
    warp.ready |= warp.polling;
    warp.polling = 0;
  }
  return any;
}

void afterFault() {
  char text[512];
  if (host.signal == SIGSEGV || host.signal == SIGBUS) {
    describe(host.faulted, text, sizeof text);
    if (host.faulted == nullptr) snprintf(text, sizeof text, "an access that is misaligned, or of address 0 or of no address at all");
  } else if (host.signal == SIGFPE) {
    snprintf(text, sizeof text, "a division by zero, or of the least number by -1");
  } else {
    snprintf(text, sizeof text, "an illegal instruction: what never returns, or a sanitizer's trap");
  }
  report(host.signal == SIGILL ? 715 : 700, who(running.fiber) + ": " + text + " at " + sourceOf(host.pc));
}

// Runs a block's fibers until it has ended, has had its turn, or does not go on. False when nothing can go on any more.
bool turn(Seat& s, uint64_t& idle) {
  Block& b = s.block;
  load(s);
  running.block = &b;
  running.fiber = nullptr;
  b.turns = running.random ? 1 + uint32_t(randomNumber() % kTurns) : kTurns;
  if (!b.bulks.empty() && (!running.random || randomNumber() % 2 == 0)) copyBulks(b);
  Fiber* f = pick(b);
  if (f == nullptr) {
    if (!b.bulks.empty()) {
      copyBulks(b);
      return true;
    }
    if (!wakeAll(b) || ++idle > kPatience) return false;
    f = pick(b);
  }
  running.fiber = f;
  emulated_switch(&host.stack, f->stack);
  if (host.signal != 0) afterFault();
  return true;
}

}  // namespace

uint64_t randomNumber() {
  uint64_t& x = running.state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x * 0x2545f4914f6cdd1dull;
}

void away() {
  Block& b = *running.block;
  if (--b.turns == 0) return toMain();
  Fiber* const next = pick(b);
  if (next == nullptr) return toMain();
  switchTo(next);
}

void preempt() {
  if (randomNumber() % 8 == 0) away();
}

void poll(const void* mbarrier, const char* waits, const Place& at) {
  Fiber& f = *running.fiber;
  f.polls = mbarrier;
  f.waits = waits;
  f.at = at;
  f.warp->ready &= ~bit(f.lane);
  f.warp->polling |= bit(f.lane);
  away();
  f.waits = nullptr;
}

void wake(const void* mbarrier) {
  Block& b = *running.block;
  for (uint32_t w = 0; w < b.warps; w++) {
    Warp& warp = b.warp[w];
    for (uint32_t left = warp.polling; left != 0; left &= left - 1) {
      const uint32_t lane = uint32_t(__builtin_ctz(left));
      if (warp.lanes[lane].polls != mbarrier) continue;
      warp.polling &= ~bit(lane);
      warp.ready |= bit(lane);
    }
  }
}

uint32_t barrier(uint32_t id, uint32_t threads, bool wait, uint32_t sum, const char* name, const Place& at) {
  mayPreempt();
  Fiber& f = *running.fiber;
  Warp& w = *f.warp;
  Block& b = *f.block;
  if (id >= 16) fail(719, at, "%s of barrier %u; there are 16", name, id);
  if (threads % 32 != 0) fail(719, at, "%s of %u threads, which are not whole warps", name, threads);
  for (uint32_t left = w.joined; left != 0; left &= left - 1) {
    const Fiber& other = w.lanes[__builtin_ctz(left)];
    if (other.mask & bit(f.lane)) diverged(name, other.mask, at);
  }
  Named& n = b.barriers[id];
  if (n.arrived == 0) {
    n.wanted = threads;
    n.name = name;
  } else if (n.wanted != threads || (threads == 0 && n.name != name && strcmp(n.name, name) != 0)) {
    fail(719, at, "%s of %u threads at barrier %u, where others are at %s of %u", name, threads, id, n.name, n.wanted);
  }
  n.arrived++;
  n.sum += sum;
  f.waits = name;
  f.at = at;
  f.mask = id;
  if (wait) {
    w.ready &= ~bit(f.lane);
    w.barred |= bit(f.lane);
  }
  const uint32_t wanted = threads != 0 ? threads : b.live;
  if (n.arrived == wanted) letGo(b, n, id);
  if (!wait) return 0;
  if (w.ready & bit(f.lane)) {  // it was the last one
    mayPreempt();
    return f.sum;
  }
  away();
  return f.sum;
}

void* shared(uint32_t address, uint32_t bytes, uint32_t aligned, const Place& at) {
  const uint32_t from = address - kWindow;
  const Block& b = *running.block;
  if (address % aligned != 0) fail(716, at, "a shared address %#x that is not aligned to %u bytes", address, aligned);
  if (address >= kWindow) {
    if (from < running.staticBytes) {
      uint8_t* const p = running.statics + from;
      const Module& m = *host.launch->module;
      if (p >= m.statics && p + bytes <= m.statics + m.staticBytes) return p;
    } else if (uint64_t{from} - running.staticBytes + bytes <= b.dynamicBytes) {
      return b.dynamic + (from - running.staticBytes);
    }
  }
  fail(700, at, "%u bytes at shared address %#x: there are %u bytes of static shared memory at %#x, and %u of dynamic at %#x", bytes, address,
       host.launch->module->staticBytes, kWindow, b.dynamicBytes, kWindow + running.staticBytes);
}

uint32_t sharedAddress(const void* p, const Place& at) {
  const auto* const byte = static_cast<const uint8_t*>(p);
  const Block& b = *running.block;
  if (byte >= host.launch->module->statics && byte < host.launch->module->statics + host.launch->module->staticBytes) return kWindow + uint32_t(byte - running.statics);
  if (byte >= b.dynamic && byte <= b.dynamic + b.dynamicBytes) return kWindow + running.staticBytes + uint32_t(byte - b.dynamic);
  fail(717, at, "%p is no address of shared memory", p);
}

void* dynamicShared() { return running.block->dynamic; }

void fail(int error, const Place& at, const char* format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  report(error, who(running.fiber) + ": " + text + ", at " + placeOf(at));
  void* here;
  emulated_switch(&here, host.stack);
  __builtin_unreachable();
}

void diverged(const char* name, uint32_t mask, const Place& at) {
  Fiber& f = *running.fiber;
  const Warp& w = *f.warp;
  std::string others;
  for (uint32_t lane = 0; lane < 32 && others.size() < 300; lane++) {
    if (lane == f.lane || !(mask >> lane & 1)) continue;
    const Fiber& other = w.lanes[lane];
    if (!(w.live >> lane & 1)) {
      others += "; lane " + std::to_string(lane) + " has exited or was never there";
    } else if (w.barred >> lane & 1 || (w.joined >> lane & 1 && (other.mask != mask || strcmp(other.waits, name) != 0))) {
      char of[64] = "";
      if (w.joined >> lane & 1) snprintf(of, sizeof of, " with the mask %#x", other.mask);
      others += "; lane " + std::to_string(lane) + " is at " + other.waits + of + ", " + placeOf(other.at);
    }
  }
  if (!(mask >> f.lane & 1)) others += "; the mask does not name the lane that calls";
  fail(719, at, "%s with the mask %#x, but its lanes are not there%s", name, mask, others.c_str());
}

int run(const Launch& launch) {
  handleSignals();
  host.launch = &launch;
  host.launches++;
  host.loaded = nullptr;
  host.error = 0;
  host.signal = 0;
  running = {};
  running.grid = launch.grid;
  running.dim = launch.dim;
  running.statics = reinterpret_cast<uint8_t*>(uintptr_t(launch.module->statics) & ~uintptr_t{1023});
  running.staticBytes = uint32_t((launch.module->statics + launch.module->staticBytes - running.statics + 1023) & ~ptrdiff_t{1023});
  running.random = settings().random;
  running.state = (settings().seed + 1) * 0x9e3779b97f4a7c15ull + host.launches * 0xd1342543de82ef95ull;
  if (running.state == 0) running.state = 1;
  running.deferred = !running.random || randomNumber() % 4 != 0;
  // What is missing from it may be too much or too little.
  constexpr uint8_t kGarbage[] = {0xcb, 0, 0xff, 0x01};
  running.garbage = running.random ? kGarbage[randomNumber() % sizeof kGarbage] : kGarbage[0];
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  const uint32_t resident = uint32_t(blocks < settings().resident ? blocks : settings().resident);
  addSeats(resident);
  uint64_t next = 0, left = blocks, progress = 0, idle = 0;
  for (uint32_t i = 0; i < resident; i++) begin(*seats[i], next++);
  inKernel = true;
  for (uint32_t at = 0; left > 0 && host.error == 0; at = running.random ? uint32_t(randomNumber() % resident) : (at + 1) % resident) {
    Seat& s = *seats[at];
    if (!s.taken) continue;
    if (running.progress != progress) progress = running.progress, idle = 0;
    if (!turn(s, idle)) {
      report(702, who(nullptr) + ": no thread of the block can go on:" + whereabouts(s.block));
    } else if (host.error == 0 && s.block.live == 0) {
      finish(s);
      left--;
      if (next < blocks) begin(s, next++);
    }
  }
  inKernel = false;
  for (uint32_t i = 0; i < resident; i++) seats[i]->taken = false;
  running.fiber = nullptr;
  running.block = nullptr;
  return host.error;
}

}  // namespace emulated
