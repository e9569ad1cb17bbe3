// What valgrind is told of memory, where it can be: under it a program may read what nothing has written, and not decide by it.
#pragma once
#include <cstddef>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(address, bytes) (void)0
#define VALGRIND_STACK_REGISTER(first, end) (void)0
#endif

namespace emulated {

// Memory that was allocated and not written yet, whatever is in it.
inline void unwritten([[maybe_unused]] void* address, [[maybe_unused]] size_t bytes) { VALGRIND_MAKE_MEM_UNDEFINED(address, bytes); }

// Memory that is a stack: a switch to it is no growth of the one before.
inline void isStack([[maybe_unused]] void* first, [[maybe_unused]] size_t bytes) { VALGRIND_STACK_REGISTER(first, static_cast<char*>(first) + bytes); }

}  // namespace emulated
