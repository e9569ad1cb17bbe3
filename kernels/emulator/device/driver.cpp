// The driver: the functions of libcuda that geniemq asks for, on emulated devices. Results and handles are those of cuda.h, which is
// not needed to compile this.
//
// One lock holds everything, launches too: they run on the thread that asks for them, when they are put on a stream, or with
// GENIEMQ_EMULATED_LAZY=1 not before somebody waits for them. Addresses of device memory are those of the process; each allocation
// has pages of its own and ends at one that nobody may touch.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "launch.h"
#include "memory.h"

#define API extern "C" __attribute__((visibility("default"))) int

using namespace emulated;

namespace {

enum Result {
  kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kNoDevice = 100, kInvalidDevice = 101, kInvalidImage = 200,
  kInvalidContext = 201, kNoBinary = 209, kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kLaunchFailed = 719, kNotSupported = 801,
};

struct Device;

struct Allocation {
  size_t bytes, pages;
  Device* device;  // null: pinned memory of the host
  uint8_t* mapped;
};

struct Context {
  Device* device;
  uint32_t retained = 0;
  uint32_t flags = 0;
};

struct Device {
  int ordinal;
  Context context;
  size_t used = 0;
  int lost = 0;  // the result after which nothing works any more
};

struct Loaded {
  std::string name;
  void* handle;
  Module of;
};

struct Function {
  Loaded* module;
  const Kernel* kernel;
  int dynamicMost = 48 << 10;
};

struct Event {
  double time = 0;
  struct Stream* stream = nullptr;
  uint64_t number = 0;  // of the step of the stream that records it
};

// What is to be done, in order.
struct Stream {
  Device* device;
  std::deque<std::function<int()>> steps;
  uint64_t queued = 0, done = 0;
  bool running = false;
};

std::recursive_mutex mutex;
struct Everything {
  std::vector<std::unique_ptr<Device>> devices;
  std::map<uintptr_t, Allocation> memory;
  std::map<std::string, Loaded*> modules;  // by name
  std::vector<Stream*> streams;
  std::map<Device*, Stream*> defaults;
  bool initialised = false;
} all;
thread_local Context* current = nullptr;

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr size_t kPage = 4096;

uint64_t number(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != nullptr && *text != 0 ? strtoull(text, nullptr, 0) : otherwise;
}

// ---- Memory

uint8_t* map(size_t pages) {
  // Guards before and behind.
  void* const p = mmap(nullptr, pages + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  uint8_t* const first = static_cast<uint8_t*>(p) + kPage;
  if (mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(p, pages + 2 * kPage);
    return nullptr;
  }
  return first;
}

constexpr uint8_t kSlack = 0xa5;
constexpr size_t kPoisoned = 16 << 20;  // so many bytes of an allocation are nonsense at first, the others 0

int allocate(void** to, size_t bytes, Device* device) {
  if (bytes == 0) return kInvalidValue;
  const size_t pages = (bytes + kPage - 1) / kPage * kPage;
  if (device != nullptr && device->used + pages > settings().memory) return kOutOfMemory;
  uint8_t* const first = map(pages);
  if (first == nullptr) return kOutOfMemory;
  // The end is as near to the guard as the alignment allows.
  uint8_t* const p = first + ((pages - bytes) & ~size_t{255});
  memset(p + bytes, kSlack, size_t(first + pages - p - bytes));
  all.memory[uintptr_t(p)] = {bytes, pages, device, first};
  if (device != nullptr) device->used += pages;
  *to = p;
  return kSuccess;
}

int release(void* address, bool onDevice) {
  if (address == nullptr) return kSuccess;
  const auto found = all.memory.find(uintptr_t(address));
  if (found == all.memory.end() || (found->second.device != nullptr) != onDevice) return kInvalidValue;
  const Allocation a = found->second;
  const uint8_t* const end = a.mapped + a.pages;
  for (const uint8_t* p = static_cast<uint8_t*>(address) + a.bytes; p < end; p++)
    if (*p != kSlack) {
      fprintf(stderr, "geniemq emulated device: byte %td behind an allocation of %zu bytes was written\n",
              p - static_cast<uint8_t*>(address) - ptrdiff_t(a.bytes), a.bytes);
      abort();
    }
  munmap(a.mapped - kPage, a.pages + 2 * kPage);
  if (a.device != nullptr) a.device->used -= a.pages;
  all.memory.erase(found);
  return kSuccess;
}

// The allocation that an address lies in, or the last one before it.
const std::pair<const uintptr_t, Allocation>* allocationOf(uintptr_t address) {
  auto after = all.memory.upper_bound(address);
  if (after == all.memory.begin()) return nullptr;
  return &*--after;
}

// Whether a range lies in one allocation of the device, or in no allocation but is a module's.
bool within(uint64_t address, size_t bytes) {
  const auto* const a = allocationOf(address);
  if (a != nullptr && a->second.device != nullptr && address - a->first <= a->second.bytes)
    return bytes <= a->second.bytes - (address - a->first);
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(address), &info) != 0;
}

// ---- Streams

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

Device* device() { return current != nullptr ? current->device : nullptr; }

Stream* streamOf(void* handle) {
  if (handle != nullptr && handle != reinterpret_cast<void*>(1) && handle != reinterpret_cast<void*>(2)) return static_cast<Stream*>(handle);
  Stream*& s = all.defaults[device()];
  if (s == nullptr) s = new Stream{device(), {}};
  return s;
}

// Executes a stream's steps up to one.
int drain(Stream* s, uint64_t until) {
  int result = s->device->lost;
  while (s->done < until && !s->steps.empty()) {
    const std::function<int()> step = std::move(s->steps.front());
    s->steps.pop_front();
    s->done++;
    const int r = s->device->lost != 0 ? s->device->lost : step();
    if (result == 0) result = r;
  }
  return result;
}

int drainAll(Device* d) {
  int result = d->lost;
  for (Stream* s : all.streams)
    if (s->device == d)
      if (const int r = drain(s, s->queued); result == 0) result = r;
  if (const auto found = all.defaults.find(d); found != all.defaults.end())
    if (const int r = drain(found->second, found->second->queued); result == 0) result = r;
  return result;
}

int enqueue(void* handle, std::function<int()> step) {
  if (device() == nullptr) return kInvalidContext;
  Stream* const s = streamOf(handle);
  if (s->device->lost != 0) return s->device->lost;
  s->steps.push_back(std::move(step));
  s->queued++;
  return settings().lazy ? kSuccess : drain(s, s->queued);
}

// ---- Modules

// The first bytes of a fat binary say how long it is.
size_t imageBytes(const uint8_t* image) {
  uint32_t magic;
  uint16_t head;
  uint64_t body;
  memcpy(&magic, image, 4);
  memcpy(&head, image + 6, 2);
  memcpy(&body, image + 8, 8);
  return magic == 0xba55ed50 ? head + body : 0;
}

std::string folder() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&folder), &info);
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The name of the module whose image this is, by the table that the build has written.
std::string nameOf(const void* image) {
  const auto* const bytes = static_cast<const uint8_t*>(image);
  const size_t size = imageBytes(bytes);
  if (size == 0) return "";
  uint64_t sum = 0xcbf29ce484222325ull;  // FNV-1a
  for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * 0x100000001b3ull;
  std::string name;
  if (FILE* f = fopen((folder() + "/images").c_str(), "r")) {
    unsigned long long of, length;
    char text[256];
    while (fscanf(f, "%llx %llu %255s", &of, &length, text) == 3)
      if (of == sum && length == size) name = text;
    fclose(f);
  }
  return name;
}

