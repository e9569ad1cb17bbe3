package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSplitAnswer(t *testing.T) {
	r := newRandom(t)
	for range 400 {
		a := Answer{Batch: true, Results: make([]Result, 1+r.IntN(60))}
		for i := range a.Results {
			a.Results[i] = r.result()
			a.Results[i].ID = "q"
			if a.Results[i].Err != nil {
				a.Results[i].Err.Message = "short"
			}
		}
		ct := ContentType(r.IntN(2))
		maxBody := 400 + r.IntN(20_000)
		parts := splitAnswer(ct, &a, maxBody)
		next := 0
		for _, p := range parts {
			if len(p.Body) > maxBody {
				t.Fatalf("a part of %d bytes, the limit is %d", len(p.Body), maxBody)
			}
			got, err := DecodeAnswer(ct, p.Body)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Batch || got.First != next || p.First != next || len(got.Results) != p.Count || p.Count == 0 {
				t.Fatalf("part %+v holds first %d, %d results; expected first %d", p.First, got.First, len(got.Results), next)
			}
			for i := range got.Results {
				want := a.Results[next+i]
				if reflect.DeepEqual(got.Results[i], want) {
					continue
				}
				alone := len(AppendAnswer(nil, ct, &Answer{Batch: true, First: next + i, Results: []Result{want}}))
				if !errors.Is(got.Results[i].Err, TooLarge) || got.Results[i].ID != want.ID || alone+200 < maxBody {
					t.Fatalf("result %d (%d bytes alone, limit %d): got %+v", next+i, alone, maxBody, got.Results[i])
				}
			}
			next += p.Count
		}
		if next != len(a.Results) {
			t.Fatalf("%d of %d results", next, len(a.Results))
		}
	}
}

// A second run of the same batch takes other times, and must be cut at the same places: its parts replace those of
// the first run one by one.
func TestSplitIgnoresTimes(t *testing.T) {
	r := newRandom(t)
	a := Answer{Batch: true, Results: make([]Result, 500)}
	for i := range a.Results {
		a.Results[i] = Result{Hits: make([]Hit, r.IntN(30))}
	}
	cuts := func(ct ContentType, maxBody int) (firsts []int) {
		for i := range a.Results {
			for _, p := range a.Results[i].Took.parts() {
				*p.d = time.Duration(r.Int64N(1<<53)>>r.IntN(53)) * time.Microsecond
			}
		}
		for _, p := range splitAnswer(ct, &a, maxBody) {
			firsts = append(firsts, p.First)
		}
		return firsts
	}
	for _, ct := range []ContentType{JSON, MessagePack} {
		want := cuts(ct, 5000)
		for range 50 {
			if got := cuts(ct, 5000); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: cut at %v, then at %v", ct, want, got)
			}
		}
	}
}

