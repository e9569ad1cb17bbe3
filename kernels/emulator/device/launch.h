// A launch, as the driver asks for it.
#pragma once
#include "fiber.h"

namespace emulated {

struct Launch {
  const Kernel* kernel;
  const Module* module;
  dim3 grid, dim;
  uint32_t dynamicBytes;
  void** parameters;
};

// Settings by environment, read once. See CONTRIBUTING.md.
struct Settings {
  uint64_t seed, memory;
  bool random, lazy;
  uint32_t devices, processors, resident;
};
const Settings& settings();

// Runs a launch to its end and returns the driver's result. What went wrong is written to standard error.
int run(const Launch& launch);

// Says where an address lies in the memory of devices.
void describe(const void* address, char* text, size_t bytes);

}  // namespace emulated
