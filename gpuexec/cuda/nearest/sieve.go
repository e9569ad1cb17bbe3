package nearest

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
)

// Product is how a sieve compares a query with an object in few bits: what stands in the names of its kernels.
type Product string

// The products: of float16s, for l2 and angles; absolute differences of bytes, for l1; bytes within boxes, for linf; codes that differ, for hamming; and powers of
// differences of float32s, for lp, where p is part of the name.
const (
	Halves Product = "halves"
	Bytes  Product = "bytes"
	Boxes  Product = "boxes"
	Codes  Product = "codes"
)

// ofProducts are float16s that make values themselves, and no squares.
const ofProducts Product = "products"

const powers = "powers" // and p

// leastPower and mostPower are those of lp.
const leastPower, mostPower = 3, 8

// PowersOf is the product of lp.
func PowersOf(p int) Product { return powers + Product(strconv.Itoa(p)) }

// power is that of PowersOf; 0 of other products.
func (p Product) power() int {
	if rest, ok := strings.CutPrefix(string(p), powers); ok {
		n, _ := strconv.Atoi(rest)
		return n
	}
	return 0
}

// AllProducts are those of all metrics of vectors.
func AllProducts() []Product {
	all := []Product{Halves, ofProducts, Bytes, Boxes, Codes}
	for p := leastPower; p <= mostPower; p++ {
		all = append(all, PowersOf(p))
	}
	return all
}

// form is what a product compares.
type form struct {
	name     string // of the kernel that makes it of objects, behind near_
	said     string // to people
	product  uint32 // abi.NearHalves ...
	elements int    // that a step takes, of two that are done at a time
	bytes    int64  // what these take
}

func (p Product) form() form {
	switch p {
	case Halves:
		return form{"halves", "float16s", abi.NearHalves, 16, 32}
	case ofProducts:
		return form{"halves_products", "float16s", abi.NearHalves, 16, 32}
	case Bytes:
		return form{"bytes", "bytes", abi.NearBytes, 4, 4}
	case Boxes:
		return form{"boxes", "bytes", abi.NearBoxes, 4, 4}
	case Codes:
		return form{"codes", "codes", abi.NearCodes, 4, 4}
	}
	return form{"floats", "float32s", abi.NearFloats, 1, 4}
}

// Form is the name of what a product compares, and of the kernel that makes it of objects, behind near_.
func (p Product) Form() string { return p.form().name }

// Said is what people are told that objects are compared by.
func (p Product) Said() string { return p.form().said }

// Asked is what queries are told of it.
func (p Product) Asked() uint32 { return p.form().product }

// Scaled says that the largest element is to be measured for the scale; Levelled, that it is chosen by a sample.
func (p Product) Scaled() bool   { return p.halves() || p.power() > 0 }
func (p Product) Levelled() bool { return p == Bytes || p == Boxes }

// halves says that it is one of float16s.
func (p Product) halves() bool { return p == Halves || p == ofProducts }

// product is that of a column; empty: it has none.
func (c *Column) product() Product {
	switch kind := c.Of.Metric.Kind; {
	case kind == metric.L1:
		return Bytes
	case kind == metric.Linf:
		return Boxes
	case kind == metric.Hamming:
		return Codes
	case kind == metric.Lp:
		return PowersOf(c.Of.Metric.P)
	case kind == metric.L2 || c.Angles():
		return Halves
	case kind == metric.IP:
		return ofProducts
	}
	return ""
}

// A Sieve drops objects of a column by a product of few bits (kernels/near_sieve.cuh; package bound has the proofs). Angles are those of vectors divided by their
// norms, of which squared chords are 2 + 2v: so l2 and angles have one kernel.
//
// Objects and queries are moved by one mean and multiplied by one power of two, so that a product needs no factor. A query with elements that are beyond float16s
// then, being much farther from the mean than any object, is given up by the kernel that derives its float16s, and scanned. Bytes cut such elements, and prove less; codes
// know no distance, and float32s hold them.
type Sieve struct {
	Product  Product
	Mean     []float64 // of bytes what lies below each dimension's levels, in steps: a whole number
	Exponent int       // of the power of two
	Gamma    float64   // what a product of float16s is wrong by, as a share of the norms
	Steps    int       // of the product
	Lost     float64   // by any element of any object, in steps: of Boxes
	angles   bool
	dims     int
}

