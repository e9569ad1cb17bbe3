package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

func part(first int, ids ...string) *wire.Answer {
	a := &wire.Answer{Batch: true, First: first}
	for _, id := range ids {
		a.Results = append(a.Results, wire.Result{ID: id})
	}
	return a
}

// Parts may come in any order, twice, and overlap when two runs cut the answer at different places.
func TestCollector(t *testing.T) {
	r := seeded.Rand(t)
	for range 500 {
		n := 1 + r.IntN(30)
		var parts []*wire.Answer
		for run := range 1 + r.IntN(2) {
			for first := 0; first < n; {
				size := 1 + r.IntN(n-first)
				var ids []string
				for i := range size {
					ids = append(ids, fmt.Sprint(first+i))
				}
				parts = append(parts, part(first, ids...))
				first += size
				if run > 0 && r.IntN(4) == 0 {
					break // the second run dies
				}
			}
		}
		parts = append(parts, parts[r.IntN(len(parts))], part(n, "beyond"))
		r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		c := newCollector(n, true)
		covered := map[int]bool{}
		for _, p := range parts {
			ct := wire.ContentType(r.IntN(2))
			done, err := c.add(nats.Header{wire.HeaderContentType: {ct.String()}}, wire.AppendAnswer(nil, ct, p))
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Results {
				if p.First+i < n {
					covered[p.First+i] = true
				}
			}
			if done != (len(covered) == n) {
				t.Fatalf("done %v with %d of %d results", done, len(covered), n)
			}
		}
		for i, res := range c.results {
			if res.ID != fmt.Sprint(i) {
				t.Fatalf("result %d is %q", i, res.ID)
			}
		}
	}
}

func TestCollectorErrors(t *testing.T) {
	refused := &wire.Answer{Results: []wire.Result{{Err: wire.Errorf(wire.TooLarge, "x")}}}
	if _, err := newCollector(2, true).add(nil, wire.AppendAnswer(nil, wire.JSON, refused)); !errors.Is(err, wire.TooLarge) {
		t.Errorf("a batch refused as a whole: %v", err)
	}
	if _, err := newCollector(2, true).add(nil, wire.AppendResult(nil, wire.JSON, &wire.Result{})); err == nil {
		t.Error("a batch answered by one result")
	}
	if _, err := newCollector(1, false).add(nil, []byte("hello")); err == nil {
		t.Error("no answer at all")
	}
	if _, err := newCollector(1, false).add(nats.Header{wire.HeaderContentType: {"text/plain"}}, []byte("{}")); !errors.Is(err, wire.Unsupported) {
		t.Errorf("an unknown content type: %v", err)
	}
}

func TestWithTimeoutLeavesTheCallersQueries(t *testing.T) {
	queries := []Query{{Text: "a"}, {Text: "b", TimeoutMS: 7}}
	got := withTimeout(queries, 100)
	if got[0].TimeoutMS != 100 || got[1].TimeoutMS != 7 || queries[0].TimeoutMS != 0 {
		t.Errorf("got %+v, caller's %+v", got, queries)
	}
}

func TestValueOf(t *testing.T) {
	type word string
	type flag bool
	for _, tt := range []struct{ got, want Value }{
		{ValueOf(3), wire.Number(3)}, {ValueOf(int8(-3)), wire.Number(-3)}, {ValueOf(uint64(7)), wire.Number(7)},
		{ValueOf(float32(0.5)), wire.Number(0.5)}, {ValueOf(2.5), wire.Number(2.5)}, {ValueOf("x"), wire.String("x")},
		{ValueOf(word("x")), wire.String("x")}, {ValueOf(true), wire.Bool(true)}, {ValueOf(flag(false)), wire.Bool(false)},
		{ValueOf(time.Second), wire.Number(1e9)},
	} {
		if tt.got != tt.want {
			t.Errorf("got %+v, want %+v", tt.got, tt.want)
		}
	}
}

func TestCauseNamesTheReason(t *testing.T) {
	ctx, end := context.WithCancelCause(context.Background())
	end(ErrClosed)
	if err := cause(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	<-ctx.Done()
	if err := cause(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

// Parts of one result come in any order, twice, cut in two ways, and beside those of another version, of which some is missing.
func TestCollectorJoinsParts(t *testing.T) {
	seed := seeded.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		batch := r.IntN(2) == 0
		n, all := 1, 2+r.IntN(60)
		if batch {
			n = 1 + r.IntN(3)
		}
		query := r.IntN(n)
		var messages [][]byte
		part := func(version string, first, end int) {
			res := wire.Result{ID: "q", Version: version, FirstHit: first, AllHits: all, MCK: 7, HitsForm: wire.HitsColumns}
			if first == 0 {
				res.Warnings = []string{"w"}
			}
			for i := first; i < end; i++ {
				res.Hits = append(res.Hits, wire.Hit{ID: uint32(i + len(version)), Count: 1})
			}
			messages = append(messages, wire.AppendAnswer(nil, wire.JSON, &wire.Answer{Batch: batch, First: query, Results: []wire.Result{res}}))
		}
		firstCut := 0
		for range 2 {
			firstCut = len(messages)
			for first := 0; first < all; {
				end := min(all, first+1+r.IntN(20))
				part("new", first, end)
				first = end
			}
		}
		without := newCollector(n, batch)
		for i, m := range messages[:firstCut] {
			if i == firstCut/2 {
				continue
			}
			if _, err := without.add(nil, m); err != nil || without.have[query] {
				t.Fatalf("seed %d: %v, complete without part %d", seed, err, firstCut/2)
			}
		}
		part("older", 0, 1+r.IntN(all-1))
		for i := range n {
			if i != query {
				messages = append(messages, wire.AppendAnswer(nil, wire.JSON, &wire.Answer{Batch: true, First: i, Results: []wire.Result{{Hits: []wire.Hit{{ID: 9}}}}}))
			}
		}
		r.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
		c := newCollector(n, batch)
		done := false
		for _, m := range messages {
			var err error
			if done, err = c.add(nil, m); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		got := c.results[query]
		if !done || len(got.Hits) != all || got.FirstHit != 0 || got.AllHits != 0 || got.Version != "new" || got.MCK != 7 || len(got.Warnings) != 1 {
			t.Fatalf("seed %d: %v %+v", seed, done, got)
		}
		for i, h := range got.Hits {
			if h.ID != uint32(i+3) {
				t.Fatalf("seed %d: hit %d is %d", seed, i, h.ID)
			}
		}
	}
	c := newCollector(1, false)
	for _, res := range []wire.Result{{Version: "a", AllHits: 3, Hits: []wire.Hit{{ID: 1}}}, {Version: "a", Err: wire.Errorf(wire.DeadlineExceeded, "x")}} {
		done, err := c.add(nil, wire.AppendResult(nil, wire.JSON, &res))
		if err != nil || done != (res.Err != nil) {
			t.Fatalf("%v %v", done, err)
		}
	}
	if c.results[0].Err == nil {
		t.Error("the error after some parts is not the result")
	}
}
