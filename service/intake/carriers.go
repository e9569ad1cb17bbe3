package intake

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/wire"
)

// Carriers are the connections that stored queries come and their answers go on. Bulk has its own, and direct queries come on neither.
//
// What the server has to send on a connection waits in one line, and so does what is written to one. A pull of bulk is megabytes, and a single query that came
// behind them had twice the p99 on its way to the worker (docs/benchmarks/history/2026-11-23-connections.md). Classes that are waited for share a carrier.
//
// The service makes the connections, reconnects and closes them, when all that was pulled is settled. It is ready while all of them are connected; one that is lost is
// back-pressure for the consumers and producers on it, and costs those on the other nothing.
type Carriers struct {
	Asked Carrier
	Bulk  Carrier // empty where the class is not served
}

// Carrier is what brings stored queries of some classes and takes their answers.
type Carrier struct {
	JS jetstream.JetStream // of the connection that they are pulled and settled on
	Publishers
}

// Of is the carrier of a class.
func (c *Carriers) Of(class wire.Class) *Carrier {
	if class == wire.ClassBulk {
		return &c.Bulk
	}
	return &c.Asked
}

// Fault says why nothing gets out of a producer, or nil.
func (c *Carriers) Fault() error {
	for _, one := range slices.Concat(c.Asked.Producers, c.Bulk.Producers) {
		if state := one.State(); state.Blocked {
			return fmt.Errorf("results do not get out: %w", state.Reason)
		}
	}
	return nil
}

// Publishers are the ways out of stored answers: producers, each on a connection of its own, that take turns. The server
// reads a connection in one goroutine, which parses what comes in, hands it to its stream and writes it to those who
// listen; where answers are large, that goroutine is what a single connection ends at (docs/benchmarks/history,
// 2026-11-21-h200-service.md). The connection that queries are pulled and acknowledged on carries none.
type Publishers struct {
	Producers []*producer.Producer
	turns     atomic.Uint64 // in bytes
}

// PublishConnections is how many there are. More do not help: the stream that takes the answers is one, too.
const PublishConnections = 2

// turnBytes is how much of answers goes out on a connection before it is another's turn. Large answers take turns one by one; small ones stay together, since each connection
// that has something to write takes calls of the system at both ends.
const turnBytes = 64 << 10

// next is the producer for an answer whose first message has so many bytes: all parts of one go the same way, so that they keep their order.
func (p *Publishers) next(bytes int) *producer.Producer {
	turn := p.turns.Add(uint64(min(bytes, turnBytes))) / turnBytes
	return p.Producers[turn%uint64(len(p.Producers))]
}
