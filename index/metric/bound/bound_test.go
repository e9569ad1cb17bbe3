package bound

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// exact is a number without rounding.
func exact(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

func product(a, b []float64) *big.Rat {
	s := new(big.Rat)
	for i := range a {
		s.Add(s, new(big.Rat).Mul(exact(a[i]), exact(b[i])))
	}
	return s
}

// root is no less and no more than 2^-100 above.
func root(v *big.Rat) *big.Rat {
	f := new(big.Float).SetPrec(200).SetRat(v)
	r, _ := f.Sqrt(f).Rat(nil)
	if r == nil {
		return new(big.Rat)
	}
	return r.Add(r, new(big.Rat).Mul(r, exact(0x1p-150)))
}

// nearest32 rounds to float32.
func nearest32(v *big.Rat) float64 {
	f, _ := v.Float32()
	return float64(f)
}

// half rounds to the nearest float16, even.
func half(v float64) float64 {
	if math.Abs(v) < 0x1p-14 {
		return math.RoundToEven(v*0x1p24) * 0x1p-24
	}
	m, e := math.Frexp(v)
	return math.Ldexp(math.RoundToEven(m*0x1p11), e-11)
}

// filtered is a vector as the filter has it.
type filtered struct {
	x, few []float64 // after centring, dividing and scaling; and as float16s
	norm   float64
	down   float64 // of its square
	rest   float64
	exact  []*big.Rat // without any rounding
}

// filter makes x' of (v - mean) / length by a power of two.
func filter(t *testing.T, v []float32, mean []float64, length float64, lengthExact *big.Rat, exponent int) *filtered {
	f := &filtered{}
	for i, e := range v {
		x := math.Ldexp(float64(e)/length-mean[i], exponent)
		f.x, f.few = append(f.x, x), append(f.few, half(x))
		truth := new(big.Rat).Quo(exact(float64(e)), lengthExact)
		truth.Sub(truth, exact(mean[i]))
		f.exact = append(f.exact, truth.Mul(truth, exact(math.Ldexp(1, exponent))))
	}
	wrong := 0.0
	if length != 1 || lengthExact.Cmp(exact(1)) != 0 {
		wrong = math.Ldexp(Divided(len(v)), exponent)
	}
	square := sums.Norm(f.few)
	f.norm, f.down, f.rest = Up(math.Sqrt(square), len(v)), Down(square, len(v)), Remainder(f.x, f.few, wrong)
	true2, rest2 := product(f.few, f.few), new(big.Rat)
	for i, e := range f.exact {
		d := new(big.Rat).Sub(e, exact(f.few[i]))
		rest2.Add(rest2, d.Mul(d, d))
	}
	if exact(f.norm).Cmp(root(true2)) < 0 || exact(f.down).Cmp(true2) > 0 || exact(f.rest).Cmp(root(rest2)) < 0 {
		t.Fatalf("the norm %v, its square %v or the remainder %v of %v is on the wrong side", f.norm, f.down, f.rest, f.few)
	}
	return f
}

// vectors are two vectors of one of many kinds: far and near, with large means, of tiny and huge numbers, of few values.
func vectors(rng *rand.Rand, dims int) (q, x []float32) {
	q, x = make([]float32, dims), make([]float32, dims)
	scale, mean := math.Ldexp(1, rng.IntN(60)-30), 0.0
	near, spread := math.Ldexp(1, -rng.IntN(26)), rng.IntN(2)*rng.IntN(20)
	if rng.IntN(4) == 0 { // numbers that float16s hold, so that only sums are rounded
		for i := range q {
			q[i], x[i] = float32(rng.IntN(2000)-1000), float32(rng.IntN(2000)-1000)
		}
		return q, x
	}
	if rng.IntN(3) == 0 {
		mean = scale * math.Ldexp(1, rng.IntN(12))
	}
	for i := range q {
		e := scale * math.Ldexp(1, -rng.IntN(spread+1))
		q[i] = float32(rng.NormFloat64()*e + mean)
		x[i] = q[i] + float32(rng.NormFloat64()*e*near)
		if rng.IntN(4) == 0 {
			x[i] = q[i]
		}
	}
	return q, x
}

func largest(v ...[]float64) (most float64) {
	for _, v := range v {
		for _, e := range v {
			most = max(most, math.Abs(e))
		}
	}
	return most
}

// centre is a mean of both, as a file would have one.
func centre(rng *rand.Rand, q, x []float32, lengthQ, lengthX float64) []float64 {
	mean := make([]float64, len(q))
	if rng.IntN(2) == 0 {
		for i := range mean {
			mean[i] = (float64(q[i])/lengthQ + float64(x[i])/lengthX) / 2 * (0.9 + 0.2*rng.Float64())
		}
	}
	return mean
}

func wide(v []float32, length float64, mean []float64) []float64 {
	w := make([]float64, len(v))
	for i, e := range v {
		w[i] = float64(e)/length - mean[i]
	}
	return w
}

var dimensions = []int{1, 2, 7, 16, 17, 33, 128, 300}

// TestL2: an object whose value is t is not dropped, however wrong the product is within its bound; and one that is further by a few errors is.
func TestL2(t *testing.T) {
	rng := seeded.Rand(t)
	kept, dropped := 0, 0
	for range 400 {
		dims := dimensions[rng.IntN(len(dimensions))]
		v, w := vectors(rng, dims)
		mean := centre(rng, v, w, 1, 1)
		ex, ok := Scale(largest(wide(w, 1, mean)))
		eq, okq := Scale(largest(wide(v, 1, mean)))
		if !ok || !okq || max(eq-ex, ex-eq) > 60 {
			continue
		}
		one := exact(1)
		q, x := filter(t, v, mean, 1, one, eq), filter(t, w, mean, 1, one, ex)
		// What the machine knows of the query is brought to the scale of objects.
		back := math.Ldexp(1, ex-eq)
		gamma := []float64{Gamma(dims), CautiousGamma(dims), FusedGamma(dims), 0}[rng.IntN(4)]
		query, tile := Query{q.norm * back, q.down * back * back, q.rest * back}, Tile{x.norm * (1 + rng.Float64()*float64(rng.IntN(2))), x.rest}

		value := sums.Squares(wide(v, 1, make([]float64, dims)), w)
		scaled := math.Ldexp(value, 2*ex)
		tau := Float32Up(L2(scaled, dims, gamma, query, tile))
		// A is as small as it may be, so that the object looks as far as it can.
		wrong := new(big.Rat).Mul(exact(gamma), root(product(q.few, q.few)))
		wrong.Mul(wrong, root(product(x.few, x.few)))
		a := product(q.few, x.few)
		n := float64(Float32Down(x.down))
		for _, sign := range []int64{-1, 1} {
			got := new(big.Rat).Add(a, new(big.Rat).Mul(wrong, big.NewRat(sign, 1)))
			twice := new(big.Rat).Mul(got, exact(-2*back))
			left := nearest32(twice.Add(twice, exact(n)))
			if left > float64(tau) {
				t.Fatalf("%d dimensions: %v and %v have the value %v, and are dropped: %v > %v", dims, v, w, value, left, tau)
			}
			// The same where the sum begins with what is known of the object.
			begin := exact(float64(Begin(x.down, gamma)))
			c := new(big.Rat).Add(new(big.Rat).Mul(got, exact(back)), begin)
			c.Sub(c, new(big.Rat).Mul(new(big.Rat).Mul(begin, exact(gamma)), big.NewRat(-sign, 1)))
			if floor := Float32Down(-L2(scaled, dims, gamma, query, tile) / 2); nearest32(c) < float64(floor) {
				t.Fatalf("%d dimensions: %v and %v have the value %v, and are dropped: %v < %v", dims, v, w, value, nearest32(c), floor)
			}
			kept++
		}
		// With a limit that is further below than all errors together, it is dropped.
		both := query.Norm + tile.Norm
		margin := math.Sqrt((4*gamma + 0x1p-19) * both * both)
		limit := math.Sqrt(scaled) - 4*(query.Remainder+tile.Remainder) - 2*margin
		if limit > 0 && tile.Norm == x.norm {
			tau = Float32Up(L2(limit*limit, dims, gamma, query, tile))
			twice := new(big.Rat).Mul(a, exact(-2*back))
			if left := nearest32(twice.Add(twice, exact(n))); !(left > float64(tau)) {
				t.Fatalf("%d dimensions: at the distance %v with the limit %v it is kept: %v <= %v", dims, math.Sqrt(scaled), limit, left, tau)
			}
			dropped++
		}
	}
	if kept < 300 || dropped < 20 {
		t.Errorf("%d kept, %d dropped: the test shows too little", kept, dropped)
	}
}

// fused is one step of a sum of float32s, rounded once; the sum of a's and b's product and s.
func fused(a, b, s float32) float32 {
	if p := float64(a) * float64(b); p == 0 || s == 0 || p-p != 0 || s-s != 0 { // a product is exact in a float64, and what is infinite stays so
		return float32(float64(a)*float64(b) + float64(s))
	}
	v := new(big.Rat).Mul(exact(float64(a)), exact(float64(b)))
	return float32(nearest32(v.Add(v, exact(float64(s)))))
}

// inLanes adds up as machines do: terms in lanes, and then these.
func inLanes(n int, term func(i int, sum float32) float32) float32 {
	var s [8]float32
	for i := range n {
		s[i%8] = term(i, s[i%8])
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}

// few are numbers of dimensions where roundings may all go one way.
var few = []int{1, 1, 1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 128}

// TestSquares: an object whose value is t is kept, however sums of float32s are rounded: of norms from 1e-30 to 1e30, and of vectors that are next to each other far from 0. With a bound that is less by 2^-22
// of itself some object is lost; and one that is further by a little is dropped.
func TestSquares(t *testing.T) {
	rng := seeded.Rand(t)
	lost, dropped, all := 0, 0, 0
	for range 6000 {
		dims := few[rng.IntN(len(few))]
		q, x := vectors(rng, dims)
		if size := float32(math.Pow(10, float64(rng.IntN(61)-30))); rng.IntN(2) == 0 {
			for i := range q {
				q[i], x[i] = q[i]*size/float32(math.Sqrt(float64(dims))), x[i]*size/float32(math.Sqrt(float64(dims)))
			}
		}
		if rng.IntN(4) == 0 { // neighbours in the last bit
			for i := range q {
				x[i] = math.Float32frombits(math.Float32bits(q[i]) ^ rng.Uint32N(2))
			}
		}
		a := inLanes(dims, func(i int, sum float32) float32 { return fused(q[i]-x[i], q[i]-x[i], sum) })
		v := sums.Squares(wide(q, 1, make([]float64, dims)), x)
		tau := Squares(v, dims)
		if a > tau {
			t.Fatalf("%d dimensions: %v and %v have the value %v, and are dropped: %v > %v", dims, q, x, v, a, tau)
		}
		all++
		if float64(a) > float64(tau)*(1-0x1p-22) {
			lost++
		}
		if a > 0x1p-100 && a > Squares(v*(1-4*FusedGamma(dims+8)), dims) {
			dropped++
		}
	}
	if lost < 20 || dropped < all/2 {
		t.Errorf("of %d values a bound that is less by 2^-22 loses %d, and %d are told from those that are a little less: the test shows too little", all, lost, dropped)
	}
	if huge, zero := Squares(1e300, 1), Squares(0, 1); !math.IsInf(float64(huge), 1) || !(zero > 0 && zero < 0x1p-140) {
		t.Errorf("the bound of 1e300 is %v, and that of 0 is %v", huge, zero)
	}
}

// TestAngle: the same for angles, of norms from 2^-50 to 2^50.
func TestAngle(t *testing.T) {
	rng := seeded.Rand(t)
	lost, dropped, all := 0, 0, 0
	for range 12000 {
		dims := few[rng.IntN(len(few))]
		q, x := vectors(rng, dims)
		for i, size := range []float32{float32(math.Pow(10, float64(rng.IntN(29)-14))), float32(math.Pow(10, float64(rng.IntN(29)-14)))} {
			for j := range q {
				[][]float32{q, x}[i][j] *= size
			}
		}
		if sign := float32(rng.IntN(2)*2 - 1); rng.IntN(3) == 0 { // of one direction, or the opposite one
			for j := range q {
				x[j] = sign * q[j] * float32(1+rng.Float64())
			}
		}
		squareQ, squareX := sums.Norm(q), sums.Norm(x)
		if !(min(squareQ, squareX) >= 0x1p-98 && max(squareQ, squareX) < 0x1p98) {
			continue
		}
		a := inLanes(dims, func(i int, sum float32) float32 { return fused(q[i], x[i], sum) })
		w := float32(math.Sqrt(float64(inLanes(dims, func(i int, sum float32) float32 { return fused(x[i], x[i], sum) }))))
		normQ, normX := math.Sqrt(squareQ), math.Sqrt(squareX)
		v := max(-1, min(1, -sums.Dots(wide(q, 1, make([]float64, dims)), x)/float64(normQ*normX)))
		k := Angle(v, dims, Up(normQ, dims))
		if k*w > a {
			t.Fatalf("%d dimensions: %v and %v have the value %v, and are dropped: %v x %v > %v", dims, q, x, v, k, w, a)
		}
		all++
		if float32(float64(k)+normQ*0x1p-22)*w > a {
			lost++
		}
		if Angle(v-4*FusedGamma(dims+8), dims, Up(normQ, dims))*w > a {
			dropped++
		}
	}
	if lost < 20 || dropped < all*9/10 {
		t.Errorf("of %d values a bound that lacks 2^-22 loses %d, and %d are told from those that are a little less: the test shows too little", all, lost, dropped)
	}
}

// TestDot: the same for products, of vectors as they are and divided by their norms.
func TestDot(t *testing.T) {
	rng := seeded.Rand(t)
	kept := 0
	for range 400 {
		dims := dimensions[rng.IntN(len(dimensions))]
		v, w := vectors(rng, dims)
		none, plain := make([]float64, dims), rng.IntN(2) == 0
		lengthQ, lengthX := 1.0, 1.0
		exactQ, exactX := exact(1), exact(1)
		dot, normQ, normX := sums.Dots(wide(v, 1, none), w), math.Sqrt(sums.Norm(v)), math.Sqrt(sums.Norm(w))
		value := -dot
		if !plain {
			lengthQ, lengthX = normQ, normX
			if lengthQ == 0 || lengthX == 0 {
				continue
			}
			exactQ, exactX = root(product(wide(v, 1, none), wide(v, 1, none))), root(product(wide(w, 1, none), wide(w, 1, none)))
			value = max(-1, min(1, -dot/float64(normQ*normX)))
		}
		mean := centre(rng, v, w, lengthQ, lengthX)
		ex, ok := Scale(largest(wide(w, lengthX, mean)))
		eq, okq := Scale(largest(wide(v, lengthQ, none)))
		if !ok || !okq {
			continue
		}
		q, x := filter(t, v, none, lengthQ, exactQ, eq), filter(t, w, mean, lengthX, exactX, ex)
		back := math.Ldexp(1, ex-eq)
		gamma := Gamma(dims)
		query, tile := Query{q.norm * back, q.down * back * back, q.rest * back}, Tile{x.norm, x.rest}
		// The scale of a product is that of two vectors.
		square := math.Ldexp(1, 2*ex)
		full := normQ * normX / (lengthQ * lengthX) * square
		qm := sums.Dots(wide(v, lengthQ, none), mean) * square
		wrong := (float64(dims)/8 + 16) * 0x1p-52 * math.Sqrt(sums.Norm(wide(v, lengthQ, none))*sums.Norm(mean)) * square
		tau := Float32Up(Dot(value*square, qm, wrong, full, dims, gamma, query, tile))
		a := product(q.few, x.few)
		err := new(big.Rat).Mul(exact(gamma), root(product(q.few, q.few)))
		err.Mul(err, root(product(x.few, x.few)))
		// As small as it may be, in the scale of objects.
		a.Sub(a, err).Mul(a, exact(-back))
		if left := nearest32(a); left > float64(tau) {
			t.Fatalf("%d dimensions, plain %v: %v and %v have the value %v, and are dropped: %v > %v", dims, plain, v, w, value, left, tau)
		}
		kept++
		if loose := (float64(tau) - nearest32(a)) / (full + query.Norm*tile.Norm); loose > 8*gamma+0x1p-8 && largest(q.rest2()) < 1e-2*q.norm {
			t.Fatalf("%d dimensions: the bound is loose by %v of the product of norms", dims, loose)
		}
	}
	if kept < 250 {
		t.Errorf("%d kept: the test shows too little", kept)
	}
}

// rest2 are the remainders of elements.
func (f *filtered) rest2() []float64 {
	d := make([]float64, len(f.x))
	for i := range d {
		d[i] = f.x[i] - f.few[i]
	}
	return d
}

// TestScale: the largest element lands in [2^13, 2^14), or nothing is promised.
func TestScale(t *testing.T) {
	rng := seeded.Rand(t)
	for range 10000 {
		v := math.Ldexp(1+rng.Float64(), rng.IntN(400)-200)
		e, ok := Scale(v)
		if s := math.Ldexp(v, e); s < 1<<13 || s >= 1<<14 || ok != (e >= -100 && e <= 100) {
			t.Fatalf("%v is brought to %v by 2^%d, %v", v, s, e, ok)
		}
	}
	for v, want := range map[float64]bool{0: false, math.Inf(1): false, math.NaN(): false, 1: true, 0x1p113: true, 0x1p114: false, 0x1p-87: true, 0x1p-88: false} {
		if _, ok := Scale(v); ok != want {
			t.Errorf("the scale of %v: %v", v, ok)
		}
	}
}

// TestFusedGamma: no order of fused sums of float32s is further from the truth than it says, nor far nearer for the worst of numbers.
func TestFusedGamma(t *testing.T) {
	rng := seeded.Rand(t)
	worst := 0.0
	for range 2000 {
		dims := dimensions[rng.IntN(len(dimensions))]
		v, w := make([]float64, dims), make([]float64, dims)
		sum, truth, size := float32(0), new(big.Rat), new(big.Rat)
		for i := range v {
			v[i], w[i] = float64(float32(rng.NormFloat64())), float64(float32(math.Abs(rng.NormFloat64())))
			if rng.IntN(2) == 0 {
				v[i] = math.Abs(v[i])
			}
			p := new(big.Rat).Mul(exact(v[i]), exact(w[i]))
			truth.Add(truth, p)
			size.Add(size, new(big.Rat).Abs(p))
			sum = float32(nearest32(p.Add(p, exact(float64(sum)))))
		}
		d, _ := truth.Sub(truth, exact(float64(sum))).Float64()
		s, _ := size.Float64()
		share := math.Abs(d) / (s * FusedGamma(dims))
		if share > 1 {
			t.Fatalf("%d dimensions: wrong by %v of %v, %v times the bound", dims, d, s, share)
		}
		worst = max(worst, share)
	}
	t.Logf("at most %.3f of the bound", worst)
	if worst == 0 {
		t.Error("nothing was wrong: the test shows nothing")
	}
}

// TestFloat32: rounding up and down goes to the neighbour on the right side.
func TestFloat32(t *testing.T) {
	rng := seeded.Rand(t)
	for range 10000 {
		v := math.Ldexp(rng.NormFloat64(), rng.IntN(300)-170)
		up, down := Float32Up(v), Float32Down(v)
		if float64(up) < v || float64(down) > v || up != down && math.Nextafter32(down, up) != up {
			t.Fatalf("%v is between %v and %v", v, down, up)
		}
	}
	if up, down := Float32Up(1e300), Float32Down(1e300); !math.IsInf(float64(up), 1) || down != math.MaxFloat32 {
		t.Errorf("1e300 is between %v and %v", down, up)
	}
}

// TestLevel: what bytes prove of a distance is no more than the truth, however large what is taken away and however small what is left of an element; and of whole
// numbers of steps it is the truth.
func TestLevel(t *testing.T) {
	rng := seeded.Rand(t)
	tight, cut := 0, 0
	for range 2000 {
		dims := dimensions[rng.IntN(len(dimensions))]
		q, x := vectors(rng, dims)
		exponent := rng.IntN(80) - 30
		scale := math.Ldexp(1, exponent)
		truth, proven, lost, whole := new(big.Rat), new(big.Rat), 0.0, true
		farthest, provenFarthest, lostMost := new(big.Rat), 0.0, [2]float64{}
		for i := range q {
			low := math.Floor(float64(q[i])*scale) - float64(rng.IntN(300))
			if rng.IntN(8) == 0 {
				low = math.Floor(math.Ldexp(rng.NormFloat64(), rng.IntN(120)))
			}
			if rng.IntN(16) == 0 { // just below the highest level, to which it is rounded before it is cut
				q[i], x[i], low = float32(-math.Ldexp(rng.Float64(), -46)/scale), float32(-1/scale), -255
			}
			c, lostC := Level(float64(q[i]), scale, low)
			d, lostD := Level(float64(x[i]), scale, low)
			difference := new(big.Rat).Sub(exact(float64(q[i])), exact(float64(x[i])))
			truth.Add(truth, difference.Abs(difference))
			if difference.Cmp(farthest) > 0 {
				farthest = difference
			}
			provenFarthest = max(provenFarthest, math.Abs(float64(c)-float64(d)))
			lostMost[0], lostMost[1] = max(lostMost[0], lostC), max(lostMost[1], lostD)
			lost += lostC + lostD
			proven.Add(proven, new(big.Rat).Abs(big.NewRat(int64(c)-int64(d), 1)))
			inside := c > 0 && c < 255 && d > 0 && d < 255
			whole = whole && inside && lostC == 0 && lostD == 0
			if !inside {
				cut++
			}
		}
		truth.Mul(truth, exact(scale))
		proven.Sub(proven, exact(Up(lost, dims)))
		if truth.Cmp(proven) < 0 || whole && truth.Cmp(proven) != 0 {
			t.Fatalf("%v and %v, in steps of 2^%d: the distance is %v, and bytes prove %v", q, x, -exponent, truth.FloatString(3), proven.FloatString(3))
		}
		farthest = new(big.Rat).Mul(farthest, exact(scale))
		if least := exact(provenFarthest); farthest.Cmp(least.Sub(least, exact(Up(lostMost[0]+lostMost[1], dims)))) < 0 {
			t.Fatalf("%v and %v, in steps of 2^%d: the largest difference is %v, and bytes prove %v", q, x, -exponent, farthest.FloatString(3), least.FloatString(3))
		}
		if whole {
			tight++
		}
	}
	if tight < 10 || cut < 1000 {
		t.Errorf("%d distances are exact, %d elements are cut: the test shows too little", tight, cut)
	}
}

// TestCode: equal elements have equal codes, none has a bit that is wanted for differences, and whole numbers keep theirs.
func TestCode(t *testing.T) {
	rng := seeded.Rand(t)
	for i := range 128 {
		if Code(float64(i)) != uint8(i) {
			t.Errorf("the code of %d is %d", i, Code(float64(i)))
		}
	}
	if Code(math.Copysign(0, -1)) != Code(0) {
		t.Error("-0 and 0 are equal, and their codes are not")
	}
	seen := make(map[uint8]int)
	for range 20_000 {
		x := float64(math.Float32frombits(rng.Uint32()))
		if rng.IntN(2) == 0 {
			x = float64(rng.IntN(1000) - 500)
		}
		c := Code(x)
		if c >= 128 {
			t.Fatalf("the code of %v is %d", x, c)
		}
		seen[c]++
	}
	if len(seen) < 128 {
		t.Errorf("there are %d codes", len(seen))
	}
}

// TestPowers: a sum of powers in float32s is above what is asked for a value only where the value is above that; and it nearly always is then.
func TestPowers(t *testing.T) {
	rng := seeded.Rand(t)
	tight, all := 0, 0
	for range 4000 {
		dims, p := dimensions[rng.IntN(len(dimensions))], 3+rng.IntN(6)
		q, x := vectors(rng, dims)
		wide, largest := make([]float64, dims), 0.0
		for i := range x {
			if rng.IntN(500) == 0 {
				q[i], x[i] = q[i]*float32(math.Ldexp(1, rng.IntN(90)-60)), x[i]*float32(math.Ldexp(1, rng.IntN(90)-60))
			}
			wide[i], largest = float64(q[i]), max(largest, math.Abs(float64(x[i])))
		}
		if rng.IntN(2) == 0 { // of other objects, beside which these are so near that numbers are not normal
			largest *= math.Ldexp(1, rng.IntN(70))
		}
		exponent, ok := PowersScale(largest, p, dims)
		if !ok {
			continue
		}
		scale := math.Ldexp(1, exponent)
		sum := float32(0)
		for i := range x {
			sum = addPower(sum, p, float32(float64(q[i])*scale), float32(float64(x[i])*scale))
		}
		v := sums.Powers(p, wide, x)
		if tau := Powers(v*math.Ldexp(1, exponent*p), p, dims); sum > tau {
			t.Fatalf("l%d of %v and %v: the sum %v is above %v, which is asked for the value itself", p, q, x, sum, tau)
		}
		if v*math.Ldexp(1, exponent*p) > 0x1p-100 {
			all++
			if sum > Powers(v*(1-0x1p-10)*math.Ldexp(1, exponent*p), p, dims) {
				tight++
			}
		}
	}
	if tight < all*3/4 {
		t.Errorf("%d of %d values are told from those that are a little less", tight, all)
	}
}

// addPower is a step of the kernel's sum.
func addPower(sum float32, p int, q, x float32) float32 {
	d := q - x
	d2, size := d*d, float32(math.Abs(float64(d)))
	fused := func(a, b float32) float32 { return float32(math.FMA(float64(a), float64(b), float64(sum))) }
	switch p {
	case 3:
		return fused(d2, size)
	case 4:
		return fused(d2, d2)
	case 5:
		return fused(d2*d2, size)
	case 6:
		return fused(d2*size, d2*size)
	case 7:
		return fused(d2*size, d2*d2)
	}
	return fused(d2*d2, d2*d2)
}