int load(void** module, const void* image) {
  if (imageBytes(static_cast<const uint8_t*>(image)) == 0) return kInvalidImage;
  const std::string name = nameOf(image);
  if (name.empty()) {
    fprintf(stderr, "geniemq emulated device: an image that is not of kernels/image as it was when the emulator was built\n");
    return kNoBinary;
  }
  Loaded*& m = all.modules[name];
  if (m == nullptr) {
    void* const handle = dlopen((folder() + "/" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      fprintf(stderr, "geniemq emulated device: %s\n", dlerror());
      return kInvalidImage;
    }
    auto* const describe = reinterpret_cast<Module (*)()>(dlsym(handle, "emulated_module"));
    m = new Loaded{name, handle, describe()};
  }
  *module = m;
  return kSuccess;
}

}  // namespace

namespace emulated {

const Settings& settings() {
  static const Settings s = [] {
    Settings s;
    s.random = getenv("GENIEMQ_EMULATED_SEED") != nullptr && *getenv("GENIEMQ_EMULATED_SEED") != 0;
    s.seed = number("GENIEMQ_EMULATED_SEED", 0);
    s.lazy = number("GENIEMQ_EMULATED_LAZY", 0) != 0;
    s.memory = number("GENIEMQ_EMULATED_MEMORY", 32768) << 20;
    s.devices = uint32_t(number("GENIEMQ_EMULATED_DEVICES", 1));
    s.processors = uint32_t(number("GENIEMQ_EMULATED_PROCESSORS", 4));
    s.resident = uint32_t(number("GENIEMQ_EMULATED_BLOCKS", 3));
    if (s.resident == 0) s.resident = 1;
    return s;
  }();
  return s;
}

void describe(const void* address, char* text, size_t bytes) {
  const auto* const a = allocationOf(uintptr_t(address));
  const uintptr_t at = uintptr_t(address);
  if (a != nullptr && at - a->first < a->second.bytes) {
    snprintf(text, bytes, "an access at %p, byte %zu of the %zu allocated at %p", address, size_t(at - a->first), a->second.bytes, (void*)a->first);
  } else if (a != nullptr && at - a->first < a->second.pages + (64 << 10)) {
    snprintf(text, bytes, "an access at %p, %zu bytes behind the %zu allocated at %p", address, size_t(at - a->first - a->second.bytes),
             a->second.bytes, (void*)a->first);
  } else {
    snprintf(text, bytes, "an access at %p, where nothing is allocated", address);
  }
}

}  // namespace emulated

