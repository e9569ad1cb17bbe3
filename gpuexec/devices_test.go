package gpuexec

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// groupOfTwo makes a group of two CPU engines that share a crew.
func groupOfTwo(mode DeviceMode) *deviceGroup {
	c := newCrew(2)
	return newDeviceGroup([]member{newCPUEngine(CPUOptions{}, c), newCPUEngine(CPUOptions{}, c)}, mode, c)
}

// TestDevicesJoin compares the joining of sorted entries with a gate that sees all of them. Members that have compared their
// first n entries give the distances of the first n of all.
func TestDevicesJoin(t *testing.T) {
	rng := newRand(t)
	for range 3000 {
		b := &spreadBatch{}
		var all []entry
		var postings uint64
		k, compared := 1+rng.IntN(30), rng.IntN(20)
		distanceOf := func(e entry) int32 { return int32(e.id()) % 7 }
		for i := range 1 + rng.IntN(5) {
			part := matchJob{postings: rng.Uint64N(100)}
			postings += part.postings
			for id := range rng.IntN(20) {
				part.entries = append(part.entries, newEntry(1+rng.Uint32N(4), uint32(i*100+id)))
			}
			top := (&gate{})
			top.reset(k, 1)
			for _, e := range part.entries {
				top.offer(e)
			}
			all = append(all, part.entries...)
			part.entries = top.finish(nil)
			for rank := range min(compared, len(part.entries)) {
				part.distances = append(part.distances, distanceOf(part.entries[len(part.entries)-1-rank]))
			}
			b.jobs = append(b.jobs, []matchJob{part})
		}
		want := &gate{}
		want.reset(k, 1)
		for _, e := range all {
			want.offer(e)
		}
		job := matchJob{k: k, entries: make([]entry, rng.IntN(9)), distances: make([]int32, rng.IntN(9))}
		b.join(&job, 0)
		expected := want.finish(nil)
		if len(job.entries) != len(expected) || len(expected) > 0 && !reflect.DeepEqual(job.entries, expected) || job.postings != postings {
			t.Fatalf("k %d: got %v, want %v; %d postings, want %d", k, job.entries, expected, job.postings, postings)
		}
		if len(job.distances) > len(expected) || len(job.distances) < min(compared, len(expected)) {
			t.Fatalf("%d distances of %d entries, members have compared %d", len(job.distances), len(expected), compared)
		}
		for rank, d := range job.distances {
			if e := expected[len(expected)-1-rank]; d != distanceOf(e) && (d != -1 || rank < compared) {
				t.Fatalf("the distance of rank %d is %d, want %d; members have compared %d", rank, d, distanceOf(e), compared)
			}
		}
	}
}

// comparingMember is a CPU engine that compares the first candidates of its objects and scans their texts, as a device does.
// Short texts it leaves to the host if so told.
type comparingMember struct {
	*cpuEngine
	first             int
	leaves            bool
	compared, scanned *atomic.Int32
}

type comparingShard struct {
	shard
	index *index.Index
	tiles tileRange
	of    comparingMember
}

func (m comparingMember) loadTiles(ctx context.Context, own extent, later []extent) (shard, error) {
	s, err := m.cpuEngine.loadTiles(ctx, own, later)
	return comparingShard{s, own.index, own.tiles, m}, err
}

func (s comparingShard) match(ctx context.Context, jobs []*matchJob) error {
	if err := s.shard.match(ctx, jobs); err != nil {
		return err
	}
	for _, job := range jobs {
		for rank := range min(s.of.first, len(job.entries)) {
			distance := int32(-1) // too long a text
			if e := job.entries[len(job.entries)-1-rank]; job.text != nil && e.id()%5 != 0 {
				distance = int32(verify.EditDistance(job.text, []rune(s.index.Text(e.id()))))
				s.of.compared.Add(1)
			}
			job.distances = append(job.distances, distance)
		}
	}
	return nil
}

func (s comparingShard) scan(_ context.Context, jobs []*scanJob) error {
	for _, job := range jobs {
		if s.of.leaves && len(job.text) < 10 {
			continue
		}
		for id := s.tiles.base(); id < s.tiles.base()+s.tiles.objects(s.index); id++ {
			text := []rune(s.index.Text(id))
			if d := verify.EditDistance(job.text, text); d <= job.within {
				if count := uint32(index.GramOverlap(job.text, text, 3)); count >= job.minCount {
					job.hits = append(job.hits, verify.Hit{ID: id, Count: count, Distance: int32(d)})
				}
			}
		}
		slices.SortFunc(job.hits, verify.Compare)
		job.hits, job.done = job.hits[:min(len(job.hits), job.k)], true
		s.of.scanned.Add(1)
	}
	return nil
}

