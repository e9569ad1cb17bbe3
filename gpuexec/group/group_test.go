package group

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// groupOfTwo makes a group of two CPU engines that share a crew.
func groupOfTwo(mode gpuexec.DeviceMode) *Group {
	c := run.NewCrew(2)
	return New([]*run.Engine{cpu.On(c), cpu.On(c)}, mode, c)
}

// TestDevicesJoin compares the joining of sorted entries with a gate that sees all of them. Members that have compared their
// first n entries give the distances of the first n of all.
func TestDevicesJoin(t *testing.T) {
	rng := seeded.Rand(t)
	for range 3000 {
		b := &spreadBatch{}
		var all []topk.Entry
		var postings uint64
		k, compared := 1+rng.IntN(30), rng.IntN(20)
		distanceOf := func(e topk.Entry) verify.Known { return verify.KnownScore(float64(e.ID() % 7)) }
		for i := range 1 + rng.IntN(5) {
			part := run.Job{Units: rng.Uint64N(100)}
			postings += part.Units
			for id := range rng.IntN(20) {
				part.Entries = append(part.Entries, topk.NewEntry(1+rng.Uint32N(4), uint32(i*100+id)))
			}
			top := (&topk.Gate{})
			top.Reset(k, 1)
			for _, e := range part.Entries {
				top.Offer(e)
			}
			all = append(all, part.Entries...)
			part.Entries = top.Finish(nil)
			for rank := range min(compared, len(part.Entries)) {
				part.Known = append(part.Known, distanceOf(part.Entries[len(part.Entries)-1-rank]))
			}
			b.jobs = append(b.jobs, []run.Job{part})
		}
		want := &topk.Gate{}
		want.Reset(k, 1)
		for _, e := range all {
			want.Offer(e)
		}
		job := run.Job{K: k, Entries: make([]topk.Entry, rng.IntN(9)), Known: make([]verify.Known, rng.IntN(9))}
		b.join(&job, 0)
		expected := want.Finish(nil)
		if len(job.Entries) != len(expected) || len(expected) > 0 && !reflect.DeepEqual(job.Entries, expected) || job.Units != postings {
			t.Fatalf("k %d: got %v, want %v; %d postings, want %d", k, job.Entries, expected, job.Units, postings)
		}
		if len(job.Known) > len(expected) || len(job.Known) < min(compared, len(expected)) {
			t.Fatalf("%d distances of %d entries, members have compared %d", len(job.Known), len(expected), compared)
		}
		for rank, d := range job.Known {
			if e := expected[len(expected)-1-rank]; d != distanceOf(e) && (d != verify.Unknown || rank < compared) {
				t.Fatalf("the distance of rank %d is %v, want %v; members have compared %d", rank, d, distanceOf(e), compared)
			}
		}
	}
}

// loading is what loads postings onto an engine.
type loading = func(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error)

// wrapped is a CPU engine whose loader of postings is wrapped.
func wrapped(crew *run.Crew, wrap func(load loading) loading) *run.Engine {
	e := cpu.On(crew)
	l := e.Loaders[postings.FamilyName]
	l.Load = wrap(l.Load)
	e.Loaders[postings.FamilyName] = l
	return e
}

// comparing is a matcher that compares the first candidates of its objects and scans their texts, as a device does.
// Short texts it leaves to the host if so told.
type comparing struct {
	run.Matcher
	index             *index.Index
	tiles             run.Tiles
	first             int
	leaves            bool
	compared, scanned *atomic.Int32
}

func (s comparing) Match(ctx context.Context, jobs []*run.Job, t *gpuexec.Trace) error {
	if err := s.Matcher.Match(ctx, jobs, t); err != nil {
		return err
	}
	for _, job := range jobs {
		if job.Orderable { // the first of all objects are not the first of a member's
			return errors.New("a member that has some of the objects may put its candidates in the order of scores")
		}
		for rank := range min(s.first, len(job.Entries)) {
			distance := verify.Unknown // too long a text
			if e := job.Entries[len(job.Entries)-1-rank]; job.Rescore != nil && e.ID()%5 != 0 {
				distance = verify.KnownScore(float64(levenshtein.Distance(job.Rescore.(*verify.Nearest).Text, []rune(s.index.Text(e.ID())))))
				s.compared.Add(1)
			}
			job.Known = append(job.Known, distance)
		}
	}
	return nil
}

