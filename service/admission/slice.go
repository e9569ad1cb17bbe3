package admission

import (
	"cmp"
	"sync"
	"time"
)

// quiet is for how long nobody else must have asked before bulk has all of the engine. It is long beside the pauses of people, who would meet full batches
// otherwise.
const quiet = 10 * time.Second

// Slices say how much bulk work may be with the engine at a time while others ask: a batch of as many queries as take about a slice of time, which is what
// somebody who comes meanwhile waits for. When nobody else has asked for a while there is no bound. They are safe for concurrent use.
type Slices struct {
	slice time.Duration
	most  int // queries of a batch

	mu      sync.Mutex
	queries float64   // that take about a slice
	others  time.Time // when somebody else asked last
	out     int       // bulk batches that are out
}

// defaultSlice is what those who ask one by one hardly notice.
const defaultSlice = 2 * time.Millisecond

// NewSlices makes slices of a length, by default 2 ms, for batches of at most so many queries.
func NewSlices(slice time.Duration, most int) *Slices {
	slice = cmp.Or(slice, defaultSlice)
	return &Slices{slice: slice, most: most, queries: float64(min(most, 32))}
}

// Others says that somebody asks who does not belong to bulk.
func (s *Slices) Others(now time.Time) {
	s.mu.Lock()
	s.others = now
	s.mu.Unlock()
}

// Room is how many queries of bulk a batch may have that is made now. While others ask one bulk batch is out at a time, so that an executor is free or soon will be.
func (s *Slices) Room(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.others.IsZero() || now.Sub(s.others) >= quiet:
		return s.most
	case s.out > 0:
		return 0
	}
	return max(1, int(s.queries))
}

// Begin says that a bulk batch is out, and End that it is back, with how many queries it had and how long it took.
func (s *Slices) Begin() {
	s.mu.Lock()
	s.out++
	s.mu.Unlock()
}

func (s *Slices) End(queries int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out--
	if took <= 0 || queries <= 0 {
		return
	}
	// Towards what would have taken a slice. A small batch says little of what more would take, so growth is at most twofold.
	want := float64(queries) * float64(s.slice) / float64(took)
	s.queries = min(max(want, s.queries/2, 1), 2*s.queries, float64(s.most))
}
