//go:build cuda

#include "shim.h"

#include <time.h>

// Waits for an event. A thread that sleeps in the driver takes 0.1 to 0.5 ms to come back, longer than a small batch runs.
// So the first SPIN_NS are spent asking, and later there is a nap between questions: 0.1 ms at worst, a few percent of a
// core.
#define SPIN_NS 400000
#define NAP_NS 20000
static CUresult await(CUevent event) {
  struct timespec from, now, nap = {0, NAP_NS};
  clock_gettime(CLOCK_MONOTONIC, &from);
  while (1) {
    CUresult r = cuEventQuery(event);
    if (r != CUDA_ERROR_NOT_READY) return r;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - from.tv_sec) * 1000000000ll + (now.tv_nsec - from.tv_nsec) >= SPIN_NS) nanosleep(&nap, NULL);
  }
}

CUresult geniemq_submit(CUstream own, const geniemq_step *steps, int count) {
  for (int i = 0; i < count; i++) {
    const geniemq_step *s = &steps[i];
    CUstream stream = s->stream ? (CUstream)s->stream : own;
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    switch (s->kind) {
      case GENIEMQ_LAUNCH: {
        void *parameters[] = {(void *)s->arguments};
        r = cuLaunchKernel((CUfunction)s->handle, s->x, s->y, 1, s->threads, 1, 1, s->shared, stream, parameters, NULL);
        break;
      }
      case GENIEMQ_COPY_IN:
        r = cuMemcpyHtoDAsync(s->device, (const void *)s->host, s->bytes, stream);
        break;
      case GENIEMQ_COPY_OUT:
        r = cuMemcpyDtoHAsync((void *)s->host, s->device, s->bytes, stream);
        break;
      case GENIEMQ_FILL:
        r = cuMemsetD8Async(s->device, (unsigned char)s->host, s->bytes, stream);
        break;
      case GENIEMQ_RECORD:
        r = cuEventRecord((CUevent)s->handle, stream);
        break;
      case GENIEMQ_WAIT:
        r = cuStreamWaitEvent(stream, (CUevent)s->handle, 0);
        break;
    }
    if (r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

CUresult geniemq_run(CUstream stream, CUevent done, const geniemq_step *steps, int count) {
  CUresult submitted = geniemq_submit(stream, steps, count);
  // Also after an error: what was submitted still uses the memory of the batch.
  CUresult r = cuEventRecord(done, stream);
  if (r == CUDA_SUCCESS) r = await(done);
  return submitted != CUDA_SUCCESS ? submitted : r;
}

CUresult geniemq_stream(CUstream *stream, int priority) {
  int least, greatest;
  CUresult r = cuCtxGetStreamPriorityRange(&least, &greatest);
  if (r != CUDA_SUCCESS) return r;
  return cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, priority == GENIEMQ_URGENT ? greatest : least);
}

CUresult geniemq_host_alloc(void **memory, size_t bytes) { return cuMemHostAlloc(memory, bytes, CU_MEMHOSTALLOC_PORTABLE); }
CUresult geniemq_host_free(void *memory) { return cuMemFreeHost(memory); }

CUresult geniemq_device_alloc(uint64_t *memory, size_t bytes) {
  CUdeviceptr p = 0;
  CUresult r = cuMemAlloc(&p, bytes);
  *memory = p;
  return r;
}
CUresult geniemq_device_free(uint64_t memory) { return cuMemFree(memory); }

CUresult geniemq_allow_shared(CUfunction function, int bytes) {
  return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
}

CUresult geniemq_wait(CUevent event) { return cuEventSynchronize(event); }

CUresult geniemq_load(CUmodule *module, const void *image) { return cuModuleLoadData(module, image); }
CUresult geniemq_function(CUfunction *function, CUmodule module, const char *name) {
  return cuModuleGetFunction(function, module, name);
}
CUresult geniemq_constant(CUmodule module, const char *name, uint32_t *value) {
  CUdeviceptr p;
  size_t bytes;
  CUresult r = cuModuleGetGlobal(&p, &bytes, module, name);
  if (r != CUDA_SUCCESS) return r;
  if (bytes != sizeof *value) return CUDA_ERROR_INVALID_VALUE;
  return cuMemcpyDtoH(value, p, sizeof *value);
}

static const char *text(CUresult (*get)(CUresult, const char **), CUresult result) {
  const char *s = NULL;
  return get(result, &s) == CUDA_SUCCESS && s ? s : "";
}
const char *geniemq_error_name(CUresult result) { return text(cuGetErrorName, result); }
const char *geniemq_error_text(CUresult result) { return text(cuGetErrorString, result); }