func TestSingleResultTooLarge(t *testing.T) {
	a := Answer{Results: []Result{{ID: "q", Index: "adult", Hits: []Hit{{Key: strings.Repeat("x", 5000)}}}}}
	for _, ct := range []ContentType{JSON, MessagePack} {
		parts := splitAnswer(ct, &a, 1000)
		got, err := decodeResult(ct, parts[0].Body)
		if err != nil || len(parts) != 1 || got.ID != "q" || got.Index != "adult" || !errors.Is(got.Err, TooLarge) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// Ids may be long; where one fills the message, the error goes without it.
func TestTooLargeByItsID(t *testing.T) {
	for _, batch := range []bool{false, true} {
		a := Answer{Batch: batch, Results: []Result{{ID: strings.Repeat("x", 5000), Err: Errorf(BadRequest, "x")}}}
		for _, ct := range []ContentType{JSON, MessagePack} {
			parts := splitAnswer(ct, &a, 1000)
			got, err := DecodeAnswer(ct, parts[0].Body)
			if err != nil || len(parts[0].Body) > 1000 || !errors.Is(got.Results[0].Err, TooLarge) {
				t.Errorf("got %+v, %v", got, err)
			}
		}
	}
}

// A batch of one query is answered as a batch.
func TestBatchOfOne(t *testing.T) {
	a := Answer{Batch: true, Results: []Result{{ID: "q", Hits: []Hit{}}}}
	for _, ct := range []ContentType{JSON, MessagePack} {
		for _, body := range [][]byte{AppendAnswer(nil, ct, &a), splitAnswer(ct, &a, 1<<20)[0].Body} {
			if got, err := DecodeAnswer(ct, body); err != nil || !got.Batch {
				t.Errorf("%v: got %+v, %v", ct, got, err)
			}
		}
	}
}

// What does not fit is not written: memory is bounded by the message, not by the result.
func TestSplitMemoryIsBounded(t *testing.T) {
	const payload, maxBody = 54_000, 1 << 20
	value := []byte(`{"t":"` + strings.Repeat("x", payload) + `"}`)
	huge := Result{ID: "q", Hits: make([]Hit, 2000)} // 108 MB
	for i := range huge.Hits {
		huge.Hits[i] = Hit{ID: uint32(i), Count: 1, Payload: value}
	}
	small := Result{ID: "s", Hits: []Hit{{ID: 1, Count: 1}}}
	for _, ct := range []ContentType{JSON, MessagePack} {
		for _, batch := range []bool{false, true} {
			r := Results{Batch: batch, Total: 1, At: func(i, _ int) *Result { return []*Result{&huge, &small}[i%2] }}
			if batch {
				r.Total = 5
			}
			for next := 0; next < r.Total; {
				part := AppendPart(nil, ct, r, Position{Query: next}, maxBody)
				if cap(part.Body) > 2*(maxBody+2*payload) {
					t.Errorf("%v: a body of %d bytes has room for %d, the limit is %d", ct, len(part.Body), cap(part.Body), maxBody)
				}
				got, err := DecodeAnswer(ct, part.Body)
				if err != nil || len(part.Body) > maxBody || len(got.Results) != part.Count {
					t.Fatalf("%v: %d bytes, %d results of %d: %v", ct, len(part.Body), len(got.Results), part.Count, err)
				}
				for i, res := range got.Results {
					if tooLarge := res.Err != nil && res.Err.Code == TooLarge; tooLarge != ((next+i)%2 == 0) {
						t.Errorf("%v: result %d is %+v", ct, next+i, res.Err)
					}
				}
				next += part.Count
			}
			if body, size, ok := AppendWhole(nil, ct, r, maxBody); ok || size > maxBody+2*payload || cap(body) > 2*(maxBody+2*payload) {
				t.Errorf("%v: as one message: %v, %d bytes written", ct, ok, size)
			}
		}
	}
}

// As one message an answer may be as large as the message, to the byte.
func TestAppendWhole(t *testing.T) {
	r := newRandom(t)
	for range 200 {
		a := Answer{Batch: r.IntN(3) > 0, Results: make([]Result, 1+r.IntN(20))}
		if !a.Batch {
			a.Results = a.Results[:1]
		}
		for i := range a.Results {
			a.Results[i] = r.result()
		}
		results := resultsOf(&a)
		ct := ContentType(r.IntN(2))
		body, size, ok := AppendWhole(nil, ct, results, 1<<30)
		got, err := DecodeAnswer(ct, body)
		if want, err2 := DecodeAnswer(ct, AppendAnswer(nil, ct, &a)); !ok || err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v %v %v: got %+v, want %+v", ok, err, err2, got, want)
		}
		if _, _, ok := AppendWhole(nil, ct, results, size); !ok {
			t.Errorf("%d bytes do not fit %d", size, size)
		}
		if _, _, ok := AppendWhole(nil, ct, results, size-1); ok {
			t.Errorf("%d bytes fit %d", size, size-1)
		}
	}
}

func TestRange(t *testing.T) {
	for _, r := range []Range{{0, 0, 1}, {36, 71, 100}, {0, 65_535, 65_536}} {
		if got, ok := ParseRange(r.String()); !ok || got != r {
			t.Errorf("%v is read as %v, %v", r, got, ok)
		}
	}
	for _, s := range []string{"", "1", "0-1", "1-0/2", "0-2/2", "-1-0/2", "0-0/", "a-b/c", "0-0/99999999999", "0/1-1"} {
		if r, ok := ParseRange(s); ok {
			t.Errorf("%q is read as %v", s, r)
		}
	}
}

// A result that is too large for a message comes in parts of its hits, to those who take that, whatever cuts there are: of the answer, or of what At has at a time.
func TestResultInParts(t *testing.T) {
	r := newRandom(t)
	inParts := 0
	for range 300 {
		a := Answer{Batch: r.maybe(), Results: make([]Result, 1+r.IntN(4))}
		if !a.Batch {
			a.Results = a.Results[:1]
		}
		for i := range a.Results {
			a.Results[i] = r.result()
			a.Results[i].ID, a.Results[i].HitsForm = "q", HitsForm(r.IntN(3))
			for h := range a.Results[i].Hits {
				if key := &a.Results[i].Hits[h].Key; len(*key) > 500 {
					*key = "k"
				}
				if d := a.Results[i].Hits[h].Detail; d != nil {
					d.Matched, d.Columns = []string{"a"}, d.Columns[:0]
				}
			}
			a.Results[i].Warnings, a.Results[i].Method = nil, ""
			if a.Results[i].Err != nil {
				a.Results[i].Err.Message = "short"
			}
		}
		whole, window := resultsOf(&a), 1+r.IntN(50)
		results := Results{Batch: a.Batch, Parts: true, Total: whole.Total, At: func(i, from int) *Result {
			some := whole.At(i, from)
			if all := from + len(some.Hits); len(some.Hits) > window {
				some.FirstHit, some.AllHits, some.Hits = from, all, some.Hits[:window]
			}
			return some
		}}
		ct, maxBody := ContentType(r.IntN(2)), 1200+r.IntN(1500)
		got := make([]Result, len(a.Results))
		for _, p := range splitResults(ct, results, maxBody) {
			if len(p.Body) > maxBody {
				t.Fatalf("a part of %d bytes, the limit is %d", len(p.Body), maxBody)
			}
			part, err := DecodeAnswer(ct, p.Body)
			if err != nil || part.First != p.First && a.Batch || len(part.Results) != p.Count {
				t.Fatalf("%v: %+v is %+v", err, p, part)
			}
			first := part.Results[0]
			if all := p.Hits.Total; all > 0 {
				inParts++
				if p.Count != 1 || first.AllHits != all || first.FirstHit != p.Hits.First || len(first.Hits) != p.Hits.Last+1-p.Hits.First || (first.FirstHit == 0) != (first.Explain != nil) && a.Results[p.First].Explain != nil {
					t.Fatalf("a part with hits %v is %+v", p.Hits, first)
				}
			}
			for i, res := range part.Results {
				if to := &got[p.First+i]; res.FirstHit > 0 {
					if res.FirstHit != len(to.Hits) {
						t.Fatalf("hits from %d on follow %d", res.FirstHit, len(to.Hits))
					}
					to.Hits = append(to.Hits, res.Hits...)
				} else {
					res.AllHits = 0
					*to = res
				}
			}
		}
		want, err := DecodeAnswer(ct, AppendAnswer(nil, ct, &a))
		if err != nil || !reflect.DeepEqual(got, want.Results) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, want.Results)
		}
	}
	if inParts < 100 {
		t.Errorf("only %d parts of results", inParts)
	}
}

