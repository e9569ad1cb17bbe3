package nearest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	indexnearest "github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// flatPath takes vectors that are to be scanned, of an odd k, and answers by the flat definition: a device that is none.
type flatPath struct {
	m      *nearest.Matcher
	asked  *atomic.Int64
	fails  error
	closed *atomic.Int64
}

func (p *flatPath) Takes(b *nearest.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	return q.Column.Of == distance.Vectors && b.Method(job) == distance.Scan && q.K%2 == 1
}

func (p *flatPath) Match(_ context.Context, b *nearest.Batch, jobs []int, _ *gpuexec.Trace) (left []int, err error) {
	p.asked.Add(int64(len(jobs)))
	for i, job := range jobs {
		if i%5 == 4 {
			left = append(left, job)
			continue
		}
		q := b.Job(job).Query.(*distance.Query)
		space, present := p.m.Column(p.m.At(q.Column))
		pass, _ := b.Passing(job)
		asker, err := q.Asker(space)
		if err != nil {
			return nil, err
		}
		base, objects := p.m.Tiles().Base(), p.m.Objects()
		hits, within := flatscan.Nearest(asker, q.Column.Objects, q.Want(), func(id uint32) bool {
			return id >= base && id-base < objects && present.Has(id) && pass.Has(id-base)
		})
		b.Answer(job, hits, &distance.Answer{Method: distance.Scan, Exact: true, Counted: q.Total || q.K == 0, Within: within, Distances: uint64(objects)})
	}
	return left, p.fails
}

func (p *flatPath) Price(*distance.Query, string, int) time.Duration { return 0 }

func (p *flatPath) Cost(*gpuexec.Plan) int64 { return 1 << 30 }
func (p *flatPath) Residence() run.Residence { return run.Residence{DeviceBytes: 7, Form: "flat"} }
func (p *flatPath) Close() error             { p.closed.Add(1); return nil }

// withPath is a CPU engine on whose "device" flatPath answers.
func withPath(crew *run.Crew, asked, closed *atomic.Int64, fails error) *run.Engine {
	e := cpu.On(crew)
	e.Loaders[distance.FamilyName] = run.Loader{Load: func(_ context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
		m, err := nearest.Load(h, own)
		if err != nil {
			return nil, err
		}
		return New(m, &flatPath{m, asked, fails, closed}), nil
	}}
	return e
}

// plansOf are searches of all sorts: vectors, points and texts with and without filters, radius and total.
func plansOf(t *testing.T, rng *rand.Rand, w *enginetest.DistanceWorld, n int) []gpuexec.Plan {
	t.Helper()
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	plans := make([]gpuexec.Plan, n)
	for i := range plans {
		near := w.Random(rng)
		r := index.Request{Total: rng.IntN(2) == 0, Near: indexnearest.Near{K: 1 + rng.IntN(12), Method: "scan"}}
		switch rng.IntN(4) {
		case 0:
			r.Point = &indexnearest.Point{Lat: near.Point[0], Lon: near.Point[1]}
		case 1:
			r.Text = &near.Text
		default:
			r.Vector = near.Vector
		}
		if rng.IntN(2) == 0 {
			value := column.StringValue(enginetest.ClassName(rng.IntN(4)))
			r.Filter = []column.Condition{{Attr: "class", Value: &value}}
		}
		if radius := rng.Float64() * 3; rng.IntN(3) == 0 {
			r.Near.Radius = &radius
		}
		made, err := queries.Plan(new(postings.MatchQuery), &r)
		if err != nil {
			t.Fatal(err)
		}
		q := made.Query.(*distance.Query)
		plans[i] = gpuexec.Plan{Family: made.Family, Query: q, K: max(1, q.K)}
	}
	return plans
}

