package fenced

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

const precision = 300

func wide(x float64) *big.Float { return number().SetFloat64(x) }
func number() *big.Float        { return new(big.Float).SetPrec(precision) }

// wideSinCos is the series.
func wideSinCos(x *big.Float) (sin, cos *big.Float) {
	sin, cos = number(), number()
	term := wide(1)
	for n := int64(0); n < 400; n++ {
		switch n % 4 {
		case 0:
			cos.Add(cos, term)
		case 1:
			sin.Add(sin, term)
		case 2:
			cos.Sub(cos, term)
		case 3:
			sin.Sub(sin, term)
		}
		term.Mul(term, x)
		term.Quo(term, number().SetInt64(n+1))
		if term.Sign() == 0 || term.MantExp(nil) < -2000 {
			break
		}
	}
	return sin, cos
}

// widePi is twice the arc of which the cosine is 0.
func widePi() *big.Float {
	h := wide(math.Pi / 2)
	for range 6 {
		s, c := wideSinCos(h)
		h.Add(h, c.Quo(c, s))
	}
	return h.Mul(h, wide(2))
}

// wideAsin is Newton's method with the series, for 0 <= x <= 1.
func wideAsin(x, pi *big.Float) *big.Float {
	if x.Cmp(wide(0.75)) > 0 {
		z := number().Quo(number().Sub(wide(1), x), wide(2))
		half := wideAsin(number().Sqrt(z), pi)
		return number().Sub(number().Quo(pi, wide(2)), half.Mul(half, wide(2)))
	}
	f, _ := x.Float64()
	y := wide(math.Asin(f))
	for range 5 {
		s, c := wideSinCos(y)
		s.Sub(x, s)
		y.Add(y, s.Quo(s, c))
	}
	return y
}

// units is how far got is from want, in units in the last place of want.
func units(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	_, e := math.Frexp(w)
	ulp := math.Ldexp(1, max(e-53, -1074))
	d, _ := number().Sub(wide(got), want).Float64()
	return math.Abs(d) / ulp
}

// arguments are numbers of (0, 1] of all sizes, and those where functions turn from one way to another.
func arguments(rng *rand.Rand, n int) []float64 {
	x := []float64{0x1p-1074, 0x1p-1022, 0x1p-300, 0x1p-60, 0x1p-30, 0x1p-29, 0.25, 0.5, math.Sqrt(0.5), 0.75, 1}
	for range n {
		switch rng.IntN(4) {
		case 0:
			x = append(x, rng.Float64())
		case 1:
			x = append(x, math.Ldexp(rng.Float64(), -rng.IntN(80)))
		case 2:
			x = append(x, 1-math.Ldexp(rng.Float64(), -rng.IntN(54)))
		default:
			x = append(x, 0.5+math.Ldexp(rng.Float64()-0.5, -rng.IntN(50)))
		}
	}
	for _, v := range x[:11] {
		x = append(x, math.Nextafter(v, 0), math.Nextafter(v, min(1, 2*v)))
	}
	return x
}

func worst(t *testing.T, name string, most float64, rounds func(yield func(x string, units float64) bool)) {
	t.Helper()
	at, largest := "", 0.0
	rounds(func(x string, u float64) bool {
		if !(u <= largest) {
			at, largest = x, u
		}
		return true
	})
	t.Logf("%s: at most %.4f units in the last place, at %s", name, largest, at)
	if !(largest <= most) {
		t.Errorf("%s: %v units in the last place at %s, more than %v", name, largest, at, most)
	}
}

