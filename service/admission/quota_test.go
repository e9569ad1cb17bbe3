package admission

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A user gets the burst and then the rate, over any stretch; others have accounts of their own, and nobody in particular has no bounds.
func TestRate(t *testing.T) {
	rng := seeded.Rand(t)
	for range 50 {
		quota := Quota{Rate: 1 + 100*rng.Float64(), Burst: 1 + 50*rng.Float64()}
		q := NewQuotas(quota)
		now, start := time.Unix(1, 0), time.Unix(1, 0)
		got, largest := 0, 0
		for range 300 {
			now = now.Add(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
			n := 1 + rng.IntN(20)
			left, _ := q.Left("bob", now)
			wait := q.Spend("bob", n, now)
			if wait > 0 && left >= n || wait == 0 && left < n && float64(n) <= quota.Burst {
				t.Fatalf("%d queries with %d left: wait %v", n, left, wait)
			}
			if wait > 0 {
				if again := q.Spend("bob", n, now.Add(wait)); again > 0 {
					t.Fatalf("after the wait of %v it is %v", wait, again)
				}
				now = now.Add(wait)
			}
			got, largest = got+n, max(largest, n)
			if most := quota.Burst + quota.Rate*now.Sub(start).Seconds() + float64(largest); float64(got) > most+1 {
				t.Fatalf("%d queries in %v, allowed are %v", got, now.Sub(start), most)
			}
			if q.Spend("", 1<<20, now) != 0 {
				t.Fatal("nobody in particular is bounded")
			}
		}
		if wait := q.Spend("ann", 1, now); wait != 0 {
			t.Errorf("another user waits %v", wait)
		}
	}
}

func TestInFlight(t *testing.T) {
	q, now := NewQuotas(Quota{InFlight: 10}), time.Unix(1, 0)
	if !q.TryEnter("bob", 8, now) || q.TryEnter("bob", 3, now) || q.Room("bob") != 2 || q.Room("ann") != 10 || q.Most("bob") != 10 || q.Most("") != math.MaxInt || !q.TryEnter("", 1000, now) {
		t.Error("more or less are in flight than may be")
	}
	q.Leave("bob", 8)
	if q.Room("bob") != 10 {
		t.Errorf("room for %d after all left", q.Room("bob"))
	}
	var none *Quotas
	if none.Room("bob") != math.MaxInt || none.Spend("bob", 1<<30, now) != 0 {
		t.Error("without quotas there are bounds")
	}
	none.Leave("bob", 1)
}

// Names that anybody may choose do not add up.
func TestAccountsAreForgotten(t *testing.T) {
	q, now := NewQuotas(Quota{Rate: 1000, InFlight: 5}), time.Unix(1, 0)
	q.Enter("stays", 1, now)
	for i := range 100_000 {
		now = now.Add(time.Millisecond)
		q.Spend(fmt.Sprint("u", i), 1, now)
	}
	if len(q.users) > 5000 {
		t.Errorf("%d accounts are kept", len(q.users))
	}
	if q.Room("stays") != 4 {
		t.Error("an account with queries in flight is forgotten")
	}
}

// While others ask, bulk has one batch at a time, whose length follows what batches take; after a pause of theirs it has all.
func TestSlices(t *testing.T) {
	s, now := NewSlices(time.Millisecond, 1000), time.Unix(1, 0)
	if s.Room(now) != 1000 {
		t.Errorf("alone there is room for %d", s.Room(now))
	}
	s.Others(now)
	for range 40 {
		n := s.Room(now)
		s.Begin()
		if s.Room(now) != 0 {
			t.Fatal("two batches of bulk are out while others ask")
		}
		s.End(n, time.Duration(n)*4*time.Microsecond)
	}
	if n := s.Room(now); n != 250 {
		t.Errorf("a batch of a millisecond has %d queries of 4 us", n)
	}
	s.Begin()
	s.End(250, 100*time.Second)
	if n := s.Room(now); n != 125 {
		t.Errorf("one long batch makes it %d", n)
	}
	if n := s.Room(now.Add(quiet)); n != 1000 {
		t.Errorf("after a pause there is room for %d", n)
	}
}
