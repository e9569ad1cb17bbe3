// Package minhash makes columns of sets searchable by m keywords each in place of one for each element, where the schema says minhash: m. Then the cost of a
// query does not grow with the sizes of sets, and counts estimate Jaccard's similarity.
//
// # What is promised
//
// A function ranks all elements at random and takes of a set the first: two sets agree on it with the probability that the first of their union is in both, which is
// Jaccard's J (Broder 1997). So c/m estimates J, within epsilon = sqrt(ln(2/delta) / (2m)) of it for a fixed pair and within sqrt(ln(2N/delta) / (2m)) for
// selected ones, as with vectors. Firsts are re-hashed to one of 8,192 keywords, so that sets agree by chance too, once in 8,192 functions, for which
// estimates are corrected. No count proves anything.
//
// # The same bits everywhere
//
// Rank and keyword of an element are integers: xxHash64 of its bytes, mixed with a number for each function by the finaliser of SplitMix64 (Steele, Lea, Flood
// 2014). They are stored in index files and may not change.
package minhash

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	// Keywords is how many keywords a function has.
	Keywords = 8192
	// MaxFunctions bounds m.
	MaxFunctions = 1 << 16
	// Delta is how likely a bound of Estimate is exceeded by any object of an index.
	Delta = .06
)

// Sets is the type of columns of sets: what Exact is, and with minhash by hash functions.
type Sets struct{ Exact column.Type }

// Name implements column.Type.
func (t Sets) Name() string { return t.Exact.Name() }

// In implements column.Type.
func (t Sets) In(kind schema.Kind) bool { return t.Exact.In(kind) }

// Check implements column.Type.
func (t Sets) Check(s *schema.Schema, c *schema.Column) []error {
	if c.MinHash == 0 {
		return t.Exact.Check(s, c)
	}
	exact := *c
	exact.MinHash, exact.Layout = 0, ""
	faults := t.Exact.Check(s, &exact)
	if _, err := schema.ParseLayout(c.Layout, schema.Ordinal); err != nil {
		faults = append(faults, err)
	}
	if c.MinHash < 0 || c.MinHash > MaxFunctions {
		faults = append(faults, fmt.Errorf("minhash %d: must be 1 to %d", c.MinHash, MaxFunctions))
	}
	if c.IDF {
		faults = append(faults, fmt.Errorf("idf: hash functions know no elements, and weigh the same: leave it or minhash out"))
	}
	return faults
}

// Attributes implements column.Type.
func (t Sets) Attributes(c *schema.Column) []schema.AttributeSpec {
	if c.MinHash == 0 {
		return t.Exact.Attributes(c)
	}
	specs := make([]schema.AttributeSpec, c.MinHash)
	for i := range specs {
		specs[i] = schema.AttributeSpec{
			Name: fmt.Sprintf("%s (%d)", c.Name, i), Type: schema.Ordinal, Keywords: Keywords, Layout: c.Layout, Distinct: true,
		}
	}
	return specs
}

// Keeps implements column.Keeper: the elements, by which sets are compared, have no attribute to be keywords of.
func (t Sets) Keeps(s *schema.Schema, c *schema.Column) schema.KeptSpec {
	spec := t.Exact.(column.Keeper).Keeps(s, c)
	spec.Vocabulary = c.MinHash > 0
	return spec
}

// Weighs implements column.Weigher.
func (t Sets) Weighs() bool { return t.Exact.(column.Weigher).Weighs() }

// Objects implements column.Type.
func (t Sets) Objects(s *schema.Schema, c *schema.Column) (column.ObjectEncoder, error) {
	exact, err := t.Exact.Objects(s, c)
	if err != nil || c.MinHash == 0 {
		return exact, err
	}
	return &objects{exact, c.MinHash}, nil
}

type objects struct {
	exact column.ObjectEncoder
	m     int
}

// Encode implements column.ObjectEncoder: keywords of the elements, which are kept.
func (o *objects) Encode(dst *schema.Values, cell *schema.Cell) error {
	first := len(dst.Strings)
	if err := o.exact.Encode(dst, cell); err != nil {
		return err
	}
	dst.Ordinals = hash(dst.Ordinals, dst.Strings[first:], o.m)
	return nil
}

// hash appends the keywords of a set by m functions; none of an empty one.
func hash(dst []uint32, elements []string, m int) []uint32 {
	if len(elements) == 0 {
		return dst
	}
	sums := make([]uint64, len(elements))
	for i, e := range elements {
		sums[i] = xxhash.Sum64String(e)
	}
	const golden = 0x9e3779b97f4a7c15
	salt := uint64(0)
	for range m {
		salt += golden
		function, least := mix(salt), uint64(math.MaxUint64)
		for _, s := range sums {
			least = min(least, mix(s^function))
		}
		high, _ := bits.Mul64(mix(least), Keywords)
		dst = append(dst, uint32(high))
	}
	return dst
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Queries implements column.Type.
func (t Sets) Queries(s *schema.Schema, c *schema.Column, first int, v column.Vocabulary) (column.QueryEncoder, error) {
	if c.MinHash == 0 {
		return t.Exact.Queries(s, c, first, v)
	}
	return &queries{column: c, first: first}, nil
}

// queries finds sets by their hashes.
type queries struct {
	column *schema.Column
	first  int // its first attribute
}

// Items implements column.QueryEncoder: an item for each function.
func (q *queries) Items(dst *column.Draft, c *column.Condition) error {
	elements, err := column.Elements(q.column, c)
	if err != nil {
		return err
	}
	q.items(dst, elements)
	return nil
}

// Set implements column.SetEncoder.
func (q *queries) Set(dst *column.Draft, set []column.Value) error {
	elements, err := column.ElementsOf(q.column, set)
	if err != nil {
		return err
	}
	q.items(dst, elements)
	return nil
}

func (q *queries) items(dst *column.Draft, elements []string) {
	if len(elements) == 0 {
		dst.Warn(column.Empty, "")
	}
	if dst.Asked != nil && dst.Asked.Column == q.column.Name {
		dst.Asked.Elements = elements
	}
	for i, keyword := range hash(nil, elements, q.column.MinHash) {
		dst.StartItem(q.first + i)
		dst.Match.AddSpan(keyword, keyword+1)
	}
}

// Estimate implements column.Estimator: Jaccard's similarity.
func (q *queries) Estimate(count, objects uint32) (similarity, bound float64) {
	const chance = 1. / Keywords
	m := float64(q.column.MinHash)
	epsilon := math.Sqrt(math.Log(2*float64(max(1, objects))/Delta) / (2 * m))
	return math.Max(0, (float64(count)/m-chance)/(1-chance)), min(1, epsilon/(1-chance))
}

// ExpectedRecall implements column.Estimator: it is not measured.
func (q *queries) ExpectedRecall(string, int, int, uint32) (float64, bool) { return 0, false }