// TestAccuracy: every function is as near to the truth as the package says.
func TestAccuracy(t *testing.T) {
	rng := seeded.Rand(t)
	pi := widePi()
	worst(t, "Asin", 0.51, func(yield func(string, float64) bool) {
		for _, x := range arguments(rng, 800) {
			yield(fmt.Sprint(x), units(Asin(x), wideAsin(wide(x), pi)))
		}
	})
	worst(t, "AcosDegrees", 0.76, func(yield func(string, float64) bool) {
		for i, x := range arguments(rng, 800) {
			want := number().Quo(pi, wide(2))
			if a := wideAsin(wide(x), pi); i%2 == 0 {
				want.Sub(want, a)
			} else {
				want, x = want.Add(want, a), -x
			}
			want.Mul(want, wide(180))
			want.Quo(want, pi)
			if x == 1 {
				want = wide(0)
			}
			yield(fmt.Sprint(x), units(AcosDegrees(x), want))
		}
	})
	worst(t, "SinCosDegrees", 1, func(yield func(string, float64) bool) {
		for _, x := range arguments(rng, 800) {
			x *= float64(int(1) << rng.IntN(14))
			sin, cos := SinCosDegrees(x)
			angle := number().Mul(wide(math.Mod(x, 360)), pi)
			wantSin, wantCos := wideSinCos(angle.Quo(angle, wide(180)))
			if math.Mod(x, 90) == 0 {
				wantSin, wantCos = wide(math.Round(sin)), wide(math.Round(cos))
			}
			yield(fmt.Sprint(x), max(units(sin, wantSin), units(cos, wantCos)))
		}
	})
	for p := 2; p <= 8; p++ {
		worst(t, fmt.Sprintf("Root %d", p), 0.51, func(yield func(string, float64) bool) {
			for _, x := range arguments(rng, 200) {
				if x = math.Ldexp(x, rng.IntN(1000)); x == 0 {
					continue
				}
				r := Root(x, p)
				// Newton's step from what came out: r - (r^p - x) / (p r^(p-1)), and once more.
				y := wide(r)
				for range 3 {
					power := wide(1)
					for range p - 1 {
						power.Mul(power, y)
					}
					f := number().Mul(power, y)
					f.Sub(f, wide(x))
					y.Sub(y, f.Quo(f, power.Mul(power, wide(float64(p)))))
				}
				yield(fmt.Sprint(x), units(r, y))
			}
		})
	}
}

// TestKnown: what people know by heart comes out exactly.
func TestKnown(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{AcosDegrees(1), 0}, {AcosDegrees(0.5), 60}, {AcosDegrees(0), 90}, {AcosDegrees(-0.5), 120}, {AcosDegrees(-1), 180}, {AcosDegrees(math.Copysign(0, -1)), 90},
		{Asin(0), 0}, {Asin(1), math.Pi / 2}, {Asin(0.5), math.Pi / 6}, {Asin(0x1p-1074), 0x1p-1074},
		{Root(0, 3), 0}, {Root(27, 3), 3}, {Root(1, 8), 1}, {Root(256, 8), 2}, {Root(0x1p-1072, 8), 0x1p-134}, {Root(0x1p1023, 3), 0x1p341}, {Root(math.Inf(1), 5), math.Inf(1)}, {Root(2, 1), 2}, {Root(2, 2), math.Sqrt2},
	} {
		if c.got != c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	for angle, want := range map[float64][2]float64{
		0: {0, 1}, 90: {1, 0}, 180: {0, -1}, 270: {-1, 0}, 360: {0, 1}, -90: {-1, 0}, -180: {0, -1}, 36000090: {1, 0}, 1e22: {-0.984807753012208, 0.17364817766693036},
	} {
		sin, cos := SinCosDegrees(angle)
		if sin != want[0] || cos != want[1] || math.Signbit(sin) && sin == 0 || math.Signbit(cos) && cos == 0 {
			t.Errorf("%v degrees: %v and %v, want %v", angle, sin, cos, want)
		}
	}
}