#define CURRENT                                   \
  const Lock lock(mutex);                         \
  Device* const here = device();                  \
  if (here == nullptr) return kInvalidContext;    \
  if (here->lost != 0) return here->lost;

// ---- Devices and contexts

API cuInit(unsigned) {
  const Lock lock(mutex);
  if (all.initialised) return kSuccess;
  all.initialised = true;
  for (uint32_t i = 0; i < settings().devices; i++) {
    auto d = std::make_unique<Device>();
    d->ordinal = int(i);
    d->context.device = d.get();
    all.devices.push_back(std::move(d));
  }
  return all.devices.empty() ? kNoDevice : kSuccess;
}
API cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
API cuDeviceGetCount(int* count) { return *count = int(all.devices.size()), kSuccess; }
API cuDeviceGet(int* d, int ordinal) {
  if (ordinal < 0 || size_t(ordinal) >= all.devices.size()) return kInvalidDevice;
  return *d = ordinal, kSuccess;
}
API cuDeviceGetName(char* name, int bytes, int) { return snprintf(name, size_t(bytes), "geniemq emulated device"), kSuccess; }
API cuDeviceGetUuid(char* uuid, int d) { return memset(uuid, 0, 16), uuid[15] = char(d + 1), kSuccess; }
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = settings().memory, kSuccess; }
API cuDeviceCanAccessPeer(int* can, int, int) { return *can = 1, kSuccess; }
API cuDeviceGetP2PAttribute(int* value, int, int, int) { return *value = 0, kSuccess; }
API cuDeviceGetAttribute(int* value, int attribute, int d) {
  if (d < 0 || size_t(d) >= all.devices.size()) return kInvalidDevice;
#if EMULATED_ARCH >= 900
  const int optin = 227 << 10, multiprocessor = 228 << 10;
#else
  const int optin = 163 << 10, multiprocessor = 164 << 10;
#endif
  switch (attribute) {
    case 1: *value = 1024; break;         // threads of a block
    case 2: case 3: *value = 1024; break;
    case 4: *value = 64; break;
    case 5: *value = 0x7fffffff; break;   // of a grid
    case 6: case 7: *value = 65535; break;
    case 8: *value = 48 << 10; break;     // shared memory of a block
    case 9: *value = 64 << 10; break;
    case 10: *value = 32; break;
    case 12: case 82: *value = 65536; break;  // registers
    case 13: *value = 1980000; break;     // kHz
    case 15: case 19: case 31: case 41: case 78: case 83: *value = 1; break;
    case 16: *value = int(settings().processors); break;
    case 33: *value = d + 1; break;       // PCI
    case 36: *value = 3201000; break;
    case 37: *value = 6144; break;
    case 38: *value = 50 << 20; break;    // L2
    case 39: *value = 2048; break;
    case 40: *value = 3; break;
    case 75: *value = EMULATED_ARCH / 100; break;
    case 76: *value = EMULATED_ARCH / 10 % 10; break;
    case 81: *value = multiprocessor; break;
    case 97: *value = optin; break;
    case 106: *value = 32; break;         // blocks of a multiprocessor
    case 111: *value = 1024; break;       // reserved shared memory
    default: *value = 0;
  }
  return kSuccess;
}

