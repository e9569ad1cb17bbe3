// Package bound says which objects a cheap product cannot exclude: what a scan in few bits may drop, and what it has to compare exactly.
//
// # The filter
//
// A vector x is replaced by numbers of few bits x' that machines multiply fast: float16s for tensor cores, or the float32s that it consists
// of. Of two such vectors a product A is computed in float32, in whatever order, with A = q'x' + d and |d| <= gamma |q'||x'|. From A, and what
// is known of q', x' and of the remainders q - q' and x - x', follows that some objects are too far. All others are compared exactly, so
// nothing is lost and nothing depends on how A was found.
//
// # Squares (L2)
//
// Let v <= t for the value v = |q-x|^2, as it is computed: then the true |q-x| is at most r = sqrt(t (1 + 2^-51 (dims/8 + 16))), since v is
// wrong by so much less (metric.Metric.Slack has why). By the triangle inequality |q'-x'| <= r + e_q + E, where e_q and E bound the
// remainders' norms, and so
//
//	|x'|^2 - 2 q'x'  =  |q'-x'|^2 - |q'|^2  <=  (r + e_q + E)^2 - |q'|^2.
//
// The machine has N <= |x'|^2, and A for q'x'. With X >= |x'|, N - 2A is at most that + 2 gamma |q'| X; and in float32 it is rounded by at
// most 2^-24 |N - 2A| <= 2^-24 (X^2 + 2 (1 + gamma) |q'| X) <= 2^-22 (|q'| + X)^2, twice even, if N was multiplied on the way. So an object of
// which it is above
//
//	tau = (r + e_q + E)^2 - |q'|^2 + 2 gamma |q'| X + 2^-22 (|q'| + X)^2
//
// has v > t.
//
// A machine may also begin its sum with B = -N / (2 (1 + gamma)), and have C = A + B (Begin). As many terms are added, but to something larger: now
// |d| <= gamma (|q'||x'| - B), so that C >= q'x' + B (1 + gamma) - gamma |q'||x'| >= q'x' - N/2 - gamma |q'| X. So what has C below -tau/2 has v > t.
//
// # Products (Dot)
//
// For |q.x - A| <= |q| e_x + e_q |x'| + gamma |q'||x'|, since q.x = q'x' + (q-q')x' + q(x-x'). With objects less a mean m, q.x = q(x-m) + qm,
// and qm is computed in float64. So -A rounded to float32 above
//
//	tau = t + qm + |q| E + e_q X + gamma |q'| X + 2^-22 |q'| X + the error of t and qm
//
// has -q.x > t. Cosine is that of vectors divided by their norms. A device compares ip so, with m = 0, and has A from tensor cores, which is not rounded any further.
//
// # Sums of squares of differences (Squares)
//
// For l2 of vectors that are float32s, compared as they lie in memory: A = the sum of (q-x)^2 in float32, in any order. A difference is rounded, of which nothing vanishes, and so is the sum
// after each of dims fused products. So with u = 2^-24, A <= V (1 + u)^(dims + 2) + dims 2^-149 for the true V, where the last is of products that are not normal. Where v <= t, V <= t (1 + 2^-51 (dims/8 + 16)) as
// above. Where A overflows, so does V, but for the roundings that are in it. So what has A above
//
//	tau = t (1 + gamma)(1 + 2^-51 (dims/8 + 16)) + dims 2^-149,  gamma that of dims + 2 fused products,
//
// has v > t. No norm is in it: it is as tight for vectors that are near each other and far from 0.
//
// # Angles (Angle)
//
// For cosine and angular of the same: A for q.x and N for |x|^2, both of dims fused products of float32s, and w, the root of N. With u = 2^-24 and g the gamma of dims, |A - q.x| <= g |q||x|, and
// w = |x| (1 + e), |e| <= g/2 + g^2/2 + u. Where v <= t the true cosine is at least c = -t - 2^-50 (dims/8 + 16), so A >= (c - g) |q||x|. Let
//
//	k = |q| (c - m) as a float32,  m = g + |c| (g/2 + 3 u) + 2 (g + 4 u)^2 + 2^-44 (dims + 16).
//
// k w, rounded, is at most |q||x| (c - m + (|c| + m) f), f = g/2 + 3 u + g^2/2 + g u + 3 u^2. Of m, what is there beside g and |c| (g/2 + 3 u) is more than |c| (g^2/2 + g u + 3 u^2) + m f <= 1.25 (g + 4 u)^2 + m 2^-8 2 (g + 4 u)^2.
// What is left of it is more than what |q| is wrong by, and what vanishes where numbers are not normal, which is below dims 2^-48 of |q||x| for norms from 2^-50 on. So k w <= (c - g) |q||x| <= A, and what has A < k w has v > t.
//
// # Sums of absolute differences (Level)
//
// For l1 a vector becomes bytes. An element in steps of one size is y, and its dimension has a whole number l: c is the whole number next to y - l cut to [0, 255],
// and what is lost by that is |cut(y - l) - c|. Cutting brings no two numbers further apart. So where objects' levels c have lost R in all, and a query's d have lost S,
//
//	sum |y - z|  >=  sum |cut(y - l) - cut(z - l)|  >=  sum |c - d| - R - S,
//
// and the sum H of differences of bytes is exact. Let v <= t for the value, t in steps: it is a sum of float64s of which each is right but for one rounding, and
// |q-x| is at most t (1 + 2^-51 (dims/8 + 16)). So an object with H - R above that + S has v > t. R is rounded up to a whole number, and the machine begins its
// sum with -R: nothing is rounded but what is compared with it, down to a whole number.
//
// # Largest differences (Level)
//
// For linf by the same bytes: cutting brings no two numbers further apart in any dimension, so with R and S the most that is lost in one dimension, by any object and by the query,
//
//	max |y - z|  >=  max |c - d| - R - S,
//
// and what has any |c - d| above F = floor(t + R + S) has v > t. Where R and S are 0 nothing else need be added: |y - z| is F + 1 or more then, and so is v, which is |y - z| rounded once,
// and t is less. Let lo = max(0, d - F) and hi = min(255, d + F): c is within them exactly where |c - d| <= F, and
// |c - lo| + |c - hi| is hi - lo there, and more elsewhere. So the sum of these over all dimensions, of which each is whole, is above that of hi - lo exactly where some c is beyond.
//
// # Elements that differ (Code)
//
// For hamming an element becomes a code, a number below 128 that equal elements have in common: codes that differ are of elements that do, so no more of them than v. Whole
// numbers below 128 are their own codes, so that nothing is lost. Bytes a and b of which none is above 127 differ exactly where (a xor b) + 127 is above 127, which carries into no other byte.
//
// # Powers (Powers)
//
// For lp of float32s, times a power of two: A = the sum of |q-x|^p. It is made of differences, of products of which each is a tree with p leaves, and one sum in order, whose last
// product is fused: a term has p + p - 2 roundings at most, and a sum dims. So A <= V (1 + 2^-24)^(dims + 2p) + H for the true V, which is below V (1 + (dims + 2p) 2^-23) + H. H is
// of numbers that are not normal: a product that is loses 2^-150, and is only multiplied by numbers below 1 later on, so H <= dims 2^-148. An element that the power of two makes not
// normal is wrong by 2^-150 too, which is as small beside differences of more than 2^-100, and the p-th powers of smaller ones are as small beside H. What overflows is infinite, and V is
// above all float32s then. v is V but for (2p + dims/8 + 8) 2^-53, and what it lacks where float64s are not normal is beside H nothing. So what has A above
// tau = (t (1 + (dims + 2p) 2^-23) + dims 2^-146)(1 + 2^-40) has v > t.
//
// # Scale
//
// Of float16s. Objects are multiplied by one power of two per file and each query by one of its own, so that the largest element is in [2^13, 2^14):
// float16s end at 65,504, and what vanishes in them, below 2^-25, is part of the remainder. All numbers here are in the scale of objects: what
// belongs to a query is divided by the query's power and multiplied by the objects'.
//
// Every result is rounded up: terms are added in float64, whose errors are below 2^-50 of the sum of their sizes, and that is added too.
package bound