// Sievable is what a sieve of a column would be, but for its mean and scale: nil where it has none, or where shared memory of so many bytes for each step does
// not suffice.
func (c *Column) Sievable(shared int, stepBytes map[Product]int) *Sieve {
	p := c.product()
	if p == "" {
		return nil
	}
	pair := 2 * p.form().elements
	steps := (c.Dims + pair - 1) / pair * 2
	if steps*stepBytes[p] > shared {
		return nil
	}
	s := &Sieve{Product: p, Mean: make([]float64, c.Dims), Steps: steps, angles: c.Angles(), dims: c.Dims}
	if p.halves() {
		s.Gamma = bound.CautiousGamma(c.Dims)
	}
	return s
}

// FewBytes, BeginsBytes and ReachesBytes are the memory of what lies on the device for so many objects: their few bits, what sums begin with, and what is known of
// tiles.
func (s *Sieve) FewBytes(objects uint32) int64 {
	return padded(objects) * int64(s.Steps) * s.Product.form().bytes
}
func (s *Sieve) BeginsBytes(objects uint32) int64 { return padded(objects) * 4 }
func (s *Sieve) ReachesBytes(tiles int) int64 {
	if !s.Product.halves() {
		return 0
	}
	return int64(tiles) * abi.NearReachBytes
}

func padded(objects uint32) int64 {
	return (int64(objects) + abi.SieveObjects - 1) / abi.SieveObjects * abi.SieveObjects
}

// SetScale is told the largest size of an element less the mean; false: there is no scale. It is for what is Scaled.
func (s *Sieve) SetScale(largest float64) (ok bool) {
	if p := s.Product.power(); p > 0 {
		s.Exponent, ok = bound.PowersScale(largest, p, s.dims)
	} else {
		s.Exponent, ok = bound.Scale(largest)
	}
	return ok
}

// levels is how many a byte has, above the lowest.
const levels = 255

// mostLevels bounds the power of two, with which no float32 vanishes or overflows; finer is how many steps are tried, each half the one before.
const mostLevels, finer = 300, 16

// SetLevels chooses the levels of bytes by a sample of vectors, one after the other; false: they are all alike, or of no size that there are levels for.
//
// Any levels are right. One step is good for all dimensions, since their differences are added up, and a fine one loses little to rounding and much to what it
// cuts: so it is the one that proves most of the distances between vectors of the sample. It is a power of two, so that whole numbers are levels.
func (s *Sieve) SetLevels(sample []float64) (ok bool) {
	ranges, widest := rangesOf(sample, s.dims)
	if !(widest > 0) || math.IsInf(widest, 1) {
		return false
	}
	_, coarse := math.Frexp(widest / levels)
	if coarse < -mostLevels || coarse > mostLevels {
		return false
	}
	best := math.Inf(-1)
	for exponent := -coarse; exponent < -coarse+finer; exponent++ {
		mean := make([]float64, s.dims)
		for d, r := range ranges {
			mean[d] = r.lowest(exponent)
		}
		if proven := s.Product.proven(sample, mean, exponent); proven > best {
			best, s.Mean, s.Exponent = proven, mean, exponent
		}
	}
	return true
}

// valueRange is what a sample has in one dimension.
type valueRange struct{ low, middle, high float64 }

func rangesOf(sample []float64, dims int) (ranges []valueRange, widest float64) {
	n := len(sample) / dims
	if n == 0 {
		return nil, 0
	}
	of := make([]float64, n)
	for d := range dims {
		for i := range of {
			of[i] = sample[i*dims+d]
		}
		slices.Sort(of)
		r := valueRange{of[0], of[n/2], of[n-1]}
		ranges, widest = append(ranges, r), max(widest, r.high-r.low)
	}
	return ranges, widest
}

// lowest is the whole number of steps at which levels begin: around the range if they hold it, else within it and around its median.
func (r valueRange) lowest(exponent int) float64 {
	low, middle, high := math.Ldexp(r.low, exponent), math.Ldexp(r.middle, exponent), math.Ldexp(r.high, exponent)
	if high-low <= levels {
		return math.Floor(low + (high-low)/2 - levels/2.)
	}
	return math.Floor(min(max(middle-levels/2., low), high-levels))
}

