package client

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// mailbox takes in the messages for one request until its goroutine fetches them. It holds them undecoded, so that
// the one goroutine that nats.go delivers on is never the bottleneck.
type mailbox struct {
	mu     sync.Mutex
	mail   []*nats.Msg
	arrive bell.Bell // there is mail
}

func newMailbox() *mailbox { return &mailbox{arrive: bell.New()} }

func (b *mailbox) put(msg *nats.Msg) {
	b.mu.Lock()
	b.mail = append(b.mail, msg)
	b.mu.Unlock()
	b.arrive.Ring()
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
	header  nats.Header            // of the last message
	parts   map[ofVersion][]Result // of results that are not complete
}

func newCollector(queries int, batch bool) *collector {
	return &collector{batch: batch, results: make([]Result, queries), have: make([]bool, queries), missing: queries}
}

// add takes in a message and reports whether the answer is complete. The error means that there will be no results: it
// is the service's verdict on the whole message, or the message is no answer.
func (c *collector) add(header nats.Header, body []byte) (done bool, err error) {
	c.header = header
	a, err := wire.DecodeBody(header.Get(wire.HeaderContentType), body)
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
		if at >= len(c.results) || c.have[at] {
			continue
		}
		if result := c.joined(at, &a.Results[i]); result != nil {
			c.results[at], c.have[at] = *result, true
			c.missing--
		}
	}
	return c.missing == 0, nil
}

// ofVersion is a result in parts: which query's, and by which version of the index. Parts of two versions are of two results, of which one will be complete.
type ofVersion struct {
	query, all int
	version    string
}

// joined is the result that a part completes, nil where some of it is missing still. A whole result is complete. Nothing is taken for hits that have not come.
func (c *collector) joined(at int, part *Result) *Result {
	if part.AllHits == 0 || part.Err != nil {
		return part
	}
	of := ofVersion{at, part.AllHits, part.Version}
	if c.parts == nil {
		c.parts = make(map[ofVersion][]Result)
	}
	same := func(known Result) bool { return known.FirstHit == part.FirstHit && len(known.Hits) >= len(part.Hits) }
	if slices.ContainsFunc(c.parts[of], same) {
		return nil
	}
	parts := append(c.parts[of], *part)
	slices.SortFunc(parts, func(a, b Result) int { return cmp.Compare(a.FirstHit, b.FirstHit) })
	c.parts[of] = parts
	reach := 0
	for i := range parts {
		if parts[i].FirstHit > reach {
			return nil
		}
		reach = max(reach, parts[i].FirstHit+len(parts[i].Hits))
	}
	if reach < part.AllHits {
		return nil
	}
	whole := parts[0] // what is told beside hits is the first part's
	whole.Hits, whole.AllHits = make([]Hit, 0, reach), 0
	for i := range parts {
		if known := len(whole.Hits) - parts[i].FirstHit; known < len(parts[i].Hits) {
			whole.Hits = append(whole.Hits, parts[i].Hits[known:]...)
		}
	}
	delete(c.parts, of)
	return &whole
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
