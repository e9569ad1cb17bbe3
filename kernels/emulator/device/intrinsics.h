// CUDA's functions: collectives of a warp, barriers, atomics, arithmetic.
#pragma once

namespace emulated {

template <class T>
struct Same {
  using type = T;
};
template <class T>
using Just = typename Same<T>::type;

constexpr int kTrap = 719, kMisaligned = 716, kIllegal = 700, kAssert = 710;

// A shuffle: where a lane's value comes from says from(lane), of the segment of width lanes; outside of it from its own.
template <class T, class From>
inline T shuffle(const char* name, uint32_t mask, T value, From from, const Place& at) {
  struct In {
    T value;
    uint32_t lane;
  };
  const uint32_t own = running.fiber->lane;
  return collect<In, T>(
      name, mask, In{value, uint32_t(from(own))},
      [&](auto** slots, uint32_t all) {
        for (uint32_t i = 0; i < 32; i++) {
          if (!(all >> i & 1)) continue;
          const uint32_t of = slots[i]->in.lane;
          if (!(all >> of & 1)) fail(kTrap, at, "%s: lane %u reads from lane %u, which the mask %#x does not name", name, i, of, all);
          slots[i]->out = slots[of]->in.value;
        }
      },
      at);
}

template <class T, class Op>
inline T reduce(const char* name, uint32_t mask, T value, Op op, const Place& at) {
  return collect<T, T>(
      name, mask, value,
      [&](auto** slots, uint32_t all) {
        T sum = slots[__builtin_ctz(all)]->in;
        for (uint32_t rest = all & (all - 1); rest; rest &= rest - 1) sum = op(sum, slots[__builtin_ctz(rest)]->in);
        for (uint32_t rest = all; rest; rest &= rest - 1) slots[__builtin_ctz(rest)]->out = sum;
      },
      at);
}

inline uint32_t ballot(const char* name, uint32_t mask, bool yes, const Place& at) {
  return collect<bool, uint32_t>(
      name, mask, yes,
      [&](auto** slots, uint32_t all) {
        uint32_t votes = 0;
        for (uint32_t rest = all; rest; rest &= rest - 1) votes |= uint32_t(slots[__builtin_ctz(rest)]->in) << __builtin_ctz(rest);
        for (uint32_t rest = all; rest; rest &= rest - 1) slots[__builtin_ctz(rest)]->out = votes;
      },
      at);
}

template <class T>
inline void aligned(const T* p, const char* name, const Place& at) {
  if (uintptr_t(p) % (sizeof(T) > 16 ? 16 : sizeof(T)) != 0) fail(kMisaligned, at, "%s of %zu bytes at %p, which is not aligned to them", name, sizeof(T), (const void*)p);
}

}  // namespace emulated