func (s comparing) Scan(_ context.Context, jobs []*run.ScanJob, _ *gpuexec.Trace) error {
	for _, job := range jobs {
		r := job.Rescorer.(*verify.SequenceRescorer)
		if s.leaves && len(r.Nearest().Text) < 10 {
			continue
		}
		var hits []gpuexec.Hit
		for id := s.tiles.Base(); id < s.tiles.Base()+s.tiles.Objects(s.index.Objects()); id++ {
			text := []rune(s.index.Text(id))
			if d := levenshtein.Distance(r.Nearest().Text, text); d <= r.Within() {
				if count := uint32(naive.GramOverlap(r.Nearest().Text, text, 3)); count >= job.MinCount {
					hits = append(hits, gpuexec.Hit{ID: id, Count: count, Score: float64(d)})
				}
			}
		}
		slices.SortFunc(hits, enginetest.Nearer)
		for _, h := range hits[:min(len(hits), r.Nearest().K)] {
			job.Found = append(job.Found, verify.Scored(h))
		}
		job.Done = true
		s.scanned.Add(1)
	}
	return nil
}

// TestDevicesSequences: members of a group compare where they find, and the answers are those of one engine.
func TestDevicesSequences(t *testing.T) {
	rng := seeded.Rand(t)
	texts := make([]string, raced.Of(2, 1)*store.TileObjects+100)
	bases := make([]string, 2000)
	for i := range bases {
		bases[i] = enginetest.RandomString(rng, "abcdefgh", 3+rng.IntN(20))
	}
	for i := range texts {
		texts[i] = enginetest.Misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(4))
	}
	c := enginetest.SequenceCollection(t, texts, 3)
	one := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: 2}), c.Index)
	compared, scanned := new(atomic.Int32), new(atomic.Int32)
	crew := run.NewCrew(2)
	var members []*run.Engine
	for i := range 3 {
		members = append(members, wrapped(crew, func(load loading) loading {
			return func(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
				m, err := load(ctx, h, own, later)
				return comparing{m, c.Index, own.Tiles, 2 + 20*i, i == 1, compared, scanned}, err
			}
		}))
	}
	s := enginetest.LoadOn(t, New(members, gpuexec.DeviceCapacity, crew), c.Index)
	rounds := enginetest.Rounds([]int{1, 2, 3})
	for range rounds {
		var plans []gpuexec.Plan
		for range 30 {
			text := enginetest.Misspelt(rng, bases[rng.IntN(len(bases))]+"a", rng.IntN(4)) + "b"
			plans = append(plans, c.SequencePlan(t, text, 1+rng.IntN(12), 1+rng.IntN(60), rng.IntN(2) == 0))
		}
		plans = append(plans, c.SequencePlan(t, "zzzzzzzzzzzz", 3, 10, true)) // nothing has a gram of it: only a scan is certain
		want, got := enginetest.Search(t, one, plans), enginetest.Search(t, s, plans)
		for i := range got { // a scan in place of more candidates touches fewer postings
			if plans[i].Certify {
				got[i].Units = want[i].Units
			}
		}
		enginetest.SameAnswers(t, plans, got, want)
	}
	if compared.Load() < int32(100*len(rounds)) || scanned.Load() < int32(len(rounds)) {
		t.Errorf("members have compared %d texts and scanned %d times", compared.Load(), scanned.Load())
	}
}

// broken says how a member fails: in loading or in matching.
type broken struct {
	load  func() error
	match func(ctx context.Context, jobs []*run.Job) error
	open  *atomic.Int32 // matchers of all members
}

type brokenMatcher struct {
	run.Matcher
	of *broken
}

func (s *brokenMatcher) Match(ctx context.Context, jobs []*run.Job, t *gpuexec.Trace) error {
	if s.of.match != nil {
		return s.of.match(ctx, jobs)
	}
	return s.Matcher.Match(ctx, jobs, t)
}

