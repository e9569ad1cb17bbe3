package group

import (
	"context"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// A replicaSearcher gives each batch to one of several shards that all hold the whole index: to the one with the fewest
// queries in flight. Nothing is shared between them but the cores of the host, so the rate is the sum of theirs while
// there are callers for all (Capacity.InFlight), and a single caller gets what one device gives.
type replicaSearcher struct {
	shards []*run.Searcher

	mu     sync.Mutex
	load   []int // by shard: queries in flight
	newest int   // the shard that got the last batch
}

func newReplicaSearcher(shards []*run.Searcher) gpuexec.Searcher {
	return &replicaSearcher{shards: shards, load: make([]int, len(shards)), newest: len(shards) - 1}
}

// take chooses a shard for so many queries. Among equals it takes turns, so that all are warm.
func (s *replicaSearcher) take(queries int) (shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.shards)
	shard = (s.newest + 1) % n
	for i := 2; i <= n; i++ {
		if other := (s.newest + i) % n; s.load[other] < s.load[shard] {
			shard = other
		}
	}
	s.newest = shard
	s.load[shard] += queries
	return shard
}

func (s *replicaSearcher) give(shard, queries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load[shard] -= queries
}

func (s *replicaSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	i := s.take(len(plans))
	defer s.give(i, len(plans))
	return s.shards[i].Search(ctx, plans, answers, t)
}

func (s *replicaSearcher) Capacity() gpuexec.Capacity {
	c := groupCapacity(s.shards)
	c.InFlight *= len(s.shards)
	c.IndexBytes = s.shards[0].Capacity().IndexBytes // it is one index
	return c
}

func (s *replicaSearcher) Cost(p *gpuexec.Plan) int64 { return groupCost(s.shards, p) }

func (s *replicaSearcher) Close() error { return run.CloseAll(slices.Values(s.shards)) }