template <class T>
inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, EMULATED_HERE) {
  return emulated::shuffle("__shfl_sync", mask, v, [&](uint32_t own) { return (own & ~(width - 1)) | (uint32_t(lane) & (width - 1)); }, at);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32, EMULATED_HERE) {
  return emulated::shuffle("__shfl_up_sync", mask, v, [&](uint32_t own) { return (own & (width - 1)) >= by ? own - by : own; }, at);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32, EMULATED_HERE) {
  return emulated::shuffle("__shfl_down_sync", mask, v, [&](uint32_t own) { return (own & (width - 1)) + by < unsigned(width) ? own + by : own; }, at);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int by, int width = 32, EMULATED_HERE) {
  return emulated::shuffle("__shfl_xor_sync", mask, v, [&](uint32_t own) {
    const uint32_t of = own ^ uint32_t(by);
    return of / width <= own / width ? of : own;
  }, at);
}
inline unsigned __ballot_sync(unsigned mask, int yes, EMULATED_HERE) { return emulated::ballot("__ballot_sync", mask, yes != 0, at); }
inline int __all_sync(unsigned mask, int yes, EMULATED_HERE) { return emulated::ballot("__all_sync", mask, yes != 0, at) == mask; }
inline int __any_sync(unsigned mask, int yes, EMULATED_HERE) { return emulated::ballot("__any_sync", mask, yes != 0, at) != 0; }
inline int __uni_sync(unsigned mask, int yes, EMULATED_HERE) {
  const unsigned votes = emulated::ballot("__uni_sync", mask, yes != 0, at);
  return votes == 0 || votes == mask;
}
#define EMULATED_REDUCE(name, T, op) \
  inline T name(unsigned mask, T v, EMULATED_HERE) { return emulated::reduce<T>(#name, mask, v, [](T a, T b) -> T { return op; }, at); }
EMULATED_REDUCE(__reduce_add_sync, unsigned, a + b)
EMULATED_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
EMULATED_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
EMULATED_REDUCE(__reduce_add_sync, int, int(unsigned(a) + unsigned(b)))
EMULATED_REDUCE(__reduce_min_sync, int, a < b ? a : b)
EMULATED_REDUCE(__reduce_max_sync, int, a > b ? a : b)
EMULATED_REDUCE(__reduce_and_sync, unsigned, a & b)
EMULATED_REDUCE(__reduce_or_sync, unsigned, a | b)
EMULATED_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef EMULATED_REDUCE
template <class T>
inline unsigned __match_any_sync(unsigned mask, T v, EMULATED_HERE) {
  return emulated::collect<T, unsigned>(
      "__match_any_sync", mask, v,
      [](auto** slots, uint32_t all) {
        for (uint32_t i = 0; i < 32; i++)
          if (all >> i & 1)
            for (uint32_t j = 0; j < 32; j++)
              if (all >> j & 1 && memcmp(&slots[i]->in, &slots[j]->in, sizeof(T)) == 0) slots[i]->out |= 1u << j;
      },
      at);
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T v, int* yes, EMULATED_HERE) {
  const unsigned same = emulated::collect<T, unsigned>(
      "__match_all_sync", mask, v,
      [](auto** slots, uint32_t all) {
        bool equal = true;
        const uint32_t first = __builtin_ctz(all);
        for (uint32_t i = 0; i < 32; i++)
          if (all >> i & 1) equal = equal && memcmp(&slots[i]->in, &slots[first]->in, sizeof(T)) == 0;
        for (uint32_t i = 0; i < 32; i++)
          if (all >> i & 1) slots[i]->out = equal ? all : 0;
      },
      at);
  *yes = same != 0;
  return same;
}
inline void __syncwarp(unsigned mask = ~0u, EMULATED_HERE) {
  struct None {};
  emulated::collect<None, None>("__syncwarp", mask, None{}, [](auto**, uint32_t) {}, at);
}
inline unsigned __activemask() { return emulated::bit(emulated::running.fiber->lane); }  // nobody is known to be beside it

inline void __syncthreads(EMULATED_HERE) { emulated::barrier(0, 0, true, 0, "__syncthreads", at); }
inline int __syncthreads_count(int yes, EMULATED_HERE) { return emulated::barrier(0, 0, true, yes != 0, "__syncthreads_count", at); }
inline int __syncthreads_or(int yes, EMULATED_HERE) { return emulated::barrier(0, 0, true, yes != 0, "__syncthreads_or", at) != 0; }
inline int __syncthreads_and(int yes, EMULATED_HERE) { return emulated::barrier(0, 0, true, yes == 0, "__syncthreads_and", at) == 0; }
inline void __threadfence() { emulated::mayPreempt(); }
inline void __threadfence_block() { emulated::mayPreempt(); }
inline void __threadfence_system() { emulated::mayPreempt(); }
inline void __nanosleep(unsigned, EMULATED_HERE) { emulated::poll(nullptr, "__nanosleep", at); }
[[noreturn]] inline void __trap(EMULATED_HERE) { emulated::fail(emulated::kTrap, at, "__trap"); }
inline void __brkpt() {}

template <class T>
inline T __ldg(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldg", at), *p; }
template <class T>
inline T __ldcg(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldcg", at), emulated::mayPreempt(), *p; }
template <class T>
inline T __ldca(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldca", at), *p; }
template <class T>
inline T __ldcs(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldcs", at), *p; }
template <class T>
inline T __ldlu(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldlu", at), *p; }
template <class T>
inline T __ldcv(const T* p, EMULATED_HERE) { return emulated::aligned(p, "__ldcv", at), emulated::mayPreempt(), *p; }
template <class T>
inline void __stcg(T* p, emulated::Just<T> v, EMULATED_HERE) { emulated::aligned(p, "__stcg", at), emulated::mayPreempt(), *p = v; }
template <class T>
inline void __stcs(T* p, emulated::Just<T> v, EMULATED_HERE) { emulated::aligned(p, "__stcs", at), *p = v; }
template <class T>
inline void __stwb(T* p, emulated::Just<T> v, EMULATED_HERE) { emulated::aligned(p, "__stwb", at), *p = v; }
template <class T>
inline void __stwt(T* p, emulated::Just<T> v, EMULATED_HERE) { emulated::aligned(p, "__stwt", at), *p = v; }

namespace emulated {
template <class T, class Op>
inline T atomic(T* p, Op op, const char* name, const Place& at) {
  aligned(p, name, at);
  mayPreempt();
  const T before = *p;
  *p = op(before);
  running.progress++;
  return before;
}
}  // namespace emulated
#define EMULATED_ATOMIC(name, op)                                                                          \
  template <class T>                                                                                       \
  inline T name(T* p, emulated::Just<T> v, EMULATED_HERE) {                                                \
    return emulated::atomic(p, [&](T x) -> T { return op; }, #name, at);                                   \
  }                                                                                                        \
  template <class T>                                                                                       \
  inline T name##_block(T* p, emulated::Just<T> v, EMULATED_HERE) { return name(p, v, at); }               \
  template <class T>                                                                                       \
  inline T name##_system(T* p, emulated::Just<T> v, EMULATED_HERE) { return name(p, v, at); }
EMULATED_ATOMIC(atomicAdd, x + v)
EMULATED_ATOMIC(atomicSub, x - v)
EMULATED_ATOMIC(atomicExch, v)
EMULATED_ATOMIC(atomicMin, x < v ? x : v)
EMULATED_ATOMIC(atomicMax, x > v ? x : v)
EMULATED_ATOMIC(atomicAnd, x & v)
EMULATED_ATOMIC(atomicOr, x | v)
EMULATED_ATOMIC(atomicXor, x ^ v)
EMULATED_ATOMIC(atomicInc, x >= v ? 0 : x + 1)
EMULATED_ATOMIC(atomicDec, x == 0 || x > v ? v : x - 1)
#undef EMULATED_ATOMIC
template <class T>
inline T atomicCAS(T* p, emulated::Just<T> compare, emulated::Just<T> v, EMULATED_HERE) {
  emulated::aligned(p, "atomicCAS", at);
  emulated::mayPreempt();
  const T before = *p;
  if (before == compare) {
    *p = v;
    emulated::running.progress++;
  }
  return before;
}

inline size_t __cvta_generic_to_shared(const void* p, EMULATED_HERE) { return emulated::sharedAddress(p, at); }
inline void* __cvta_shared_to_generic(size_t a, EMULATED_HERE) { return emulated::shared(uint32_t(a), 0, 1, at); }
inline size_t __cvta_generic_to_global(const void* p) { return size_t(p); }
inline void* __cvta_global_to_generic(size_t p) { return (void*)p; }

// Bits.
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i);
  return r;
}
inline unsigned long long __brevll(unsigned long long x) { return (unsigned long long)__brev(unsigned(x)) << 32 | __brev(unsigned(x >> 32)); }
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned by) { return by % 32 == 0 ? hi : hi << by % 32 | lo >> (32 - by % 32); }
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned by) { return by % 32 == 0 ? lo : lo >> by % 32 | hi << (32 - by % 32); }
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned by) { return by >= 32 ? lo : __funnelshift_l(lo, hi, by); }
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned by) { return by >= 32 ? hi : __funnelshift_r(lo, hi, by); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t all = uint64_t(b) << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= unsigned(all >> (selector >> i * 4 & 7) * 8 & 0xff) << i * 8;
  return r;
}
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  for (int i = int(base), left = offset > 0 ? offset : -offset; i >= 0 && i < 32; i += offset > 0 ? 1 : -1)
    if (mask >> i & 1 && --left == 0) return unsigned(i);
  return ~0u;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(uint64_t(a) * b >> 32); }
inline int __mulhi(int a, int b) { return int(int64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline unsigned __sad(int a, int b, unsigned c) { return unsigned(a > b ? int64_t(a) - b : int64_t(b) - a) + c; }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 4; i++) c += (a >> i * 8 & 0xff) * (b >> i * 8 & 0xff);
  return c;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += int(int8_t(unsigned(a) >> i * 8)) * int8_t(unsigned(b) >> i * 8);
  return c;
}
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return (a & 0xffff) * (b & 0xff) + (a >> 16) * (b >> 8 & 0xff) + c; }
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return (a & 0xffff) * (b >> 16 & 0xff) + (a >> 16) * (b >> 24) + c; }
inline int __dp2a_lo(int a, int b, int c) { return int16_t(a) * int8_t(b) + int16_t(unsigned(a) >> 16) * int8_t(unsigned(b) >> 8) + c; }
inline int __dp2a_hi(int a, int b, int c) { return int16_t(a) * int8_t(unsigned(b) >> 16) + int16_t(unsigned(a) >> 16) * int8_t(unsigned(b) >> 24) + c; }

