package intake

import "sync"

// settlements are goroutines that somebody waits for while others may still begin, which a sync.WaitGroup does not allow: an answer may be confirmed
// at any time, and the last run of a suspect settles its message when it has ended.
type settlements struct {
	mu    sync.Mutex
	open  int
	ended sync.Cond // one has; of mu
}

// Go begins one.
func (s *settlements) Go(settle func()) {
	s.count(1)
	go func() {
		defer s.count(-1)
		settle()
	}()
}

func (s *settlements) count(more int) {
	s.mu.Lock()
	s.open += more
	s.mu.Unlock()
	s.ended.Broadcast()
}

// Wait returns when there is none.
func (s *settlements) Wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.L == nil {
		s.ended.L = &s.mu
	}
	for s.open > 0 {
		s.ended.Wait()
	}
}
