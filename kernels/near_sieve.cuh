// The sieve: which objects of a column a cheap product cannot exclude, of l2 and angles. index/metric/bound says what it computes and proves that no hit is lost.
//
// Each object less a mean (of angles first divided by its norm), times one power of two, is rounded to float16s. Beside them lies B, bound.Begin of its square,
// and by tile the largest norm and remainder. Tensor cores begin with B and add the product with a query's float16s; an object for which that is below the
// query's floor is too far. All others are put on the query's list, and near_gate.cu compares them exactly. Of products (ip) B and the mean are 0.
//
// What is damaged has NaN for B and is never excluded; what has no value has minus infinity and always is.
//
// The float16s lie as the registers of multiplyHalves want them: [16 objects][16 elements][lane] 16 bytes. Objects are filled up to whole kSieveObjects, and
// elements to whole pairs of steps.
//
// Of l1 there are bytes in place of float16s: an element times a power of two, less a whole number that its dimension has, cut to 0 .. 255 and rounded. Absolute
// differences of four bytes are one instruction, their sum H is exact, and by the triangle inequality the distance in steps is at least H less what roundings of
// both vectors sum up to; what is cut only comes nearer. An object's sum begins with what its own roundings come to, rounded up and negative, and it is too far
// where the sum is above the query's floor. What is damaged begins below all floors, and what has no value above. Bytes lie as lanes take them: [8 objects][4 elements]
// 4 bytes of each.
//
// Other products are of words that lie like these. For linf they are the same bytes, and what is compared is whether each byte is within a query's box: as far from the query's byte as its
// floor allows. The differences of a byte to both ends of an interval sum up to its width where it is within, and to more elsewhere; so two absolute differences and a comparison tell,
// of all dimensions at once. What roundings lose is at most half a step of each element: the largest of all objects is known, and part of the floor. For hamming bytes are codes of
// elements, equal for equal ones, and those that differ are counted. For lp words are the elements themselves, float32s times a power of two, and powers are added up in
// float32s, with a bound of their rounding.
#pragma once
#include "near.cuh"

namespace geniemq {

constexpr uint32_t kSieveObjects = 128;   // of a block at a time
constexpr uint32_t kSieveQueries = 128;   // of a block
constexpr int kSieveNever = 1 << 30;      // what sums of bytes begin with where an object has no value; less that where it is damaged
constexpr int kSieveMost = 1 << 29;       // no floor is above it

// What a sieve's product is of, as queries are told.
enum NearProduct : uint32_t { kNearHalves, kNearBytes, kNearBoxes, kNearCodes, kNearFloats };

// Of a tile: no object's float16s have a larger norm, nor a larger remainder.
struct NearReach {
  double norm, remainder;
};

// Of a query: its float16s' norm, rounded up, and its square, rounded down, and the norm of what they lack, rounded up. Of bytes the last alone, in steps; of codes and float32s it is 0.
struct NearSieved {
  double norm, square, remainder;
};

struct NearSieve {
  Near near;
  const uint8_t* few;         // of objects: float16s or words
  const uint32_t* begins;     // B, or whole numbers
  const NearReach* reaches;   // by tile; of words there are none
  const NearSieved* sieved;
  const uint32_t* queries;    // float16s or words, as NearPieces says
  double gamma, scale;        // what A is wrong by; what values are multiplied by, to be compared with sums
  uint32_t steps, stretch;    // of 16 float16s or a word, an even number; objects that a block goes through, whole kSieveObjects: no more than a tile has; of a sample how far apart its parts begin
};

// Of bytes by levels (near_levels.cu).
struct NearLevels {
  NearSieve sieve;
  int32_t* least;  // of objects, filled up
};

// Where the few bits of queries lie, in pieces: 8 float16s or a word. Of kSieveQueries queries, or as many as are left, lie the first pieces of all, then the second ones: a block
// of the sieve reads what lies together.
struct NearPieces {
  uint32_t first, queries;  // that lie together

  __device__ __forceinline__ NearPieces(uint32_t query, uint32_t queriesOfBatch)
      : first(query / kSieveQueries * kSieveQueries), queries(min(kSieveQueries, queriesOfBatch - first)) {}
  __device__ __forceinline__ size_t begin(uint32_t pieces) const { return size_t{first} * pieces; }  // of so many a query
  __device__ __forceinline__ uint32_t at(uint32_t piece, uint32_t query) const { return piece * queries + query % kSieveQueries; }
};

// What makes them, when a column is loaded.
struct NearLoad {
  const uint8_t* rows;
  const uint32_t* present;
  const double* mean;  // of bytes what is taken from an element, in steps
  double* norms;
  uint8_t* few;
  uint32_t* begins;
  NearReach* reaches;
  uint64_t* largest;  // size of an element less the mean, or what one loses in words: a float64's bits
  double scale, wrong, gamma;
  uint32_t dims, storage, objects, steps;
};

// What is derived of queries that were sent as float32s, before they are compared.
struct NearAsk {
  const float* asked;  // dims each
  double* vectors;
  NearQuery* queries;  // their norms, for angles
  NearState* states;   // `given`, where float16s do not hold a query
  const double* mean;  // of the sieve, and all that follows
  NearSieved* sieved;
  uint32_t* few;
  double scale, wrong;
  uint32_t dims, steps;  // no steps: there is no sieve
  uint32_t queriesOfBatch, angles;
  uint32_t product, unused;
};

static_assert(sizeof(NearAsk) == 96);
static_assert(sizeof(NearReach) == 16 && sizeof(NearSieved) == 24 && sizeof(NearSieve) == 192 && sizeof(NearLevels) == 200 && sizeof(NearLoad) == 104);
static_assert(kTileObjects % kSieveObjects == 0);

}  // namespace geniemq