// TestMonotone: no function falls where it should rise, from one number to the next.
func TestMonotone(t *testing.T) {
	rng := seeded.Rand(t)
	walks := 400
	for _, start := range arguments(rng, walks) {
		x := start
		// The sums of which results are rounded rise strictly, which rounding hides.
		for range 40 {
			next := math.Nextafter(x, 2)
			if next <= 1 {
				if a, b := Asin(x), Asin(next); a > b {
					t.Fatalf("Asin falls from %v to %v, of %v", a, b, x)
				}
				if a, b := AcosDegrees(x), AcosDegrees(next); a < b {
					t.Fatalf("AcosDegrees rises from %v to %v, of %v", a, b, x)
				}
				if a, b := AcosDegrees(-x), AcosDegrees(-next); a > b {
					t.Fatalf("AcosDegrees falls from %v to %v, of -%v", a, b, x)
				}
			}
			for p := 3; p <= 8; p++ {
				if a, b := Root(x, p), Root(next, p); a > b {
					t.Fatalf("Root %d falls from %v to %v, of %v", p, a, b, x)
				}
			}
			x = next
		}
	}
	for range 200000 {
		a, b := rng.Float64(), rng.Float64()
		a, b = min(a, b), max(a, b)
		if Asin(a) > Asin(b) || AcosDegrees(a) < AcosDegrees(b) || Root(a, 5) > Root(b, 5) {
			t.Fatalf("not in order: %v and %v", a, b)
		}
	}
}

// TestSumsRise: where the proof needs it, what is rounded last rises strictly from one argument to the next.
func TestSumsRise(t *testing.T) {
	rng := seeded.Rand(t)
	for _, x := range arguments(rng, 20000) {
		next := math.Nextafter(x, 1)
		if next > 0.5 || x < 0x1p-900 {
			continue
		}
		a, b := arc(pair{x, 0}), arc(pair{next, 0})
		if d := (b.hi - a.hi) + (b.lo - a.lo); !(d >= 0.9*(next-x) && d <= 1.2*(next-x)) {
			t.Fatalf("the arc of %v rises by %v, that argument by %v", x, d, next-x)
		}
	}
}

// TestSameEverywhere pins what must be the same bytes on every machine.
func TestSameEverywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := fnv.New64a()
	add := func(values ...float64) {
		for _, v := range values {
			fmt.Fprintf(h, "%x ", math.Float64bits(v))
		}
	}
	for range 3000 {
		x := float64(rng.IntN(1<<30)) / (1 << 30)
		sin, cos := SinCosDegrees(720 * (x - 0.5))
		add(Asin(x), AcosDegrees(2*x-1), sin, cos, Root(x, 3), Root(1e10*x, 8))
	}
	if got, want := h.Sum64(), uint64(0x8bf4f3795ce45d34); got != want {
		t.Errorf("the values have the hash %#x, want %#x", got, want)
	}
}

// TestNeverFused: in the code for arm64, whose compiler fuses wherever Go lets it, nothing is fused but what math.FMA says.
func TestNeverFused(t *testing.T) {
	cmd := exec.Command("go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "SinCosDegrees") {
		t.Fatalf("compiling for arm64: %v\n%.2000s", err, out)
	}
	source := map[string][]string{}
	fused, place := regexp.MustCompile(`\sFN?M(ADD|SUB)[DS]\s`), regexp.MustCompile(`\(\S*?(\w+\.go):(\d+)\)`)
	for line := range strings.Lines(string(out)) {
		if !fused.MatchString(line) {
			continue
		}
		at := place.FindStringSubmatch(line)
		if source[at[1]] == nil {
			text, err := os.ReadFile(at[1])
			if err != nil {
				t.Fatal(err)
			}
			source[at[1]] = strings.Split(string(text), "\n")
		}
		n, _ := strconv.Atoi(at[2])
		if !strings.Contains(source[at[1]][n-1], "math.FMA") {
			t.Errorf("fused: %s", line)
		}
	}
}

func BenchmarkFenced(b *testing.B) {
	for name, f := range map[string]func(x float64){
		"Asin":          func(x float64) { Asin(x) },
		"AcosDegrees":   func(x float64) { AcosDegrees(x) },
		"SinCosDegrees": func(x float64) { SinCosDegrees(360 * x) },
		"Root3":         func(x float64) { Root(x, 3) },
		"Root8":         func(x float64) { Root(x, 8) },
	} {
		b.Run(name, func(b *testing.B) {
			x := 0.1
			for b.Loop() {
				if x += 0.001; x > 1 {
					x = 0.001
				}
				f(x)
			}
		})
	}
}
