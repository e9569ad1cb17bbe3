package run_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/group"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// What a kind of structure needs to be searched: a Source that has it, a Matcher, a Loader in an engine's map, and, for an order of
// its own, a Rescorer. Nothing of package run is edited for it.

// numbers are the objects 0 to n-1. Their structures are functions of a number: by family.
type numbers struct {
	n        uint32
	families map[string]func(query, id uint32) uint32
}

func (x numbers) Name() string    { return "numbers" }
func (x numbers) Version() string { return fmt.Sprint(x.n) }
func (x numbers) Objects() uint32 { return x.n }
func (x numbers) Structure(family string) any {
	if count := x.families[family]; count != nil {
		return count
	}
	return nil
}

func newNumbers(n uint32) numbers {
	return numbers{n, map[string]func(query, id uint32) uint32{
		"multiples": func(query, id uint32) (times uint32) { // how often id can be divided by the query
			for ; id > 0 && id%query == 0; id /= query {
				times++
			}
			return times
		},
		"digits": func(query, id uint32) (times uint32) { // how often the query is a digit of id
			return uint32(strings.Count(fmt.Sprint(id), fmt.Sprint(query)))
		},
		"unsearchable": func(uint32, uint32) uint32 { panic("nobody has a loader for it") },
	}}
}

// counting counts by a function of numbers.
type counting struct {
	count   func(query, id uint32) uint32
	lo, hi  uint32
	release func()
}

func loadCounting(family string) run.Loader {
	return run.Loader{Load: func(_ context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
		release, err := h.Budget.Reserve(gpuexec.Holding{Owner: run.OwnerOf(own.Source), Form: family, Bytes: 10, Needed: true})
		if err != nil {
			return nil, err
		}
		lo := own.Tiles.Base()
		return &counting{own.Source.Structure(family).(func(query, id uint32) uint32), lo, lo + own.Tiles.Objects(own.Source.Objects()), release}, nil
	}}
}

func (m *counting) Check(p *gpuexec.Plan) (uint32, error) {
	if q, ok := p.Query.(*uint32); !ok || *q == 0 {
		return 0, errors.New("numbers are asked with a number")
	}
	return 32, nil
}

// Match ends some jobs itself, of all kinds, as one does that has their entries in a core's caches.
func (m *counting) Match(ctx context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	for _, job := range jobs {
		var g topk.Gate
		g.Reset(job.K, job.MinCount)
		for id := m.lo; id < m.hi; id++ {
			if count := m.count(*job.Query.(*uint32), id); count > 0 {
				g.Offer(topk.NewEntry(count, id))
			}
		}
		job.Entries = g.Finish(job.Entries[:0])
		job.Units += uint64(m.hi - m.lo)
		if job.Then != nil && *job.Query.(*uint32)%2 == 0 {
			job.Known = append(job.Known[:0], make([]verify.Known, len(job.Entries))...) // of which the rescorer here makes nothing
			job.Then.End(ctx, nil)
		}
	}
	return nil
}

func (m *counting) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }
func (m *counting) Cost(*gpuexec.Plan) int64                                   { return 1 }
func (m *counting) Residence() run.Residence {
	return run.Residence{IndexBytes: 10, DeviceBytes: 10, Parts: 1, Form: "numbers"}
}
func (m *counting) Close() error {
	m.release()
	return nil
}

// near asks for the numbers near to one: their distance is the score.
type near struct {
	to    uint32
	k     int
	n     uint32
	count func(id uint32) uint32
}

func (r *near) Wanted() int                         { return r.k }
func (r *near) Bytes() int64                        { return 0 }
func (r *near) Work(int) time.Duration              { return time.Microsecond }
func (r *near) New(verify.Rescorer) verify.Rescorer { return &nearer{near: r} }

func (r *near) scored(id uint32) verify.Scored {
	return verify.Scored{ID: id, Count: r.count(id), Score: math.Abs(float64(id) - float64(r.to))}
}

// hits are the answer by definition.
func (r *near) hits(minCount uint32) (all []gpuexec.Hit) {
	for id := range r.n {
		if s := r.scored(id); s.Count >= minCount {
			all = append(all, gpuexec.Hit(s))
		}
	}
	slices.SortFunc(all, func(a, b gpuexec.Hit) int { return byScore(verify.Scored(a), verify.Scored(b)) })
	return all[:min(len(all), r.k)]
}

func byScore(a, b verify.Scored) int {
	return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.ID, b.ID))
}

