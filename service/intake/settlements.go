package intake

import "sync"

// settlements are goroutines that somebody waits for while others may still begin, which a sync.WaitGroup does not allow: an answer may be confirmed
// at any time, and the last run of a suspect settles its message when it has ended.
type settlements struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when open comes to 0; nil while nobody waits
}

// Go begins one.
func (s *settlements) Go(settle func()) {
	s.mu.Lock()
	s.open++
	s.mu.Unlock()
	go func() {
		defer s.end()
		settle()
	}()
}

func (s *settlements) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open--; s.open == 0 && s.none != nil {
		close(s.none)
		s.none = nil
	}
}

// Wait returns when there is none.
func (s *settlements) Wait() {
	s.mu.Lock()
	if s.open == 0 {
		s.mu.Unlock()
		return
	}
	if s.none == nil {
		s.none = make(chan struct{})
	}
	none := s.none
	s.mu.Unlock()
	<-none
}