// TestMatcher: a path and the host's matcher share batches, on one device and on ranges of tiles, and answer as the host alone.
func TestMatcher(t *testing.T) {
	rng := seeded.Rand(t)
	for round, n := range []int{1, 300, 65_000} { // two tiles, so that there are two ranges
		if testing.Short() && n > 1000 {
			continue
		}
		w := enginetest.RandomDistanceWorld(t, rng, n, round == 1)
		plans := plansOf(t, rng, w, 60)
		want := make([]gpuexec.Answer, len(plans))
		if err := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: 2}), w.Index).Search(t.Context(), plans, want, nil); err != nil {
			t.Fatal(err)
		}
		var asked, closed atomic.Int64
		crew := run.NewCrew(2)
		engines := []gpuexec.Engine{
			withPath(crew, &asked, &closed, nil),
			group.New([]*run.Engine{withPath(crew, &asked, &closed, nil), withPath(crew, &asked, &closed, nil)}, gpuexec.DeviceCapacity, crew),
		}
		for _, e := range engines {
			s, err := e.Load(t.Context(), w.Index)
			if err != nil {
				t.Fatal(err)
			}
			before := asked.Load()
			got := make([]gpuexec.Answer, len(plans))
			if err := s.Search(t.Context(), plans, got, nil); err != nil {
				t.Fatal(err)
			}
			if asked := asked.Load() - before; asked == 0 || asked >= 2*int64(len(plans)) {
				t.Fatalf("the path had %d of %d queries", asked, len(plans))
			}
			for i := range got {
				a, b := got[i].Value.(*distance.Answer), want[i].Value.(*distance.Answer)
				if got[i].Err != nil || !slices.Equal(got[i].Hits, want[i].Hits) || got[i].Total != want[i].Total || a.Counted != b.Counted || a.Counted && a.Within != b.Within {
					t.Fatalf("%d objects, query %d: %v %+v, want %v %+v (%v)", n, i, got[i].Hits, a, want[i].Hits, b, got[i].Err)
				}
			}
			if c := s.Capacity(); c.DeviceBytes < 7 || s.Cost(&plans[0]) < 1<<30 {
				t.Errorf("%+v, and a plan costs %d: the path's share is missing", c, s.Cost(&plans[0]))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if closed.Load() < 2 {
			t.Errorf("%d paths were closed", closed.Load())
		}
	}
}

// TestMatcherFails: the error of a path is that of the batch, whatever the host is at.
func TestMatcherFails(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.RandomDistanceWorld(t, rng, 3000, false)
	var asked, closed atomic.Int64
	fell := errors.New("the device fell off the bus")
	s := enginetest.LoadOn(t, withPath(run.NewCrew(2), &asked, &closed, fell), w.Index)
	plans := plansOf(t, rng, w, 60)
	if err := s.Search(t.Context(), plans, make([]gpuexec.Answer, len(plans)), nil); !errors.Is(err, fell) {
		t.Errorf("the batch ends with %v", err)
	}
}

// pricedPath says what ways take on a device, and takes nothing; it notes whose n-grams were looked up.
type pricedPath struct {
	flatPath
	scan, grams   time.Duration
	looked, asked atomic.Int64
}

func (p *pricedPath) Takes(b *nearest.Batch, job int) bool {
	p.asked.Add(1)
	if _, ok := b.CountedLists(job); ok {
		p.looked.Add(1)
	}
	return false
}

func (p *pricedPath) Price(_ *distance.Query, method string, _ int) time.Duration {
	return map[string]time.Duration{distance.Scan: p.scan, distance.Ngram: p.grams}[method]
}

// TestMatcherLooksUp: the n-grams of texts are looked up where they may be counted, and not where a device scans for less whatever they are.
func TestMatcherLooksUp(t *testing.T) {
	w := enginetest.RandomDistanceWorld(t, seeded.Rand(t), 3000, false)
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	text, radius := "abäbaab", 1.0
	for _, x := range []struct {
		scan, grams time.Duration
		method      string
		explain     bool
		looks       bool
	}{
		{scan: 1, grams: 2, looks: false},
		{scan: 2, grams: 2, looks: false},
		{scan: 3, grams: 2, looks: true},
		{scan: 1, looks: true}, // the host counts
		{grams: 1, looks: true},
		{looks: true},
		{scan: 1, grams: 2, explain: true, looks: true},
		{scan: 1, grams: 2, method: distance.Ngram, looks: true},
	} {
		var closed atomic.Int64
		p := &pricedPath{flatPath: flatPath{closed: &closed}, scan: x.scan, grams: x.grams}
		e := cpu.On(run.NewCrew(2))
		e.Loaders[distance.FamilyName] = run.Loader{Load: func(_ context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
			m, err := nearest.Load(h, own)
			return New(m, p), err
		}}
		s := enginetest.LoadOn(t, e, w.Index)
		made, err := queries.Plan(new(postings.MatchQuery), &index.Request{Text: &text, Near: indexnearest.Near{K: 5, Radius: &radius, Method: x.method}})
		if err != nil {
			t.Fatal(err)
		}
		made.Query.(*distance.Query).Explain = x.explain
		plans, answers := []gpuexec.Plan{{Family: made.Family, Query: made.Query, K: 5}}, make([]gpuexec.Answer, 1)
		if err := s.Search(t.Context(), plans, answers, nil); err != nil || answers[0].Err != nil {
			t.Fatal(err, answers[0].Err)
		}
		if p.asked.Load() != 1 || (p.looked.Load() == 1) != x.looks {
			t.Errorf("%+v: n-grams of %d texts of %d were looked up", x, p.looked.Load(), p.asked.Load())
		}
	}
}

var _ run.Joiner = (*Matcher)(nil)
