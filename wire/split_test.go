package wire

import (
	"errors"
	"math/rand/v2"
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
		parts := SplitAnswer(ct, &a, maxBody)
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
				*p.d = time.Duration(rand.Int64N(1<<53)>>rand.IntN(53)) * time.Microsecond
			}
		}
		for _, p := range SplitAnswer(ct, &a, maxBody) {
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
		parts := SplitAnswer(ct, &a, 1000)
		got, err := DecodeResult(ct, parts[0].Body)
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
			parts := SplitAnswer(ct, &a, 1000)
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
		for _, body := range [][]byte{AppendAnswer(nil, ct, &a), SplitAnswer(ct, &a, 1<<20)[0].Body} {
			if got, err := DecodeAnswer(ct, body); err != nil || !got.Batch {
				t.Errorf("%v: got %+v, %v", ct, got, err)
			}
		}
	}
}
