package wire

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// asTable is the message of a batch as it is decoded from a table, and whether there is one.
func asTable(ct ContentType, queries []Query, limits Limits) (m *Message, body []byte, ok bool, err error) {
	body, ok = AppendTable(nil, ct, queries)
	if ok {
		m, err = DecodeMessage(ct, body, limits)
	}
	return m, body, ok, err
}

// checkTable checks that queries decode from a table to what they decode to from a list, if they have one shape, as a whole and in parts.
func checkTable(t testing.TB, ct ContentType, queries []Query) (ok bool) {
	t.Helper()
	limits := Limits{}
	got, body, ok, err := asTable(ct, queries, limits)
	if !ok {
		return false
	}
	list := AppendQueries(nil, ct, queries)
	want, wantErr := DecodeMessage(ct, list, limits)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%v: as a table\n%q\nthey are\n%+v %v, as a list\n%q\n%+v %v", ct, body, got, err, list, want, wantErr)
	}
	return true
}

// alike makes queries of one shape, nearly always.
func (r random) alike(n int) []Query {
	like := r.query()
	for l := range conditionLists {
		for i := range *like.conditions(l) {
			if c := &(*like.conditions(l))[i]; c.Other != nil || c.In != nil && r.IntN(3) > 0 {
				*c = Condition{Attr: c.Attr, Weight: c.Weight, Value: r.value(3)}
			}
		}
	}
	queries := make([]Query, n)
	constant := r.maybe()
	for at := range queries {
		q := like
		if r.maybe() {
			q.ID = r.str()
		}
		if q.K > 0 && r.IntN(3) == 0 {
			q.K = 1 + r.IntN(q.Candidates)
		}
		for l := range conditionLists {
			list := q.conditions(l)
			*list = slices.Clone(*list)
			for i := range *list {
				c := &(*list)[i]
				if constant && i < len(*list)/2 {
					continue
				}
				for field := valueField; field <= maxField; field++ {
					switch v := c.scalar(field); {
					case v.Kind == NumberValue && !c.Bucket && c.Max.IsZero():
						v.Number = r.float()
					case v.Kind == StringValue:
						v.String = r.str()
					}
				}
			}
		}
		if q.Text != "" {
			q.Text = "y" + r.str()[:0] + fmt.Sprint(r.IntN(9))
		}
		if q.Vector = slices.Clone(q.Vector); q.Vector != nil {
			q.Vector[0] = float32(r.IntN(300))
		}
		if q.Point != nil {
			q.Point = &Point{Lat: r.Float64(), Lon: float64(r.IntN(180))}
		}
		if q.HasRadius && r.maybe() {
			q.Radius = float64(r.IntN(1000)) / 4
		}
		queries[at] = q
	}
	return queries
}

// Queries of one shape are the same from a table as from a list, in either codec.
func TestTablesAreLists(t *testing.T) {
	r := newRandom(t)
	tables, rounds := 0, 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		queries := r.alike(1 + r.IntN(6))
		for _, ct := range []ContentType{JSON, MessagePack} {
			if checkTable(t, ct, queries) {
				tables++
			}
			body, ok := AppendTable(nil, ct, queries)
			if !ok {
				continue
			}
			var d Decoder
			m, err := DecodeMessage(ct, body, Limits{})
			for range 2 { // the second time in memory that is used again
				if !checkBatch(t, &d, ct, body, Limits{}, m, err) {
					t.Fatalf("%q is no batch", body)
				}
				if again, fault := decodedWhole(&d, ct, body, Limits{}); !reflect.DeepEqual(again, m) || !reflect.DeepEqual(fault, err) {
					t.Fatalf("%q is %+v %v, not %+v %v", body, again, fault, m, err)
				}
			}
		}
	}
	if tables < rounds {
		t.Errorf("of %d batches %d are tables", 2*rounds, tables)
	}
}