import "math"

// MostInteger is the largest number of dimensions for which the sum of products of bytes is below 2^31.
const MostInteger = 33025

// Gamma is what a product of so many terms is wrong by, as a share of |q'||x'|, where a tensor core of float16s adds it up in float32. On an
// H200 it is 7 to 19 times what was measured; a device is probed before it is believed. What is not known to obey it has CautiousGamma.
func Gamma(dims int) float64 { return float64(dims+2*((dims+15)/16)) * 0x1p-23 }

// CautiousGamma is that of an unknown machine, which may truncate after each addition and align terms to the largest.
func CautiousGamma(dims int) float64 { return float64(dims) * 0x1p-21 }

// FusedGamma is that of one sum of float32s, rounded to nearest after each of dims fused products, in any order: dims u / (1 - dims u), u = 2^-24.
func FusedGamma(dims int) float64 { return float64(dims) * 0x1p-24 * (1 + float64(dims)*0x1p-23) }

// Level is an element as a byte, and what is lost by it: how far it is, times a power of two and less a whole number, and cut to [0, 255], from that. What is rounded
// on the way is part of it; it is exact but for the last addition. NaN becomes 0, and loses nothing.
func Level(x, scale, low float64) (level uint8, lost float64) {
	y := float64(x * scale) // exact
	z := y - low
	if !(z > 0) {
		return 0, 0
	}
	if z > math.MaxUint8 {
		return math.MaxUint8, 0
	}
	whole, back := math.RoundToEven(z), z-y
	wrong := (y - (z - back)) - (low + back) // of z
	return uint8(whole), math.Abs(z-whole) + math.Abs(wrong)
}

