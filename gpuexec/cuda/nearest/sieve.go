package nearest

import (
	"math"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
)

// A Sieve drops objects of a column by a product of float16s, for l2 and angles (kernels/near_sieve.cuh; package bound has the proof). Angles are those of vectors
// divided by their norms, of which squared chords are 2 + 2v: so there is one kernel.
//
// Objects and queries are moved by one mean and multiplied by one power of two, so that a product needs no factor. A query with elements that are beyond float16s
// then, being much farther from the mean than any object, is scanned.
type Sieve struct {
	Mean     []float64
	Exponent int     // of the power of two
	Gamma    float64 // what a product is wrong by, as a share of the norms
	Steps    int     // of 16 elements
	angles   bool
	dims     int
}

// stepElements is how many elements a step of the product takes.
const stepElements = 16

// Sievable is what a sieve of a column would be, but for its mean and scale: nil where it has none, or where shared memory of so many bytes for each step does
// not suffice.
func (c *Column) Sievable(shared, stepBytes int) *Sieve {
	kind := c.Of.Metric.Kind
	steps := (c.Dims + stepElements - 1) / stepElements
	if kind != metric.L2 && !c.Angles() || steps*stepBytes > shared {
		return nil
	}
	return &Sieve{Mean: make([]float64, c.Dims), Gamma: bound.CautiousGamma(c.Dims), Steps: steps, angles: c.Angles(), dims: c.Dims}
}

// HalvesBytes, SquaresBytes and ReachesBytes are the memory of what lies on the device for so many objects.
func (s *Sieve) HalvesBytes(objects uint32) int64 {
	return padded(objects) * int64(s.Steps) * stepElements * 2
}
func (s *Sieve) SquaresBytes(objects uint32) int64 { return padded(objects) * 4 }
func (s *Sieve) ReachesBytes(tiles int) int64      { return int64(tiles) * abi.NearReachBytes }

func padded(objects uint32) int64 {
	return (int64(objects) + abi.SieveObjects - 1) / abi.SieveObjects * abi.SieveObjects
}

// SetScale is told the largest size of an element less the mean; false: there is no scale.
func (s *Sieve) SetScale(largest float64) (ok bool) {
	s.Exponent, ok = bound.Scale(largest)
	return ok
}

// Scale is the power of two.
func (s *Sieve) Scale() float64 { return math.Ldexp(1, s.Exponent) }

// Wrong bounds the norm of what an object is wrong by before it is rounded, in the scale of objects: those that were divided by their norms.
func (s *Sieve) Wrong() float64 {
	if !s.angles {
		return 0
	}
	return bound.Divided(s.dims) * 1.01 * s.Scale()
}

// QueryBytes is what is sent of a query.
func (s *Sieve) QueryBytes() int64 { return abi.NearSievedBytes + int64(s.Steps)*stepElements*2 }

// HalvesAt is where the float16s of queries begin, behind what is known of each.
func HalvesAt(queries int) int64 { return abi.NearSievedBytes * int64(queries) }

// Sieves says whether an ask is sieved.
func (c *Column) Sieves(a *Ask, waves *profile.NearWaves) bool {
	if c.Sieve == nil || a.Exact || int(c.Objects) <= 2*waves.First || c.hits(a.Query) > int64(waves.SievedHits) {
		return false
	}
	v := make([]float64, c.Dims)
	return c.Sieve.takes(v, c.vector(a.Query, v))
}

// takes says whether the float16s of a query hold it.
func (s *Sieve) takes(v []float64, norm float64) bool {
	for i, e := range v {
		if !(math.Abs(s.moved(e, i, norm)) <= mostHalf) {
			return false
		}
	}
	return true
}

// moved is an element as the sieve takes it.
func (s *Sieve) moved(e float64, i int, norm float64) float64 {
	if s.angles {
		e /= norm
	}
	return math.Ldexp(e-s.Mean[i], s.Exponent)
}

// encode writes what is sent of the i-th of n queries.
func (s *Sieve) encode(to []byte, i, n int, v []float64, norm float64) {
	width := s.Steps * stepElements
	halves := abi.Array[uint16](to, HalvesAt(n)+int64(i*width*2), width)
	clear(halves)
	x, few := make([]float64, len(v)), make([]float64, len(v))
	square := 0.0
	for j, e := range v {
		x[j] = s.moved(e, j, norm)
		halves[j], few[j] = half(x[j])
		square += float64(few[j] * few[j])
	}
	abi.Array[abi.NearSieved](to, 0, n)[i] = abi.NearSieved{
		Norm: bound.Up(math.Sqrt(square), len(v)), Square: bound.Down(square, len(v)), Remainder: bound.Remainder(x, few, s.Wrong()),
	}
}

// mostHalf is the largest float16.
const mostHalf = 65504

// half is the float16 nearest to a number that is at most mostHalf in size, and that as a float64.
func half(v float64) (bits uint16, few float64) {
	size := math.Abs(v)
	if size != 0 {
		_, e := math.Frexp(size)                             // in [2^(e-1), 2^e)
		ulp := math.Ldexp(1, max(e-1, -14)-10)               // of eleven bits; below 2^-14 float16s are evenly spaced
		size = min(mostHalf, math.RoundToEven(size/ulp)*ulp) // each exact: ulp is a power of two
	}
	few = math.Copysign(size, v)
	if size < 0x1p-14 {
		bits = uint16(size * 0x1p24)
	} else {
		m, e := math.Frexp(size)
		bits = uint16(e-1+15)<<10 | uint16((m*2-1)*1024)
	}
	if math.Signbit(v) {
		bits |= 1 << 15
	}
	return bits, few
}