func (s *brokenMatcher) Close() error {
	s.of.open.Add(-1)
	return s.Matcher.Close()
}

// brokenGroup has three members, of which the second is broken.
func brokenGroup(mode gpuexec.DeviceMode, load func() error, match func(context.Context, []*run.Job) error) (*Group, []*broken) {
	open := new(atomic.Int32)
	var all []*run.Engine
	var how []*broken
	for i := range 3 {
		b := &broken{open: open}
		if i == 1 {
			b.load, b.match = load, match
		}
		how = append(how, b)
		all = append(all, wrapped(run.NewCrew(1), func(load loading) loading {
			return func(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
				if b.load != nil {
					if err := b.load(); err != nil {
						return nil, err
					}
				}
				m, err := load(ctx, h, own, later)
				if err != nil {
					return nil, err // the broken member was faster
				}
				open.Add(1)
				return &brokenMatcher{m, b}, nil
			}
		}))
	}
	return New(all, mode, run.NewCrew(2)), how
}

// TestDevicesErrors: what a member does wrong reaches the caller, the others are not left alone, and the group goes on.
func TestDevicesErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, 2*store.TileObjects+99)
	for w.Index.Attributes()[0].Postings == 0 { // members are not called for what nothing can match
		w = enginetest.RandomWorld(t, rng, 2*store.TileObjects+99)
	}
	var p gpuexec.Plan
	p.K = 10
	enginetest.Query(&p).StartItem(0, 1)
	enginetest.Query(&p).AddSpan(0, w.Vocabulary[0])
	plans, answers := []gpuexec.Plan{p, p}, make([]gpuexec.Answer, 2)
	lost := &gpuexec.DeviceError{Op: "executing a batch", Sticky: true, Err: errors.New("gone")}

	for _, mode := range gpuexec.DeviceModes() {
		for _, fault := range []func() error{func() error { return lost }, func() error { panic("load") }} {
			g, how := brokenGroup(mode, fault, nil)
			open := how[0].open
			if _, err := g.Load(context.Background(), w.Index); err == nil || !strings.Contains(err.Error(), "device 2 of 3") || open.Load() != 0 {
				t.Errorf("%s: loading with a broken member: %v; %d shards are open", mode, err, open.Load())
			}
		}
	}

	var failing atomic.Bool
	for _, c := range []struct {
		name  string
		match func(context.Context, []*run.Job) error
		check func(error) bool
	}{
		{"error", func(context.Context, []*run.Job) error { return lost }, func(err error) bool { return errors.Is(err, lost) }},
		{"panic", func(context.Context, []*run.Job) error { panic("match") }, func(err error) bool {
			var panicked *gpuexec.PanicError
			return errors.As(err, &panicked)
		}},
	} {
		g, how := brokenGroup(gpuexec.DeviceCapacity, nil, nil)
		of, open := how[1], how[1].open
		waited := make(chan struct{}, 1)
		how[0].match = func(ctx context.Context, jobs []*run.Job) error {
			if failing.Load() {
				<-ctx.Done() // ended by the failure of the other
				waited <- struct{}{}
				return context.Cause(ctx)
			}
			return nil
		}
		s, err := g.Load(context.Background(), w.Index)
		if err != nil {
			t.Fatal(err)
		}
		failing.Store(true)
		of.match = c.match
		if err := s.Search(context.Background(), plans, answers, nil); !c.check(err) || len(waited) != 1 {
			t.Errorf("%s: %v; %d members were waited for", c.name, err, len(waited))
		}
		failing.Store(false)
		of.match, how[0].match = nil, nil
		if err := s.Search(context.Background(), plans, answers, nil); err != nil || answers[0].Err != nil {
			t.Errorf("after %s: %v %v", c.name, err, answers[0].Err)
		}
		if want, _ := w.Search(&p); !reflect.DeepEqual(answers[1].Hits, want) && len(want) > 0 {
			t.Errorf("after %s the answer is wrong", c.name)
		}
		// One job alone.
		of.match = func(_ context.Context, jobs []*run.Job) error {
			for _, job := range jobs {
				job.Entries = job.Entries[:0]
			}
			jobs[0].Err = lost
			return nil
		}
		if err := s.Search(context.Background(), plans, answers, nil); err != nil || !errors.Is(answers[0].Err, lost) || answers[1].Err != nil {
			t.Errorf("one query failed on one device: %v, %v, %v", err, answers[0].Err, answers[1].Err)
		}
		if err := s.Close(); err != nil || open.Load() != 0 {
			t.Errorf("closing: %v, %d shards are open", err, open.Load())
		}
	}

	// The caller's context.
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(context.Background())
	g, _ := brokenGroup(gpuexec.DeviceCapacity, nil, func(c context.Context, _ []*run.Job) error {
		cancel(why)
		<-c.Done()
		return context.Cause(c)
	})
	s := enginetest.LoadOn(t, g, w.Index)
	if err := s.Search(ctx, plans, answers, nil); !errors.Is(err, why) {
		t.Errorf("an ended context: %v", err)
	}
	for _, mode := range gpuexec.DeviceModes() {
		s := enginetest.LoadOn(t, groupOfTwo(mode), w.Index)
		if err := s.Search(ctx, plans, answers, nil); !errors.Is(err, why) {
			t.Errorf("%s, a context that has ended: %v", mode, err)
		}
	}
}

