// The sieve: which objects of a column a cheap product cannot exclude, of l2 and angles. index/metric/bound says what it computes and proves that no hit is lost.
//
// Each object less a mean (of angles first divided by its norm), times one power of two, is rounded to float16s. Beside them lie N, its square rounded down,
// and by tile the largest norm and remainder. Tensor cores make A, the product with a query's float16s; an object with N - 2A above the query's tau is too
// far. All others are put on the query's list, and near_gate.cu compares them exactly.
//
// What is damaged has NaN for N and is never excluded; what has no value is infinite and always is.
//
// The float16s lie as the registers of multiplyHalves want them: [16 objects][16 elements][lane] 16 bytes. Objects are filled up to whole kSieveObjects.
#pragma once
#include "near.cuh"

namespace geniemq {

constexpr uint32_t kSieveObjects = 128;   // of a block at a time
constexpr uint32_t kSieveQueries = 128;   // of a block
constexpr uint32_t kSieveStretch = 4608;  // objects that a block goes through: a part of a tile, so that one tau holds for all

// Of a tile: no object's float16s have a larger norm, nor a larger remainder.
struct NearReach {
  double norm, remainder;
};

// Of a query: its float16s' norm, rounded up, and its square, rounded down, and the norm of what they lack, rounded up.
struct NearSieved {
  double norm, square, remainder;
};

struct NearSieve {
  Near near;
  const uint8_t* halves;      // of objects
  const float* squares;       // N
  const NearReach* reaches;   // by tile
  const NearSieved* sieved;
  const uint16_t* queries;    // float16s, row by row
  double gamma, scale;        // what A is wrong by; the square of the power of two
  uint32_t steps, unused;     // of 16 elements
};

// What makes them, when a column is loaded.
struct NearLoad {
  const uint8_t* rows;
  const uint32_t* present;
  const double* mean;
  double* norms;
  uint8_t* halves;
  float* squares;
  NearReach* reaches;
  uint64_t* largest;  // size of an element less the mean: a float64's bits
  double scale, wrong;
  uint32_t dims, storage, objects, steps;
};

static_assert(sizeof(NearReach) == 16 && sizeof(NearSieved) == 24 && sizeof(NearSieve) == 184 && sizeof(NearLoad) == 96);
static_assert(kTileObjects % kSieveStretch == 0 && kSieveStretch % kSieveObjects == 0);

}  // namespace geniemq
