// Instructions of PTX that kernels write by asm. The translator makes of `mnemonic.a::b.c d, [s], x;` the call
// mnemonic_a__b_c(d, s, x, at): destinations are references, addresses numbers, {a, b} is regs(a, b), and the last argument is
// the place in the source. An instruction that is not here does not compile, and is to be added.
#pragma once

namespace emulated::ptx {

// Operands of asm.
template <class R, class T>
inline R& out(T& v) {
  static_assert(sizeof(R) == sizeof(T), "an operand of another size than its constraint");
  return reinterpret_cast<R&>(v);
}
template <class R, class T>
inline R in(const T& v) {
  if constexpr (std::is_pointer_v<T>) {
    return R(reinterpret_cast<uintptr_t>(v));
  } else if constexpr (std::is_convertible_v<T, R> && std::is_integral_v<T> == std::is_integral_v<R>) {
    return R(v);
  } else if constexpr (std::is_enum_v<T>) {
    return R(v);
  } else {
    static_assert(sizeof(R) == sizeof(T), "an operand of another size than its constraint");
    R r;
    memcpy(&r, &v, sizeof r);
    return r;
  }
}

// Registers in braces.
template <class T, size_t N>
struct Regs {
  T* of[N];
  T& operator[](size_t i) const { return *of[i]; }
};
template <class T, class... Rest>
inline Regs<T, 1 + sizeof...(Rest)> regs(T& first, Rest&... rest) {
  return {{&first, &rest...}};
}
template <class T, size_t N>
inline std::array<std::remove_const_t<T>, N> values(const Regs<T, N>& r) {
  std::array<std::remove_const_t<T>, N> v;
  for (size_t i = 0; i < N; i++) v[i] = r[i];
  return v;
}
// What `_` stands for.
struct Sink {
  template <class T>
  operator T&() const {
    static thread_local T nothing;
    return nothing;
  }
};
constexpr Sink sink{};

using At = const Place&;
using B32 = uint32_t;
using B64 = uint64_t;

// ---- Moves and arithmetic

template <class T, class U>
inline void move(T& d, const U& s) {
  if constexpr (std::is_integral_v<T> == std::is_integral_v<U>) {
    d = T(s);
  } else {
    static_assert(sizeof(T) == sizeof(U));
    memcpy(&d, &s, sizeof d);
  }
}
#define EMULATED_MOVE(type)                                                                        \
  template <class T, class U>                                                                      \
  inline void mov_##type(T& d, const U& s, At) { move(d, s); }                                     \
  template <class T, class A, class B>                                                             \
  inline void selp_##type(T& d, const A& a, const B& b, bool p, At) { p ? move(d, a) : move(d, b); }
EMULATED_MOVE(b16) EMULATED_MOVE(b32) EMULATED_MOVE(b64) EMULATED_MOVE(u16) EMULATED_MOVE(u32) EMULATED_MOVE(u64)
EMULATED_MOVE(s32) EMULATED_MOVE(s64) EMULATED_MOVE(f32) EMULATED_MOVE(f64)
#undef EMULATED_MOVE
inline void mov_pred(bool& d, bool s, At) { d = s; }

#define EMULATED_SETP(type, T)                                                    \
  inline void setp_eq_##type(bool& p, T a, T b, At) { p = a == b; }               \
  inline void setp_ne_##type(bool& p, T a, T b, At) { p = a != b; }               \
  inline void setp_lt_##type(bool& p, T a, T b, At) { p = a < b; }                \
  inline void setp_le_##type(bool& p, T a, T b, At) { p = a <= b; }               \
  inline void setp_gt_##type(bool& p, T a, T b, At) { p = a > b; }                \
  inline void setp_ge_##type(bool& p, T a, T b, At) { p = a >= b; }
EMULATED_SETP(b32, uint32_t) EMULATED_SETP(u32, uint32_t) EMULATED_SETP(s32, int32_t) EMULATED_SETP(b64, uint64_t)
EMULATED_SETP(u64, uint64_t) EMULATED_SETP(s64, int64_t) EMULATED_SETP(f32, float) EMULATED_SETP(f64, double)
#undef EMULATED_SETP

#define EMULATED_BINARY(name, T, op) \
  inline void name(T& d, T a, T b, At) { d = op; }
#define EMULATED_SIGNED(name, T, S, op)          \
  inline void name(T& d, T x, T y, At) {         \
    const S a = S(x), b = S(y);                  \
    d = T(op);                                   \
  }
EMULATED_BINARY(add_u32, B32, a + b) EMULATED_BINARY(add_s32, B32, a + b) EMULATED_BINARY(sub_u32, B32, a - b)
EMULATED_BINARY(sub_s32, B32, a - b) EMULATED_BINARY(add_u64, B64, a + b) EMULATED_BINARY(sub_u64, B64, a - b)
EMULATED_BINARY(add_s64, B64, a + b) EMULATED_BINARY(sub_s64, B64, a - b)
EMULATED_BINARY(mul_lo_u32, B32, a * b) EMULATED_BINARY(mul_lo_s32, B32, a * b) EMULATED_BINARY(mul_lo_u64, B64, a * b)
EMULATED_BINARY(mul_hi_u32, B32, B32(B64(a) * b >> 32))
EMULATED_BINARY(and_b32, B32, a & b) EMULATED_BINARY(or_b32, B32, a | b) EMULATED_BINARY(xor_b32, B32, a ^ b)
EMULATED_BINARY(and_b64, B64, a & b) EMULATED_BINARY(or_b64, B64, a | b) EMULATED_BINARY(xor_b64, B64, a ^ b)
EMULATED_BINARY(min_u32, B32, a < b ? a : b) EMULATED_BINARY(max_u32, B32, a > b ? a : b)
EMULATED_BINARY(min_u64, B64, a < b ? a : b) EMULATED_BINARY(max_u64, B64, a > b ? a : b)
EMULATED_SIGNED(min_s32, B32, int32_t, a < b ? a : b) EMULATED_SIGNED(max_s32, B32, int32_t, a > b ? a : b)
EMULATED_BINARY(add_f32, float, a + b) EMULATED_BINARY(add_rn_f32, float, a + b) EMULATED_BINARY(sub_rn_f32, float, a - b)
EMULATED_BINARY(mul_f32, float, a * b) EMULATED_BINARY(mul_rn_f32, float, a * b) EMULATED_BINARY(min_f32, float, fminf(a, b))
EMULATED_BINARY(max_f32, float, fmaxf(a, b)) EMULATED_BINARY(add_rn_f64, double, a + b) EMULATED_BINARY(mul_rn_f64, double, a * b)
// Shifts by more than the width give 0.
inline void shl_b32(B32& d, B32 a, B32 by, At) { d = by > 31 ? 0 : a << by; }
inline void shr_u32(B32& d, B32 a, B32 by, At) { d = by > 31 ? 0 : a >> by; }
inline void shr_b32(B32& d, B32 a, B32 by, At) { d = by > 31 ? 0 : a >> by; }
inline void shr_s32(B32& d, B32 a, B32 by, At) { d = B32(int32_t(a) >> (by > 31 ? 31 : by)); }
inline void shl_b64(B64& d, B64 a, B32 by, At) { d = by > 63 ? 0 : a << by; }
inline void shr_u64(B64& d, B64 a, B32 by, At) { d = by > 63 ? 0 : a >> by; }
inline void shf_l_wrap_b32(B32& d, B32 lo, B32 hi, B32 by, At) { d = __funnelshift_l(lo, hi, by); }
inline void shf_r_wrap_b32(B32& d, B32 lo, B32 hi, B32 by, At) { d = __funnelshift_r(lo, hi, by); }
inline void shf_l_clamp_b32(B32& d, B32 lo, B32 hi, B32 by, At) { d = __funnelshift_lc(lo, hi, by); }
inline void shf_r_clamp_b32(B32& d, B32 lo, B32 hi, B32 by, At) { d = __funnelshift_rc(lo, hi, by); }
inline void prmt_b32(B32& d, B32 a, B32 b, B32 selector, At) {
  d = 0;
  const B64 all = B64(b) << 32 | a;
  for (int i = 0; i < 4; i++) {
    const B32 s = selector >> i * 4, byte = B32(all >> (s & 7) * 8) & 0xff;
    d |= (s & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << i * 8;
  }
}
inline void lop3_b32(B32& d, B32 a, B32 b, B32 c, B32 table, At) {
  d = 0;
  for (int i = 0; i < 8; i++)
    if (table >> i & 1) d |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
}
inline void bfe_u32(B32& d, B32 a, B32 at, B32 width, At) {
  at &= 255, width &= 255;
  d = at > 31 || width == 0 ? 0 : a >> at & (width > 31 ? ~0u : (1u << width) - 1);
}
inline void popc_b32(B32& d, B32 a, At) { d = B32(__popc(a)); }
inline void popc_b64(B32& d, B64 a, At) { d = B32(__popcll(a)); }
inline void clz_b32(B32& d, B32 a, At) { d = B32(__clz(int(a))); }
inline void brev_b32(B32& d, B32 a, At) { d = __brev(a); }
inline void not_b32(B32& d, B32 a, At) { d = ~a; }
inline void fma_rn_f32(float& d, float a, float b, float c, At) { d = __builtin_fmaf(a, b, c); }
inline void mad_lo_u32(B32& d, B32 a, B32 b, B32 c, At) { d = a * b + c; }
inline void mad_wide_u32(B64& d, B32 a, B32 b, B64 c, At) { d = B64(a) * b + c; }
inline void mul_wide_u32(B64& d, B32 a, B32 b, At) { d = B64(a) * b; }
inline void vabsdiff4_u32_u32_u32_add(B32& d, B32 a, B32 b, B32 c, At) {
  for (int i = 0; i < 32; i += 8) c += B32(std::abs(int(a >> i & 255) - int(b >> i & 255)));
  d = c;
}
inline void dp4a_u32_u32(B32& d, B32 a, B32 b, B32 c, At) { d = __dp4a(a, b, c); }
inline void dp4a_s32_s32(B32& d, B32 a, B32 b, B32 c, At) { d = B32(__dp4a(int(a), int(b), int(c))); }
#undef EMULATED_BINARY
#undef EMULATED_SIGNED

// ---- Loads and stores

template <class T>
inline T* global(B64 address, At at) {
  T* const p = reinterpret_cast<T*>(address);
  aligned(p, "an access", at);
  return p;
}
template <class T>
inline T* inShared(B32 address, At at) { return static_cast<T*>(shared(address, sizeof(T), sizeof(T) > 16 ? 16 : sizeof(T), at)); }

#define EMULATED_LOAD(name, T, where, A, before)                          \
  template <class D>                                                      \
  inline void ld_##name(D& d, A a, At at) { before; T v = *where<T>(a, at); move(d, v); }
#define EMULATED_STORE(name, T, where, A, before)                         \
  template <class S>                                                      \
  inline void st_##name(A a, const S& s, At at) { before; T v; move(v, s); *where<T>(a, at) = v; running.progress++; }
#define EMULATED_LOADS(type, T)                                                                                    \
  EMULATED_LOAD(global_##type, T, global, B64, ) EMULATED_LOAD(global_nc_##type, T, global, B64, )                 \
  EMULATED_LOAD(global_cg_##type, T, global, B64, mayPreempt()) EMULATED_LOAD(global_ca_##type, T, global, B64, )  \
  EMULATED_LOAD(global_nc_L1__no_allocate_##type, T, global, B64, )                                                \
  EMULATED_LOAD(global_L1__no_allocate_##type, T, global, B64, ) EMULATED_LOAD(type, T, global, B64, )             \
  EMULATED_LOAD(volatile_global_##type, T, global, B64, mayPreempt())                                              \
  EMULATED_LOAD(relaxed_gpu_global_##type, T, global, B64, mayPreempt())                                           \
  EMULATED_LOAD(acquire_gpu_global_##type, T, global, B64, mayPreempt())                                           \
  EMULATED_LOAD(acquire_cta_global_##type, T, global, B64, mayPreempt())                                           \
  EMULATED_LOAD(shared_##type, T, inShared, B32, ) EMULATED_LOAD(shared__cta_##type, T, inShared, B32, )           \
  EMULATED_LOAD(volatile_shared_##type, T, inShared, B32, mayPreempt())                                            \
  EMULATED_LOAD(acquire_cta_shared_##type, T, inShared, B32, mayPreempt())                                         \
  EMULATED_STORE(global_##type, T, global, B64, ) EMULATED_STORE(type, T, global, B64, )                           \
  EMULATED_STORE(global_cg_##type, T, global, B64, mayPreempt())                                                   \
  EMULATED_STORE(volatile_global_##type, T, global, B64, mayPreempt())                                             \
  EMULATED_STORE(relaxed_gpu_global_##type, T, global, B64, mayPreempt())                                          \
  EMULATED_STORE(release_gpu_global_##type, T, global, B64, mayPreempt())                                          \
  EMULATED_STORE(shared_##type, T, inShared, B32, ) EMULATED_STORE(shared__cta_##type, T, inShared, B32, )         \
  EMULATED_STORE(volatile_shared_##type, T, inShared, B32, mayPreempt())                                           \
  EMULATED_STORE(release_cta_shared_##type, T, inShared, B32, mayPreempt())
EMULATED_LOADS(u8, uint8_t) EMULATED_LOADS(s8, int8_t) EMULATED_LOADS(u16, uint16_t) EMULATED_LOADS(b16, uint16_t)
EMULATED_LOADS(b32, uint32_t) EMULATED_LOADS(u32, uint32_t) EMULATED_LOADS(s32, int32_t) EMULATED_LOADS(f32, float)
EMULATED_LOADS(b64, uint64_t) EMULATED_LOADS(u64, uint64_t) EMULATED_LOADS(s64, int64_t) EMULATED_LOADS(f64, double)
#undef EMULATED_LOADS
#undef EMULATED_LOAD
#undef EMULATED_STORE

template <class T, size_t N>
struct alignas(sizeof(T) * N) Vector {
  T of[N];
};
#define EMULATED_VECTORS(name, where, A, T, N)                                                    \
  template <class R>                                                                              \
  inline void ld_##name(const Regs<R, N>& d, A a, At at) {                                        \
    const Vector<T, N> v = *where<Vector<T, N>>(a, at);                                           \
    for (size_t i = 0; i < N; i++) move(d[i], v.of[i]);                                           \
  }                                                                                               \
  template <class R>                                                                              \
  inline void st_##name(A a, const Regs<R, N>& s, At at) {                                        \
    Vector<T, N> v;                                                                               \
    for (size_t i = 0; i < N; i++) move(v.of[i], s[i]);                                           \
    *where<Vector<T, N>>(a, at) = v;                                                              \
  }
#define EMULATED_VECTORS_OF(type, T, N)                                                                                      \
  EMULATED_VECTORS(global_v##N##_##type, global, B64, T, N) EMULATED_VECTORS(global_nc_v##N##_##type, global, B64, T, N)     \
  EMULATED_VECTORS(global_cg_v##N##_##type, global, B64, T, N)                                                               \
  EMULATED_VECTORS(global_nc_L1__no_allocate_v##N##_##type, global, B64, T, N)                                               \
  EMULATED_VECTORS(global_L1__no_allocate_v##N##_##type, global, B64, T, N)                                                  \
  EMULATED_VECTORS(shared_v##N##_##type, inShared, B32, T, N) EMULATED_VECTORS(v##N##_##type, global, B64, T, N)
EMULATED_VECTORS_OF(u32, uint32_t, 2) EMULATED_VECTORS_OF(u32, uint32_t, 4) EMULATED_VECTORS_OF(b32, uint32_t, 2)
EMULATED_VECTORS_OF(b32, uint32_t, 4) EMULATED_VECTORS_OF(s32, int32_t, 2) EMULATED_VECTORS_OF(s32, int32_t, 4)
EMULATED_VECTORS_OF(f32, float, 2) EMULATED_VECTORS_OF(f32, float, 4) EMULATED_VECTORS_OF(u64, uint64_t, 2)
EMULATED_VECTORS_OF(b64, uint64_t, 2)
#undef EMULATED_VECTORS_OF
#undef EMULATED_VECTORS

inline void prefetch_global_L1(B64, At) {}
inline void prefetch_global_L2(B64, At) {}

// ---- Atomics

#define EMULATED_RED(name, T, where, A, op)                                                                        \
  inline void red_##name(A a, T v, At at) { atomic(where<T>(a, at), [&](T x) -> T { return op; }, "red", at); }     \
  template <class D>                                                                                               \
  inline void atom_##name(D& d, A a, T v, At at) { const T old = atomic(where<T>(a, at), [&](T x) -> T { return op; }, "atom", at); move(d, old); }
#define EMULATED_REDS(type, T, name, op)                                                                           \
  EMULATED_RED(shared_##name##_##type, T, inShared, B32, op) EMULATED_RED(global_##name##_##type, T, global, B64, op) \
  EMULATED_RED(shared__cta_##name##_##type, T, inShared, B32, op)                                                  \
  EMULATED_RED(relaxed_gpu_global_##name##_##type, T, global, B64, op) EMULATED_RED(release_gpu_global_##name##_##type, T, global, B64, op) \
  EMULATED_RED(acquire_gpu_global_##name##_##type, T, global, B64, op) EMULATED_RED(acq_rel_gpu_global_##name##_##type, T, global, B64, op)
EMULATED_REDS(u32, uint32_t, add, x + v) EMULATED_REDS(s32, uint32_t, add, x + v) EMULATED_REDS(u64, uint64_t, add, x + v)
EMULATED_REDS(f32, float, add, x + v)
EMULATED_REDS(u32, uint32_t, min, x < v ? x : v) EMULATED_REDS(u32, uint32_t, max, x > v ? x : v)
EMULATED_REDS(u64, uint64_t, min, x < v ? x : v) EMULATED_REDS(u64, uint64_t, max, x > v ? x : v)
EMULATED_REDS(s32, int32_t, min, x < v ? x : v) EMULATED_REDS(s32, int32_t, max, x > v ? x : v)
EMULATED_REDS(b32, uint32_t, and, x & v) EMULATED_REDS(b32, uint32_t, or, x | v) EMULATED_REDS(b32, uint32_t, xor, x ^ v)
EMULATED_REDS(b64, uint64_t, and, x & v) EMULATED_REDS(b64, uint64_t, or, x | v)
EMULATED_REDS(b32, uint32_t, exch, v) EMULATED_REDS(b64, uint64_t, exch, v)
#undef EMULATED_REDS
#undef EMULATED_RED

// ---- Barriers

inline void bar_sync(uint32_t id, At at) { barrier(id, 0, true, 0, "bar.sync", at); }
inline void bar_sync(uint32_t id, uint32_t threads, At at) { barrier(id, threads, true, 0, "bar.sync", at); }
inline void bar_arrive(uint32_t id, uint32_t threads, At at) { barrier(id, threads, false, 0, "bar.arrive", at); }
inline void barrier_sync(uint32_t id, At at) { bar_sync(id, at); }
inline void barrier_sync(uint32_t id, uint32_t threads, At at) { bar_sync(id, threads, at); }
inline void barrier_sync_aligned(uint32_t id, At at) { bar_sync(id, at); }
inline void barrier_sync_aligned(uint32_t id, uint32_t threads, At at) { bar_sync(id, threads, at); }
inline void barrier_cta_sync(uint32_t id, uint32_t threads, At at) { bar_sync(id, threads, at); }
inline void barrier_cta_sync_aligned(uint32_t id, uint32_t threads, At at) { bar_sync(id, threads, at); }
inline void bar_warp_sync(uint32_t mask, At at) { __syncwarp(mask, at); }
inline void nanosleep_u32(uint32_t, At at) { poll(nullptr, "nanosleep", at); }
inline void trap(At at) { fail(kTrap, at, "trap"); }
#define EMULATED_NOTHING(name) \
  inline void name(At) {}
EMULATED_NOTHING(fence_acq_rel_gpu) EMULATED_NOTHING(fence_acq_rel_cta) EMULATED_NOTHING(fence_sc_gpu) EMULATED_NOTHING(fence_sc_cta)
EMULATED_NOTHING(membar_gl) EMULATED_NOTHING(membar_cta) EMULATED_NOTHING(membar_sys) EMULATED_NOTHING(fence_proxy_async)
EMULATED_NOTHING(fence_proxy_async_shared__cta) EMULATED_NOTHING(fence_proxy_async_global)
EMULATED_NOTHING(fence_mbarrier_init_release_cluster) EMULATED_NOTHING(griddepcontrol_wait) EMULATED_NOTHING(griddepcontrol_launch_dependents)
#undef EMULATED_NOTHING
inline void setmaxnreg_inc_sync_aligned_u32(uint32_t, At at) { __syncwarp(~0u, at); }
inline void setmaxnreg_dec_sync_aligned_u32(uint32_t, At at) { __syncwarp(~0u, at); }

// An mbarrier: a word whose layout is the emulator's own.
struct Mbarrier {
  uint64_t pending : 20, initial : 20, tx : 21, phase : 1, made : 2;
  static constexpr uint64_t kMade = 2;
};
static_assert(sizeof(Mbarrier) == 8);
inline Mbarrier& mbarrier(B32 address, At at) {
  Mbarrier& m = *static_cast<Mbarrier*>(shared(address, 8, 8, at));
  if (m.made != Mbarrier::kMade || m.initial == 0) fail(kTrap, at, "an mbarrier at %#x that was not initialised", address);
  return m;
}
inline void settle(Mbarrier& m) {
  running.progress++;
  if (m.pending != 0 || m.tx != 0) return;
  m.phase ^= 1;
  m.pending = m.initial;
  wake(&m);
}
inline uint64_t arrive(B32 address, uint32_t count, At at) {
  mayPreempt();
  Mbarrier& m = mbarrier(address, at);
  uint64_t state;
  memcpy(&state, &m, 8);
  if (m.pending < count) fail(kTrap, at, "%u arrivals at an mbarrier that wants %u more", count, unsigned(m.pending));
  m.pending -= count;
  settle(m);
  return state;
}
inline void mbarrier_init_shared_b64(B32 address, uint32_t count, At at) {
  if (count == 0 || count >= 1 << 20) fail(kTrap, at, "an mbarrier of %u arrivals", count);
  *static_cast<Mbarrier*>(shared(address, 8, 8, at)) = {count, count, 0, 0, Mbarrier::kMade};
}
inline void mbarrier_inval_shared_b64(B32 address, At at) { mbarrier(address, at) = {0, 0, 0, 0, 0}; }
inline void mbarrier_arrive_shared_b64(uint64_t& state, B32 address, At at) { state = arrive(address, 1, at); }
inline void mbarrier_arrive_shared_b64(uint64_t& state, B32 address, uint32_t count, At at) { state = arrive(address, count, at); }
inline void mbarrier_arrive_shared_b64(Sink, B32 address, At at) { arrive(address, 1, at); }
inline void mbarrier_arrive_shared_b64(Sink, B32 address, uint32_t count, At at) { arrive(address, count, at); }
inline void mbarrier_expect_tx_shared_b64(B32 address, uint32_t bytes, At at) {
  Mbarrier& m = mbarrier(address, at);
  m.tx = m.tx + bytes;
}
inline void mbarrier_arrive_expect_tx_shared_b64(uint64_t& state, B32 address, uint32_t bytes, At at) {
  mbarrier_expect_tx_shared_b64(address, bytes, at);
  state = arrive(address, 1, at);
}
inline void mbarrier_arrive_expect_tx_shared_b64(Sink, B32 address, uint32_t bytes, At at) {
  mbarrier_expect_tx_shared_b64(address, bytes, at);
  arrive(address, 1, at);
}
inline bool passed(B32 address, uint32_t parity, const char* name, At at) {
  mayPreempt();
  if (mbarrier(address, at).phase != (parity & 1)) return true;
  poll(&mbarrier(address, at), name, at);
  return mbarrier(address, at).phase != (parity & 1);
}
inline void mbarrier_try_wait_parity_shared_b64(bool& p, B32 address, uint32_t parity, At at) { p = passed(address, parity, "mbarrier.try_wait", at); }
inline void mbarrier_try_wait_parity_shared_b64(bool& p, B32 address, uint32_t parity, uint32_t, At at) { p = passed(address, parity, "mbarrier.try_wait", at); }
inline void mbarrier_test_wait_parity_shared_b64(bool& p, B32 address, uint32_t parity, At at) { p = passed(address, parity, "mbarrier.test_wait", at); }
inline bool passedState(B32 address, uint64_t state, const char* name, At at) {
  Mbarrier of;
  memcpy(&of, &state, 8);
  return passed(address, of.phase, name, at);
}
inline void mbarrier_try_wait_shared_b64(bool& p, B32 address, uint64_t state, At at) { p = passedState(address, state, "mbarrier.try_wait", at); }
inline void mbarrier_test_wait_shared_b64(bool& p, B32 address, uint64_t state, At at) { p = passedState(address, state, "mbarrier.test_wait", at); }
#define EMULATED_CTA(name) \
  template <class... A>    \
  inline void name##_shared__cta_b64(A&&... a) { name##_shared_b64(std::forward<A>(a)...); }
EMULATED_CTA(mbarrier_init) EMULATED_CTA(mbarrier_inval) EMULATED_CTA(mbarrier_arrive) EMULATED_CTA(mbarrier_expect_tx)
EMULATED_CTA(mbarrier_arrive_expect_tx) EMULATED_CTA(mbarrier_try_wait_parity) EMULATED_CTA(mbarrier_test_wait_parity)
EMULATED_CTA(mbarrier_try_wait) EMULATED_CTA(mbarrier_test_wait)
#undef EMULATED_CTA
inline void cp_async_mbarrier_arrive_noinc_shared_b64(B32 address, At at);

// ---- Copies

// A copy is made when it is waited for, or with a seed perhaps at once.
inline void perform(const Copy& c) {
  if (c.bytes) memcpy(c.to, c.from, c.bytes);
  if (c.zeros) memset(static_cast<uint8_t*>(c.to) + c.bytes, 0, c.zeros);
}
inline void copyAsync(B32 to, B64 from, uint32_t bytes, uint32_t source, At at) {
  if (bytes != 4 && bytes != 8 && bytes != 16) fail(kTrap, at, "cp.async of %u bytes", bytes);
  if (from % bytes != 0) fail(kMisaligned, at, "cp.async of %u bytes from %#llx", bytes, (unsigned long long)from);
  source = source < bytes ? source : bytes;
  const Copy c = {shared(to, bytes, bytes, at), reinterpret_cast<const void*>(from), source, bytes - source};
  if (running.deferred)
    running.fiber->copies.push_back(c);
  else
    perform(c);
}
inline void cp_async_cg_shared_global(B32 to, B64 from, uint32_t bytes, At at) { copyAsync(to, from, bytes, bytes, at); }
inline void cp_async_ca_shared_global(B32 to, B64 from, uint32_t bytes, At at) { copyAsync(to, from, bytes, bytes, at); }
inline void cp_async_cg_shared_global(B32 to, B64 from, uint32_t bytes, uint32_t source, At at) { copyAsync(to, from, bytes, source, at); }
inline void cp_async_ca_shared_global(B32 to, B64 from, uint32_t bytes, uint32_t source, At at) { copyAsync(to, from, bytes, source, at); }
template <class... A>
inline void cp_async_cg_shared_global_L2__128B(A&&... a) { cp_async_cg_shared_global(std::forward<A>(a)...); }
template <class... A>
inline void cp_async_ca_shared_global_L2__128B(A&&... a) { cp_async_ca_shared_global(std::forward<A>(a)...); }
inline void cp_async_commit_group(At) {
  Fiber& f = *running.fiber;
  f.groups.push_back(std::move(f.copies));
  f.copies.clear();
}
inline void cp_async_wait_group(uint32_t left, At) {
  auto& groups = running.fiber->groups;
  if (groups.size() <= left) return;
  const auto end = groups.end() - left;
  for (auto group = groups.begin(); group != end; ++group)
    for (const Copy& c : *group) perform(c);
  groups.erase(groups.begin(), end);
}
inline void cp_async_wait_all(At at) {
  cp_async_commit_group(at);
  cp_async_wait_group(0, at);
}
inline void cp_async_mbarrier_arrive_noinc_shared_b64(B32 address, At at) {
  cp_async_wait_all(at);
  arrive(address, 1, at);
}

inline void cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(B32 to, B64 from, uint32_t bytes, B32 barrier, At at) {
  if (bytes % 16 != 0 || from % 16 != 0) fail(kMisaligned, at, "cp.async.bulk of %u bytes from %#llx", bytes, (unsigned long long)from);
  Mbarrier& m = mbarrier(barrier, at);
  running.block->bulks.push_back({shared(to, bytes, 16, at), reinterpret_cast<const void*>(from), bytes, reinterpret_cast<uint64_t*>(&m)});
}
inline void cp_async_bulk_shared__cta_global_mbarrier__complete_tx__bytes(B32 to, B64 from, uint32_t bytes, B32 barrier, At at) {
  cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(to, from, bytes, barrier, at);
}

// ---- Matrices in shared memory

// 8 x 8 matrices of 16 bits: lane i of those of matrix m gives the address of its row i; lane i gets elements 2 (i % 4) and the
// next of row i / 4, or of column i / 4.
template <size_t N>
inline void loadMatrices(const Regs<uint32_t, N>& d, B32 address, bool transposed, const char* name, At at) {
  using Out = std::array<uint32_t, N>;
  const void* const row = running.fiber->lane < 8 * N ? shared(address, 16, 16, at) : nullptr;
  const Out out = collect<const void*, Out>(
      name, ~0u, row,
      [&](auto** slots, uint32_t) {
        for (uint32_t m = 0; m < N; m++)
          for (uint32_t i = 0; i < 32; i++) {
            uint16_t e[2];
            for (uint32_t j = 0; j < 2; j++) {
              const uint32_t r = transposed ? i % 4 * 2 + j : i / 4, c = transposed ? i / 4 : i % 4 * 2 + j;
              e[j] = static_cast<const uint16_t*>(slots[m * 8 + r]->in)[c];
            }
            slots[i]->out[m] = e[0] | uint32_t{e[1]} << 16;
          }
      },
      at);
  for (size_t m = 0; m < N; m++) d[m] = out[m];
}
template <size_t N>
inline void storeMatrices(B32 address, const std::array<uint32_t, N>& s, bool transposed, const char* name, At at) {
  struct In {
    void* row;
    std::array<uint32_t, N> s;
  };
  struct None {};
  void* const row = running.fiber->lane < 8 * N ? shared(address, 16, 16, at) : nullptr;
  collect<In, None>(
      name, ~0u, In{row, s},
      [&](auto** slots, uint32_t) {
        for (uint32_t m = 0; m < N; m++)
          for (uint32_t i = 0; i < 32; i++)
            for (uint32_t j = 0; j < 2; j++) {
              const uint32_t r = transposed ? i % 4 * 2 + j : i / 4, c = transposed ? i / 4 : i % 4 * 2 + j;
              static_cast<uint16_t*>(slots[m * 8 + r]->in.row)[c] = uint16_t(slots[i]->in.s[m] >> j * 16);
            }
      },
      at);
  running.progress++;
}
#define EMULATED_MATRIX(n)                                                                                                     \
  inline void ldmatrix_sync_aligned_m8n8_x##n##_shared_b16(const Regs<uint32_t, n>& d, B32 a, At at) { loadMatrices(d, a, false, "ldmatrix", at); } \
  inline void ldmatrix_sync_aligned_m8n8_x##n##_trans_shared_b16(const Regs<uint32_t, n>& d, B32 a, At at) { loadMatrices(d, a, true, "ldmatrix.trans", at); } \
  inline void ldmatrix_sync_aligned_m8n8_x##n##_shared__cta_b16(const Regs<uint32_t, n>& d, B32 a, At at) { loadMatrices(d, a, false, "ldmatrix", at); } \
  inline void ldmatrix_sync_aligned_m8n8_x##n##_trans_shared__cta_b16(const Regs<uint32_t, n>& d, B32 a, At at) { loadMatrices(d, a, true, "ldmatrix.trans", at); } \
  template <class T>                                                                                                           \
  inline void stmatrix_sync_aligned_m8n8_x##n##_shared_b16(B32 a, const Regs<T, n>& s, At at) { storeMatrices(a, values(s), false, "stmatrix", at); } \
  template <class T>                                                                                                           \
  inline void stmatrix_sync_aligned_m8n8_x##n##_trans_shared_b16(B32 a, const Regs<T, n>& s, At at) { storeMatrices(a, values(s), true, "stmatrix.trans", at); }
EMULATED_MATRIX(1) EMULATED_MATRIX(2) EMULATED_MATRIX(4)
#undef EMULATED_MATRIX

}  // namespace emulated::ptx

#include "products.h"
