package plan

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestBoundable: what the bound can count.
func TestBoundable(t *testing.T) {
	c := &Codes{ColumnOf: []uint32{0, 1, noColumn, nothingThere, 2}, wide: []bool{false, true, true}}
	type item struct{ attribute, weight, lo, hi uint32 }
	for _, test := range []struct {
		items []item
		ok    bool
		dense int
	}{
		{nil, true, 0},
		{[]item{{0, 1, 3, 4}, {4, 1, 7, 8}}, true, 1},
		{[]item{{4, 1, 7, 8}, {3, 5, 1, 2}, {1, 1, 0, 100}}, true, 33},
		{[]item{{0, 1, 0, 30}}, true, 0},
		{[]item{{0, 2, 3, 4}}, false, 0},
		{[]item{{2, 1, 3, 4}}, false, 0},
		{[]item{{1, 1, 3, 4}, {0, 1, 3, 4}, {1, 1, 5, 6}}, false, 0},
	} {
		var q postings.MatchQuery
		for _, i := range test.items {
			q.StartItem(i.attribute, i.weight)
			q.AddSpan(i.lo, i.hi)
		}
		q.StartItem(2, 7) // without spans
		if ok, dense := c.boundable(&q); ok != test.ok || dense != test.dense {
			t.Errorf("%v: %v with %d bits", test.items, ok, dense)
		}
	}
	var q postings.MatchQuery
	q.StartItem(0, 1)
	q.AddSpan(0, 1)
	q.AddSpan(4, 5)
	if ok, _ := c.boundable(&q); ok {
		t.Error("a set is boundable")
	}
}

// TestBoundWaves: waves cover the objects once, in order, of whole tiles, none larger than all before it or than the most.
func TestBoundWaves(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		p := profile.Waves{BoundFirst: abi.BoundTile * (1 + rng.IntN(20))}
		p.BoundMost = p.BoundFirst + abi.BoundTile*rng.IntN(300)
		objects, next := postings.GroupObjects*rng.IntN(300), 0
		for first, count := range p.Bound(objects) {
			if first != next || count < 1 || count%abi.BoundTile != 0 || count > p.BoundMost || first > 0 && count > first {
				t.Fatalf("%+v, %d objects: a wave of %d at %d", p, objects, count, first)
			}
			next = first + count
		}
		if next != objects {
			t.Fatalf("%+v: waves end at %d of %d", p, next, objects)
		}
	}
}

// TestCodesLayout: codes are there where they pay and what they hold fits a byte.
func TestCodesLayout(t *testing.T) {
	rng := seeded.Rand(t)
	for range 20 {
		w := enginetest.NewCodedWorld(t, rng, 1+rng.IntN(2000), 1+rng.IntN(100))
		layout, err := newResident(listsOf(w.Index), run.AllTiles(w.Index), Limits{Memory: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		most := 1 + rng.IntN(MaxColumns)
		least := profile.Of("").Bound.Columns
		c := newCodes(layout, most, least)
		columns := 0
		for a := range w.Vocabulary {
			if s := layout.Planes; s != nil && s.Has(a) && s.Attributes[a].Codes <= abi.MaxCodes {
				columns++
			}
		}
		columns = min(columns, most)
		if (c == nil) != (columns < least) {
			t.Fatalf("%d columns have codes: %v", columns, c != nil)
		}
		if c == nil {
			continue
		}
		row, steps := c.RowBytes(), c.Steps()
		if len(c.Columns) != columns || row < columns || row%abi.ChunkColumns != 0 || steps*abi.StepColumns < columns || steps%2 != 0 ||
			steps*abi.StepColumns > row || c.Objects < w.Objects || c.End != c.Rows+int64(c.Objects*row) {
			t.Errorf("%d columns of %d objects: %+v", columns, w.Objects, c)
		}
		for column, a := range c.Columns {
			if c.ColumnOf[a] != uint32(column) {
				t.Errorf("column %d is of attribute %d, which has column %d", column, a, c.ColumnOf[a])
			}
		}
		r := hostIndex(t, w.Index, Limits{Memory: 1 << 30})
		r.Codes = c
		for range 20 {
			plan := w.Plan(rng)
			bound, err := listsOf(w.Index).CheckQuery(plan.Query, nil)
			if err != nil {
				t.Fatal(err)
			}
			q := r.Plan(&run.Job{Query: enginetest.Query(&plan), K: plan.K, MinCount: 1, Bound: bound})
			if q.boundable && int(q.spans) > columns {
				t.Errorf("%d spans on %d columns", q.spans, columns)
			}
		}
		layout.Streamed = true
		if newCodes(layout, most, 1) != nil {
			t.Error("an index that is streamed has codes")
		}
	}
}
