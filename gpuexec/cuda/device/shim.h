// What gorgonia.org/cu lacks, in C: a whole batch as one call, pinned memory, shared memory above 48 KB, and errors
// as numbers.
#pragma once
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

// The result of cuInit, and why the driver was not loaded, or NULL.
int geniemq_driver_status(const char **why);

enum { GENIEMQ_LAUNCH, GENIEMQ_COPY_IN, GENIEMQ_COPY_OUT, GENIEMQ_FILL, GENIEMQ_RECORD, GENIEMQ_WAIT };

// One step of a recorded list. It holds no Go pointers: host memory is pinned memory, made here.
typedef struct {
  uint32_t kind;
  uint32_t threads, shared;  // LAUNCH
  uint32_t x, y;             // LAUNCH: grid
  uint64_t stream;  // CUstream; 0: the list's own
  uint64_t handle;  // LAUNCH: CUfunction; RECORD, WAIT: CUevent
  uint64_t device;  // COPY_*, FILL: address
  uint64_t host;    // COPY_*: address; FILL: the byte
  uint64_t bytes;
  uint64_t arguments[26];  // LAUNCH: the kernel's one parameter
} geniemq_step;

// Puts the steps on a stream, or on those that they name, in order, up to the first that fails.
CUresult geniemq_submit(CUstream stream, const geniemq_step *steps, int count);

// Submits, and waits until all on this stream is done. The calling thread asks, and soon naps in between.
CUresult geniemq_run(CUstream stream, CUevent done, const geniemq_step *steps, int count);

// A stream that waits for no other, of the greatest priority that there is or of the least.
enum { GENIEMQ_URGENT, GENIEMQ_PATIENT };
CUresult geniemq_stream(CUstream *stream, int priority);

CUresult geniemq_host_alloc(void **memory, size_t bytes);
CUresult geniemq_host_free(void *memory);
CUresult geniemq_device_alloc(uint64_t *memory, size_t bytes);
CUresult geniemq_device_free(uint64_t memory);
CUresult geniemq_allow_shared(CUfunction function, int bytes);
CUresult geniemq_wait(CUevent event);
CUresult geniemq_load(CUmodule *module, const void *image);
CUresult geniemq_function(CUfunction *function, CUmodule module, const char *name);
CUresult geniemq_constant(CUmodule module, const char *name, uint32_t *value);
const char *geniemq_error_name(CUresult result);
const char *geniemq_error_text(CUresult result);
