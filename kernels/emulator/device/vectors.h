// Vector types of CUDA.
#pragma once
#include <cstdint>

#define EMULATED_VECTOR(T, name, of)                                    \
  struct name##1 { T x; };                                              \
  struct alignas(2 * of) name##2 { T x, y; };                           \
  struct alignas(4 * of > 16 ? 16 : 4 * of) name##4 { T x, y, z, w; };  \
  inline name##1 make_##name##1(T x) { return {x}; }                    \
  inline name##2 make_##name##2(T x, T y) { return {x, y}; }            \
  inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATED_VECTOR(char, char, 1)
EMULATED_VECTOR(unsigned char, uchar, 1)
EMULATED_VECTOR(short, short, 2)
EMULATED_VECTOR(unsigned short, ushort, 2)
EMULATED_VECTOR(int, int, 4)
EMULATED_VECTOR(unsigned int, uint, 4)
EMULATED_VECTOR(long, long, 8)
EMULATED_VECTOR(unsigned long, ulong, 8)
EMULATED_VECTOR(long long, longlong, 8)
EMULATED_VECTOR(unsigned long long, ulonglong, 8)
EMULATED_VECTOR(float, float, 4)
EMULATED_VECTOR(double, double, 8)
#undef EMULATED_VECTOR
#define EMULATED_VECTOR3(T, name) \
  struct name##3 { T x, y, z; };  \
  inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
EMULATED_VECTOR3(char, char)
EMULATED_VECTOR3(unsigned char, uchar)
EMULATED_VECTOR3(short, short)
EMULATED_VECTOR3(unsigned short, ushort)
EMULATED_VECTOR3(int, int)
EMULATED_VECTOR3(float, float)
EMULATED_VECTOR3(double, double)
#undef EMULATED_VECTOR3
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
