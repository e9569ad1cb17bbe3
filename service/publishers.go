package service

import (
	"sync/atomic"

	"github.com/geniemq/geniemq/producer"
)

// publishers are the ways out of stored answers: producers, each on a connection of its own, that take turns. The server
// reads a connection in one goroutine, which parses what comes in, hands it to its stream and writes it to those who
// listen; where answers are large, that goroutine is what a single connection ends at (docs/benchmarks/history,
// 2026-11-21-h200-service.md). The connection that queries are pulled and acknowledged on carries none.
type publishers struct {
	producers []*producer.Producer
	turn      atomic.Uint64
}

// publishConnections is how many there are. More do not help: the stream that takes the answers is one, too.
const publishConnections = 2

// next is the producer for the next answer: all parts of one go the same way, so that they keep their order.
func (p *publishers) next() *producer.Producer {
	return p.producers[p.turn.Add(1)%uint64(len(p.producers))]
}

// blocked is the state of a producer from which nothing gets out, if there is one.
func (p *publishers) blocked() (producer.State, bool) {
	for _, one := range p.producers {
		if state := one.State(); state.Blocked {
			return state, true
		}
	}
	return producer.State{}, false
}