// What is one message has whole results.
func TestAppendWholeTakesNoParts(t *testing.T) {
	some := Result{Hits: []Hit{{ID: 1, Key: "1"}}, AllHits: 2}
	for _, batch := range []bool{false, true} {
		if body, _, ok := AppendWhole(nil, JSON, Results{Batch: batch, Parts: true, Total: 1, At: func(int, int) *Result { return &some }}, 1<<20); ok {
			t.Errorf("a part of a result is taken for the whole: %s", body)
		}
	}
}

// A hit that no message holds makes its result an error, after the parts before it.
func TestHitTooLargeForAPart(t *testing.T) {
	a := Answer{Results: []Result{{ID: "q", Index: "x", Hits: make([]Hit, 40)}}}
	for i := range a.Results[0].Hits {
		a.Results[0].Hits[i].Key = strings.Repeat("k", 100)
	}
	a.Results[0].Hits[30].Key = strings.Repeat("k", 5000)
	results := resultsOf(&a)
	results.Parts = true
	parts := splitResults(JSON, results, 1000)
	last, err := decodeResult(JSON, parts[len(parts)-1].Body)
	if err != nil || len(parts) < 4 || !errors.Is(last.Err, TooLarge) || last.ID != "q" || parts[0].Hits.Total != 40 || parts[0].TooLarge != 0 {
		t.Errorf("%d parts, the last is %+v, %v", len(parts), last, err)
	}
}

// splitAnswer encodes an answer as messages of at most maxBody bytes each.
func splitAnswer(ct ContentType, a *Answer, maxBody int) (parts []Part) {
	return splitResults(ct, resultsOf(a), maxBody)
}

func splitResults(ct ContentType, r Results, maxBody int) (parts []Part) {
	for next := (Position{}); next.Query < r.Total; {
		part := AppendPart(nil, ct, r, next, maxBody)
		next = part.Next()
		parts = append(parts, part)
	}
	return parts
}

// resultsOf makes results as the service does: without the hits that are out.
func resultsOf(a *Answer) Results {
	var some Result
	return Results{Batch: a.Batch, Total: len(a.Results), At: func(i, from int) *Result {
		some = a.Results[i]
		if from > 0 {
			some.FirstHit, some.AllHits, some.Hits = from, len(some.Hits), some.Hits[from:]
		}
		return &some
	}}
}