// Numbers. The module is compiled so that products and sums are never fused.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline int __float_as_int(float a) { int r; return memcpy(&r, &a, 4), r; }
inline unsigned __float_as_uint(float a) { unsigned r; return memcpy(&r, &a, 4), r; }
inline float __int_as_float(int a) { float r; return memcpy(&r, &a, 4), r; }
inline float __uint_as_float(unsigned a) { float r; return memcpy(&r, &a, 4), r; }
inline long long __double_as_longlong(double a) { long long r; return memcpy(&r, &a, 8), r; }
inline double __longlong_as_double(long long a) { double r; return memcpy(&r, &a, 8), r; }
inline int __double2hiint(double a) { return int(__double_as_longlong(a) >> 32); }
inline int __double2loint(double a) { return int(__double_as_longlong(a)); }
namespace emulated {
// Conversions saturate, and NaN is 0.
template <class To, class From>
inline To saturate(From v) {
  if (v != v) return 0;
  if (v >= From(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  if (v <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return To(v);
}
}  // namespace emulated
#define EMULATED_CONVERT(from, From, to, To)                                                               \
  inline To __##from##2##to##_rz(From v) { return emulated::saturate<To>(v); }                             \
  inline To __##from##2##to##_rn(From v) { return emulated::saturate<To>(std::nearbyint(v)); }             \
  inline To __##from##2##to##_rd(From v) { return emulated::saturate<To>(std::floor(v)); }                 \
  inline To __##from##2##to##_ru(From v) { return emulated::saturate<To>(std::ceil(v)); }
EMULATED_CONVERT(float, float, int, int)
EMULATED_CONVERT(float, float, uint, unsigned)
EMULATED_CONVERT(float, float, ll, long long)
EMULATED_CONVERT(float, float, ull, unsigned long long)
EMULATED_CONVERT(double, double, int, int)
EMULATED_CONVERT(double, double, uint, unsigned)
EMULATED_CONVERT(double, double, ll, long long)
EMULATED_CONVERT(double, double, ull, unsigned long long)
#undef EMULATED_CONVERT
inline float __int2float_rn(int v) { return float(v); }
inline float __uint2float_rn(unsigned v) { return float(v); }
inline float __ll2float_rn(long long v) { return float(v); }
inline float __ull2float_rn(unsigned long long v) { return float(v); }
inline double __int2double_rn(int v) { return v; }
inline double __uint2double_rn(unsigned v) { return v; }
inline double __ll2double_rn(long long v) { return double(v); }
inline double __ull2double_rn(unsigned long long v) { return double(v); }
inline float __double2float_rn(double v) { return float(v); }
inline float __double2float_rz(double v) { const float f = float(v); return std::fabs(double(f)) > std::fabs(v) ? std::nextafterf(f, 0.0f) : f; }
inline float __double2float_rd(double v) { const float f = float(v); return f > v ? std::nextafterf(f, -INFINITY) : f; }
inline float __double2float_ru(double v) { const float f = float(v); return f < v ? std::nextafterf(f, INFINITY) : f; }
// Directed rounding of sums and products, by way of double: exact for products of floats, and for sums but where exponents are far
// apart, where the error of the double is far below the float's.
#define EMULATED_DIRECTED(way)                                                                              \
  inline float __fadd_##way(float a, float b) { return __double2float_##way(double(a) + double(b)); }       \
  inline float __fsub_##way(float a, float b) { return __double2float_##way(double(a) - double(b)); }       \
  inline float __fmul_##way(float a, float b) { return __double2float_##way(double(a) * double(b)); }
EMULATED_DIRECTED(rz)
EMULATED_DIRECTED(rd)
EMULATED_DIRECTED(ru)
#undef EMULATED_DIRECTED
inline float __saturatef(float v) { return v != v ? 0.0f : v < 0 ? 0.0f : v > 1 ? 1.0f : v; }
inline float rsqrtf(float v) { return 1.0f / __builtin_sqrtf(v); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float v) { return expf(v); }
inline float __logf(float v) { return logf(v); }
inline float __powf(float a, float b) { return powf(a, b); }

// min and max of CUDA take mixed types.
#define EMULATED_LESS(A, B, R)                             \
  inline constexpr R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  inline constexpr R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
EMULATED_LESS(int, int, int)
EMULATED_LESS(unsigned, unsigned, unsigned)
EMULATED_LESS(int, unsigned, unsigned)
EMULATED_LESS(unsigned, int, unsigned)
EMULATED_LESS(long, long, long)
EMULATED_LESS(unsigned long, unsigned long, unsigned long)
EMULATED_LESS(long, unsigned long, unsigned long)
EMULATED_LESS(unsigned long, long, unsigned long)
EMULATED_LESS(long long, long long, long long)
EMULATED_LESS(unsigned long long, unsigned long long, unsigned long long)
EMULATED_LESS(long long, unsigned long long, unsigned long long)
EMULATED_LESS(unsigned long long, long long, unsigned long long)
#undef EMULATED_LESS
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