API cuDevicePrimaryCtxRetain(Context** context, int d) {
  const Lock lock(mutex);
  if (d < 0 || size_t(d) >= all.devices.size()) return kInvalidDevice;
  all.devices[size_t(d)]->context.retained++;
  return *context = &all.devices[size_t(d)]->context, kSuccess;
}
API cuDevicePrimaryCtxRelease_v2(int d) {
  const Lock lock(mutex);
  if (d < 0 || size_t(d) >= all.devices.size()) return kInvalidDevice;
  Device* const of = all.devices[size_t(d)].get();
  if (of->context.retained == 0) return kInvalidContext;
  if (--of->context.retained > 0) return kSuccess;
  std::vector<void*> left;
  for (auto& a : all.memory)
    if (a.second.device == of) left.push_back(reinterpret_cast<void*>(a.first));
  for (void* p : left) release(p, true);
  return kSuccess;
}
API cuDevicePrimaryCtxReset_v2(int) { return kSuccess; }
API cuDevicePrimaryCtxSetFlags_v2(int d, unsigned flags) { return all.devices[size_t(d)]->context.flags = flags, kSuccess; }
API cuDevicePrimaryCtxGetState(int d, unsigned* flags, int* active) {
  const Lock lock(mutex);
  if (d < 0 || size_t(d) >= all.devices.size()) return kInvalidDevice;
  *flags = all.devices[size_t(d)]->context.flags;
  *active = all.devices[size_t(d)]->context.retained > 0;
  return kSuccess;
}
API cuCtxSetCurrent(Context* context) { return current = context, kSuccess; }
API cuCtxGetCurrent(Context** context) { return *context = current, kSuccess; }
API cuCtxPushCurrent_v2(Context* context) { return current = context, kSuccess; }
API cuCtxPopCurrent_v2(Context** context) { return *context = current, current = nullptr, kSuccess; }
API cuCtxGetDevice(int* d) {
  if (current == nullptr) return kInvalidContext;
  return *d = current->device->ordinal, kSuccess;
}
API cuCtxGetApiVersion(Context*, unsigned* version) { return *version = 13000, kSuccess; }
API cuCtxGetFlags(unsigned* flags) { return *flags = 0, kSuccess; }
API cuCtxGetLimit(size_t* value, int) { return *value = 64 << 10, kSuccess; }
API cuCtxSetLimit(int, size_t) { return kSuccess; }
API cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, kSuccess; }
API cuCtxSynchronize() {
  CURRENT
  return drainAll(here);
}

