package index_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/value"
)

// source gives records one by one, and then io.EOF, in memory that is used again.
func source(records []schema.Record) func(*schema.Record) error {
	return func(rec *schema.Record) error {
		if len(records) == 0 {
			return io.EOF
		}
		rec.Line, rec.Key, rec.Cells = records[0].Line, records[0].Key, append(rec.Cells[:0], records[0].Cells...)
		records = records[1:]
		return nil
	}
}

// learn builds an index of records by a schema that leaves things to learn.
func learn(t testing.TB, s *schema.Schema, records []schema.Record) (*index.Index, *index.Queries) {
	t.Helper()
	next, err := index.Builtin().Learn(s, source(records), nil)
	if err != nil {
		t.Fatal(err)
	}
	together, err := index.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := together.AddAll(t.Context(), index.Source{Next: source(records)}); err != nil {
		t.Fatal(err)
	}
	all, err := together.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := newBuilder(t, s)
	for n := 0; ; n++ {
		var rec schema.Record
		if err := next(&rec); err == io.EOF {
			if n != len(records) {
				t.Fatalf("%d of %d records come after learning", n, len(records))
			}
			if one, err := b.objects.Bytes(t.Context()); err != nil || !bytes.Equal(one, all) {
				t.Fatalf("objects added together are other bytes than one by one (%v)", err)
			}
			return b.open()
		} else if err != nil {
			t.Fatal(err)
		}
		b.add(&rec)
	}
}

// search runs plans on the CPU engine.
func search(t testing.TB, x *index.Index, plans []gpuexec.Plan) []gpuexec.Answer {
	t.Helper()
	engine := cpu.New(gpuexec.CPUOptions{})
	s, err := engine.Load(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]gpuexec.Answer, len(plans))
	if err := s.Search(context.Background(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		if answers[i].Err != nil {
			t.Fatal(answers[i].Err)
		}
	}
	if err := cmp.Or(s.Close(), engine.Close()); err != nil {
		t.Fatal(err)
	}
	return answers
}

