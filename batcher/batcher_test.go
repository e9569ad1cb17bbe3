package batcher_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func cut(t *testing.T, b *batcher.Batcher[int], now time.Time, free bool, reason batcher.Reason, want ...int) {
	t.Helper()
	got, ok := b.Cut(now, free)
	if !ok {
		t.Fatalf("Cut returned nothing, want %v (%v)", want, reason)
	}
	if !slices.Equal(got.Items, want) || got.Reason != reason {
		t.Fatalf("Cut = %v (%v), want %v (%v)", got.Items, got.Reason, want, reason)
	}
}

func noCut(t *testing.T, b *batcher.Batcher[int], now time.Time, free bool) {
	t.Helper()
	if got, ok := b.Cut(now, free); ok {
		t.Fatalf("Cut = %v (%v), want nothing", got.Items, got.Reason)
	}
}

func TestFreeExecutorTakesWhatIsThere(t *testing.T) {
	b := batcher.New[int](batcher.Options{MaxItems: 3})
	noCut(t, b, at(0), true)
	b.Add(at(0), 1, 1)
	noCut(t, b, at(0), false)
	noCut(t, b, at(60_000), false) // no timer of its own
	if _, ok := b.Wake(); ok {
		t.Error("Wake without a linger")
	}
	b.Add(at(1), 2, 1)
	cut(t, b, at(1), true, batcher.Idle, 1, 2)
	for i := range 7 {
		b.Add(at(2), i, 1)
	}
	cut(t, b, at(2), false, batcher.Full, 0, 1, 2)
	cut(t, b, at(2), true, batcher.Full, 3, 4, 5)
	noCut(t, b, at(2), false)
	cut(t, b, at(2), true, batcher.Idle, 6)
}

func TestCostCutsTheBatch(t *testing.T) {
	b := batcher.New[int](batcher.Options{MaxItems: 10, MaxCost: 100})
	b.Add(at(0), 1, 60)
	noCut(t, b, at(0), false)
	b.Add(at(0), 2, 40) // exactly full
	cut(t, b, at(0), false, batcher.Full, 1, 2)
	b.Add(at(0), 3, 60)
	b.Add(at(0), 4, 41)
	cut(t, b, at(0), false, batcher.Full, 3)
	b.Add(at(0), 5, 1_000) // too large for any batch: alone, and those before it are complete
	b.Add(at(0), 6, 1)
	cut(t, b, at(0), false, batcher.Full, 4)
	cut(t, b, at(0), false, batcher.Full, 5)
	noCut(t, b, at(0), false)
	if b.Len() != 1 {
		t.Errorf("Len %d, want 1", b.Len())
	}
}

func TestHugeCostsDoNotOverflow(t *testing.T) {
	b := batcher.New[int](batcher.Options{MaxItems: 10})
	b.Add(at(0), 1, 1<<63-1)
	b.Add(at(0), 2, 1<<62)
	cut(t, b, at(0), false, batcher.Full, 1)
	cut(t, b, at(0), true, batcher.Idle, 2)
}

func TestLinger(t *testing.T) {
	b := batcher.New[int](batcher.Options{MaxItems: 3, Linger: 5 * time.Millisecond})
	b.Add(at(0), 1, 0)
	b.Add(at(3), 2, 0)
	noCut(t, b, at(4), true)
	if w, ok := b.Wake(); !ok || !w.Equal(at(5)) {
		t.Errorf("Wake = %v %v, want %v", w, ok, at(5))
	}
	cut(t, b, at(5), false, batcher.Deadline, 1, 2)
	b.Add(at(6), 3, 0)
	b.Add(at(6), 4, 0)
	b.Add(at(6), 5, 0)
	cut(t, b, at(6), false, batcher.Full, 3, 4, 5)
	if _, ok := b.Wake(); ok {
		t.Error("Wake of an empty batcher")
	}
}

func TestDrain(t *testing.T) {
	b := batcher.New[int](batcher.Options{MaxItems: 2, Linger: time.Hour})
	for i := range 3 {
		b.Add(at(0), i, 0)
	}
	b.Drain()
	cut(t, b, at(0), false, batcher.Full, 0, 1)
	cut(t, b, at(0), false, batcher.Drain, 2)
	noCut(t, b, at(0), true)
	b.Add(at(0), 9, 0) // a straggler
	cut(t, b, at(0), false, batcher.Drain, 9)
}

