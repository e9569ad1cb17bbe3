//go:build cuda

// The driver, loaded at run time. gorgonia.org/cu is written for a program that is linked against libcuda, calls
// cuInit before main and exits the process when that fails. A service must start anywhere: print its help, run on
// the CPU, fall back to it. So libcuda is no dependency of the binary: this file defines every driver function that
// is called as a jump through a slot, and fills the slots by dlopen and dlsym before Go's init runs. Without a
// driver each function returns CUDA_ERROR_NO_DEVICE; a function that the driver is too old for returns
// CUDA_ERROR_NOT_SUPPORTED. cuInit alone always succeeds, so that cu's init goes on; what it really returned is what
// geniemq_driver_status tells.
//
// The symbols are hidden: an executable of Go exports its symbols, and the driver's own calls must not end here.
#include <dlfcn.h>
#include <stddef.h>

// Not cuda.h: its macros would rename what is listed.
#define SUCCESS 0
#define NO_DEVICE 100
#define NOT_SUPPORTED 801

static int no_device(void) { return NO_DEVICE; }
static int not_supported(void) { return NOT_SUPPORTED; }

#define STRING(x) #x

#define SYMBOL(name) void *geniemq_slot_##name = (void *)no_device;
#include "symbols.h"
#undef SYMBOL

#if defined(__x86_64__)
#define SYMBOL(name)                     \
  __asm__(".text\n"                      \
          ".globl " STRING(name) "\n"    \
          ".hidden " STRING(name) "\n"   \
          ".type " STRING(name) ", @function\n" STRING(name) ":\n" \
          "  jmp *geniemq_slot_" STRING(name) "(%rip)\n");
#elif defined(__aarch64__)
#define SYMBOL(name)                     \
  __asm__(".text\n"                      \
          ".globl " STRING(name) "\n"    \
          ".hidden " STRING(name) "\n"   \
          ".type " STRING(name) ", %function\n" STRING(name) ":\n" \
          "  adrp x16, geniemq_slot_" STRING(name) "\n" \
          "  ldr x16, [x16, #:lo12:geniemq_slot_" STRING(name) "]\n" \
          "  br x16\n");
#else
#error "the CUDA engine is for amd64 and arm64"
#endif
#include "symbols.h"
#undef SYMBOL

static struct {
  const char *name;
  void **slot;
} functions[] = {
#define SYMBOL(name) {STRING(name), &geniemq_slot_##name},
#include "symbols.h"
#undef SYMBOL
};

static int (*real_init)(unsigned int);
static int init_status = NO_DEVICE;
static const char *load_error;

__attribute__((constructor)) static void load_driver(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *e = dlerror();
    load_error = e ? e : "libcuda.so.1 could not be loaded";
    return;
  }
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *f = dlsym(lib, functions[i].name);
    *functions[i].slot = f ? f : (void *)not_supported;
  }
  real_init = (int (*)(unsigned int))dlsym(lib, "cuInit");
}

__attribute__((visibility("hidden"))) int cuInit(unsigned int flags) {
  if (real_init) init_status = real_init(flags);
  return SUCCESS;
}

int geniemq_driver_status(const char **why) {
  *why = load_error;
  return init_status;
}
