package index_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// numberAttribute builds an attribute of the given numbers, one object each.
func numberAttribute(t *testing.T, rule schema.EdgeRule, buckets int, numbers []float64) (*index.Index, *postings.Attribute) {
	t.Helper()
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{{Name: "n", Type: schema.Number, Buckets: buckets, Edges: rule}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range numbers {
		if err := b.AddNumber(0, v); err != nil {
			t.Fatal(err)
		}
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	return x, &x.Attributes()[0]
}

func TestEdges(t *testing.T) {
	huge := 0x1p1023 // high - low is out of range
	tiny := math.SmallestNonzeroFloat64
	cases := []struct {
		name    string
		rule    schema.EdgeRule
		buckets int
		numbers []float64
		edges   []float64
	}{
		{"equal width", schema.EqualWidth, 4, []float64{0, 8, 3}, []float64{2, 4, 6}},
		{"not from zero", schema.EqualWidth, 3, []float64{-1, 2}, []float64{0, 1}},
		{"constant", schema.EqualWidth, 1024, []float64{5, 5, 5}, nil},
		{"one bucket", schema.EqualWidth, 1, []float64{5, 6}, nil},
		{"coinciding edges", schema.EqualWidth, 1024, []float64{1e16, 1e16 + 4}, []float64{1e16 + 2, 1e16 + 4}},
		{"smallest", schema.EqualWidth, 4, []float64{0, tiny}, []float64{tiny}},
		{"largest", schema.EqualWidth, 4, []float64{-huge, huge}, []float64{-huge / 2, 0, huge / 2}},
		{"large products", schema.EqualWidth, 2, []float64{0, huge}, []float64{huge / 2}},
		{"equi-depth", schema.EquiDepth, 4, []float64{8, 7, 6, 5, 4, 3, 2, 1}, []float64{3, 5, 7}},
		{"equi-depth, few values", schema.EquiDepth, 100, []float64{1, 1, 1, 2, 9, 9}, []float64{2, 9}},
		{"equi-depth, skewed", schema.EquiDepth, 4, []float64{1, 1, 1, 1, 1, 1, 1, 5}, nil},
		{"equi-depth, constant", schema.EquiDepth, 4, []float64{1, 1}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, a := numberAttribute(t, c.rule, c.buckets, c.numbers)
			if !slices.Equal(a.Edges, c.edges) || int(a.Keywords) != len(c.edges)+1 {
				t.Errorf("%d keywords, edges %v, want %v", a.Keywords, a.Edges, c.edges)
			}
			if a.Min != slices.Min(c.numbers) || a.Max != slices.Max(c.numbers) {
				t.Errorf("from %v to %v", a.Min, a.Max)
			}
		})
	}
}

// TestEqualWidthFormula checks edges against low + i*(high-low)/buckets and buckets against their definition.
func TestEqualWidthFormula(t *testing.T) {
	random := seeded.Rand(t)
	for range 50 {
		numbers := make([]float64, 2+random.IntN(300))
		for i := range numbers {
			numbers[i] = math.Ldexp(random.NormFloat64(), random.IntN(40)-20)
		}
		buckets := 1 + random.IntN(2000)
		x, a := numberAttribute(t, schema.EqualWidth, buckets, numbers)
		low, high := slices.Min(numbers), slices.Max(numbers)
		var want []float64
		for i := 1; i < buckets; i++ {
			want = append(want, low+float64(i)*(high-low)/float64(buckets))
		}
		if want = slices.Compact(want); !slices.Equal(a.Edges, want) {
			t.Fatalf("%d buckets from %v to %v: edges %v, want %v", buckets, low, high, a.Edges, want)
		}
		var decoder postings.Decoder
		for id, v := range numbers {
			bucket := 0
			for _, edge := range want {
				if edge <= v {
					bucket++
				}
			}
			if got, ok := a.Bucket(v); !ok || int(got) != bucket {
				t.Fatalf("Bucket(%v) = %d, want %d", v, got, bucket)
			}
			if p := decoder.Postings(x.Lists, 0, 0); !slices.Contains(p.Run(uint32(bucket), uint32(bucket)+1), uint16(id)) {
				t.Fatalf("object %d with %v is not in bucket %d", id, v, bucket)
			}
		}
	}
}

func TestExact(t *testing.T) {
	_, a := numberAttribute(t, schema.Exact, 0, []float64{3, -1, math.Copysign(0, -1), 3, 0, 1e300})
	if want := []float64{-1, 0, 3, 1e300}; !slices.Equal(a.Values, want) || !a.Exact || a.Edges != nil {
		t.Errorf("values %v, want %v", a.Values, want)
	}
	for _, v := range []float64{-2, 2, math.NaN(), math.Inf(1)} {
		if kw, ok := a.Bucket(v); ok {
			t.Errorf("%v, which is not in the data, is keyword %d", v, kw)
		}
	}
	if kw, ok := a.Bucket(math.Copysign(0, -1)); !ok || kw != 1 {
		t.Errorf("Bucket(-0) = %d, %v", kw, ok)
	}
}

// TestFloatBits checks that edges and extremes come back to the bit.
func TestFloatBits(t *testing.T) {
	numbers := []float64{math.Nextafter(0.1, 0), 0.1, math.Nextafter(0.1, 1), math.Pi, math.SmallestNonzeroFloat64}
	_, a := numberAttribute(t, schema.Exact, 0, numbers)
	slices.Sort(numbers)
	for i, v := range numbers {
		if math.Float64bits(a.Values[i]) != math.Float64bits(v) {
			t.Errorf("value %d is %x, want %x", i, a.Values[i], v)
		}
	}
}

func TestKeywordName(t *testing.T) {
	x, _ := numberAttribute(t, schema.EqualWidth, 4, []float64{0, 8})
	for kw, want := range []string{"[0, 2)", "[2, 4)", "[4, 6)", "[6, 8]", "none"} {
		if got := x.KeywordName(0, uint32(kw)); got != want {
			t.Errorf("keyword %d is %s, want %s", kw, got, want)
		}
	}
	x, _ = numberAttribute(t, schema.Exact, 0, []float64{2.5, 1})
	if got := x.KeywordName(0, 1); got != "2.5" {
		t.Errorf("exact keyword 1 is %s", got)
	}
}