// nearer is the state of a near. No count says anything of distances: its answers are certain after a scan only.
type nearer struct {
	*near
	offered int
	best    []verify.Scored
}

func (r *nearer) Offer(c []verify.Candidate, _ []verify.Known, pace verify.Pace, work int) error {
	for ; r.offered < len(c); r.offered++ {
		if work == 0 || r.offered%work == 0 {
			if err := pace(); err != nil {
				return err
			}
		}
		r.Add([]verify.Scored{r.scored(c[r.offered].ID)})
	}
	return nil
}

func (r *nearer) Scan(lo, hi, minCount uint32, _ filter.Set, pace verify.Pace, work int) (uint32, error) {
	for id := lo; id < hi; id++ {
		if s := r.scored(id); s.Count >= minCount {
			r.Add([]verify.Scored{s})
		}
		if work > 0 && int(id)%work == 0 {
			if err := pace(); err != nil {
				return id + 1, err
			}
		}
	}
	return hi, nil
}

func (r *nearer) Add(found []verify.Scored) {
	if len(r.best) == r.k && byScore(found[0], r.best[r.k-1]) > 0 {
		return
	}
	r.best = append(r.best, found...)
	slices.SortFunc(r.best, byScore)
	r.best = slices.CompactFunc(r.best, func(a, b verify.Scored) bool { return a.ID == b.ID })
	r.best = r.best[:min(len(r.best), r.k)]
}

func (r *nearer) Offered() int                             { return r.offered }
func (r *nearer) Certified(uint32) bool                    { return false }
func (r *nearer) Certifiable() bool                        { return false }
func (r *nearer) Part(verify.Rescorer) verify.Rescorer     { return &nearer{near: r.near} }
func (r *nearer) Hits(dst []verify.Scored) []verify.Scored { return append(dst, r.best...) }
func (r *nearer) ScanWork() int64                          { return int64(r.n) }
func (r *nearer) Join(part verify.Rescorer) {
	for _, s := range part.(*nearer).best {
		r.Add([]verify.Scored{s})
	}
}

// newEngine is an engine of two families of numbers.
func newEngine(crew *run.Crew, bytes int64) *run.Engine {
	return &run.Engine{
		About:    gpuexec.Info{Kind: "toy", Device: "toy", Workers: crew.Size()},
		Host:     &run.Host{Crew: crew, Budget: run.NewBudget(3, bytes)},
		Loaders:  run.Loaders{"multiples": loadCounting("multiples"), "digits": loadCounting("digits"), "absent": loadCounting("absent")},
		Capacity: gpuexec.Capacity{BatchPlans: 8, BatchBytes: 100, InFlight: 1, SharedBytes: 5},
	}
}

// TestOwnFamily: structures of kinds that nobody knows here are searched, several in one batch, with a rescorer of their own, on one
// engine and on groups.
func TestOwnFamily(t *testing.T) {
	rng := seeded.Rand(t)
	x := newNumbers(raced.Of[uint32](2, 1)*run.TileObjects + 77)
	crew := run.NewCrew(2)
	var engines []gpuexec.Engine
	engines = append(engines, newEngine(crew, 100))
	for _, mode := range gpuexec.DeviceModes() {
		engines = append(engines, group.New([]*run.Engine{newEngine(crew, 100), newEngine(crew, 100)}, mode, crew))
	}
	for _, e := range engines {
		s := enginetest.LoadOn(t, e, x)
		var plans []gpuexec.Plan
		for range 12 {
			query := 2 + rng.Uint32N(8)
			family := []string{"multiples", "digits"}[rng.IntN(2)]
			p := gpuexec.Plan{Family: family, Query: &query, K: 1 + rng.IntN(50), MinCount: rng.Uint32N(3)}
			if rng.IntN(2) == 0 {
				p.Certify = true
				p.Rescore = &near{rng.Uint32N(x.n), 1 + rng.IntN(20), x.n, func(id uint32) uint32 { return x.families[family](query, id) }}
			}
			plans = append(plans, p)
		}
		answers := make([]gpuexec.Answer, len(plans))
		pace := gpuexec.Pace{}
		if rng.IntN(2) == 0 {
			pace = gpuexec.Pace{Call: 1, Grain: 20_000}
		}
		for open := true; open; {
			open = false
			for i := range plans {
				plans[i].Unfinished = answers[i].Unfinished
			}
			if err := s.Search(gpuexec.WithPace(t.Context(), pace), plans, answers, nil); err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				open = open || answers[i].Unfinished != nil
			}
			pace = gpuexec.Pace{} // the rest at once
		}
		for i := range plans {
			checkNumbers(t, x, &plans[i], &answers[i])
		}
		if err := s.Close(); err != nil || len(e.Memory()) != 0 {
			t.Errorf("closing: %v; %v is left", err, e.Memory())
		}
	}
}