// CodeSum is what a code that differs adds to a sum.
const CodeSum = 128

// Code is the code of an element: whole numbers from 0 to 127 are their own.
func Code(x float64) uint8 {
	if x >= 0 && x < CodeSum && x == math.Trunc(x) {
		return uint8(x)
	}
	bits := math.Float64bits(x + 0)
	return uint8((uint32(bits) ^ uint32(bits>>32)) * 0x9e3779b1 >> 25)
}

// Powers is tau of sums of powers: objects of which it is below the sum have values above t. Both are in one scale.
func Powers(t float64, p, dims int) float32 {
	n := float64(dims + 2*p)
	return Float32Up((t*(1+n*0x1p-23) + float64(dims)*0x1p-146) * (1 + 0x1p-40))
}

// PowersScale is the power of two that vectors whose largest element has a size are multiplied by, so that sums of powers of differences are in the middle of float32s; false: there is none.
func PowersScale(largest float64, p, dims int) (exponent int, ok bool) {
	if !(largest > 0) || math.IsInf(largest, 1) {
		return 0, false
	}
	_, size := math.Frexp(largest)
	_, terms := math.Frexp(float64(dims))
	exponent = (100-terms)/p - size - 1
	return exponent, exponent*p > -900 && exponent*p < 900
}

// Scale is the power of two that brings the largest size of an element into [2^13, 2^14). It is false where the exponent is beyond 100, and of
// zero, which the filter is not for.
func Scale(largest float64) (exponent int, ok bool) {
	if !(largest > 0) || math.IsInf(largest, 0) {
		return 0, false
	}
	_, e := math.Frexp(largest) // in [2^(e-1), 2^e)
	exponent = 14 - e
	return exponent, exponent >= -100 && exponent <= 100
}

// Query is what is known of a query q and of the q' that the machine has.
type Query struct {
	Norm      float64 // |q'|, not less
	Square    float64 // |q'|^2, not more
	Remainder float64 // |q - q'|, not less
}

// Tile is what is known of all objects x of a tile.
type Tile struct {
	Norm      float64 // the largest |x'|, not less
	Remainder float64 // the largest |x - x'|, not less
}

// Up is a sum of squares or its root, made no less than the truth: of dims terms in any order, each of which is right but for three roundings.
func Up(v float64, dims int) float64 { return v * (1 + float64(dims+8)*0x1p-52) }