// TestReplicasShareBatches: a batch goes to the member with the least to do, and all take part.
func TestReplicasShareBatches(t *testing.T) {
	shards := make([]*run.Searcher, 3)
	s := newReplicaSearcher(shards).(*replicaSearcher)
	first := s.take(100)
	second := s.take(1)
	third := s.take(50)
	if first == second || second == third || first == third {
		t.Fatalf("three batches went to %d, %d and %d", first, second, third)
	}
	if got := s.take(10); got != second {
		t.Errorf("a batch went to member %d, member %d has the least to do", got, second)
	}
	for _, c := range []struct{ shard, queries int }{{first, 100}, {second, 11}, {third, 50}} {
		s.give(c.shard, c.queries)
	}
	seen := make(map[int]bool)
	for range shards {
		i := s.take(1)
		s.give(i, 1)
		seen[i] = true
	}
	if len(seen) != len(shards) || !reflect.DeepEqual(s.load, []int{0, 0, 0}) {
		t.Errorf("of idle members %v took part; load %v", seen, s.load)
	}
}

// TestDevicesLater: members hear of what they will hold of later indexes: all of it, or their ranges, and nothing of an index
// with fewer tiles than there are members.
func TestDevicesLater(t *testing.T) {
	rng := seeded.Rand(t)
	large, small := enginetest.RandomWorld(t, rng, 3*store.TileObjects).Index, enginetest.RandomWorld(t, rng, 10).Index
	for _, mode := range gpuexec.DeviceModes() {
		crew := run.NewCrew(1)
		told := make([][]run.Extent, 3)
		var members []*run.Engine
		for i := range told {
			members = append(members, wrapped(run.NewCrew(1), func(load loading) loading {
				return func(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
					told[i] = later
					return load(ctx, h, own, later)
				}
			}))
		}
		g := New(members, mode, crew)
		if _, err := g.Load(context.Background(), large, small, large); err != nil {
			t.Fatal(err)
		}
		for i, got := range told {
			want := []run.Extent{{Source: small, Tiles: run.AllTiles(small)}, {Source: large, Tiles: run.AllTiles(large)}}
			if mode == gpuexec.DeviceCapacity {
				want = []run.Extent{{Source: large, Tiles: run.CutTiles(large.TileWork(), 3)[i]}}
				if i == 0 {
					want = append([]run.Extent{{Source: small, Tiles: run.AllTiles(small)}}, want...)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: member %d is told of %v, want %v", mode, i, got, want)
			}
		}
		if _, err := g.Load(context.Background(), large, nil); err == nil {
			t.Error("a later snapshot that is none is not refused")
		}
	}
}