// ---- Memory

API cuMemGetInfo_v2(size_t* free, size_t* total) {
  CURRENT
  *total = settings().memory;
  *free = settings().memory - here->used;
  return kSuccess;
}
API cuMemAlloc_v2(void** p, size_t bytes) {
  CURRENT
  const int r = allocate(p, bytes, here);
  if (r != kSuccess) return r;
  memset(*p, 0xcd, bytes < kPoisoned ? bytes : kPoisoned);
  unwritten(*p, bytes);
  return r;
}
API cuMemFree_v2(void* p) {
  CURRENT
  drainAll(here);
  return here->lost != 0 ? here->lost : release(p, true);
}
API cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  CURRENT
  return allocate(p, bytes, nullptr);
}
API cuMemFreeHost(void* p) {
  const Lock lock(mutex);
  if (device() != nullptr && device()->lost == 0) drainAll(device());
  return release(p, false);
}
API cuMemGetAddressRange_v2(uint64_t* base, size_t* bytes, uint64_t p) {
  CURRENT
  const auto* const a = allocationOf(p);
  if (a == nullptr || p - a->first >= a->second.bytes) return kInvalidValue;
  if (base != nullptr) *base = a->first;
  if (bytes != nullptr) *bytes = a->second.bytes;
  return kSuccess;
}

namespace {

int copy(uint64_t to, uint64_t from, size_t bytes, bool toDevice, bool fromDevice, void* stream, bool waits) {
  if (bytes == 0) return kSuccess;
  if ((toDevice && !within(to, bytes)) || (fromDevice && !within(from, bytes))) return kInvalidValue;
  const int r = enqueue(stream, [=] { return memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), int(kSuccess); });
  return waits && r == kSuccess ? drain(streamOf(stream), ~uint64_t{0}) : r;
}
template <class T>
int fill(uint64_t to, T value, size_t n, void* stream) {
  if (n == 0) return kSuccess;
  if (to % sizeof(T) != 0 || !within(to, n * sizeof(T))) return kInvalidValue;
  return enqueue(stream, [=] { return std::fill_n(reinterpret_cast<T*>(to), n, value), int(kSuccess); });
}

}  // namespace

API cuMemcpyHtoD_v2(uint64_t to, uint64_t from, size_t bytes) { CURRENT return copy(to, from, bytes, true, false, nullptr, true); }
API cuMemcpyDtoH_v2(uint64_t to, uint64_t from, size_t bytes) { CURRENT return copy(to, from, bytes, false, true, nullptr, true); }
API cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) { CURRENT return copy(to, from, bytes, true, true, nullptr, true); }
API cuMemcpy(uint64_t to, uint64_t from, size_t bytes) { CURRENT return copy(to, from, bytes, false, false, nullptr, true); }
API cuMemcpyHtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) { CURRENT return copy(to, from, bytes, true, false, s, false); }
API cuMemcpyDtoHAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) { CURRENT return copy(to, from, bytes, false, true, s, false); }
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* s) { CURRENT return copy(to, from, bytes, true, true, s, false); }
API cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void* s) { CURRENT return copy(to, from, bytes, false, false, s, false); }
API cuMemcpyPeer(uint64_t to, Context*, uint64_t from, Context*, size_t bytes) { CURRENT return copy(to, from, bytes, true, true, nullptr, true); }
API cuMemcpyPeerAsync(uint64_t to, Context*, uint64_t from, Context*, size_t bytes, void* s) { CURRENT return copy(to, from, bytes, true, true, s, false); }
API cuMemsetD8_v2(uint64_t to, uint8_t v, size_t n) { CURRENT return fill(to, v, n, nullptr); }
API cuMemsetD16_v2(uint64_t to, uint16_t v, size_t n) { CURRENT return fill(to, v, n, nullptr); }
API cuMemsetD32_v2(uint64_t to, uint32_t v, size_t n) { CURRENT return fill(to, v, n, nullptr); }
API cuMemsetD8Async(uint64_t to, uint8_t v, size_t n, void* s) { CURRENT return fill(to, v, n, s); }
API cuMemsetD16Async(uint64_t to, uint16_t v, size_t n, void* s) { CURRENT return fill(to, v, n, s); }
API cuMemsetD32Async(uint64_t to, uint32_t v, size_t n, void* s) { CURRENT return fill(to, v, n, s); }