// Down is the same, no more than the truth.
func Down(v float64, dims int) float64 { return v * (1 - float64(dims+8)*0x1p-52) }

// Remainder bounds |x - x'| of a vector: x' exactly, and x as float64s from which a mean was taken, each with one rounding. wrong bounds the
// norm of what x was wrong by before: 0 of what was stored, Divided of what was divided by its norm.
func Remainder(x, few []float64, wrong float64) float64 {
	rest, size := 0.0, 0.0
	for i, e := range x {
		d := e - few[i]
		rest += float64(d * d)
		size += float64(e * e)
	}
	return up(Up(math.Sqrt(rest), len(x)), Up(math.Sqrt(size), len(x))*0x1p-52, wrong)
}

// Divided bounds the norm of what a vector is wrong by that was divided by its norm, as a share of what it should be: each element has a
// rounding, and the norm is wrong by (dims/16 + 5) 2^-53.
func Divided(dims int) float64 { return (float64(dims)/16 + 8) * 0x1p-52 }

// L2 is tau: objects of the tile with N - 2A > tau have values above t. All is in the scale of objects, t times its square.
func L2(t float64, dims int, gamma float64, q Query, x Tile) float64 {
	reach := math.Sqrt(t*(1+(float64(dims)/8+16)*0x1p-51))*(1+0x1p-51) + q.Remainder + x.Remainder
	both := q.Norm + x.Norm
	return up(float64(reach*reach), -q.Square, 2*gamma*q.Norm*x.Norm, 0x1p-22*both*both)
}

// Begin is B, of a square that is not more than |x'|^2.
func Begin(square, gamma float64) float32 {
	return -Float32Down(square / (2 * (1 + gamma)) * (1 - 0x1p-50))
}

// Squares is tau of sums of squares of differences: objects of which it is below the sum have values above t. Infinite: it is above all sums.
func Squares(t float64, dims int) float32 {
	return Float32Up((t*(1+FusedGamma(dims+2))*(1+(float64(dims)/8+16)*0x1p-51) + float64(dims)*0x1p-149) * (1 + 0x1p-49))
}

// Angle is k: objects x with A < k w have values above t, for a query with a norm. Both norms are from 2^-50 to 2^50, and FusedGamma(dims) is at most 2^-8.
func Angle(t float64, dims int, norm float64) float32 {
	g, c := FusedGamma(dims), -t-(float64(dims)/8+16)*0x1p-50
	more := g + 4*0x1p-24
	return float32(norm * (c - (g + math.Abs(c)*(g/2+3*0x1p-24) + 2*more*more + (float64(dims)+16)*0x1p-44)))
}

// Dot is tau: objects of the tile with -A > tau have values above t, where a value is -q.x, computed in float64 as sums of 8 parts, and t one
// of that kind. qm is the product of the query and the mean that objects lack, and error bounds how wrong that is; both are in the scale of
// objects and so is t. full bounds |q||x|, x with its mean.
func Dot(t, qm, error, full float64, dims int, gamma float64, q Query, x Tile) float64 {
	whole := q.Norm + q.Remainder // |q|
	return up(t, qm, error, full*(float64(dims)/8+16)*0x1p-51,
		whole*x.Remainder, q.Remainder*x.Norm, (gamma+0x1p-22)*q.Norm*x.Norm)
}

// up adds terms that are each right within 2^-51 of themselves and makes the sum no less than the truth.
func up(terms ...float64) float64 {
	sum, size := 0.0, 0.0
	for _, t := range terms {
		sum += t
		size += math.Abs(t)
	}
	return sum + size*0x1p-49
}

// Float32Up is the least float32 that is not below v.
func Float32Up(v float64) float32 {
	f := float32(v)
	if float64(f) < v {
		f = math.Nextafter32(f, float32(math.Inf(1)))
	}
	return f
}

// Float32Down is the largest float32 that is not above v.
func Float32Down(v float64) float32 { return -Float32Up(-v) }
