package main

import (
	"strings"
	"testing"
)

// What a kernel has that C++ has not becomes C++, on the same lines.
func TestTranslate(t *testing.T) {
	const source = `# 1 "kernels/verify.cu"
namespace n {
extern EMULATED_SHARED __attribute__((aligned(16))) unsigned long long masks[];
extern "C" EMULATED_GLOBAL void EMULATED_BOUNDS(f(1, 2), 6) k(const T t) {
  EMULATED_SHARED uint32_t s[4];
  extern EMULATED_SHARED uint8_t memory[];
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0;\n"
               "@!p ld.global.nc.v2.u32 {%0, %2}, [%3 + 8]; a::b.c _, 1; }"
               : "=r"(x), "+r"(y[n::z]) : "l"(p), "n"(P) : "memory");
  int text = "{ asm";
}
EMULATED_GLOBAL void declared(int);
}
# 1 "/usr/include/x.h"
asm("untouched");
`
	got, err := translate([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	for _, want := range []string{
		"static const ::emulated::Dynamic<unsigned long long> masks{};",
		"static uint32_t s[4];",
		"uint8_t* const memory = static_cast<uint8_t*>(::emulated::dynamicShared());",
		"auto& o0 = out<uint32_t>(x); auto& o1 = out<uint32_t>(y[n::z]); auto o2 = in<uint64_t>(p); const auto o3 = (P); ",
		"bool p; setp_ne_u32(p, o1, 0, emulated_at); if (!p) ld_global_nc_v2_u32(regs(o0, o2), o3 + 8, emulated_at); a__b_c(sink, 1, emulated_at); }",
		`emulated_of_k("k", &::emulated::Thunk<decltype(&k)>::call<&k>`, "uint32_t(f(1, 2)));",
		`asm("untouched");`, `"{ asm"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "emulated_of_declared") {
		t.Error("a declaration is registered")
	}
	if got, want := strings.Count(text, "\n"), strings.Count(source+epilogue, "\n"); got != want {
		t.Errorf("%d lines became %d", want, got)
	}
}

// What is not emulated is told with its place.
func TestTranslateFaults(t *testing.T) {
	for source, want := range map[string]string{
		`asm("bra DONE;");`:                      "branches",
		`asm("add.u32 %0, %1, %2;" : "=r"(x));`:  "no operand %1",
		`asm("x;" :: "q"(x));`:                   `constraint "q"`,
		`asm(".reg .b128 x;");`:                  "not emulated",
		`asm("x;"`:                               "not closed",
		`asm(x);`:                                "without a text",
		"extern EMULATED_SHARED int x;":          "without a length",
		`int a = "never`:                         "without an end",
		"EMULATED_GLOBAL void EMULATED_BOUNDS k": "parenthesis",
	} {
		_, err := translate([]byte("# 7 \"kernels/verify.cu\"\n" + source + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "kernels/verify.cu:7: ") {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}
