package served

import (
	"context"
	"maps"
	"slices"
)

// follower is a goroutine that looks out for what is to be served in the place of an index's file.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Follow runs a function that follows what is to be served under a name, until the index goes or the worker ends. There may be no such index yet.
func (s *Set) Follow(name string, run func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow(name, run)
}

// follow is Follow while s.mu is held.
func (s *Set) follow(name string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{cancel, make(chan struct{})}
	s.followers[name] = append(s.followers[name], f)
	go func() {
		defer close(f.done)
		run(ctx)
	}()
}

// unfollow ends the followers of some names, and returns when they have ended.
func (s *Set) unfollow(names ...string) {
	var ending []*follower
	s.mu.Lock()
	for _, name := range names {
		ending = append(ending, s.followers[name]...)
		delete(s.followers, name)
	}
	s.mu.Unlock()
	for _, f := range ending {
		f.cancel()
	}
	for _, f := range ending {
		<-f.done
	}
}

// Unfollow ends all followers.
func (s *Set) Unfollow() {
	s.mu.RLock()
	names := slices.Collect(maps.Keys(s.followers))
	s.mu.RUnlock()
	s.unfollow(names...)
}