// checkNumbers compares an answer with the definition.
func checkNumbers(t *testing.T, x numbers, p *gpuexec.Plan, a *gpuexec.Answer) {
	t.Helper()
	var want []gpuexec.Hit
	if r, ok := p.Rescore.(*near); ok {
		want = r.hits(p.MinCount)
	} else {
		for id := range x.n {
			if count := x.families[p.Family](*p.Query.(*uint32), id); count >= max(1, p.MinCount) {
				want = append(want, gpuexec.Hit{ID: id, Count: count})
			}
		}
		slices.SortStableFunc(want, func(a, b gpuexec.Hit) int { return cmp.Compare(b.Count, a.Count) })
		want = want[:min(len(want), p.K)]
	}
	if a.Err != nil || !a.Exact || a.Scored != (p.Rescore != nil) || !slices.Equal(a.Hits, want) {
		t.Fatalf("%s of %d, k %d, min count %d, %+v:\ngot  %v (%v)\nwant %v", p.Family, *p.Query.(*uint32), p.K, p.MinCount, p.Rescore, a.Hits, a.Err, want)
	}
}

// TestFamiliesOfAnEngine: an engine loads what it has loaders for, and says what it has not; a loader in one engine's map is in no
// other's; what does not fit is given back.
func TestFamiliesOfAnEngine(t *testing.T) {
	crew := run.NewCrew(1)
	x := newNumbers(1000)
	e := newEngine(crew, 25)
	s := enginetest.LoadOn(t, e, x)
	if c := s.Capacity(); c.IndexBytes != 20 || c.DeviceBytes != 25 || c.SharedBytes != 5 || c.Form != "numbers; numbers" || c.BatchPlans != 8 {
		t.Errorf("%+v", c)
	}
	want := gpuexec.Holding{Device: 3, Owner: "numbers 1000", Form: "digits", Bytes: 10, Needed: true}
	if held := e.Memory(); len(held) != 2 || held[0] != want {
		t.Errorf("holdings %+v, the first should be %+v", held, want)
	}
	var full *gpuexec.DeviceError
	if _, err := e.Load(t.Context(), x); !errors.As(err, &full) || !full.OutOfMemory || len(e.Memory()) != 2 {
		t.Errorf("a second time: %v; %v is held", err, e.Memory())
	}
	query := uint32(3)
	for _, family := range []string{"", "unsearchable", "absent", "postings"} {
		a := enginetest.Search(t, s, []gpuexec.Plan{{Family: family, Query: &query, K: 1}, {Family: "digits", Query: &query, K: 1}})
		var refused *refusal.Error
		if !errors.As(a[0].Err, &refused) || a[1].Err != nil || a[1].Hits[0].ID != 333 {
			t.Errorf("family %q: %+v", family, a)
		}
	}
	if err := s.Close(); err != nil || len(e.Memory()) != 0 {
		t.Errorf("closing: %v, %v is held", err, e.Memory())
	}
	other := newEngine(crew, 100)
	delete(other.Loaders, "digits")
	delete(other.Loaders, "multiples")
	if _, err := other.Load(t.Context(), x); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("an engine that can search nothing of it: %v", err)
	}
	if len(e.Loaders) != 3 {
		t.Error("engines share their loaders")
	}
}

// TestLastFamily: a family that comes last is loaded after the others, whatever their names.
func TestLastFamily(t *testing.T) {
	var loaded []string
	loader := func(name string, last bool) run.Loader {
		return run.Loader{Last: last, Load: func(context.Context, *run.Host, run.Extent, []run.Extent) (run.Matcher, error) {
			loaded = append(loaded, name)
			return nil, errors.New("stop") // at the first
		}}
	}
	for _, c := range []struct{ digits, multiples bool }{{true, false}, {false, true}, {false, false}, {true, true}} {
		loaded = nil
		e := &run.Engine{Loaders: run.Loaders{"digits": loader("digits", c.digits), "multiples": loader("multiples", c.multiples)}}
		if _, err := e.Load(t.Context(), newNumbers(5)); err == nil {
			t.Fatal("it is loaded")
		}
		want := "digits"
		if c.digits && !c.multiples {
			want = "multiples"
		}
		if !slices.Equal(loaded, []string{want}) {
			t.Errorf("%+v: %q comes first", c, loaded)
		}
	}
}
