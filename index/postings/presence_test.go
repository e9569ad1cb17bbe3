package postings

import (
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestPresenceParts: each object is in one part, the one in which just what holds of it is added.
func TestPresenceParts(t *testing.T) {
	rng := seeded.Rand(t)
	for range 500 {
		q := &MatchQuery{Total: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			q.StartItem(0, 1)
		}
		if rng.IntN(2) == 0 {
			q.Filter = &filter.Filter{}
			q.Filter.StartGroup(rng.IntN(2) == 0)
			q.Filter.StartClause(rng.Uint32N(3))
			q.Filter.AddSpan(0, 1+rng.Uint32N(4))
		}
		for range 1 + rng.IntN(filter.MaxPresences) {
			q.Presences = append(q.Presences, filter.Presence{Attr: rng.Uint32N(3), Keywords: 4, Weight: 1 + rng.Uint32N(9), Missing: rng.IntN(2) == 0})
		}
		var object [3][]uint32
		for a := range object {
			for kw := range uint32(4) {
				if rng.IntN(5) == 0 {
					object[a] = append(object[a], kw)
				}
			}
		}
		passes := func(f *filter.Filter) bool {
			return f == nil || naive.Passes(f, func(attr uint32) []uint32 { return object[attr] }, nil)
		}
		want := uint32(0)
		for _, p := range q.Presences {
			if (len(object[p.Attr]) == 0) == p.Missing {
				want += p.Weight
			}
		}
		in := 0
		for i := range q.Parts() {
			counted, all, add := q.Part(i)
			rest := all.(*MatchQuery)
			total := rest.Total
			if counted != nil {
				c := counted.(*MatchQuery)
				if !slices.Equal(c.Items, q.Items) || !c.Filter.Equal(rest.Filter) || len(c.Presences) > 0 || total {
					t.Fatalf("part %d of %+v: %+v and %+v", i, q, c, rest)
				}
				total = c.Total
			}
			if (counted != nil) != (len(q.Items) > 0) || total != q.Total || len(rest.Items)+len(rest.Presences) > 0 {
				t.Fatalf("part %d of %+v: %+v and %+v", i, q, counted, rest)
			}
			if passes(rest.Filter) {
				if in++; add != want {
					t.Fatalf("part %d of %+v adds %d for %v, want %d", i, q, add, object, want)
				}
			}
		}
		if (in == 1) != passes(q.Filter) || in > 1 {
			t.Fatalf("%v is in %d parts of %+v", object, in, q)
		}
	}
	if (&MatchQuery{Presences: nil}).Parts() != 0 {
		t.Error("a query without presences has parts")
	}
}

func TestCheckPresences(t *testing.T) {
	x := &Lists{attributes: []Attribute{{Keywords: 4}}}
	good := filter.Presence{Keywords: 4, Weight: 3}
	if bound, err := x.CheckQuery(&MatchQuery{Presences: filter.Presences{good, good}}, nil); err != nil || bound != 6 {
		t.Errorf("bound %d, %v", bound, err)
	}
	for _, bad := range []filter.Presences{
		{good, good, good, good}, {{Attr: 1, Keywords: 4, Weight: 1}}, {{Keywords: 5, Weight: 1}}, {{Keywords: 4}}, {{Keywords: 4, Weight: MaxWeight + 1}},
	} {
		if _, err := x.CheckQuery(&MatchQuery{Presences: bad}, nil); err == nil || !strings.Contains(err.Error(), "presence") && !strings.Contains(err.Error(), "missing") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
