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
// then, being much farther from the mean than any object, is given up by the kernel that derives its float16s, and scanned.
type Sieve struct {
	Mean     []float64
	Exponent int     // of the power of two
	Gamma    float64 // what a product is wrong by, as a share of the norms
	Steps    int     // of 16 elements
	angles   bool
	dims     int
}

// stepElements is how many elements a step of the product takes; two steps are multiplied at a time.
const stepElements = 16

// Sievable is what a sieve of a column would be, but for its mean and scale: nil where it has none, or where shared memory of so many bytes for each step does
// not suffice.
func (c *Column) Sievable(shared, stepBytes int) *Sieve {
	kind := c.Of.Metric.Kind
	steps := (c.Dims + 2*stepElements - 1) / (2 * stepElements) * 2
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

// QueryBytes is what is derived of a query.
func (s *Sieve) QueryBytes() int64 { return abi.NearSievedBytes + int64(s.Steps)*stepElements*2 }

// HalvesAt is where the float16s of queries begin, behind what is known of each.
func HalvesAt(queries int) int64 { return abi.NearSievedBytes * int64(queries) }

// Sieves says whether an ask is sieved.
func (c *Column) Sieves(a *Ask, waves *profile.NearWaves) bool {
	return c.Sieve != nil && !a.Exact && int(c.Objects) > 2*waves.First && c.hits(a.Query) <= int64(waves.SievedHits)
}

// tileSteps is how many times a block's objects fit into a tile.
const tileSteps = abi.TileObjects / abi.SieveObjects

// Stretch is how many objects a block goes through in a wave of so many: as many as leave so many blocks, where each has to prepare its queries first. It divides a tile.
func Stretch(objects, blocks, wanted int) int {
	most := 1
	for steps := 1; steps <= abi.SieveStretch/abi.SieveObjects; steps++ {
		if tileSteps%steps == 0 && objects/(steps*abi.SieveObjects)*blocks >= wanted {
			most = steps
		}
	}
	return most * abi.SieveObjects
}
