package cost

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// Object is what is compared.
type Object struct {
	Metric metric.Metric
	Dims   int     // of vectors, and of points 3
	Bytes  int     // of an element as it is stored: 4, 2 or 1; 0 is 4
	Length float64 // of a text, on average; 0: that of a word
}

// Distance is what one takes, in nanoseconds: the only estimate of that there is.
//
//	of numbers                    object + element x elements (x P of lp: so many products)
//	of texts, up to 64 symbols    text + column x columns
//	          of more, in blocks  text + carry x column x columns x blocks
//
// Alone is what it takes beside others of the same query, in a run, and Sieved where few of the run are near enough, so that most are dropped without it; Together beside those of many
// queries, where most objects are too far to matter, as in a scan. On the reference device Sieved is Alone: it was written down before runs were sieved, and which answers are given where a recall is asked for depends on it.
// Of texts it ends when it is certain to be larger than what is wanted (Within).
type Distance struct {
	Alone, Sieved, Together      float64
	Apart                        float64 // more: of a text that lies somewhere, and not behind the last one
	text, column, length, blocks float64 // of texts
	lanes                        float64 // beside others in lanes; 0: in none
}

// What distances take on the reference device.
const (
	perObject  = 15.0
	perElement = 1.0
	perText    = 70.0
	perColumn  = 5.0
	wordLength = 9.0
	// carry is what a block of a column takes beside others of it, over what one alone takes.
	carry = 1.7
	// apart is how many edits a column adds between texts that have nothing in common, and halfway by which part of its symbols a text differs from the nearest at most, about.
	apart, halfway = 0.8, 0.45
	// together is the part of a distance alone that one among many is: where a sieve drops most, and elsewhere.
	sieved, unsieved = 0.25, 0.8
	// inLanes is that of texts that are compared side by side.
	inLanes = 0.2
)

// Distance is that of objects.
func (d *Device) Distance(o Object) Distance {
	if o.Metric.Kind == metric.Edit {
		o.Length = cmp.Or(o.Length, wordLength)
		x := Distance{text: d.Of(textConstant()), column: d.Of(columnConstant()), length: o.Length, blocks: 1}
		x.Alone = x.text + x.column*x.length
		x.Sieved, x.Together, x.Apart = x.Alone, x.Alone, d.Of(Constant{Name: "text apart", Reference: 20})*(1+x.length/64) // lines of memory
		if x.length <= levenshtein.MostLanes && (!d.measured || levenshtein.HasLanes()) {
			var p probe
			x.lanes = min(x.Alone, d.Of(Constant{fmt.Sprintf("texts of %.0f in lanes", x.length), x.Alone * inLanes, func() int { return p.of(o).together() }}))
			x.Together = x.lanes
		}
		return x
	}
	alone := perObject + perElement*float64(o.Dims*max(1, o.Metric.P))
	share, sieves := unsieved, false
	if k := o.Metric.Kind; k == metric.L2 || k == metric.Cosine || k == metric.Angular {
		share, sieves = sieved, true
	}
	if !d.measured {
		return Distance{Alone: alone, Sieved: alone, Together: share * alone}
	}
	var p probe
	name := fmt.Sprintf("%s%d/%d/%d", o.Metric.Kind, o.Metric.P, o.Dims, o.Bytes)
	x := Distance{
		Alone:    d.Of(Constant{name + " alone", alone, func() int { return p.of(o).alone() }}),
		Together: d.Of(Constant{name + " together", share * alone, func() int { return p.of(o).together() }}),
	}
	if x.Sieved = x.Alone; sieves {
		var run probe
		x.Sieved = min(x.Alone, d.Of(Constant{name + " sieved", 2 * share * alone, func() int { return run.long(o).sieved() }}))
	}
	x.Together = min(x.Together, x.Sieved)
	return x
}

// Blocks is how many words of 64 bits the symbols of a text take.
func Blocks(text string) int { return (utf8.RuneCountInString(text) + 63) / 64 }

// Asked is what a distance from a query takes: of texts by its symbols.
func (x Distance) Asked(text string) Distance {
	if blocks := Blocks(text); x.column > 0 && blocks > 1 {
		x.blocks = float64(blocks)
		x.Alone = x.text + carry*x.column*x.length*x.blocks
		x.Sieved, x.Together, x.lanes = x.Alone, x.Alone, 0 // which no lane takes
	}
	return x
}

// Within is what one takes where larger ones than most are not wanted. Texts of one block are compared until so many edits are certain; of several, only the blocks that a path of so few edits touches.
func (x Distance) Within(most float64) Distance {
	if x.column == 0 {
		return x
	}
	most = min(most, halfway*max(x.length, 64*(x.blocks-1)))
	if x.blocks == 1 {
		x.Alone = x.text + x.column*min(x.length, (most+1)/apart)
	} else {
		x.Alone = x.text + carry*x.column*x.length*min(x.blocks, 1+most/64)
	}
	x.Sieved = x.Alone
	if x.Together = x.Alone; x.lanes > 0 {
		x.Together = min(x.lanes, x.Alone)
	}
	return x
}

// Among is what a distance takes in a scan for so many queries.
func (x Distance) Among(queries int) float64 {
	return x.Together + (x.Sieved-x.Together)/float64(max(1, queries))
}

