package memory

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Many who draw on an account at random never have more than there is, each is served in the end, and nothing is left.
func TestAccount(t *testing.T) {
	seed := seeded.Seed(t)
	a := &account{limit: 1000}
	holders := make([]Holder, 5)
	var inUse, refused, cancelled atomic.Int64
	var drawing sync.WaitGroup
	for i := range holders {
		holders[i].account = a
	}
	for g := range 20 {
		h := &holders[g%len(holders)]
		random := rand.New(rand.NewPCG(seed, uint64(g)))
		drawing.Go(func() {
			for range 3000 {
				n := 1 + random.Int64N(1000)>>random.IntN(8)
				switch random.IntN(3) {
				case 0:
					if !h.Try(n) {
						refused.Add(1)
						continue
					}
				case 1:
					ctx, cancel := context.WithCancel(context.Background())
					go cancel()
					if err := h.Wait(ctx, n); err != nil {
						cancelled.Add(1)
						continue
					}
				default:
					if err := h.Wait(context.Background(), n); err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
				if used := inUse.Add(n); used > a.limit {
					t.Errorf("seed %d: %d in use", seed, used)
				}
				inUse.Add(-n)
				h.Give(n)
			}
		})
	}
	drawing.Wait()
	used, waiting := a.state()
	for i := range holders {
		used += holders[i].held
	}
	if used != 0 || waiting != 0 || a.peak == 0 || a.peak > a.limit {
		t.Errorf("seed %d: %d left, %d wait, the peak was %d", seed, used, waiting, a.peak)
	}
	t.Logf("seed %d: %d refused, %d cancelled", seed, refused.Load(), cancelled.Load())
}

// Whoever takes without end leaves room for others, and what is larger than all there is fails at once.
func TestAccountLeavesRoom(t *testing.T) {
	a := &account{limit: 900}
	hog, second, third := &Holder{account: a}, &Holder{account: a}, &Holder{account: a}
	fill := func(h *Holder) {
		for h.Try(1) {
		}
	}
	fill(hog)
	if hog.held != 600 {
		t.Errorf("one that takes all it gets has %d of %d", hog.held, a.limit)
	}
	fill(second)
	if second.held != 200 {
		t.Errorf("the second one has %d", second.held)
	}
	if !third.Try(100) {
		t.Error("one that has nothing does not get what is left")
	}
	var much *TooMuch
	if err := third.Wait(context.Background(), 901); !errors.As(err, &much) {
		t.Errorf("more than there is: %v", err)
	}
}

// Who waits is served in order, but for those whose own share is used up: they hold up nobody.
func TestAccountServesInOrder(t *testing.T) {
	a := &account{limit: 900}
	hog, other, large, small := &Holder{account: a}, &Holder{account: a}, &Holder{account: a}, &Holder{account: a}
	var served sync.WaitGroup
	wait := func(h *Holder, n int64) { // returns when it waits, or has been served
		_, before := a.state()
		held := h.held
		served.Go(func() {
			if err := h.Wait(context.Background(), n); err != nil {
				t.Error(err)
			}
		})
		for {
			a.mu.Lock()
			arrived := a.waiting.Len() > before || h.held > held
			a.mu.Unlock()
			if arrived {
				return
			}
		}
	}
	for hog.Try(1) {
	}
	wait(hog, 50)
	wait(other, 20)
	if _, waiting := a.state(); waiting != 1 || other.held != 20 {
		t.Errorf("%d wait, and behind one whose own share is used up one got %d of 20", waiting, other.held)
	}
	wait(large, 800)
	wait(small, 50) // which there is room for
	if _, waiting := a.state(); waiting != 3 {
		t.Errorf("%d wait: somebody passed one who waits for more than there is", waiting)
	}
	hog.Give(600)
	if _, waiting := a.state(); waiting != 1 || hog.held != 50 || large.held != 800 {
		t.Errorf("%d wait, the first in line has %d of 50", waiting, hog.held)
	}
	other.Give(20)
	hog.Give(50)
	served.Wait()
	if used, waiting := a.state(); used != 850 || waiting != 0 {
		t.Errorf("%d are used, %d wait", used, waiting)
	}
}

// TestDue: memory is given back after a burst, and once when nothing is in flight any longer.
func TestDue(t *testing.T) {
	for _, c := range []struct {
		what                      string
		peak, recent, used, limit int64
		want                      bool
	}{
		{"nothing ever was", 0, 0, 0, 800, false},
		{"a burst is under way", 400, 400, 400, 800, false},
		{"a burst is over", 400, 400, 99, 800, true},
		{"a little, again and again", 50, 50, 0, 800, false},
		{"a little, and then nothing", 50, 0, 0, 800, true},
	} {
		if got := due(c.peak, c.recent, c.used, c.limit); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}