// TestDevicesSequences: members of a group compare where they find, and the answers are those of one engine.
func TestDevicesSequences(t *testing.T) {
	rng := newRand(t)
	texts := make([]string, 2*index.TileObjects+100)
	bases := make([]string, 2000)
	for i := range bases {
		bases[i] = randomString(rng, "abcdefgh", 3+rng.IntN(20))
	}
	for i := range texts {
		texts[i] = misspelt(rng, bases[rng.IntN(len(bases))], rng.IntN(4))
	}
	c := sequenceCollection(t, texts, 3)
	one := loadOn(t, NewCPU(CPUOptions{Workers: 2}), c.index)
	compared, scanned := new(atomic.Int32), new(atomic.Int32)
	crew := newCrew(2)
	var members []member
	for i := range 3 {
		e := newCPUEngine(CPUOptions{}, crew)
		members = append(members, comparingMember{e, 2 + 20*i, i == 1, compared, scanned})
	}
	s := loadOn(t, newDeviceGroup(members, DeviceCapacity, crew), c.index)
	for range rounds([]int{1, 2, 3}) {
		var plans []Plan
		for range 30 {
			text := misspelt(rng, bases[rng.IntN(len(bases))]+"a", rng.IntN(4)) + "b"
			plans = append(plans, c.sequencePlan(t, text, 1+rng.IntN(12), 1+rng.IntN(60), rng.IntN(2) == 0))
		}
		plans = append(plans, c.sequencePlan(t, "zzzzzzzzzzzz", 3, 10, true)) // nothing has a gram of it: only a scan is certain
		want, got := search(t, one, plans), search(t, s, plans)
		for i := range got { // a scan in place of more candidates touches fewer postings
			if plans[i].Match.Verify.Certify {
				got[i].Postings = want[i].Postings
			}
		}
		sameAnswers(t, plans, got, want)
	}
	if compared.Load() < 500 || scanned.Load() < 3 {
		t.Errorf("members have compared %d texts and scanned %d times", compared.Load(), scanned.Load())
	}
}

// brokenMember is a CPU engine whose shard or matching fails.
type brokenMember struct {
	*cpuEngine
	load  func() error
	match func(ctx context.Context, jobs []*matchJob) error
	open  *atomic.Int32 // shards
}

type brokenShard struct {
	shard
	of *brokenMember
}

func (m *brokenMember) loadTiles(ctx context.Context, own extent, later []extent) (shard, error) {
	if m.load != nil {
		if err := m.load(); err != nil {
			return nil, err
		}
	}
	s, err := m.cpuEngine.loadTiles(ctx, own, later)
	if err != nil {
		return nil, err // the broken member was faster
	}
	m.open.Add(1)
	return &brokenShard{s, m}, nil
}

func (s *brokenShard) match(ctx context.Context, jobs []*matchJob) error {
	if s.of.match != nil {
		return s.of.match(ctx, jobs)
	}
	return s.shard.match(ctx, jobs)
}

func (s *brokenShard) Close() error {
	s.of.open.Add(-1)
	return s.shard.Close()
}

// brokenGroup has three members, of which the second is broken.
func brokenGroup(mode DeviceMode, load func() error, match func(context.Context, []*matchJob) error) (*deviceGroup, *atomic.Int32) {
	open := new(atomic.Int32)
	var all []member
	for i := range 3 {
		m := &brokenMember{cpuEngine: newCPUEngine(CPUOptions{}, newCrew(1)), open: open}
		if i == 1 {
			m.load, m.match = load, match
		}
		all = append(all, m)
	}
	return newDeviceGroup(all, mode, newCrew(2)), open
}