// probe is what objects are measured on.
type probe struct {
	askers []metric.Asker
	limits []float64
	values []float64
	n      uint32
}

const (
	probed  = 64      // queries
	mostOf  = 256     // objects
	probing = 1 << 16 // elements of all objects
)

// of makes it, once. Elements are random: what values are takes no time.
func (p *probe) of(o Object) *probe { return p.make(o, mostOf, probed) }

// long is one query and objects that no nearest cache holds, as a run of those that are sieved has them.
func (p *probe) long(o Object) *probe { return p.make(o, probing, 1) }

func (p *probe) make(o Object, most, queries int) *probe {
	if p.askers != nil {
		return p
	}
	rng := rand.New(rand.NewPCG(1, 1))
	p.n = uint32(min(most, max(8, probing/max(1, o.Dims*max(1, o.Metric.P)))))
	p.values = make([]float64, p.n)
	for space := p.space(o, rng); len(p.askers) < queries; {
		a := space.Of(uint32(len(p.askers)) % p.n)
		a.Values(0, p.n, p.values)
		nearest := math.Inf(1)
		for i, v := range p.values {
			if uint32(i) != uint32(len(p.askers))%p.n {
				nearest = min(nearest, v)
			}
		}
		p.askers, p.limits = append(p.askers, a), append(p.limits, nearest)
	}
	return p
}

// space has random objects, as columns have theirs: norms are known.
func (p *probe) space(o Object, rng *rand.Rand) metric.Space {
	if o.Metric.Kind == metric.Geo {
		units := make([]float64, 0, 3*p.n)
		for range p.n {
			u, err := metric.Unit(rng.Float64()*90, rng.Float64()*180)
			must(err)
			units = append(units, u[:]...)
		}
		space, err := metric.NewPoints(units)
		must(err)
		return space
	}
	if o.Metric.Kind == metric.Edit {
		texts := make([]string, p.n)
		for i := range texts {
			texts[i] = randomText(rng, max(1, int(o.Length*(0.7+0.6*rng.Float64()))))
		}
		space, err := metric.NewTexts(p.n, func(i uint32) string { return texts[i] }, nil)
		must(err)
		return space
	}
	var space *metric.Vectors
	var err error
	x := make([]float32, int(p.n)*o.Dims)
	for i := range x {
		x[i] = 1 + float32(rng.IntN(255))
	}
	switch o.Bytes {
	case 1:
		bytes := make([]uint8, len(x))
		for i, v := range x {
			bytes[i] = uint8(v)
		}
		space, err = metric.NewVectors(o.Metric, o.Dims, bytes)
	case 2:
		halves := make([]sums.Half, len(x))
		for i, v := range x {
			halves[i], _ = sums.ToHalf(v)
		}
		space, err = metric.NewVectors(o.Metric, o.Dims, halves)
	default:
		space, err = metric.NewVectors(o.Metric, o.Dims, x)
	}
	must(err)
	if k := o.Metric.Kind; k == metric.Cosine || k == metric.Angular {
		space, err = space.UseNorms(space.Norms(nil))
		must(err)
	}
	return space
}

// must is of errors that only a metric of no column has.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// alone compares one query with all.
func (p *probe) alone() int {
	p.askers[0].Values(0, p.n, p.values)
	return int(p.n)
}

// sieved compares one query with all, of which few are near enough.
func (p *probe) sieved() int {
	metric.Scan(p.askers[:1], 0, p.n, p.limits[:1], func(int, uint32, float64) {})
	return int(p.n)
}

// together compares all queries with all, of which few are near enough.
func (p *probe) together() int {
	metric.Scan(p.askers, 0, p.n, p.limits, func(int, uint32, float64) {})
	return int(p.n) * len(p.askers)
}

// textConstant is what a text takes beside its columns, and columnConstant a column of a block of 64 symbols. Comparisons are bounded as searches bound them, by a few edits.
func textConstant() Constant {
	return Constant{Name: "text", Reference: perText, Probe: textProbe(1, 0)}
}

func columnConstant() Constant {
	const long = 512
	return Constant{Name: "column", Reference: perColumn, Probe: textProbe(long, long)}
}

// textProbe compares a text of 9 symbols with those of a length; units are texts, or columns where there are so many per text.
func textProbe(length, columns int) func() int {
	rng := rand.New(rand.NewPCG(2, 2))
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = randomText(rng, length)
	}
	var pattern levenshtein.Pattern
	pattern.Reset([]rune("pattern x"))
	var runes []rune
	return func() int {
		for _, t := range texts {
			pattern.DistanceString(t, math.MaxInt32, &runes)
		}
		return len(texts) * max(1, columns)
	}
}

func randomText(rng *rand.Rand, length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return string(b)
}

// plainCode is code without assembly: hits that are put in order.
func plainCode() Constant {
	const hits = 2048
	rng := rand.New(rand.NewPCG(3, 3))
	values := make([]float64, hits)
	for i := range values {
		values[i] = rng.Float64()
	}
	var best metric.Best
	return Constant{Name: "plain code", Reference: 4, Probe: func() int {
		best.Reset(metric.Want{K: 64, Most: math.Inf(1)})
		for i, v := range values {
			if v <= best.Bound() {
				best.Add(metric.Hit{Value: v, ID: uint32(i)})
			}
		}
		return hits
	}}
}
