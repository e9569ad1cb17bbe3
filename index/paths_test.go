package index_test

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/store"
)

// pathAnswers are what all access paths answer to some queries, each object of a column being one.
func pathAnswers(t *testing.T, x *index.Index) (answers [][]metric.Hit) {
	t.Helper()
	columns := x.Distances()
	for i := range columns.Len() {
		c := columns.At(i)
		if c.Of != distance.Vectors {
			continue
		}
		all, err := c.Space()
		if err != nil {
			t.Fatal(err)
		}
		space, _, err := c.Dense(all)
		if err != nil {
			t.Fatal(err)
		}
		vector := make([]float64, c.Dims)
		for _, method := range c.Methods()[1:] {
			searcher, err := c.Path(method).Bind(space)
			if err != nil {
				t.Fatal(err)
			}
			for id := range space.Len() {
				space.(*metric.Vectors).Coordinates(id, vector)
				q := &distance.Query{Column: c, Method: method, K: 5, Most: math.Inf(1)}
				for _, e := range vector {
					q.Vector = append(q.Vector, float32(e))
				}
				search, err := searcher.Begin(q, c.Objects)
				if err != nil {
					t.Fatal(err)
				}
				search.Run(nil, metric.Until(t.Context()))
				answers = append(answers, search.End(new(distance.Answer), nil))
			}
		}
	}
	return answers
}

// Vectors in the order of an access path are an addition: a file without them answers the same. What they say is checked.
func TestRowsOfPaths(t *testing.T) {
	le := binary.LittleEndian
	// entries calls f with each entry of the section table that is of rows.
	entries := func(data []byte, f func(e, section []byte)) (n int) {
		for i := range le.Uint32(data[44:]) {
			e := data[headBytes+i*tableEntry:][:tableEntry]
			if kind := store.SectionKind(le.Uint16(e)); kind == distance.SectionCellRows || kind == distance.SectionTreeRows {
				f(e, data[le.Uint64(e[16:]):][:le.Uint64(e[24:])])
				n++
			}
		}
		reseal(data)
		return n
	}
	sound := distancesIndex(t)
	x, err := index.OpenBytes(sound)
	if err != nil {
		t.Fatal(err)
	}
	want := pathAnswers(t, x)
	before := slices.Clone(sound)
	if n := entries(before, func(e, _ []byte) { le.PutUint16(e, 9999) }); n != 2 {
		t.Fatalf("%d sections of rows, of cells and a tree", n)
	}
	old, err := index.OpenBytes(before)
	if err != nil {
		t.Fatalf("a file without rows is refused: %v", err)
	}
	if got := pathAnswers(t, old); !reflect.DeepEqual(got, want) {
		t.Error("a file without rows answers otherwise")
	}
	short := slices.Clone(sound)
	entries(short, func(e, _ []byte) { le.PutUint64(e[24:], le.Uint64(e[24:])-6) })
	var damaged *store.CorruptError
	if _, err := index.OpenBytes(short); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "rows of") {
		t.Errorf("rows that are too few are opened: %v", err)
	}
	other := slices.Clone(sound)
	entries(other, func(_, section []byte) { section[1] ^= 4 })
	if x, err = index.OpenBytes(other); err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(pathAnswers(t, x), want) {
		t.Error("rows are not read")
	}
	if err := x.Validate(); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "is not the vector of object") {
		t.Errorf("wrong rows are not found: %v", err)
	}
}

// auto_for is the index's: it is kept in the file, and belongs to columns that have a choice.
func TestAutoFor(t *testing.T) {
	for text, want := range map[string]string{
		"{name: v, type: vector, dims: 2, index: [cells], auto_for: gpu}":        "",
		"{name: v, type: vector, dims: 2, index: [cells, tree], auto_for: cpu}":  "",
		"{name: s, type: string, index: [permutation], auto_for: gpu}":           "",
		"{name: p, type: point, index: [permutation], auto_for: gpu}":            "",
		"{name: v, type: vector, dims: 2, index: [cells], auto_for: h200}":       `auto_for "h200" is unknown: use cpu or gpu`,
		"{name: v, type: vector, dims: 2, index: [tree], auto_for: gpu}":         "index names neither cells nor permutation",
		"{name: n, type: number, auto_for: gpu}":                                 "auto_for belongs to",
		"{name: v, type: vector, dims: 2, functions: 4, auto_for: gpu, seed: 1}": "index names neither cells nor permutation",
	} {
		s, err := index.Builtin().ParseSchema([]byte("{name: n, columns: [" + text + "]}"))
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		objects, err := index.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		file, err := objects.Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, err := index.OpenBytes(file)
		if err != nil {
			t.Fatal(err)
		}
		if c := x.Distances().At(0); c.ForGPU != strings.Contains(text, "gpu") {
			t.Errorf("%s: for a GPU %v", text, c.ForGPU)
		}
	}
}
