package client

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/wire"
)

// mailbox takes in the messages for one request until its goroutine fetches them. It holds them undecoded, so that
// the one goroutine that nats.go delivers on is never the bottleneck.
type mailbox struct {
	mu     sync.Mutex
	mail   []*nats.Msg
	arrive chan struct{} // holds one token while there is mail
}

func newMailbox() *mailbox { return &mailbox{arrive: make(chan struct{}, 1)} }

func (b *mailbox) put(msg *nats.Msg) {
	b.mu.Lock()
	b.mail = append(b.mail, msg)
	b.mu.Unlock()
	select {
	case b.arrive <- struct{}{}:
	default:
	}
}

func (b *mailbox) fetch() []*nats.Msg {
	b.mu.Lock()
	defer b.mu.Unlock()
	mail := b.mail
	b.mail = nil
	return mail
}

// collector puts the parts of an answer together. It goes by the positions of the results, not by the numbers of the
// parts: parts may come twice, in any order, and from two runs of the same query.
type collector struct {
	batch   bool
	results []Result
	have    []bool
	missing int
}

func newCollector(queries int, batch bool) *collector {
	return &collector{batch: batch, results: make([]Result, queries), have: make([]bool, queries), missing: queries}
}

// add takes in a message and reports whether the answer is complete. The error means that there will be no results: it
// is the service's verdict on the whole message, or the message is no answer.
func (c *collector) add(header nats.Header, body []byte) (done bool, err error) {
	a, err := decodeAnswer(header, body)
	if err != nil {
		return false, err
	}
	if c.batch && !a.Batch { // the batch as a whole has one result
		if a.Results[0].Err == nil {
			return false, fmt.Errorf("a batch of %d queries was answered by a single result", len(c.results))
		}
		return false, a.Results[0].Err
	}
	for i := range a.Results {
		at := a.First + i
		if at < len(c.results) && !c.have[at] {
			c.results[at], c.have[at] = a.Results[i], true
			c.missing--
		}
	}
	return c.missing == 0, nil
}

func decodeAnswer(header nats.Header, body []byte) (*wire.Answer, error) {
	ct, err := wire.ParseContentType(header.Get(wire.HeaderContentType))
	if err != nil {
		return nil, err
	}
	return wire.DecodeAnswer(ct, body)
}

// single returns the result of the only query, with its error as error.
func single(results []Result, err error) (*Result, error) {
	if err != nil {
		return nil, err
	}
	if results[0].Err != nil {
		return nil, results[0].Err
	}
	return &results[0], nil
}