// proven is the share of distances that bytes prove, between each vector of a sample and the next one, on average. Those of which nothing is proven are alike: what
// comes so near is compared anyway.
func (p Product) proven(sample, mean []float64, exponent int) float64 {
	dims := len(mean)
	join := func(all, x float64) float64 { return all + x }
	if p == Boxes {
		join = func(all, x float64) float64 { return max(all, x) }
	}
	shares, before, scale := 0.0, make([]uint8, dims), math.Ldexp(1, exponent)
	for i := 0; i+dims <= len(sample); i += dims {
		lost, differences, truth := 0.0, 0.0, 0.0
		for d, x := range sample[i : i+dims] {
			level, l := bound.Level(x, scale, mean[d])
			differences = join(differences, math.Abs(float64(level)-float64(before[d])))
			lost = join(lost, l)
			before[d] = level
			if i > 0 {
				truth = join(truth, math.Abs(x-sample[i-dims+d])*scale)
			}
		}
		if truth > 0 {
			shares += max(0, differences-2*lost) / truth
		}
	}
	return shares / max(1, float64(len(sample)/dims-1))
}

// Scale is the power of two.
func (s *Sieve) Scale() float64 { return math.Ldexp(1, s.Exponent) }

// ScaleOfValues is what values are multiplied by, to be compared with products.
func (s *Sieve) ScaleOfValues() float64 {
	switch p := s.Product; {
	case p.halves():
		return s.Scale() * s.Scale()
	case p == Codes:
		return bound.CodeSum
	case p.power() > 0:
		return math.Ldexp(1, s.Exponent*p.power())
	}
	return s.Scale()
}

// Wrong is what is added to what a query lacks: of angles a bound of the norm of what an object is wrong by before it is rounded, in the scale of objects, since they were divided by
// their norms; of boxes what any object loses.
func (s *Sieve) Wrong() float64 {
	if !s.angles {
		return s.Lost
	}
	return bound.Divided(s.dims) * 1.01 * s.Scale()
}

// QueryBytes is what is derived of a query, QueriesBytes of so many.
func (s *Sieve) QueryBytes() int64 { return abi.NearSievedBytes + s.queryFew() }
func (s *Sieve) QueriesBytes(queries int) int64 {
	return FewAt(queries) + int64(queries)*s.queryFew()
}

func (s *Sieve) queryFew() int64 { return int64(s.Steps) * s.Product.form().bytes }

// FewAt is where the few bits of queries begin, behind what is known of each.
func FewAt(queries int) int64 { return abi.Align(abi.NearSievedBytes * int64(queries)) }

// step is what a step of the product takes, in picoseconds of a pair of query and object.
func (s *Sieve) step(waves *profile.NearWaves) float64 {
	switch p := s.Product; p {
	case Halves, ofProducts:
		return waves.Step
	case Bytes:
		return waves.Bytes
	case Boxes:
		return waves.Boxes
	case Codes:
		return waves.Codes
	default:
		return waves.Powers[p.power()-leastPower]
	}
}

// Sieves says whether an ask is sieved: it wants few hits, or is taken to have few within its radius.
func (c *Column) Sieves(a *Ask, waves *profile.NearWaves) bool {
	return c.Sieve != nil && !a.Exact && int(c.Objects) > 2*waves.First && (a.Places > 0 || c.hits(a.Query) <= int64(waves.SievedHits))
}

// Stretch is how many objects a block goes through in a wave of so many, by each of so many blocks of queries, where so many blocks run at once. Blocks take equally long, and a
// round that is not full as long as a full one: so there are as many as fill whole rounds, and few rounds, since each prepares its queries. It is no more than a tile.
func Stretch(objects, blocks, atOnce int, waves *profile.NearWaves) int {
	units := (objects + abi.SieveObjects - 1) / abi.SieveObjects
	least := (units + tileUnits - 1) / tileUnits
	best, cost := 0, 0
	for round := 1; round <= waves.Rounds; round++ {
		stretches := min(max(least, round*atOnce/blocks, 1), units)
		each := (units + stretches - 1) / stretches
		all := (units + each - 1) / each * blocks
		if took := (all + atOnce - 1) / atOnce * (waves.Prepares + each); best == 0 || took < cost {
			best, cost = each, took
		}
	}
	return best * abi.SieveObjects
}

// tileUnits is how many times abi.SieveObjects fit into a tile.
const tileUnits = abi.TileObjects / abi.SieveObjects