// vectorCell is a cell of a vector in one of the ways in which loaders give it.
func vectorCell(rng *rand.Rand, x []float32) schema.Cell {
	var texts []string
	for _, v := range x {
		texts = append(texts, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	switch rng.IntN(5) {
	case 0:
		return schema.Cell{Values: texts}
	case 1:
		return schema.Cell{Values: []string{strings.Join(texts, " ")}}
	case 2:
		return schema.Cell{Values: []string{"[" + strings.Join(texts, ", ") + "]"}}
	}
	return schema.Cell{Vector: slices.Clone(x)}
}

// vectorCondition asks for a vector in one of the ways in which messages have it.
func vectorCondition(rng *rand.Rand, name string, x []float32) column.Condition {
	var b value.Builder
	switch rng.IntN(3) {
	case 0:
		b.Array()
		for _, v := range x {
			b.Float(float64(v))
		}
		b.End()
	case 1:
		data := []byte{}
		for _, v := range x {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		b.Bytes(string(data))
	default:
		return column.Condition{Attr: name, Vector: x}
	}
	tree, err := b.Tree()
	if err != nil {
		panic(err)
	}
	return column.Condition{Attr: name, Other: tree}
}

// Random schemas with columns of vectors among others, random records and queries, prepared together or not: counts are those of the definition, by functions made
// from what the file has learned.
func TestVectorColumns(t *testing.T) {
	random := seeded.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		vectorRound(t, random)
	}
}

// vectorModel is an index with vectors as plain values.
type vectorModel struct {
	t         *testing.T
	rng       *rand.Rand
	names     []string
	dims      []int
	functions []*lsh.Functions
	vectors   [][][]float32 // by column and object
	tags      []string
	x         *index.Index
	queries   *index.Queries
}

func vectorRound(t *testing.T, rng *rand.Rand) {
	m := &vectorModel{t: t, rng: rng}
	text := "name: vectors\ncolumns:\n- {name: tag, type: category}\n"
	for i := range 1 + rng.IntN(2) {
		family := lsh.Families()[rng.IntN(4)]
		options := fmt.Sprintf("similarity: %v, functions: %d, seed: %d", family, 1+rng.IntN(40), rng.IntN(3))
		if rng.IntN(2) == 0 && (family == lsh.L2 || family == lsh.L1) {
			options += fmt.Sprintf(", reach: %d", rng.IntN(4))
		}
		if rng.IntN(2) == 0 && family != lsh.Cosine {
			options += fmt.Sprintf(", width: %g, buckets: %d", .5+4*rng.Float64(), 2+rng.IntN(50))
		}
		options += []string{"", ", keep: none", ", keep: f32, store: true", ", keep: none, store: true"}[rng.IntN(4)]
		m.names = append(m.names, fmt.Sprintf("v%d", i))
		m.dims = append(m.dims, 1+rng.IntN(20))
		text += fmt.Sprintf("- {name: v%d, type: vector, %s}\n", i, options)
	}
	s := parseSchema(t, text)
	objects := 1 + rng.IntN(200)
	records := make([]schema.Record, objects)
	m.vectors = make([][][]float32, len(m.names))
	for id := range records {
		m.tags = append(m.tags, string(rune('a'+rng.IntN(3))))
		records[id].Cells = []schema.Cell{{Values: []string{m.tags[id]}}}
		for c := range m.names {
			var x []float32
			if id == 0 || rng.IntN(8) > 0 {
				x = m.vector(c)
			}
			m.vectors[c] = append(m.vectors[c], x)
			cell := schema.Cell{}
			if x != nil {
				cell = vectorCell(rng, x)
			}
			records[id].Cells = append(records[id].Cells, cell)
		}
	}
	asked := s.Clone()
	m.x, m.queries = learn(t, s, records)
	if err := m.x.Validate(); err != nil {
		t.Fatal(err)
	}
	for c := range m.names {
		p, err := lsh.Decode(m.x.Schema().Columns[1+c].Learned)
		if err != nil {
			t.Fatal(err)
		}
		f, err := lsh.New(p)
		if given := &asked.Columns[1+c]; err != nil || p.Dim != m.dims[c] || p.Seed != given.Seed || p.Functions != given.Functions ||
			given.Width > 0 && (p.Width != given.Width || p.Buckets != given.Buckets) || given.Reach != nil && p.Reach != *given.Reach {
			t.Fatalf("%+v: %v", p, err)
		}
		m.functions = append(m.functions, f)
	}
	m.kept()
	m.ask(s)
}

func (m *vectorModel) vector(c int) []float32 {
	x := make([]float32, m.dims[c])
	for i := range x {
		x[i] = float32(m.rng.NormFloat64())
	}
	return x
}

// kept checks what the index keeps.
func (m *vectorModel) kept() {
	for c, name := range m.names {
		spec := &m.x.Schema().Columns[1+c]
		for id, want := range m.vectors[c] {
			if spec.Keep == "none" {
				break
			}
			if got, _ := m.x.Forward().Column(name).Vector(uint32(id)); !slices.Equal(got, want) {
				m.t.Fatalf("object %d has %v in column %s, want %v", id, got, name, want)
			}
		}
	}
}

// agree counts the functions on which a query and an object agree, by the definition.
func (m *vectorModel) agree(c int, query, object []float32) (n uint32) {
	if object == nil {
		return 0
	}
	f := m.functions[c]
	p := f.Parameters()
	asked, own := make([]uint32, p.Functions*p.Asked()), make([]uint32, p.Functions)
	if err := cmp.Or(f.HashQueries(asked, query, 1), f.Hash(own, object, 1)); err != nil {
		m.t.Fatal(err)
	}
	for i, keyword := range own {
		for _, q := range asked[i*p.Asked() : (i+1)*p.Asked()] {
			if lo, hi := p.Span(q); lo <= keyword && keyword < hi {
				n++
				break
			}
		}
	}
	return n
}

// ask asks random queries, together.
func (m *vectorModel) ask(s *schema.Schema) {
	type asked struct {
		request index.Request
		counts  []uint32
		columns [][]uint32 // counts by vector column, without weights
	}
	rng := m.rng
	all := make([]*asked, 12)
	var requests []*index.Request
	for i := range all {
		a := &asked{counts: make([]uint32, len(m.tags)), columns: make([][]uint32, len(m.names))}
		all[i] = a
		for c, name := range m.names {
			x := m.vector(c)
			if own := m.vectors[c][rng.IntN(len(m.tags))]; rng.IntN(2) == 0 && own != nil {
				x = own
			}
			weight, columnWeight := 1+rng.Uint32N(3), 1+rng.Uint32N(3)
			if rng.IntN(2) == 0 {
				a.request.Weights = append(a.request.Weights, index.ColumnWeight{Column: name, Weight: columnWeight})
			} else {
				columnWeight = 1
			}
			if len(m.names) == 1 && rng.IntN(2) == 0 {
				a.request.Vector, weight = x, 1
			} else {
				condition := vectorCondition(rng, name, x)
				condition.Weight = weight
				a.request.Conditions = append(a.request.Conditions, condition)
			}
			a.columns[c] = make([]uint32, len(m.tags))
			for id := range m.tags {
				a.columns[c][id] = m.agree(c, x, m.vectors[c][id])
				a.counts[id] += a.columns[c][id] * weight * columnWeight
			}
		}
		if rng.IntN(2) == 0 {
			tag := column.StringValue("a")
			a.request.Conditions = append(a.request.Conditions, column.Condition{Attr: "tag", Value: &tag})
			for id, own := range m.tags {
				if own == "a" {
					a.counts[id]++
				}
			}
		}
		if rng.IntN(3) > 0 {
			requests = append(requests, &a.request)
		}
	}
	m.queries.Prepare(requests, 1+rng.IntN(2))
	plans := make([]gpuexec.Plan, len(all))
	for i, a := range all {
		query := new(postings.MatchQuery)
		plan, err := m.queries.Plan(query, &a.request)
		if err != nil {
			m.t.Fatal(err)
		}
		plans[i] = gpuexec.Plan{Family: plan.Family, Query: plan.Query, K: 1 + rng.IntN(2*len(m.tags))}
	}
	for i, answer := range search(m.t, m.x, plans) {
		var want []gpuexec.Hit
		for id, count := range all[i].counts {
			if count > 0 {
				want = append(want, gpuexec.Hit{ID: uint32(id), Count: count})
			}
		}
		slices.SortStableFunc(want, func(a, b gpuexec.Hit) int { return cmp.Compare(b.Count, a.Count) })
		want = want[:min(len(want), plans[i].K)]
		if !slices.Equal(answer.Hits, want) {
			m.t.Fatalf("query %d of %+v: %v, want %v", i, s.Columns, answer.Hits, want)
		}
	}
}

// What is at fault says so: in cells, in queries, in schemas.
// Hash functions are not as wide or as narrow as vectors can lie apart: such are refused, in place of being found by nothing.
func TestVectorsToBeScaled(t *testing.T) {
	rng := seeded.Rand(t)
	for _, similarity := range []string{"l2", "l1", "laplacian"} {
		for _, n := range []int{3, 500} { // too few to choose by, and enough
			for _, scale := range []float64{1e37, 1e-40} {
				records := make([]schema.Record, n)
				for i := range records {
					x := []float32{float32(scale * rng.Float64()), float32(scale * rng.Float64()), float32(scale * rng.Float64())}
					records[i].Cells = []schema.Cell{{Vector: x}}
				}
				s := parseSchema(t, "name: a\ncolumns:\n- {name: v, type: vector, similarity: "+similarity+"}")
				if _, err := index.Builtin().Learn(s, source(records), nil); err == nil || !strings.Contains(err.Error(), "scale the vectors") {
					t.Errorf("%s: %d vectors near %g: %v", similarity, n, scale, err)
				}
			}
		}
	}
}

func TestVectorFaults(t *testing.T) {
	s := parseSchema(t, "name: a\ncolumns:\n- {name: v, type: vector, dims: 3, keep: u8, functions: 4}\n- {name: t, type: category}")
	if _, err := index.NewObjects(s, index.BuilderOptions{}); err == nil || !strings.Contains(err.Error(), `column "v": something of it has to be learned`) {
		t.Errorf("unlearned: %v", err)
	}
	open := parseSchema(t, "name: a\nkind: vectors")
	broken := errors.New("the source is broken")
	if _, err := index.Builtin().Learn(open, func(*schema.Record) error { return broken }, nil); !errors.Is(err, broken) {
		t.Errorf("a source that fails: %v", err)
	}
	if _, err := index.Builtin().Learn(open, source([]schema.Record{{Cells: make([]schema.Cell, 1)}}), nil); err == nil || !strings.Contains(err.Error(), "give dims") {
		t.Errorf("no vector: %v", err)
	}
	x, q := learn(t, s, []schema.Record{{Cells: []schema.Cell{{Values: []string{"1 2 3"}}, {}}}, {Cells: []schema.Cell{{}, {Values: []string{"x"}}}}})
	again := x.Schema().Clone()
	if next, err := index.Builtin().Learn(again, nil, nil); err != nil || next != nil || !reflect.DeepEqual(again, x.Schema()) {
		t.Errorf("what was learned is learned again: %v", err)
	}
	b := newBuilder(t, again)
	for text, want := range map[string]string{
		"1,2": "has 2 elements, and vectors of the column have 3", "1 2 x": `element 2 is "x", which is no number`, "1 NaN 2": "element 1 is not a number (NaN)",
		"1 1e39 2": "element 1 is infinite, or larger", "1 2 256": "integers from 0 to 255", "1 .5 2": "element 1 is 0.5, and elements that are stored as u8",
	} {
		err := b.objects.Add(&schema.Record{Line: 7, Cells: []schema.Cell{{Values: []string{text}}, {}}})
		if err == nil || !strings.Contains(err.Error(), "line 7: column v: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	changed := x.Schema().Clone()
	changed.Columns[0].Width *= 2
	if err := changed.Check(index.Builtin().CheckColumn); err == nil || !strings.Contains(err.Error(), "learned does not fit the other fields") {
		t.Errorf("changed after learning: %v", err)
	}
	var tree value.Builder
	nested, _ := tree.Array().Float(1).String("x").Float(2).End().Tree()
	one := column.NumberValue(1)
	for want, request := range map[string]index.Request{
		"has 2 elements, and vectors of the column have 3": {Vector: []float32{1, 2}},
		"element 0 is not a number":                        {Vector: []float32{float32(math.NaN()), 1, 2}},
		"element 1 is infinite":                            {Conditions: []column.Condition{{Attr: "v", Vector: []float32{1, float32(math.Inf(1)), 2}}}},
		"sums of hash functions overflow":                  {Vector: []float32{3e38, 3e38, 3e38}},
		"element 1 is a string":                            {Conditions: []column.Condition{{Attr: "v", Other: nested}}},
		"takes a vector":                                   {Conditions: []column.Condition{{Attr: "v", Value: &one}}},
		"filter and exclude take no conditions on columns": {Filter: []column.Condition{{Attr: "v", Vector: []float32{1, 2, 3}}}},
	} {
		q.Prepare([]*index.Request{&request}, 1)
		if _, err := q.Plan(new(postings.MatchQuery), &request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	missing, _ := new(value.Builder).Map().Name("missing").Bool(true).End().Tree()
	query := new(postings.MatchQuery)
	if _, err := q.Plan(query, &index.Request{Filter: []column.Condition{{Attr: "v", Other: missing}}}); err != nil {
		t.Fatal(err)
	}
	if hits := search(t, x, []gpuexec.Plan{{Family: postings.FamilyName, Query: query, K: 5}})[0].Hits; len(hits) != 1 || hits[0].ID != 1 {
		t.Errorf("without a vector: %v", hits)
	}
}