// model is the specification written down without regard to speed: it keeps one list and scans it.
type model struct {
	opts     batcher.Options
	waiting  []modelItem
	draining bool
}

type modelItem struct {
	id, cost int
	due      time.Time
}

// next is the next batch, whether it is complete, and the earliest due time of all of them.
func (m *model) next() (n int, full bool, due time.Time) {
	normal, cost := m.waiting, 0
	limit := int(m.opts.MaxCost)
	for n < len(normal) && n < m.opts.MaxItems && (n == 0 || cost < limit && cost+normal[n].cost <= limit) {
		cost += normal[n].cost
		n++
	}
	full = n > 0 && (n < len(normal) || n == m.opts.MaxItems || cost >= limit)
	for _, it := range normal {
		if !it.due.IsZero() && (due.IsZero() || it.due.Before(due)) {
			due = it.due
		}
	}
	return n, full, due
}

func (m *model) cut(now time.Time, free bool) (ids []int, reason batcher.Reason) {
	n, full, due := m.next()
	ready := n > 0
	switch {
	case full:
		reason = batcher.Full
	case m.draining:
		reason = batcher.Drain
	case !due.IsZero() && !now.Before(due):
		reason = batcher.Deadline
	case free && m.opts.Linger == 0:
		reason = batcher.Idle
	default:
		ready = false
	}
	if !ready {
		return nil, 0
	}
	take := slices.Clone(m.waiting[:n])
	m.waiting = m.waiting[n:]
	for _, it := range take {
		ids = append(ids, it.id)
	}
	return ids, reason
}

func TestAgainstModel(t *testing.T) {
	r := seeded.Rand(t)
	for round := range 400 {
		opts := batcher.Options{MaxItems: 1 + r.IntN(6), MaxCost: int64(1 + r.IntN(40))}
		if r.IntN(2) == 0 {
			opts.Linger = time.Duration(1+r.IntN(20)) * time.Millisecond
		}
		cutShare := 0.2 + 0.6*r.Float64()
		b, m := batcher.New[int](opts), &model{opts: opts}
		now, id := start, 0
		where := func() string { return fmt.Sprintf("round %d, after %d items, %+v", round, id, opts) }
		for step := range 600 {
			now = now.Add(time.Duration(r.IntN(3)) * time.Millisecond)
			if step == 500 {
				b.Drain()
				m.draining = true
			}
			if r.Float64() > cutShare {
				it := modelItem{id: id, cost: r.IntN(15)}
				if r.IntN(30) == 0 {
					it.cost = 100
				}
				if opts.Linger > 0 {
					it.due = now.Add(opts.Linger)
				}
				id++
				m.waiting = append(m.waiting, it)
				b.Add(now, it.id, int64(it.cost))
			} else {
				free := r.IntN(3) == 0
				wantIDs, wantReason := m.cut(now, free)
				got, ok := b.Cut(now, free)
				if ok != (wantIDs != nil) || !slices.Equal(got.Items, wantIDs) ||
					ok && got.Reason != wantReason {
					t.Fatalf("%s: Cut = %+v %v, want %v (%v)", where(), got, ok, wantIDs, wantReason)
				}
			}
			_, _, due := m.next()
			wake, ok := b.Wake()
			if ok != !due.IsZero() || ok && !wake.Equal(due) {
				t.Fatalf("%s: Wake = %v %v, want %v", where(), wake, ok, due)
			}
			if b.Len() != len(m.waiting) {
				t.Fatalf("%s: Len %d, want %d", where(), b.Len(), len(m.waiting))
			}
		}
		for b.Len() > 0 { // draining: every call returns a batch
			if _, ok := b.Cut(now, false); !ok {
				t.Fatalf("%s: %d items are left and Cut returns nothing although draining", where(), b.Len())
			}
		}
	}
}

func BenchmarkAddCut(bench *testing.B) {
	b := batcher.New[*int](batcher.Options{MaxItems: 1024, MaxCost: 1 << 30})
	item := new(int)
	bench.ReportAllocs()
	for bench.Loop() {
		b.Add(start, item, 100)
		if b.Len() >= 4096 {
			for b.Len() >= 1024 {
				b.Cut(start, false)
			}
		}
	}
}