// ---- Streams and events

API cuStreamCreate(Stream** s, unsigned) {
  CURRENT
  *s = new Stream{here, {}};
  all.streams.push_back(*s);
  return kSuccess;
}
API cuStreamCreateWithPriority(Stream** s, unsigned flags, int) { return cuStreamCreate(s, flags); }
API cuStreamDestroy_v2(Stream* s) {
  const Lock lock(mutex);
  for (size_t i = 0; i < all.streams.size(); i++)
    if (all.streams[i] == s) {
      drain(s, s->queued);
      all.streams.erase(all.streams.begin() + ptrdiff_t(i));
      s->device = nullptr;  // events may still name it
      return kSuccess;
    }
  return kInvalidHandle;
}
API cuStreamSynchronize(void* s) {
  CURRENT
  Stream* const of = streamOf(s);
  return drain(of, of->queued);
}
API cuStreamQuery(void* s) { return cuStreamSynchronize(s); }
API cuStreamGetFlags(void*, unsigned* flags) { return *flags = 1, kSuccess; }
API cuStreamGetPriority(void*, int* priority) { return *priority = 0, kSuccess; }

namespace {

// Executes what an event that was recorded waits for.
int reach(const Event& e) {
  if (e.stream == nullptr || e.stream->device == nullptr || e.stream->done >= e.number) return kSuccess;
  return drain(e.stream, e.number);
}

}  // namespace

API cuStreamWaitEvent(void* s, Event* e, unsigned) {
  CURRENT
  const Event recorded = *e;
  return enqueue(s, [recorded] { return reach(recorded); });
}
API cuEventCreate(Event** e, unsigned) {
  CURRENT
  return *e = new Event, kSuccess;
}
API cuEventDestroy_v2(Event* e) {
  const Lock lock(mutex);
  reach(*e);
  delete e;
  return kSuccess;
}
API cuEventRecord(Event* e, void* s) {
  CURRENT
  Stream* const of = streamOf(s);
  e->stream = of;
  e->number = of->queued + 1;
  return enqueue(s, [e] { return e->time = now(), int(kSuccess); });
}
API cuEventSynchronize(Event* e) {
  CURRENT
  const int r = reach(*e);
  return here->lost != 0 ? here->lost : r;
}
API cuEventQuery(Event* e) { return cuEventSynchronize(e); }
API cuEventElapsedTime(float* ms, Event* from, Event* to) {
  CURRENT
  reach(*from), reach(*to);
  return *ms = float((to->time - from->time) * 1000), kSuccess;
}
API cuEventElapsedTime_v2(float* ms, Event* from, Event* to) { return cuEventElapsedTime(ms, from, to); }

// ---- Modules and launches

