package translate

import (
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/wire"
)

// What things take in memory, at most. Lengths of keys and payloads come from the index.
const (
	itemBytes  = int64(unsafe.Sizeof(postings.Item{}))
	spanBytes  = int64(unsafe.Sizeof(postings.Span{}))
	hitBytes   = int64(unsafe.Sizeof(gpuexec.Hit{}))
	shownBytes = int64(unsafe.Sizeof(wire.Hit{}))
	// rankedBytes is a hit that is ordered by a measure, twice.
	rankedBytes = 128
	// refusalBytes is an error without its message.
	refusalBytes = 64
	// resultBytes and encodedBytes are a result without its hits, and a hit without key and payload, in the wider codec.
	resultBytes  = 320
	encodedBytes = 80
	// columnsBytes are the names of columns, of which a result has each once.
	columnsBytes = 160
)

// Need is what planned queries take in memory until their message is answered, in bytes.
type Need struct {
	Held       int64 // their plans, errors and hits
	Shown      int64 // the hits of the largest result as they are shown
	Answer     int64 // their results, encoded
	Candidates int64 // not bytes: how many are compared for the query that compares most
	Lookups    int64 // not bytes: how often lists are searched for what is told of hits
	Explained  int64 // queries
}

// Add adds a query, in an answer of messages of at most so many bytes.
func (n *Need) Add(e *Translator, q *Query, maxMessage int64) {
	n.Answer += resultBytes + int64(len(q.ID))
	if q.Form != wire.HitsList {
		n.Answer += columnsBytes
	}
	if q.Err != nil {
		n.Held += refusalBytes + int64(len(q.Err.Message))
		n.Answer += int64(len(q.Err.Message))
		return
	}
	// Beyond what the message has for its plans.
	n.Held += int64(cap(q.Match.Items))*itemBytes + int64(cap(q.Match.Spans))*spanBytes + filterBytes(q.Match.Filter)
	objects := int64(e.index.Objects())
	hits := min(int64(q.Plan.Wanted()), objects)
	if q.Plan.Rescore != nil {
		n.Held += q.Plan.Rescore.Bytes()
		if _, ok := q.Plan.Rescore.(*verify.Scores); ok {
			n.Held += hits * rankedBytes
		}
		n.Candidates = max(n.Candidates, min(int64(q.Plan.K), objects))
	}
	n.Held += hits * hitBytes
	each, shown := e.longestKey+encodedBytes, hits*shownBytes
	if q.Payload {
		longest := e.shown.Longest()
		each += longest
		if e.shown.Composed() { // payloads are put together, until they are encoded
			shown += min(hits*longest, packs*maxMessage+longest)
		}
	}
	if q.More != nil {
		own, encoded := n.more(e, q.More, hits)
		shown, each = shown+own, each+encoded
	}
	n.Answer += hits * each
	n.Shown = max(n.Shown, shown)
}

// more adds what is told of a query and its hits besides. It returns what that takes while it is shown, and a hit of it encoded.
func (n *Need) more(e *Translator, m *More, hits int64) (shown, encoded int64) {
	n.Held += m.bytes()
	n.Answer += m.bytes()
	n.Lookups += m.lookups(hits)
	if m.explained {
		n.Explained++
		n.Answer += explainedBytes
		shown += 8 * explainedBytes // while it is made
	}
	own, encoded := e.detailBytes(m)
	return shown + hits*own, encoded
}

// filterBytes is what a filter takes.
func filterBytes(f *filter.Filter) int64 {
	if f == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*f)) + int64(cap(f.Groups))*int64(unsafe.Sizeof(filter.Group{})) + int64(cap(f.Clauses))*int64(unsafe.Sizeof(filter.Clause{})) +
		int64(cap(f.Spans)+cap(f.Edges))*spanBytes + int64(cap(f.Ranges))*int64(unsafe.Sizeof(filter.Range{}))
}