// TestDevicesErrors: what a member does wrong reaches the caller, the others are not left alone, and the group goes on.
func TestDevicesErrors(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := newRand(t)
	w := randomWorld(t, rng, 2*index.TileObjects+99)
	for w.index.Attributes()[0].Postings == 0 { // members are not called for what nothing can match
		w = randomWorld(t, rng, 2*index.TileObjects+99)
	}
	snapshot := &Snapshot{Segments: []Segment{{Index: w.index}}}
	var p Plan
	p.Match.K = 10
	p.Match.Query.StartItem(0, 1)
	p.Match.Query.AddSpan(0, w.vocabulary[0])
	plans, answers := []Plan{p, p}, make([]Answer, 2)
	lost := &DeviceError{Op: "executing a batch", Sticky: true, Err: errors.New("gone")}

	for _, mode := range DeviceModes() {
		for _, fault := range []func() error{func() error { return lost }, func() error { panic("load") }} {
			g, open := brokenGroup(mode, fault, nil)
			if _, err := g.Load(context.Background(), snapshot); err == nil || !strings.Contains(err.Error(), "device 2 of 3") || open.Load() != 0 {
				t.Errorf("%s: loading with a broken member: %v; %d shards are open", mode, err, open.Load())
			}
		}
	}

	var broken atomic.Bool
	for _, c := range []struct {
		name  string
		match func(context.Context, []*matchJob) error
		check func(error) bool
	}{
		{"error", func(context.Context, []*matchJob) error { return lost }, func(err error) bool { return errors.Is(err, lost) }},
		{"panic", func(context.Context, []*matchJob) error { panic("match") }, func(err error) bool {
			var panicked *PanicError
			return errors.As(err, &panicked)
		}},
	} {
		var of *brokenMember
		g, open := brokenGroup(DeviceCapacity, nil, nil)
		of = g.members[1].(*brokenMember)
		waited := make(chan struct{}, 1)
		g.members[0].(*brokenMember).match = func(ctx context.Context, jobs []*matchJob) error {
			if broken.Load() {
				<-ctx.Done() // ended by the failure of the other
				waited <- struct{}{}
				return context.Cause(ctx)
			}
			return nil
		}
		s, err := g.Load(context.Background(), snapshot)
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		of.match = c.match
		if err := s.Search(context.Background(), plans, answers); !c.check(err) || len(waited) != 1 {
			t.Errorf("%s: %v; %d members were waited for", c.name, err, len(waited))
		}
		broken.Store(false)
		of.match, g.members[0].(*brokenMember).match = nil, nil
		if err := s.Search(context.Background(), plans, answers); err != nil || answers[0].Err != nil {
			t.Errorf("after %s: %v %v", c.name, err, answers[0].Err)
		}
		if want, _ := w.search(&p.Match); !reflect.DeepEqual(answers[1].Hits, want) && len(want) > 0 {
			t.Errorf("after %s the answer is wrong", c.name)
		}
		// One job alone.
		of.match = func(_ context.Context, jobs []*matchJob) error {
			for _, job := range jobs {
				job.entries = job.entries[:0]
			}
			jobs[0].err = lost
			return nil
		}
		if err := s.Search(context.Background(), plans, answers); err != nil || !errors.Is(answers[0].Err, lost) || answers[1].Err != nil {
			t.Errorf("one query failed on one device: %v, %v, %v", err, answers[0].Err, answers[1].Err)
		}
		if err := s.Close(); err != nil || open.Load() != 0 {
			t.Errorf("closing: %v, %d shards are open", err, open.Load())
		}
	}

	// The caller's context.
	why := errors.New("no longer wanted")
	ctx, cancel := context.WithCancelCause(context.Background())
	g, _ := brokenGroup(DeviceCapacity, nil, func(c context.Context, _ []*matchJob) error {
		cancel(why)
		<-c.Done()
		return context.Cause(c)
	})
	s := loadOn(t, g, w.index)
	if err := s.Search(ctx, plans, answers); !errors.Is(err, why) {
		t.Errorf("an ended context: %v", err)
	}
	for _, mode := range DeviceModes() {
		s := loadOn(t, groupOfTwo(mode), w.index)
		if err := s.Search(ctx, plans, answers); !errors.Is(err, why) {
			t.Errorf("%s, a context that has ended: %v", mode, err)
		}
	}
}

// TestReplicasShareBatches: a batch goes to the member with the least to do, and all take part.
func TestReplicasShareBatches(t *testing.T) {
	shards := make([]shard, 3)
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

// announcedMember remembers what it was told of later indexes.
type announcedMember struct {
	*cpuEngine
	later *[]extent
}

func (m announcedMember) loadTiles(ctx context.Context, own extent, later []extent) (shard, error) {
	*m.later = later
	return m.cpuEngine.loadTiles(ctx, own, later)
}

// TestDevicesLater: members hear of what they will hold of later indexes: all of it, or their ranges, and nothing of an index
// with fewer tiles than there are members.
func TestDevicesLater(t *testing.T) {
	rng := newRand(t)
	large, small := randomWorld(t, rng, 3*index.TileObjects).index, randomWorld(t, rng, 10).index
	snapshot := func(x *index.Index) *Snapshot { return &Snapshot{Segments: []Segment{{Index: x}}} }
	for _, mode := range DeviceModes() {
		crew := newCrew(1)
		told := make([][]extent, 3)
		var members []member
		for i := range told {
			e := newCPUEngine(CPUOptions{}, newCrew(1))
			members = append(members, announcedMember{e, &told[i]})
		}
		g := newDeviceGroup(members, mode, crew)
		if _, err := g.Load(context.Background(), snapshot(large), snapshot(small), snapshot(large)); err != nil {
			t.Fatal(err)
		}
		for i, got := range told {
			want := []extent{{small, allTiles(small)}, {large, allTiles(large)}}
			if mode == DeviceCapacity {
				want = []extent{{large, spreadTiles(large, 3)[i]}}
				if i == 0 {
					want = append([]extent{{small, allTiles(small)}}, want...)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: member %d is told of %v, want %v", mode, i, got, want)
			}
		}
		if _, err := g.Load(context.Background(), snapshot(large), nil); err == nil {
			t.Error("a later snapshot that is none is not refused")
		}
	}
}