API cuModuleLoadData(void** module, const void* image) {
  CURRENT
  return load(module, image);
}
API cuModuleLoadDataEx(void** module, const void* image, unsigned, void*, void*) { return cuModuleLoadData(module, image); }
API cuModuleLoadFatBinary(void** module, const void* image) { return cuModuleLoadData(module, image); }
API cuModuleUnload(void*) { return kSuccess; }
API cuModuleGetFunction(Function** f, Loaded* m, const char* name) {
  CURRENT
  for (const Kernel* k = m->of.kernels; k != nullptr; k = k->next)
    if (strcmp(k->name, name) == 0) return *f = new Function{m, k}, kSuccess;
  return kNotFound;
}
API cuModuleGetGlobal_v2(void** p, size_t* bytes, Loaded* m, const char* name) {
  CURRENT
  void* const at = dlsym(m->handle, name);
  Dl_info info;
  ElfW(Sym)* symbol = nullptr;
  if (at == nullptr || !dladdr1(at, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) || symbol == nullptr) return kNotFound;
  if (p != nullptr) *p = at;
  if (bytes != nullptr) *bytes = symbol->st_size;
  return kSuccess;
}
API cuFuncSetAttribute(Function* f, int attribute, int value) {
  CURRENT
  int optin;
  cuDeviceGetAttribute(&optin, 97, here->ordinal);
  if (attribute != 8) return kSuccess;
  if (value < 0 || value > optin) return kInvalidValue;
  return f->dynamicMost = value, kSuccess;
}
API cuFuncGetAttribute(int* value, int attribute, Function* f) {
  switch (attribute) {
    case 0: *value = f->kernel->most != 0 ? int(f->kernel->most) : 1024; break;
    case 1: *value = int(f->module->of.staticBytes); break;
    case 4: *value = 32; break;  // registers
    case 8: *value = f->dynamicMost; break;
    default: *value = 0;
  }
  return kSuccess;
}
API cuFuncSetCacheConfig(Function*, int) { return kSuccess; }
API cuFuncSetSharedMemConfig(Function*, int) { return kSuccess; }
API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function*, int threads, size_t) { return *blocks = 2048 / threads, kSuccess; }
API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Function*, int threads, size_t, unsigned) { return *blocks = 2048 / threads, kSuccess; }

namespace {


int launchNow(Device* d, const Launch& launch) {
  const int r = run(launch);
  if (r != 0) d->lost = r;
  return r;
}

}  // namespace

API cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sharedBytes, void* stream,
                   void** parameters, void**) {
  CURRENT
  const uint64_t threads = uint64_t{bx} * by * bz;
  if (gx == 0 || gy == 0 || gz == 0 || threads == 0 || gx > 0x7fffffff || gy > 65535 || gz > 65535 || bx > 1024 || by > 1024 || bz > 64)
    return kInvalidValue;
  if (threads > 1024 || int(sharedBytes) > f->dynamicMost) return kInvalidValue;
  if (f->kernel->most != 0 && threads > f->kernel->most) {
    fprintf(stderr, "geniemq emulated device: %s has launch bounds of %u threads and is launched with %u\n", f->kernel->name, f->kernel->most, unsigned(threads));
    return 701;
  }
  Launch launch = {f->kernel, &f->module->of, {gx, gy, gz}, {bx, by, bz}, sharedBytes, nullptr};
  auto copies = std::make_shared<std::vector<std::vector<uint8_t>>>();
  for (uint32_t i = 0; i < f->kernel->parameters; i++) {
    const auto* const from = static_cast<const uint8_t*>(parameters[i]);
    copies->push_back(std::vector<uint8_t>(from, from + f->kernel->bytes[i]));
  }
  return enqueue(stream, [=]() mutable {
    std::vector<void*> all;
    for (auto& c : *copies) all.push_back(c.data());
    launch.parameters = all.data();
    return launchNow(here, launch);
  });
}

// ---- Errors

namespace {

struct Name {
  int result;
  const char *name, *text;
};
constexpr Name kNames[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

}  // namespace

API cuGetErrorName(int result, const char** name) {
  for (const Name& n : kNames)
    if (n.result == result) return *name = n.name, kSuccess;
  return *name = nullptr, kInvalidValue;
}
API cuGetErrorString(int result, const char** text) {
  for (const Name& n : kNames)
    if (n.result == result) return *text = n.text, kSuccess;
  return *text = nullptr, kInvalidValue;
}
